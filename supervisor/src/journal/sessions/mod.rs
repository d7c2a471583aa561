//! The sessions that there are: listed by an index, searched, exported, imported, and deleted when they are old.
//!
//! * [`Index`]: a record of each log, so that a listing reads only those that changed. [`Summary`] is what a record says of one.
//! * [`archive`]: a session as one file.
//! * [`no_log`]: an export where a log is expected.
//! * [`prune`]: what is deleted when it is old. [`delete`]: one session, which somebody named.
//! * [`search`]: the line of a log that has a text.
//! * [`bounded`]: the lines of a log, none of which takes more memory than a line of ours may.

mod archive;
mod bounded;
mod delete;
mod index;
mod no_log;
mod prune;
mod search;
mod summary;

pub(crate) use self::archive::{ArchiveError, Archived, Head, LARGEST, export};
pub(crate) use self::delete::{Deleted, Deletion, delete};
pub use self::index::{Index, ListedSession};
pub(crate) use self::no_log::{IsExport, check_no_export};
pub(crate) use self::prune::{Keep, Pruned, prune};
pub(crate) use self::search::Needle;
