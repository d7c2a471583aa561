//! What the JSON files of a recording hold.

use ipc::image::Image;
use ipc::path::WirePath;
use ipc::rights::{Network, Reach};
use protocol::approval::ApprovalMode;
use protocol::cost::Usd;
use protocol::event::Activity;
use serde::{Deserialize, Serialize};

use super::Places;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// `run.json`: what was run, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The version of the format.
    pub format: u32,
    /// The version of Bailiwick.
    pub bailiwick: String,
    /// Which front end it was.
    pub front_end: FrontEnd,
    /// The task; absent where the user had many turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The provider's name.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The activity of its agent.
    pub activity: Activity,
    /// The number of plans that its flags approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_plan: Option<u32>,
    /// The approval mode.
    pub mode: ApprovalMode,
    /// The network.
    pub net: Network,
    /// Where it led besides.
    pub reach: Reach,
    /// Write roots beside the project, as they were named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WirePath>,
    /// What was hidden beside the default, as it was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<WirePath>,
    /// The most steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// The most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The most US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<Usd>,
    /// What another run has otherwise.
    pub places: Places,
}

/// Who drove the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrontEnd {
    Exec,
    /// The terminal UI.
    Tui,
}

/// What the model was to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The words.
    pub prompt: String,
    /// The pictures that went before them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// `NNNN.meta.json`: what stands around the two bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) request: RequestMeta,
    /// Absent where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<ResponseMeta>,
    /// How the exchange ended.
    pub(super) end: Ending,
}

/// What a request has besides its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestMeta {
    pub(super) method: String,
    /// The path of the URL.
    pub(super) path: String,
    /// Its end that is the API's own: what stands before it belongs to the address.
    pub(super) endpoint: String,
    pub(super) headers: Vec<(String, String)>,
}

/// What a response has besides its body.
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

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The response came to its end.
    Whole,
    /// The connection broke.
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

/// The file of what stands around the n-th bodies.
pub(super) fn meta_name(number: usize) -> String {
    name(number, "meta.json")
}
