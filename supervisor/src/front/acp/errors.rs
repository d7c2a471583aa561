//! Errors with the numeric codes of the Agent Client Protocol. The `data` of an error is its name in `serve`.

use protocol::rpc::{ErrorObject, ErrorWord};

/// Error number for a missing key or login.
const AUTH_REQUIRED: i64 = -32000;

/// Error number for a session that does not exist.
const NOT_FOUND: i64 = -32002;

/// Replaces the number of an error by the one that the Agent Client Protocol has for it.
pub(super) fn of(error: ErrorObject) -> ErrorObject {
    let code = match error.data.word {
        ErrorWord::NoKey => AUTH_REQUIRED,
        ErrorWord::NoSuchConversation => NOT_FOUND,
        ErrorWord::ProjectRefused | ErrorWord::OptionRefused | ErrorWord::ProviderRefused => {
            ErrorWord::InvalidParams.code()
        }
        ErrorWord::SandboxUnavailable => ErrorWord::InternalError.code(),
        ErrorWord::NotInitialised
        | ErrorWord::AlreadyInitialised
        | ErrorWord::Busy
        | ErrorWord::ShuttingDown
        | ErrorWord::Occupied
        | ErrorWord::NoSuchAgent => ErrorWord::InvalidRequest.code(),
        word @ (ErrorWord::ParseError
        | ErrorWord::InvalidRequest
        | ErrorWord::MethodNotFound
        | ErrorWord::InvalidParams
        | ErrorWord::InternalError) => word.code(),
    };
    ErrorObject { code, ..error }
}
