//! The state of a task, in a file of its own that is always replaced as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use protocol::cost::Usd;
use protocol::event::{EndReason, TokenUsage};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Maximum size in bytes of a file with a state.
const MOST: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    #[default]
    Queued,
    Running,
    /// The batch was told to end during the run.
    Interrupted,
    Done,
    /// The agent ended its turn after a denied call.
    Denied,
    /// A limit of the task was reached.
    Limit,
    /// The model gave up, refused, or filled its context window.
    GaveUp,
    Failed,
}

impl Status {
    /// Every status, in the order of the report.
    pub(super) const ALL: [Self; 8] = [
        Self::Done,
        Self::Denied,
        Self::Limit,
        Self::GaveUp,
        Self::Failed,
        Self::Interrupted,
        Self::Running,
        Self::Queued,
    ];

    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Denied | Self::Limit | Self::GaveUp)
    }

    /// Returns the status for the end that a run reported.
    pub(super) const fn of(reason: EndReason) -> Self {
        match reason {
            EndReason::Done | EndReason::Closed => Self::Done,
            EndReason::DeniedAtEnd | EndReason::Aborted => Self::Denied,
            EndReason::StepLimit | EndReason::TokenLimit | EndReason::CostLimit | EndReason::TimeLimit => {
                Self::Limit
            }
            EndReason::GaveUp
            | EndReason::NothingSaid
            | EndReason::CallAsText
            | EndReason::SchemaUnmet
            | EndReason::Refusal
            | EndReason::ContextFull => Self::GaveUp,
            EndReason::Interrupted | EndReason::Terminated | EndReason::HungUp => Self::Interrupted,
            EndReason::Provider | EndReason::NoSandbox | EndReason::Internal => Self::Failed,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Done => "done",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::GaveUp => "gave_up",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stage in which a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskStage {
    Checkout,
    Crash,
    Run,
    Results,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BatchState {
    pub id: String,
    pub status: Status,
    pub attempt: u32,
    pub crashes: u32,
    /// Number of runs in a row that ended because the container engine failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub engine_losses: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<TaskStage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub steps: u32,
    pub usage: TokenUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    pub duration_ms: u64,
    /// Duration of the run in milliseconds, including the making and removal of the checkout.
    pub total_ms: u64,
    /// Number of denied attempts for each kind of operation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub denials: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
    pub patch_bytes: u64,
    pub ended_ms: u64,
}

impl BatchState {
    pub(super) fn queued(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    #[must_use]
    pub(super) fn failed(self, stage: TaskStage, message: impl Into<String>) -> Self {
        Self { status: Status::Failed, stage: Some(stage), message: Some(bounded(message.into())), ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn bounded(text: String) -> String {
    const MOST_TEXT: usize = 2000;
    let from = text.char_indices().rev().map(|(at, _)| at).take(MOST_TEXT).last().unwrap_or(0);
    text[from..].to_owned()
}

/// Reads a value from a JSON file. `None` if the file does not exist.
pub(super) fn load<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = match read_bounded(path, MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    Ok(Some(serde_json::from_slice(&text)?))
}

/// Reads a file. Fails if it has more than `most` bytes.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.len() > most {
        return Err(io::Error::other(format!("the file has more than {most} bytes")));
    }
    fs::read(path)
}

/// Replaces a JSON file atomically: readers see either the old file or the new one.
pub(super) fn store(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    replace(path, |file| file.write_all(&text))
}

pub(super) fn replace(path: &Path, write: impl FnOnce(&mut fs::File) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_data()?;
    file.persist(path)?;
    Ok(())
}
