//! Ends processes that survived a killed sandbox. They become children of this process, which is a subreaper.

use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid};

/// Maximum time that is spent on killing processes that keep forking.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes this process the parent of its orphaned descendants from now on (`PR_SET_CHILD_SUBREAPER(2const)`).
pub fn inherit_orphans() -> nix::Result<()> {
    prctl::set_child_subreaper(true)
}

/// Kills and reaps all children of this process and their orphans. A pid is not reused until its process is reaped.
pub fn end_orphans() {
    let until = Instant::now() + PATIENCE;
    loop {
        let children = children();
        if children.is_empty() || Instant::now() > until {
            return;
        }
        for &child in &children {
            // The child may have ended by itself.
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

/// Returns the parent of a process (`/proc/PID/stat`); `None` if it is gone. Skips the name, which may have any bytes.
fn parent(process: Pid) -> Option<Pid> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    rest.split_whitespace().nth(1)?.parse().ok().map(Pid::from_raw)
}
