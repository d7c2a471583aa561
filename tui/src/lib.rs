//! Terminal UI without a terminal: messages come in, actions go out, frames are drawn on demand.
//!
//! ```text
//! loop {
//!     message = key | paste | resize | event of the session | tick after next_tick(&model)
//!     for action in update(&mut model, at, message) { execute it }
//!     if an action was Redraw {                         // at most 60 times a second, after all waiting messages
//!         terminal.draw(|frame| shown = view(&model, frame)); flush;
//!         update(&mut model, at, Msg::Drawn(shown));
//!     }
//! }
//! ```
//!
//! * [`update`] is pure: it changes nothing but the model, and reads no clock (each message comes with its [`UiTime`]).
//! * [`view`] draws the model and returns facts about the frame ([`Shown`]). Only [`Msg::Drawn`], sent once the frame
//!   is on the terminal, makes an approval request count as seen: no key can answer a request that was not shown. The
//!   time of a key is the time when it was *read*, so the caller reads all waiting keys before it draws a frame.
//! * Every text that is drawn is a [`text::SafeText`].
//! * The crate starts no process, reads no file, and does not use the network.

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
