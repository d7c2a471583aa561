//! Lines for the peer, without line ends. Their JSON has none either: serde writes none, and escapes those in strings.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{JSONRPC, RequestId};

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: &'a T,
}

#[derive(Serialize)]
struct Failure<'a, E> {
    jsonrpc: &'static str,
    // Null if the id of the request could not be read: the only null in this protocol.
    id: Option<&'a RequestId>,
    error: &'a E,
}

#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    method: &'a str,
    params: &'a RawValue,
}

/// Serialises the response to a request that succeeded.
pub fn success<T: Serialize>(id: &RequestId, result: &T) -> serde_json::Result<String> {
    serde_json::to_string(&Success { jsonrpc: JSONRPC, id, result })
}

/// Serialises the response to a request that failed, or to a line without a readable id; `id` is `None` in that case.
pub fn failure<E: Serialize>(id: Option<&RequestId>, error: &E) -> serde_json::Result<String> {
    serde_json::to_string(&Failure { jsonrpc: JSONRPC, id, error })
}

/// Serialises a request, or a notification if `id` is `None`.
pub fn call(id: Option<&RequestId>, method: &str, params: &RawValue) -> serde_json::Result<String> {
    serde_json::to_string(&Call { jsonrpc: JSONRPC, id, method, params })
}
