//! The methods of Bailiwick's own protocol, their parameters, results and errors.

mod agents;
mod attachment;
mod client;
mod commands;
mod error;
mod grant;
mod notification;
mod prompts;
mod request;
mod response;
mod rewind;
mod schema;

pub use agents::{
    AgentInfo, AgentState, GuestInfo, ListAgentsResponse, OpenCall, SendToAgentParams, StopAgentParams,
};
pub use attachment::Attachment;
pub use client::*;
pub use commands::{GetCommandParams, GetCommandResponse, ListCommandsResponse};
pub use error::{ErrorObject, ErrorWord};
pub use grant::{GrantParams, GrantedNetwork, GrantedRight};
#[cfg(test)]
pub(super) use notification::type_of;
pub use notification::*;
pub use prompts::{GetPromptParams, ListPromptsResponse};
pub use request::{notification, request};
pub(crate) use response::decode;
pub use response::{answer, unawaited};
pub use rewind::RewindParams;
pub use schema::schema;
