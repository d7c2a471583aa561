//! The conversation of an agent: its messages, the parts of the next message, and the tokens that they need.
//!
//! [`Conversation`] decides when it has to be summarised, and how a new context begins. It depends on neither calls nor
//! workers: results are blocks of the user's next message.

mod compaction;
mod history;
mod images;
mod ledger;
mod left_out;
mod machine;
mod message;
mod opening;
mod own_calls;
mod record;
mod restore;
mod summary;
mod tasks;
mod window;

pub(in crate::core) use compaction::{AfterSummary, Asked, Mended, Next, Then, is_too_long};
#[cfg(test)]
pub(in crate::core) use history::History;
pub(in crate::core) use machine::{Conversation, ConversationSettings, fixed_tokens};
pub(in crate::core) use message::UserSaid;
pub(in crate::core) use own_calls::{EARLIER_PLAN, OWN_COMMAND, quoted};
pub(in crate::core) use record::ends;
pub use restore::{Counted, standing};
pub(in crate::core) use restore::{INTERRUPTED, INTERRUPTED_HERE};
pub(in crate::core) use window::{Budget, bytes, tokens};

#[cfg(test)]
mod tests;
