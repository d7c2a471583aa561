//! Errors for a front end: a number for JSON-RPC, a stable word for programs, a sentence for people.

use serde::{Deserialize, Serialize};

use crate::error_code::ErrorCode;
use crate::rpc::transport::Refused;

/// The error of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ErrorObject {
    /// JSON-RPC's own code, or one of Bailiwick's from -32000 downwards.
    pub code: i64,
    /// Description of the failure, for people.
    pub message: String,
    /// Word and code of the failure, for programs.
    pub data: ErrorData,
}

/// Word and code of a failure, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ErrorData {
    /// Word by which programs tell errors apart; it does not change between versions.
    pub word: ErrorWord,
    /// Stable code of the error, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
}

/// The kinds of errors, by stable words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum ErrorWord {
    /// The line is not JSON.
    ParseError,
    /// The line is JSON, but no request.
    InvalidRequest,
    /// No request has this method.
    MethodNotFound,
    /// The parameters do not match the method.
    InvalidParams,
    /// Bailiwick itself failed.
    InternalError,
    /// `initialize` has to come first.
    NotInitialised,
    /// `initialize` came already.
    AlreadyInitialised,
    /// The conversation is unknown, or over.
    NoSuchConversation,
    /// The project cannot be confined, or does not exist.
    ProjectRefused,
    /// An option of a new conversation cannot be accepted.
    OptionRefused,
    /// This machine cannot enforce a layer of the sandbox.
    SandboxUnavailable,
    /// No usable API key was found.
    NoKey,
    /// The provider's address is not usable.
    ProviderRefused,
    /// The conversation has too many waiting requests: send the request again later.
    Busy,
    /// The server is about to end.
    ShuttingDown,
    /// Another front end is connected.
    Occupied,
    /// The conversation has no agent with this id, or that agent has ended.
    NoSuchAgent,
}

impl ErrorWord {
    /// Returns the JSON-RPC error code that goes with the word.
    pub const fn code(self) -> i64 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::InternalError => -32603,
            Self::NotInitialised => -32000,
            Self::AlreadyInitialised => -32001,
            Self::NoSuchConversation => -32002,
            Self::ProjectRefused => -32003,
            Self::OptionRefused => -32004,
            Self::SandboxUnavailable => -32005,
            Self::NoKey => -32006,
            Self::ProviderRefused => -32007,
            Self::Busy => -32008,
            Self::ShuttingDown => -32009,
            Self::Occupied => -32010,
            Self::NoSuchAgent => -32011,
        }
    }

    /// Returns an error of this kind, with a message for people.
    pub fn because(self, message: impl ToString) -> ErrorObject {
        let message = message.to_string();
        let data = ErrorData { word: self, error: ErrorCode::of(&message) };
        ErrorObject { code: self.code(), message, data }
    }
}

impl From<&Refused> for ErrorObject {
    fn from(refused: &Refused) -> Self {
        let word = if refused.is_no_json { ErrorWord::ParseError } else { ErrorWord::InvalidRequest };
        word.because(&refused.cause)
    }
}
