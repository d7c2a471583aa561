//! Plan files: Markdown that people edit, parsed into a [`protocol::plan::Plan`] and written from one. Pure: no file is opened here.
//!
//! ```text
//! # Title
//!
//! ## Context                  optional, free Markdown
//!
//! ## Rights                   optional
//! - write: src
//! - network: on
//!
//! ## On failure               optional: stop, retry or replan
//! replan
//!
//! ## Steps
//! ### 1. Title of the step
//! Description.
//!
//! Files:
//! - `src/a.rs`
//!
//! Acceptance:
//! - `cargo test`              one code span or one fenced block: a command
//! - The manual mentions it    anything else: a criterion
//! ```
//!
//! Only a subset of Markdown has a meaning. It is parsed line by line, so that the time is proportional to the length.
//! Text that a Markdown viewer would structure in another way is mostly an error; underlined headings and HTML blocks
//! count as plain text. A person approves the bytes and the list of commands, not a rendering.

mod document;
mod edit;
mod error;
mod items;
mod layout;
mod lines;
mod parse;
mod print;
mod span;
mod steps;
#[cfg(test)]
mod tests;
mod words;

use ipc::text::hexadecimal;
use sha2::{Digest as _, Sha256};

pub use self::document::Document;
pub use self::error::{PlanError, Unwritable};
pub use self::print::{print, validate};

pub const MOST_BYTES: usize = 256 * 1024;

pub const MOST_STEPS: usize = 200;

pub const MOST_COMMANDS: usize = 64;

/// Returns the SHA-256 of a plan file in hexadecimal. An approval is bound to it.
pub fn digest(text: impl AsRef<[u8]>) -> String {
    hexadecimal(&Sha256::digest(text.as_ref()))
}
