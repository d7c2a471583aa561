//! What a worker's broker refused: to the commands of its calls, and beside them.

use std::fs::File;
use std::io::Read;

use ipc::refusal::Refusal;

use super::status::StatusPipe;

/// How often the supervisor wakes up between two results for what is refused beside all calls. What comes then is told with the
/// next result: programs cannot keep the supervisor busy.
const MOST_WAKE_UPS: u32 = 64;

/// What the broker of one worker refuses.
#[derive(Debug)]
pub(super) struct Refusals {
    status: StatusPipe,
    /// The number that the worker itself has beneath its broker.
    worker: Option<u32>,
    wake_ups: u32,
}

impl Refusals {
    /// Those of the broker of a worker with this pid.
    pub(super) fn new(status: StatusPipe, pid: u32) -> Self {
        Self { status, worker: innermost(pid), wake_ups: 0 }
    }

    /// Takes what was refused by now to the command with this process.
    pub(super) fn take_of(&mut self, process: u32) -> Vec<Refusal> {
        self.status.take_of(process)
    }

    /// Waits until something is refused while no call is open. Cancel safe.
    pub(super) async fn more(&mut self) {
        if self.wake_ups >= MOST_WAKE_UPS {
            std::future::pending::<()>().await;
        }
        self.status.more().await;
        self.wake_ups += 1;
    }

    /// Takes what was refused while no call was open, whoever tried it.
    pub(super) fn take_beside(&mut self) -> Vec<Refusal> {
        self.status.take()
    }

    /// Takes what no result has claimed, when the last open call was answered or the worker is gone. What the worker tried itself
    /// it tried for a call, whose result says what came of it.
    pub(super) fn take_rest(&mut self) -> Vec<Refusal> {
        self.wake_ups = 0;
        let mut rest = self.status.take();
        rest.retain(|refusal| Some(refusal.process) != self.worker);
        rest
    }
}

/// The number of a process in the innermost pid namespace that it is in, which is that of its broker (`NSpid`,
/// `proc_pid_status(5)`).
fn innermost(pid: u32) -> Option<u32> {
    let mut status = String::with_capacity(4 << 10);
    File::open(format!("/proc/{pid}/status")).ok()?.read_to_string(&mut status).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}
