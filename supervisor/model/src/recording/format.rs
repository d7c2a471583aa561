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
    /// The task of the run; `None` if the user had several turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    pub provider: String,
    pub model: String,
    pub activity: Activity,
    /// Number of plans that the run's flags approve; `None` without this flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_plan: Option<u32>,
    pub mode: ApprovalMode,
    pub net: Network,
    pub reach: Reach,
    /// Writable directories besides the project, as the user named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WirePath>,
    /// Unix sockets of other programs that the run could reach.
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
    /// Values that differ in another run.
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

/// Content of `NNNN.meta.json`: the exchange without its bodies.
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
    /// The part of the request's path that belongs to the API. It follows the path of the base URL.
    pub(super) endpoint: String,
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResponseMeta {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Time and length of each chunk, in order of arrival.
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
