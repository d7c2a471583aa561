use ipc::image::Image;
use ipc::path::WirePath;
use ipc::rights::{Network, Reach};
use protocol::approval::ApprovalMode;
use protocol::cost::Usd;
use protocol::event::Activity;
use serde::{Deserialize, Serialize};

use super::Places;

pub const FORMAT: u32 = 1;

/// Content of `run.json`: the run and its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub format: u32,
    pub bailiwick: String,
    pub front_end: FrontEnd,
    /// The task of the run; `None` if the run had several turns of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    pub provider: String,
    pub model: String,
    pub activity: Activity,
    /// Number of plans that the flag `--approve-plan` can approve; `None` without the flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_plan: Option<u32>,
    pub mode: ApprovalMode,
    pub net: Network,
    pub reach: Reach,
    /// Writable directories besides the project, as the user named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WirePath>,
    /// Unix sockets outside of the sandbox to which the run could connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<WirePath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<WirePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<Usd>,
    /// Values that differ between two equal runs.
    pub places: Places,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrontEnd {
    Exec,
    Tui,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// Content of `NNNN.meta.json`: data about a request and its response, without their bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) request: RequestMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<ResponseMeta>,
    pub(super) end: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestMeta {
    pub(super) method: String,
    pub(super) path: String,
    /// The part of the request's path that belongs to the API, such as `/v1/messages`. The base URL's path precedes it.
    pub(super) endpoint: String,
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResponseMeta {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Time and length of each chunk of the body, in order of arrival.
    pub(super) chunks: Vec<RecordedChunk>,
}

/// A chunk of a body: milliseconds since the request was sent, and number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedChunk(pub(super) u64, pub(super) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Whole,
    Cut,
    Left,
}

pub(super) fn name(number: usize, what: &str) -> String {
    format!("{number:04}.{what}")
}

pub(super) fn request_name(number: usize) -> String {
    name(number, "request.json")
}

pub(super) fn meta_name(number: usize) -> String {
    name(number, "meta.json")
}
