//! A run's traffic with the model, in a directory: written while it happens ([`Recorder`]), read back whole ([`Recording`]), and
//! compared with the traffic of another run ([`RecordingComparison`]).
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

pub use comparison::{Mismatch, RecordingComparison};
pub use directory::DirectoryError;
pub use exchange::{Exchange, ExchangeHead};
pub use format::{Ending, FORMAT, FrontEnd, Run, Task};
pub use places::Places;
pub use reading::{Recorded, Recording, RecordingError};
pub use recorder::Recorder;
pub use reply::Reply;
pub use reply::ReplyEnd;
pub use request::RecordedRequest;
