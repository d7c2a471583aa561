//! What the API says went wrong in the middle of a reply (S8).

use serde_json::value::RawValue;

use super::wire::ApiError;
use crate::provider::ProviderError;
use crate::provider::failure::one_line;

/// The error of an `error` event after a status of 200 (S8).
pub(super) fn from_event(error: Option<&RawValue>, request_id: Option<String>) -> ProviderError {
    let error: ApiError = error.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let kind = error.kind.unwrap_or_else(|| "api_error".to_owned());
    let said = error.message.map_or_else(|| "no message".to_owned(), |message| one_line(&message));
    let code = error.details.and_then(|details| details.error_code).unwrap_or_default();
    let retryable =
        matches!(kind.as_str(), "overloaded_error" | "api_error" | "timeout_error" | "rate_limit_error")
            && !code.contains("spend_limit");
    let mut message = format!("the API broke off its reply ({}): {said}", one_line(&kind));
    if let Some(id) = &request_id {
        message = format!("{message} [request-id {}]", one_line(id));
    }
    let request_id = request_id.map(String::into_boxed_str);
    ProviderError { request_id, retryable, ..ProviderError::new(one_line(&kind), message) }
}
