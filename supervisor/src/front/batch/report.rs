use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use protocol::cost::Usd;
use protocol::event::{EndReason, TokenUsage};
use serde::Serialize;

use super::output::{Manifest, states_of_all};
use super::progress::{counted, span, spent};
use super::state::{BatchState, Status, TaskStage, load};
use crate::engine::opening::Refusal;
use crate::process::exit::Exit;
use crate::process::messages::harmless;

/// Maximum number of tasks that the report names for one cause.
const NAMED: usize = 10;

#[derive(Debug, Serialize)]
pub(super) struct BatchReport<'a> {
    batch: &'a Manifest,
    statuses: BTreeMap<&'static str, usize>,
    cost_usd: Option<Usd>,
    usage: TokenUsage,
    steps: u64,
    duration_ms: u64,
    total_ms: u64,
    empty_patches: usize,
    tasks: Vec<ReportRow<'a>>,
}

#[derive(Debug, Serialize)]
struct ReportRow<'a> {
    #[serde(flatten)]
    state: &'a BatchState,
    fault: Option<FaultCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultCount {
    /// Bailiwick itself failed, or the way in which Bailiwick was started prevented the result.
    Scaffold,
    Provider,
    /// A limit that the person set was reached.
    Limits,
    Model,
}

impl FaultCount {
    const ALL: [Self; 4] = [Self::Scaffold, Self::Provider, Self::Limits, Self::Model];

    /// Returns the cause under which a state is counted; `None` if the task went well.
    pub(super) fn of(state: &BatchState) -> Option<Self> {
        let is_empty = state.patch_bytes == 0;
        match (state.status, state.reason) {
            (Status::Failed, Some(EndReason::Provider)) => Some(Self::Provider),
            (Status::Failed | Status::Denied, _) => Some(Self::Scaffold),
            (Status::Limit, _) => Some(Self::Limits),
            // A change was denied, and no other was made.
            (Status::Done | Status::GaveUp, _) if is_empty && !state.denials.is_empty() => {
                Some(Self::Scaffold)
            }
            (Status::GaveUp, _) => Some(Self::Model),
            (Status::Done, _) if is_empty => Some(Self::Model),
            _ => None,
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Scaffold => "probably a fault of Bailiwick",
            Self::Provider => "the provider failed",
            Self::Limits => "a limit was reached",
            Self::Model => "the model gave up, or changed nothing",
        }
    }
}

pub(super) fn print(root: &Path, as_json: bool) -> Result<Exit, Refusal> {
    let unreadable =
        |error: io::Error| Refusal::usage(format!("cannot read the results in {}: {error}", root.display()));
    let manifest = load::<Manifest>(&root.join("batch.json")).map_err(unreadable)?;
    let manifest = manifest.ok_or_else(|| {
        Refusal::usage(format!(
            "{} is not the output directory of a batch: batch.json is missing",
            root.display()
        ))
    })?;
    let states = states_of_all(root).map_err(unreadable)?;
    let report = BatchReport::new(&manifest, &states);
    let mut text = if as_json {
        serde_json::to_string_pretty(&report).map_err(Refusal::internal)?
    } else {
        harmless(&report.text(&states))
    };
    text.push('\n');
    io::stdout().write_all(text.as_bytes()).map_err(Refusal::internal)?;
    Ok(Exit::Done)
}

impl<'a> BatchReport<'a> {
    pub(super) fn new(batch: &'a Manifest, states: &'a [BatchState]) -> Self {
        let mut statuses = BTreeMap::new();
        let (mut usage, mut steps, mut duration_ms, mut total_ms) = (TokenUsage::default(), 0, 0, 0);
        for state in states {
            *statuses.entry(state.status.as_str()).or_default() += 1;
            usage += state.usage;
            steps += u64::from(state.steps);
            duration_ms += state.duration_ms;
            total_ms += state.total_ms;
        }
        let is_empty = |state: &&BatchState| state.status.is_final() && state.patch_bytes == 0;
        Self {
            batch,
            statuses,
            cost_usd: spent(states),
            usage,
            steps,
            duration_ms,
            total_ms,
            empty_patches: states.iter().filter(is_empty).count(),
            tasks: states.iter().map(|state| ReportRow { state, fault: FaultCount::of(state) }).collect(),
        }
    }

    pub(super) fn text(&self, states: &[BatchState]) -> String {
        let Manifest { name, model, provider, mode, activity, profile, .. } = self.batch;
        let mut lines = vec![
            format!("{name} · {model} at {provider} · {activity}, mode {mode}, profile {profile}"),
            counted(states),
            format!(
                "{} steps · {} tokens in, {} out · {} of run time · {} empty patches",
                self.steps,
                self.usage.input + self.usage.cache_creation + self.usage.cache_read,
                self.usage.output,
                span(Duration::from_millis(self.duration_ms)),
                self.empty_patches,
            ),
            String::new(),
        ];
        lines.extend(table(states));
        for fault in FaultCount::ALL {
            let rows: Vec<_> = self.tasks.iter().filter(|row| row.fault == Some(fault)).collect();
            if rows.is_empty() {
                continue;
            }
            lines.push(format!("\n{} ({}):", fault.heading(), rows.len()));
            lines.extend(
                rows.iter().take(NAMED).map(|row| format!("  {}: {}", row.state.id, cause(row.state))),
            );
            if rows.len() > NAMED {
                lines.push(format!("  and {} more: --json lists them", rows.len() - NAMED));
            }
        }
        lines.join("\n")
    }
}

/// Returns a table with one row for each status: the number of tasks and the medians of their measures.
fn table(states: &[BatchState]) -> Vec<String> {
    let mut rows = vec![format!(
        "{:<12}{:>7}{:>8}{:>12}{:>14}{:>9}",
        "status", "tasks", "steps", "tokens out", "time", "denials"
    )];
    for status in Status::ALL {
        let of: Vec<_> = states.iter().filter(|state| state.status == status).collect();
        if of.is_empty() {
            continue;
        }
        let time = median(of.iter().map(|state| state.duration_ms));
        let denials: u32 = of.iter().flat_map(|state| state.denials.values()).sum();
        rows.push(format!(
            "{:<12}{:>7}{:>8}{:>12}{:>14}{:>9}",
            status.as_str(),
            of.len(),
            median(of.iter().map(|state| u64::from(state.steps))),
            median(of.iter().map(|state| state.usage.output)),
            span(Duration::from_millis(time)),
            denials,
        ));
    }
    rows.push("steps, tokens and time are medians".to_owned());
    rows
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn cause(state: &BatchState) -> String {
    let failed_in = state.stage.map(|failed_in| match failed_in {
        TaskStage::Checkout => "checkout",
        TaskStage::Crash => "crash",
        TaskStage::Run => "run",
        TaskStage::Results => "results",
    });
    let reason = state.reason.map(EndReason::as_str);
    let denials: Vec<_> =
        state.denials.iter().map(|(kind, count)| format!("{count} {kind} denied")).collect();
    let message = state.message.as_deref().and_then(|message| message.lines().next());
    let words = failed_in.or(reason).into_iter().map(str::to_owned).chain(denials);
    let text = words.chain(message.map(str::to_owned)).collect::<Vec<_>>().join(", ");
    if state.patch_bytes == 0 && state.status.is_final() { format!("{text}, empty patch") } else { text }
}
