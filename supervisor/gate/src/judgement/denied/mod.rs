//! Explains failures: the denials of the sandbox that caused them, and advice where more access would not help.

mod advice;
mod calls;
mod explain;
mod hints;
mod likely;
mod message;
mod process;
mod proved;
mod succeeded;
mod unreached;

pub use advice::advice;
pub use explain::explain;
pub use hints::{connection_hint, git_config_hint};
#[cfg(test)]
pub(super) use likely::likely;
pub use likely::{declared_too_little, is_same};
#[cfg(test)]
pub(super) use proved::proved;
pub use proved::{denials, denials_but, refused_by_rules};
