use std::fs::File;
use std::io::Read;

use ipc::refusal::Refusal;
use ipc::rights::HostName;

use super::status::StatusPipe;

/// Maximum number of denials outside of tool calls, between two results, for which the supervisor wakes up, so that
/// programs cannot keep it busy. Further denials are read with the next result.
const MOST_WAKE_UPS: u32 = 64;

#[derive(Debug)]
pub(super) struct Refusals {
    status: StatusPipe,
    worker: Option<u32>,
    wake_ups: u32,
}

impl Refusals {
    pub(super) fn new(status: StatusPipe, pid: u32) -> Self {
        Self { status, worker: innermost(pid), wake_ups: 0 }
    }

    /// Removes and returns the kept refusals of the command whose first process is `process`.
    pub(super) fn take_of(&mut self, process: u32) -> Vec<Refusal> {
        self.status.take_of(process)
    }

    /// Returns the report of a connection to this host that waits for a person's answer; `None` if there is none.
    pub(super) fn asked(&mut self, host: &HostName, port: u16) -> Option<&Refusal> {
        self.status.asked(host, port)
    }

    /// Waits until a refusal is kept. After [`MOST_WAKE_UPS`] of them, never returns. Cancel safe.
    pub(super) async fn more(&mut self) {
        if self.wake_ups >= MOST_WAKE_UPS {
            std::future::pending::<()>().await;
        }
        self.status.more().await;
        self.wake_ups += 1;
    }

    /// Removes and returns all kept refusals. Must only be called while no tool call runs.
    pub(super) fn take_beside(&mut self) -> Vec<Refusal> {
        self.status.take()
    }

    /// Removes and returns the refusals that no result contains. Drops those of the worker process itself, whose
    /// results contain the errors already.
    pub(super) fn take_rest(&mut self) -> Vec<Refusal> {
        self.wake_ups = 0;
        let mut rest = self.status.take();
        rest.retain(|refusal| Some(refusal.process) != self.worker);
        rest
    }
}

/// Returns the pid of a process in its broker's pid namespace (`NSpid`, `proc_pid_status(5)`); `None` if it is gone.
fn innermost(pid: u32) -> Option<u32> {
    let mut status = String::with_capacity(4 << 10);
    File::open(format!("/proc/{pid}/status")).ok()?.read_to_string(&mut status).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}
