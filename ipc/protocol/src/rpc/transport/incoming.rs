//! Parsing of a line from the peer as a message.

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use super::{JSONRPC, RequestId};

/// A message of the peer, whose content is not parsed yet.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A request, which expects a response.
    Request {
        /// The id that the response echoes.
        id: RequestId,
        /// The method, as the peer wrote it; it may be unknown.
        method: String,
        /// The parameters, an object; absent if the message has none.
        params: Option<Box<RawValue>>,
    },
    /// A notification, which expects no response.
    Notification {
        /// The method, as the peer wrote it; it may be unknown.
        method: String,
        /// The parameters, an object; absent if the message has none.
        params: Option<Box<RawValue>>,
    },
    /// A response to a request of this side.
    Response {
        /// The id of the request that is answered.
        id: RequestId,
        /// The result or the error.
        outcome: ResponseOutcome,
    },
}

/// Content of a response.
#[derive(Clone, Debug)]
pub enum ResponseOutcome {
    /// The `result` member, not parsed yet.
    Result(Box<RawValue>),
    /// The error, as it was written.
    Error(Box<RawValue>),
}

/// A line that is no message of JSON-RPC.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The id that the response repeats, if one could be read.
    pub id: Option<RequestId>,
    /// True if the line is not JSON; false if it is JSON, but no message.
    pub is_no_json: bool,
    /// Fault of the line, as a text for people.
    pub cause: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    #[serde(default, deserialize_with = "present")]
    jsonrpc: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    method: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    id: Option<RequestId>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Incoming {
    /// Parses one line of JSON-RPC 2.0. Batches are refused.
    pub fn read(line: &[u8]) -> Result<Self, Refused> {
        let json = json(line).map_err(|cause| Refused { id: None, is_no_json: true, cause })?;
        let refused = |cause: String| {
            let named = serde_json::from_str::<Named>(json.get());
            Refused { id: named.ok().and_then(|named| named.id), is_no_json: false, cause }
        };
        match json.get().as_bytes().first() {
            Some(b'{') => {}
            Some(b'[') => {
                return Err(refused("batches are not supported: send one object per line".to_owned()));
            }
            _ => return Err(refused("expected an object".to_owned())),
        }
        let members = serde_json::from_str(json.get()).map_err(|error| refused(error.to_string()))?;
        Self::of(members).map_err(|cause| refused(cause.to_owned()))
    }

    fn of(members: Members) -> Result<Self, &'static str> {
        let Members { jsonrpc, id, method, params, result, error } = members;
        if jsonrpc.and_then(|raw| text(&raw)).as_deref() != Some(JSONRPC) {
            return Err("jsonrpc has to be \"2.0\"");
        }
        let id = id.map(RequestId::try_from).transpose()?;
        let method = method.map(|raw| text(&raw).ok_or("method has to be a string")).transpose()?;
        if params.as_ref().is_some_and(|raw| !raw.get().starts_with(['{', '['])) {
            return Err("params has to be an object");
        }
        match (id, method, result, error) {
            (Some(id), Some(method), None, None) => Ok(Self::Request { id, method, params }),
            (None, Some(method), None, None) => Ok(Self::Notification { method, params }),
            (Some(id), None, Some(result), None) if params.is_none() => {
                Ok(Self::Response { id, outcome: ResponseOutcome::Result(result) })
            }
            (Some(id), None, None, Some(error)) if params.is_none() => {
                Ok(Self::Response { id, outcome: ResponseOutcome::Error(error) })
            }
            (None, None, ..) => {
                Err("the message has neither a method, as requests do, nor an id, as responses do")
            }
            (Some(_), None, None, None) => Err("the message has neither method, nor result, nor error"),
            _ => {
                Err("the message has more than one of method, result and error, or is a response with params")
            }
        }
    }
}

fn json(line: &[u8]) -> Result<Box<RawValue>, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("the line is not UTF-8: {error}"))?;
    serde_json::from_str::<&RawValue>(text).map(ToOwned::to_owned).map_err(|error| error.to_string())
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}
