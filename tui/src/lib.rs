//! The terminal UI, without a terminal: messages in, actions out, frames on demand.
//!
//! ```text
//! loop {
//!     message = key | paste | resize | event of the core | tick after next_tick(&model)
//!     for action in update(&mut model, at, message) { carry it out }
//!     if a Redraw came {                                // at most 60 times a second, after all messages that wait
//!         terminal.draw(|frame| shown = view(&model, frame)); flush;
//!         update(&mut model, at, Msg::Drawn(shown));
//!     }
//! }
//! ```
//!
//! * [`update`] is pure: it reads no clock ([`Moment`] comes with each message), and touches nothing but the model.
//! * [`view`] draws the model as it is and says what it put on the screen ([`Shown`]). Only after [`Msg::Drawn`] says that
//!   the frame is on the terminal does a request count as seen: no key can answer what was not shown. The moment of a key is
//!   the one at which it was *read*; whatever waits in the terminal's queue is to be read before a frame is drawn.
//! * Every text that is drawn is a [`text::SafeText`]; nothing else reaches a cell.
//! * Nothing here starts a process, reads a file or knows of the network.

#![forbid(unsafe_code)]

mod card;
pub mod commands;
mod diff;
mod highlight;
pub mod keymap;
mod known_models;
mod markdown;
mod message;
mod model;
mod moment;
mod picker;
mod plan;
mod start;
pub mod text;
mod tool_summary;
mod update;
mod view;

pub use card::plan as plan_request;
pub use highlight::{CodeRead, CodeToRead};
pub use known_models::{KnownModel, KnownModels};
pub use markdown::laid_out;
pub use message::{Action, Copied, Msg, Reason};
pub use model::{LogRow, LogRows, Model, is_tiny};
pub use moment::UiTime;
pub use picker::{Picked, Picker, PickerRow};
pub use start::{Capabilities, Colour, Origins, Previews, Start, StatusWords, ThemeName};
pub use tool_summary::{ToolSummary, cut};
pub use update::{ALLOWED, allowed, next_tick, review_task, update};
pub use view::{Shown, pick, view};
