//! Refusals: system calls that the broker of a worker denied, to commands of running tool calls and to other
//! processes.

use std::fs::File;
use std::io::Read;

use ipc::refusal::Refusal;
use ipc::rights::HostName;

use super::status::StatusPipe;

/// The most times that refusals which belong to no tool call may wake the supervisor between two results.
/// Further ones are reported with the next result, so that programs cannot keep the supervisor busy.
const MOST_WAKE_UPS: u32 = 64;

#[derive(Debug)]
pub(super) struct Refusals {
    status: StatusPipe,
    /// The pid of the worker in the broker's pid namespace.
    worker: Option<u32>,
    wake_ups: u32,
}

impl Refusals {
    pub(super) fn new(status: StatusPipe, pid: u32) -> Self {
        Self { status, worker: innermost(pid), wake_ups: 0 }
    }

    /// Removes and returns the refusals so far of the command with this process.
    pub(super) fn take_of(&mut self, process: u32) -> Vec<Refusal> {
        self.status.take_of(process)
    }

    /// Returns the report of a connection that waits because its host is not on the list of allowed hosts.
    pub(super) fn asked(&mut self, host: &HostName, port: u16) -> Option<&Refusal> {
        self.status.asked(host, port)
    }

    /// Waits for a refusal while no tool call runs. Cancel safe.
    pub(super) async fn more(&mut self) {
        if self.wake_ups >= MOST_WAKE_UPS {
            std::future::pending::<()>().await;
        }
        self.status.more().await;
        self.wake_ups += 1;
    }

    /// Removes and returns the refusals so far while no tool call runs.
    pub(super) fn take_beside(&mut self) -> Vec<Refusal> {
        self.status.take()
    }

    /// Removes and returns the refusals that belong to no result, after the last running tool call or the end
    /// of the worker. Leaves out those of the worker itself, whose results already have the errors.
    pub(super) fn take_rest(&mut self) -> Vec<Refusal> {
        self.wake_ups = 0;
        let mut rest = self.status.take();
        rest.retain(|refusal| Some(refusal.process) != self.worker);
        rest
    }
}

/// Returns the pid of a process in its innermost pid namespace, which is that of its broker (`NSpid`,
/// `proc_pid_status(5)`).
fn innermost(pid: u32) -> Option<u32> {
    let mut status = String::with_capacity(4 << 10);
    File::open(format!("/proc/{pid}/status")).ok()?.read_to_string(&mut status).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}
