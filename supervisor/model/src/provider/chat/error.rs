//! What a server says went wrong in the middle of a reply (S8).

use crate::provider::ProviderError;
use crate::provider::failure::one_line;
use crate::provider::fault::ReplyFault;

/// The error of a chunk after a status of 200 (S8): worth another attempt, unless it says that the request is at fault.
pub(super) fn from_chunk(data: &str) -> ProviderError {
    let fault = ReplyFault::parse(data.as_bytes());
    let kind = one_line(&fault.kind().unwrap_or_else(|| "api_error".to_owned()));
    let said = fault.message.as_deref().map_or_else(|| "no message".to_owned(), one_line);
    let is_ours = matches!(
        kind.as_str(),
        "invalid_request_error" | "authentication_error" | "permission_error" | "not_found_error"
    );
    let retryable = match fault.status {
        _ if fault.is_spent() => false,
        _ if fault.is_failed_generation() => true,
        Some(status) => matches!(status, 408 | 409 | 429 | 500..),
        None => !is_ours,
    };
    let message = format!("the API broke off its reply ({kind}): {said}");
    ProviderError { retryable, status: fault.status, ..ProviderError::new(kind, message) }
}
