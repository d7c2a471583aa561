//! Landlock's audit records: what the kernel itself says that it refused, with the path.
//!
//! Who may read them (`CAP_AUDIT_READ`, in the machine's own namespaces) subscribes before a program is spawned, where the machine's
//! auditing is on; nothing here turns it on. Records come of everybody: those of domains that no program of ours made are forgotten at
//! once, and of the others only what a running call made is ever told.

mod line;
mod reader;
mod socket;
mod trail;

pub use reader::Records;
pub use socket::{Unreadable, readable};
pub use trail::Whose;
