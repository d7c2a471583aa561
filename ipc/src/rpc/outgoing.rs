//! Lines for a front end, each without its end. JSON has no line end inside: serde writes none, and strings escape theirs.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{ErrorObject, JSONRPC, Notification, NotificationForm, RequestId};
use crate::approval::ServerRequest;

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: &'a T,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    // Null where the request's own could not be read: JSON-RPC's one null here.
    id: Option<&'a RequestId>,
    error: &'a ErrorObject,
}

#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    method: &'a str,
    params: &'a RawValue,
}

/// The response to a request that was granted.
pub fn success<T: Serialize>(id: &RequestId, result: &T) -> serde_json::Result<String> {
    serde_json::to_string(&Success { jsonrpc: JSONRPC, id, result })
}

/// The response to a request that was not, or to a line that was none.
pub fn failure(id: Option<&RequestId>, error: &ErrorObject) -> serde_json::Result<String> {
    serde_json::to_string(&Failure { jsonrpc: JSONRPC, id, error })
}

/// A request for an approval.
pub fn request(id: &RequestId, request: &ServerRequest) -> serde_json::Result<String> {
    let params = request.params()?;
    serde_json::to_string(&Call { jsonrpc: JSONRPC, id: Some(id), method: request.method(), params: &params })
}

/// A notification.
pub fn notification(told: &Notification, form: NotificationForm) -> serde_json::Result<String> {
    let params = told.params(form)?;
    serde_json::to_string(&Call { jsonrpc: JSONRPC, id: None, method: told.method_in(form), params: &params })
}
