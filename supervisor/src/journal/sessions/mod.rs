//! The stored sessions: listing by an index, search, export, import, and deletion.
//!
//! * [`Index`]: a record of each log, so that a listing reads only changed logs. [`Summary`]: the values of a record.
//! * [`archive`]: a session as one file.
//! * [`no_log`]: the error if a file is an export and not a log.
//! * [`prune`]: deletion of old sessions. [`delete`]: deletion of one named session.
//! * [`search`]: the first line of a log that contains a text.
//! * [`bounded`]: the lines of a log, each of limited length.

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
