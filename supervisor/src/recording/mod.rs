//! A run's traffic with the model, in a directory: written while it happens ([`Recorder`]), read back whole ([`Recording`]), and
//! compared with the traffic of another run ([`Comparison`]).
//!
//! `docs/recording.md` says what each file holds, what is stripped, and what is not.

mod comparison;
mod difference;
mod directory;
mod exchange;
mod format;
mod headers;
mod places;
mod reading;
mod recorder;
mod reply;
mod request;

pub use comparison::{Comparison, Mismatch};
pub use directory::DirectoryError;
pub(crate) use exchange::{Exchange, Head};
pub use format::{Ending, FORMAT, FrontEnd, Run, Task};
pub use places::Places;
pub use reading::{Recorded, Recording, RecordingError};
pub use recorder::Recorder;
pub(crate) use reply::End;
pub use reply::Reply;
pub use request::RecordedRequest;
