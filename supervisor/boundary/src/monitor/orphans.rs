//! What outlived a killed broker: as a subreaper we inherit it, whatever it did to its death signal, and end it.

use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid};

/// How long what keeps forking is chased.
const PATIENCE: Duration = Duration::from_secs(5);

/// Inherits orphaned descendants from now on (`PR_SET_CHILD_SUBREAPER(2const)`).
pub fn inherit_orphans() -> nix::Result<()> {
    prctl::set_child_subreaper(true)
}

/// Ends and reaps every child of this process, and what they leave behind. For a process that has no other children.
///
/// A child keeps its number until it is reaped here, so that no stranger is hit.
pub fn end_orphans() {
    let until = Instant::now() + PATIENCE;
    loop {
        let children = children();
        if children.is_empty() || Instant::now() > until {
            return;
        }
        for &child in &children {
            // It may have ended by itself.
            let _ = kill(child, Signal::SIGKILL);
        }
        for child in children {
            let _ = waitpid(child, None);
        }
    }
}

fn children() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
    processes.filter(|process| parent(*process) == Some(getpid())).collect()
}

/// The fourth field of `/proc/PID/stat`; the second, a name in parentheses, may hold anything.
fn parent(process: Pid) -> Option<Pid> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    rest.split_whitespace().nth(1)?.parse().ok().map(Pid::from_raw)
}
