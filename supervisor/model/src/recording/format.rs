//! What the JSON files of a recording hold.

use ipc::image::Image;
use ipc::path::WirePath;
use ipc::rights::{Network, Reach};
use protocol::approval::ApprovalMode;
use protocol::cost::Usd;
use protocol::event::Activity;
use serde::{Deserialize, Serialize};

use super::Places;

pub const FORMAT: u32 = 1;

/// `run.json`: what was run, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub format: u32,
    pub bailiwick: String,
    pub front_end: FrontEnd,
    /// The task; absent where the user had many turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    pub provider: String,
    pub model: String,
    pub activity: Activity,
    /// The number of plans that its flags approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_plan: Option<u32>,
    pub mode: ApprovalMode,
    pub net: Network,
    pub reach: Reach,
    /// Write roots in addition to the project, as they were named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WirePath>,
    /// Hidden paths in addition to the default, as they were named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<WirePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<Usd>,
    /// Places that differ in another run.
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
    /// The pictures that went before them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// `NNNN.meta.json`: the exchange without the two bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) request: RequestMeta,
    /// Absent where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<ResponseMeta>,
    pub(super) end: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestMeta {
    pub(super) method: String,
    pub(super) path: String,
    /// The API's own end of the path: the part before it belongs to the address.
    pub(super) endpoint: String,
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResponseMeta {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The name of the file with the body.
    pub(super) body: String,
    /// When each piece came, and how long it was.
    pub(super) chunks: Vec<RecordedChunk>,
}

/// A piece of a body: milliseconds since the request was sent, and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedChunk(pub(super) u64, pub(super) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Whole,
    Cut,
    /// We left, having all that we wanted, or because the run ended.
    Left,
}

/// The name of a file of the n-th exchange.
pub(super) fn name(number: usize, what: &str) -> String {
    format!("{number:04}.{what}")
}

/// The file of the n-th request's body.
pub(super) fn request_name(number: usize) -> String {
    name(number, "request.json")
}

/// Returns the name of the n-th exchange's file.
pub(super) fn meta_name(number: usize) -> String {
    name(number, "meta.json")
}
