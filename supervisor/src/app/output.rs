//! What `exec` prints: a thread of its own that turns events into text, one JSON object, or a stream of them.
//!
//! Standard output carries only the stream; what is for people goes to standard error.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;

use ipc::confinement::{Tier, no_full_tier};
use ipc::event::{Account, EventKind, RestoredPlace, RunResult, SessionEvent, ToolCallStatus};
use ipc::frontend::{UiEvent, UiEventKind};
use ipc::id::{CallId, Generation};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::args::Output;
use super::passing::Lines;

/// Prints a session's events until there are no more, on a thread of its own: a reader that stops reading must not stop
/// the run's time-out, nor its signals.
#[derive(Debug)]
pub(super) struct Printer {
    finished: oneshot::Receiver<()>,
}

impl Printer {
    /// Starts printing.
    pub(super) fn start(output: Output, mut events: mpsc::UnboundedReceiver<UiEvent>) -> io::Result<Self> {
        let mut page = Page {
            output,
            within_text: false,
            has_begun: false,
            open: BTreeMap::new(),
            lines: Lines::of_process(),
        };
        let (done, finished) = oneshot::channel();
        thread::Builder::new().name("print".to_owned()).spawn(move || {
            while let Some(event) = events.blocking_recv() {
                // Nobody reads any more, as with `| head`: the run goes on, and its log has everything.
                if page.print(&event.kind).is_err() {
                    while events.blocking_recv().is_some() {}
                }
            }
            // Whoever waited may have been interrupted.
            let _ = done.send(());
        })?;
        Ok(Self { finished })
    }

    /// Waits until everything is printed, or a signal says that nobody wants it; the core's end of the channel must be
    /// gone.
    pub(super) async fn finish(self) {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        tokio::select! {
            _ = self.finished => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

struct Page {
    output: Output,
    /// Whether the last thing printed was a piece of text without its line end.
    within_text: bool,
    /// Whether anything of the reply that is awaited was printed.
    has_begun: bool,
    /// The tools of the calls that have not ended: calls of one turn end in any order.
    open: BTreeMap<CallId, String>,
    lines: Lines<io::Stderr>,
}

impl Page {
    fn print(&mut self, kind: &UiEventKind) -> io::Result<()> {
        match (self.output, kind) {
            (Output::StreamJson, UiEventKind::Logged(event)) => {
                line(event)?;
                self.cause(event)
            }
            (Output::Json, UiEventKind::Logged(event)) => match &event.kind {
                EventKind::Result(_) => {
                    line(event)?;
                    self.cause(event)
                }
                _ => self.remark(event),
            },
            (Output::Text, UiEventKind::TextDelta { text }) => {
                self.has_begun = true;
                self.text(text)
            }
            (Output::Text, UiEventKind::Logged(event)) => self.event(event),
            _ => Ok(()),
        }
    }

    /// A piece of the model's reply, made harmless for a terminal.
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.lines.clear();
        self.within_text = !text.ends_with('\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(harmless(text).as_bytes())?;
        stdout.flush()
    }

    fn event(&mut self, event: &SessionEvent) -> io::Result<()> {
        if matches!(event.kind, EventKind::AssistantMessage(_)) && self.within_text {
            self.text("\n")?;
        }
        self.remark(event)
    }

    /// What a person wants to follow, at standard error.
    fn remark(&mut self, event: &SessionEvent) -> io::Result<()> {
        let text = match &event.kind {
            EventKind::SessionStarted(started) => format!("{} · {}", started.rights, started.model),
            EventKind::ToolCallStarted { call, name, input, .. } => {
                self.open.insert(*call, name.clone());
                format!("→ {name} {}", abridged(input.get()))
            }
            EventKind::ToolCallFinished { call, status, content, duration_ms, .. } => {
                let name = self.open.remove(call).unwrap_or_else(|| format!("call {call}"));
                ending(&name, *status, *duration_ms, content)
            }
            EventKind::Denied { call, denial, rights } => {
                let beside = if call.is_none() { "beside its calls: " } else { "" };
                format!("✗ {beside}{denial}\n  because   rights: {rights}")
            }
            EventKind::ModelRequested { .. } => {
                self.has_begun = false;
                return Ok(());
            }
            EventKind::ModelFailed { message, retry_in_ms, .. } => match failed(message, *retry_in_ms) {
                failure if std::mem::take(&mut self.has_begun) => {
                    format!("! the reply above was cut off: it does not count\n{failure}")
                }
                // The run's last line says it.
                _ if retry_in_ms.is_none() => return Ok(()),
                failure => return self.passing(&failure),
            },
            EventKind::ProtocolViolation { violation, .. } => {
                format!("the worker broke the protocol: {violation}")
            }
            EventKind::RightsChanged(changed) => format!("rights: {}", changed.rights),
            EventKind::WorkerStarted(started)
                if started.landlock_abi == 0 || started.tier == Tier::FloorUnmediated.to_string() =>
            {
                format!("sandbox degraded: {}", started.missing.join("; "))
            }
            EventKind::WorkerStarted(started) if started.generation == Generation(1) => {
                match no_full_tier(&started.missing) {
                    Some(why) => format!("the {} tier: {why}; next: bailiwick doctor", started.tier),
                    None => return Ok(()),
                }
            }
            EventKind::CompactionStarted(started) => started.to_string(),
            EventKind::ContextCompacted(compacted) => compacted.to_string(),
            EventKind::Notice { message, .. } => message.clone(),
            EventKind::Restored { places, .. } => restored(places),
            EventKind::ChangeSet { files, patch } => changes(files.len(), patch.as_ref()),
            EventKind::Result(result) => return self.result(event, result),
            _ => return Ok(()),
        };
        self.note(&text)
    }

    /// Why a run ended otherwise than asked: a person reads it also where programs read the stream.
    fn cause(&mut self, event: &SessionEvent) -> io::Result<()> {
        let EventKind::Result(RunResult { message: Some(message), reason, .. }) = &event.kind else {
            return Ok(());
        };
        self.note(&format!("bailiwick: {message}"))?;
        next_step(reason).map_or(Ok(()), |step| self.note(&format!("  next: {step}")))
    }

    fn result(&mut self, event: &SessionEvent, result: &RunResult) -> io::Result<()> {
        self.cause(event)?;
        let account = Account { usage: result.usage, cost: result.cost_usd };
        self.note(&format!(
            "{} · {} steps · {account} · {:.1} s",
            result.reason,
            result.steps,
            std::time::Duration::from_millis(result.duration_ms).as_secs_f64(),
        ))
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        if self.within_text {
            self.text("\n")?;
        }
        self.lines.line(&harmless(text));
        Ok(())
    }

    /// A note that the next attempt makes stale.
    fn passing(&mut self, text: &str) -> io::Result<()> {
        if self.within_text {
            self.text("\n")?;
        }
        self.lines.passing(&harmless(text));
        Ok(())
    }
}

fn line(event: &SessionEvent) -> io::Result<()> {
    let mut text = serde_json::to_string(event)?;
    text.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn failed(message: &str, retry_in_ms: Option<u64>) -> String {
    match retry_in_ms {
        Some(wait) => format!("{message}; trying again in {wait} ms"),
        None => message.to_owned(),
    }
}

/// How a call ended; of a failure also what its result begins with. A denial was explained in a line of its own.
fn ending(name: &str, status: ToolCallStatus, duration_ms: u64, content: &str) -> String {
    let after = format!("after {duration_ms} ms");
    let first = content.lines().map(str::trim).find(|line| !line.is_empty());
    match (status, first) {
        (ToolCallStatus::Completed, _) => format!("  ✓ {name} {after}"),
        (ToolCallStatus::Failed, Some(line)) => format!("  ✗ {name} {status} {after}: {}", abridged(line)),
        _ => format!("  ✗ {name} {status} {after}"),
    }
}

/// What the host runs later, and what became of it, a line each.
fn restored(places: &[RestoredPlace]) -> String {
    let line = |place: &RestoredPlace| {
        let RestoredPlace { path, what, restored } = place;
        if *restored {
            format!("! changed and restored: {path} ({what})")
        } else {
            format!("! changed, and could not be restored: {path} ({what}); look at it before you work on")
        }
    };
    places.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn changes(count: usize, patch: Option<&ipc::path::WirePath>) -> String {
    let files = match count {
        0 => "no file changed".to_owned(),
        1 => "1 file changed".to_owned(),
        n => format!("{n} files changed"),
    };
    match patch {
        Some(written) => format!("{files} · patch: {written}"),
        None => files,
    }
}

fn abridged(text: &str) -> String {
    const LONGEST: usize = 160;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What a person can do about the end of a run, where its message does not say it.
fn next_step(reason: &str) -> Option<&'static str> {
    match reason {
        "step_limit" => Some("allow more with --max-steps, or give a smaller task"),
        "token_limit" => Some("allow more with --max-tokens, or give a smaller task"),
        "cost_limit" => Some("allow more with --max-usd, or give a smaller task"),
        "time_limit" => Some("allow more with --timeout, or give a smaller task"),
        "refusal" => Some("say the task in other words"),
        "no_sandbox" => Some("bailiwick doctor shows what is missing on this machine"),
        _ => None,
    }
}

/// Makes control characters visible, but line ends and tabs: hostile text must not command the terminal.
pub(super) fn harmless(text: &str) -> String {
    let visible = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(c));
    if text.chars().all(visible) {
        return text.to_owned();
    }
    text.chars().map(|c| if visible(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// Bidirectional controls and zero-width characters: what they show is not what is there.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_bidi_controls_become_visible() {
        assert_eq!(harmless("a\x1b]0;t\x07b\n\tc"), "a\\u{1b}]0;t\\u{7}b\n\tc");
        assert_eq!(harmless("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(harmless("ünï 漢"), "ünï 漢");
    }

    #[test]
    fn an_ending_names_its_tool_and_the_cause_of_a_failure() {
        use ToolCallStatus::{Completed, Denied, Failed, Interrupted};
        let of = |status, content| ending("shell_exec", status, 3, content);
        assert_eq!(of(Completed, "out\n[exit code 0, 3 ms]"), "  ✓ shell_exec after 3 ms");
        assert_eq!(
            of(Failed, "\n  bash: x: command not found\nmore"),
            "  ✗ shell_exec failed after 3 ms: bash: x: command not found"
        );
        assert_eq!(of(Failed, " \n"), "  ✗ shell_exec failed after 3 ms");
        assert_eq!(of(Denied, "denied by the kernel"), "  ✗ shell_exec denied after 3 ms");
        assert_eq!(of(Interrupted, ""), "  ✗ shell_exec interrupted after 3 ms");
    }

    #[test]
    fn long_arguments_are_abridged_between_characters() {
        assert_eq!(abridged(&"ü".repeat(200)).chars().count(), 161);
    }
}
