//! The session log: an append-only tree of events that is the only source of a session's state.
//!
//! [`SessionLog`] writes the log, with one JSON object on each line and a digest chain over the lines. [`load`] reads
//! it, checks the chain and names the faults. [`Tree`] finds events by id and parent. Only the modules of the log file
//! touch the file system.

mod chain;
mod copy;
mod durable;
mod error;
mod file;
mod flush;
mod last;
mod load;
mod log;
#[cfg(test)]
pub(crate) mod made;
mod needed;
mod open_ends;
mod page;
mod parts;
mod removal;
mod scan;
mod sieve;
mod tree;

pub(crate) use copy::{Chain, each_event, each_line};
pub use error::{Fault, LogError};
pub(crate) use file::is_held;
pub use flush::{Flushed, Flusher};
pub(crate) use last::{begun, find, is_just_imported, last_of};
pub use load::{Loaded, load, rebuild};
pub(crate) use load::{load_as, load_from};
pub use log::{Reopened, SessionLog};
pub use needed::Needed;
#[cfg(test)]
pub(crate) use needed::{Sizes, read_needed_within};
pub(crate) use needed::{messages, read_needed};
pub(crate) use open_ends::{CutOff, closing, leftovers};
pub use page::{LogPage, read_page};
pub use parts::LONGEST_LINE;
pub(crate) use removal::{Removal, remove};
pub use tree::{Tree, Turn};

#[cfg(test)]
mod tests;
