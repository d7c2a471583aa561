//! Runs processes in tests, and reads their results.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use memchr::memmem;

/// Maximum wait in a test before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn of(command: &mut Command) -> Self {
        let output = command.stdin(Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("{command:?}: {error}")).into()
    }

    /// Returns the events that `--output stream-json` printed.
    pub fn events(&self) -> Vec<serde_json::Value> {
        let event = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(event).collect()
    }

    pub fn events_of(&self, kind: &str) -> Vec<serde_json::Value> {
        let events = self.events().into_iter().filter(|event| event["type"] == kind);
        events.map(|mut event| event["data"].take()).collect()
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let status = output.status;
        Self {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Waits until `is_so` returns true. After a minute, fails the test with the message `what`.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// True if a process runs and is no zombie.
pub fn alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Returns the pids of processes with these bytes in their environment. Only root can read the environment of processes
/// that are not dumpable.
pub fn marked(mark: &[u8]) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_mark = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        memmem::find(&environment, mark).is_some()
    };
    pids.filter(has_mark).filter(|pid| alive(*pid)).collect()
}

/// Removes the durations of commands from a text, as in `[exit code 0, 0.1 s]` and
/// `interrupted by the user after 3.2 s`.
pub fn without_durations(text: &str) -> String {
    [" s]", " s; ", " s: "].iter().fold(text.to_owned(), |text, end| without_number(&text, end))
}

/// Removes the number before each `end` in a text.
fn without_number(text: &str, end: &str) -> String {
    let parts: Vec<_> = text.split(end).collect();
    let Some((last, before)) = parts.split_last() else { return String::new() };
    let cut = |part: &&str| {
        let rest = part.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
        if rest.len() < part.len() { format!("{rest}[n]{end}") } else { format!("{part}{end}") }
    };
    before.iter().map(cut).collect::<String>() + last
}
