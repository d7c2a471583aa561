//! The session: an append-only tree of events, the single source of truth.
//!
//! [`SessionLog`] writes it, one JSON object a line, each carrying the SHA-256 of the line before it; [`load`] reads it
//! back, checks the chain and names what is wrong; [`Tree`] answers questions about it. Only the log file's own modules
//! touch the file system.

mod chain;
mod copy;
mod error;
mod file;
mod flush;
mod last;
mod load;
mod log;
#[cfg(test)]
pub(crate) mod made;
mod open_ends;
mod page;
mod removal;
mod tree;

pub(crate) use copy::Chain;
pub use error::{Fault, LogError};
pub use flush::{Flushed, Flusher};
pub(crate) use last::{begun, find, last_of};
pub use load::{Loaded, load, rebuild};
pub use log::SessionLog;
pub(crate) use open_ends::{CutOff, closing, leftovers};
pub use page::{LogPage, read_page};
pub(crate) use removal::{Removal, remove};
pub use tree::{Tree, Turn};

#[cfg(test)]
mod tests;
