//! Progress of a batch: lines on standard error, a status line at a terminal, and events on standard output.

use std::fmt::Write as _;
use std::future::Future;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use protocol::cost::Usd;
use serde::Serialize;
use serde_json::{Value, json};

use super::state::{BatchState, Status};
use crate::process::messages::harmless;
use crate::process::passing::PassedLines;

/// Time between two updates of the status line.
const REDRAWN: Duration = Duration::from_secs(1);

pub(super) struct BatchProgress {
    json: bool,
    jobs: usize,
    began: Instant,
    over_before: usize,
    lines: PassedLines<io::Stderr>,
}

impl BatchProgress {
    pub(super) fn new(json: bool, jobs: usize) -> Self {
        Self { json, jobs, began: Instant::now(), over_before: 0, lines: PassedLines::of_process() }
    }

    pub(super) fn begin(&mut self, states: &[BatchState]) -> io::Result<()> {
        self.began = Instant::now();
        self.over_before = states.iter().filter(|state| state.status.is_final()).count();
        let left = states.len() - self.over_before;
        self.lines.line(&format!("{} tasks, {left} to run, {} at a time", states.len(), self.jobs));
        self.event("batch_started", &json!({"tasks": states.len(), "left": left, "jobs": self.jobs}))
    }

    pub(super) fn started(&mut self, states: &[BatchState], index: usize) -> io::Result<()> {
        let state = &states[index];
        self.event("task_started", &json!({"id": state.id, "attempt": state.attempt + 1}))?;
        self.redraw(states);
        Ok(())
    }

    pub(super) fn finished(&mut self, states: &[BatchState], index: usize) -> io::Result<()> {
        let state = &states[index];
        self.lines.line(&harmless(&one_line(state)));
        self.event("task_finished", state)?;
        self.redraw(states);
        Ok(())
    }

    pub(super) fn end(&mut self, states: &[BatchState]) -> io::Result<()> {
        self.lines.clear();
        self.lines.line(&counted(states));
        let statuses: serde_json::Map<String, Value> = Status::ALL
            .into_iter()
            .map(|status| (status.to_string(), json!(count(states, status))))
            .filter(|(_, count)| *count != 0)
            .collect();
        let elapsed_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let data = json!({"statuses": statuses, "cost_usd": spent(states), "elapsed_ms": elapsed_ms});
        self.event("batch_finished", &data)
    }

    pub(super) async fn while_waiting<T>(
        &mut self,
        states: &[BatchState],
        what: impl Future<Output = T>,
    ) -> T {
        let mut what = std::pin::pin!(what);
        loop {
            match tokio::time::timeout(REDRAWN, &mut what).await {
                Ok(done) => return done,
                Err(_) => self.redraw(states),
            }
        }
    }

    fn redraw(&mut self, states: &[BatchState]) {
        if self.lines.moves() {
            let estimate = estimate(states, self.over_before, self.began.elapsed());
            let estimate = estimate.map(|text| format!(" · {text}")).unwrap_or_default();
            self.lines.passing(&format!("{}{estimate}", counted(states)));
        }
    }

    fn event(&self, kind: &str, data: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&json!({"type": kind, "data": serde_json::to_value(data)?}))?;
        line.push(b'\n');
        let mut stdout = io::stdout().lock();
        // The batch goes on without a reader, because its results are in files.
        let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
        Ok(())
    }
}

fn count(states: &[BatchState], of: Status) -> usize {
    states.iter().filter(|state| state.status == of).count()
}

pub(super) fn spent(states: &[BatchState]) -> Option<Usd> {
    states.iter().filter_map(|state| state.cost_usd).reduce(|all, one| all + one)
}

pub(super) fn counted(states: &[BatchState]) -> String {
    let over = states.iter().filter(|state| state.status.is_final()).count();
    let shown = Status::ALL.into_iter().filter_map(|status| {
        let count = count(states, status);
        (count > 0).then(|| format!("{count} {status}"))
    });
    let mut text = format!("{over}/{} · {}", states.len(), shown.collect::<Vec<_>>().join(", "));
    if let Some(cost) = spent(states) {
        let _ = write!(text, " · {cost}");
    }
    text
}

/// Returns rate and remaining time; `None` until more tasks are over than `over_before`, the number at the start.
fn estimate(states: &[BatchState], over_before: usize, elapsed: Duration) -> Option<String> {
    let over = states.iter().filter(|state| state.status.is_final()).count();
    let done = u32::try_from(over.checked_sub(over_before)?).ok().filter(|done| *done > 0)?;
    let left = u32::try_from(states.len() - over).ok()?;
    let seconds = elapsed.as_secs_f64().max(0.001);
    let per_hour = f64::from(done) * 3600.0 / seconds;
    let left = Duration::try_from_secs_f64(seconds * f64::from(left) / f64::from(done)).ok()?;
    Some(format!("{per_hour:.0}/h · {} left", span(left)))
}

pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn one_line(state: &BatchState) -> String {
    let mut line = format!("{}: {}", state.id, state.status);
    if let Some(reason) = state.reason.filter(|reason| reason.as_str() != state.status.as_str()) {
        let _ = write!(line, " ({reason})");
    }
    let steps = if state.steps == 1 { "1 step".to_owned() } else { format!("{} steps", state.steps) };
    let _ = write!(line, " · {steps} · {}", span(Duration::from_millis(state.total_ms)));
    if let Some(cost) = state.cost_usd {
        let _ = write!(line, " · {cost}");
    }
    if let Some(message) = state.message.as_deref().filter(|_| state.status == Status::Failed) {
        let _ = write!(line, ": {}", message.lines().next().unwrap_or_default());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: Status) -> BatchState {
        BatchState { status, ..BatchState::queued("t") }
    }

    #[test]
    fn a_line_of_a_task_counts_its_steps() {
        let line = |steps| one_line(&BatchState { steps, ..state(Status::Done) });
        assert_eq!(
            (line(1).as_str(), line(2).as_str()),
            ("t: done · 1 step · 0 s", "t: done · 2 steps · 0 s")
        );
    }

    #[test]
    fn the_time_left_follows_from_the_tasks_of_this_batch_alone() {
        let mut states = vec![state(Status::Done); 6];
        states.extend(vec![state(Status::Queued); 8]);
        // An earlier batch finished four tasks. This one finished two in 100 seconds, and eight remain.
        let told = estimate(&states, 4, Duration::from_secs(100));
        assert_eq!(told.as_deref(), Some("72/h · 6 min 40 s left"));
        assert_eq!(estimate(&states, 6, Duration::from_secs(100)), None, "nothing is known yet");
        assert_eq!(counted(&states), "6/14 · 6 done, 8 queued");
        assert_eq!(span(Duration::from_secs(7384)), "2 h 3 min");
    }
}
