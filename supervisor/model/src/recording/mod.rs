//! Records a run's requests and responses ([`Recorder`]), reads recordings ([`Recording`]), and compares them with
//! another run ([`RecordingComparison`]).
//!
//! `docs/recording.md` describes the files, and which data are removed from them.

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
