//! Calls that may wait, which are ended when their callers get a signal.
//!
//! Once the mediator has received a call, only fatal signals end its caller's wait
//! (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`), and the kernel reports no other signals. So while a call waits, a thread
//! watches for signals that are pending for the caller, often at first and then twenty times a second. If the leading
//! thread waits unexpectedly, the watching thread makes another one lead (see `threads`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{self, c_int, pid_t};

use super::caller::Caller;
use super::listener::{Listener, NotificationAnswer};
use super::threads::Lead;
use crate::mediate::kernel::open_descriptors::numbers;
use crate::mediate::kernel::status::Status;
use crate::system::{self, process};

// Minimum and maximum time between two searches for signals to the caller of a waiting call.
const SOONEST: Duration = Duration::from_millis(4);
const LATEST: Duration = Duration::from_millis(50);
/// Time after which another thread takes the lead if the leader's call still waits.
const EXPECTED: Duration = Duration::from_millis(1);
/// Time for which the watching thread stays awake without a waiting call, so that the next call need not wake it.
const LINGER: Duration = Duration::from_millis(200);
/// Number of searches that must find a signal for the whole process pending before this thread's call is interrupted.
const PATIENCE: u8 = 3;

/// Maximum number of threads that are examined to find out if a process stops.
const MOST_LOOKED_AT: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mediate) enum Stop {
    Failed(Errno),
    /// The caller has a signal to handle, so the call is interrupted.
    Interrupted,
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl From<Stop> for NotificationAnswer {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(errno) => Self::Failed(errno),
            Stop::Interrupted => Self::Restart,
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::mediate) struct Waiting {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Debug)]
struct State {
    calls: Vec<Arc<Wait>>,
    began: Instant,
    led: Instant,
    sleep: Sleep,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    Short,
    Long,
    Endless,
}

impl Default for State {
    fn default() -> Self {
        let now = Instant::now();
        Self { calls: vec![], began: now, led: now, sleep: Sleep::Short, ended: false }
    }
}

#[derive(Debug)]
struct Wait {
    id: u64,
    caller: pid_t,
    thread: pid_t,
    lead: Option<Lead>,
    since: Instant,
    verdict: AtomicU8,
    seen: AtomicU8,
}

const NONE: u8 = 0;
const INTERRUPTED: u8 = 1;
const ENDED: u8 = 2;

impl Waiting {
    /// Performs an act that may wait. `act` fails with `EINTR` when the watching thread interrupts it. `lead` is `Some`
    /// if the calling thread leads and does not expect to wait.
    pub(in crate::mediate) fn perform<T>(
        &self,
        caller: &Caller<'_>,
        lead: Option<Lead>,
        mut act: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Stop> {
        let wait = self.enter(caller, lead);
        let result = loop {
            match (act(), wait.verdict.load(Ordering::Acquire)) {
                (Err(Errno::EINTR), NONE) => {}
                (Err(Errno::EINTR), INTERRUPTED) => break Err(Stop::Interrupted),
                (result, _) => break result.map_err(Stop::Failed),
            }
        };
        self.lock().calls.retain(|other| !Arc::ptr_eq(other, &wait));
        result
    }

    fn enter(&self, caller: &Caller<'_>, lead: Option<Lead>) -> Arc<Wait> {
        let now = Instant::now();
        let wait = Arc::new(Wait {
            id: caller.id(),
            caller: caller.thread(),
            thread: nix::unistd::gettid().as_raw(),
            lead,
            since: now,
            verdict: AtomicU8::new(NONE),
            seen: AtomicU8::new(0),
        });
        let mut state = self.lock();
        state.calls.push(Arc::clone(&wait));
        state.began = now;
        if lead.is_some() {
            state.led = now;
        }
        let late = match state.sleep {
            Sleep::Short => false,
            Sleep::Long => lead.is_some(),
            Sleep::Endless => true,
        };
        if late {
            state.sleep = Sleep::Short;
            drop(state);
            self.more.notify_one();
        }
        wait
    }

    pub(in crate::mediate) fn watch(&self, listener: &Listener, relieve: impl Fn(Lead)) {
        loop {
            let state = self.lock();
            if state.ended && state.calls.is_empty() {
                return;
            }
            let mut stopping = HashMap::new();
            for wait in self.sleep(state) {
                if let Some(lead) = wait.lead.filter(|_| wait.since.elapsed() >= EXPECTED) {
                    relieve(lead);
                }
                if let Some(verdict) = wait.judge(listener, &mut stopping) {
                    wait.verdict.store(verdict, Ordering::Release);
                    self.interrupt(&wait);
                }
            }
        }
    }

    pub(in crate::mediate) fn end(&self) {
        self.lock().ended = true;
        self.more.notify_all();
    }

    fn sleep(&self, mut state: MutexGuard<'_, State>) -> Vec<Arc<Wait>> {
        let mut state = if state.calls.is_empty() && state.began.elapsed() > LINGER {
            state.sleep = Sleep::Endless;
            self.more.wait(state).unwrap_or_else(PoisonError::into_inner)
        } else {
            let led = state.led.elapsed() <= LINGER;
            let pause = if led { SOONEST } else { pause(&state.calls) };
            state.sleep = if pause > SOONEST { Sleep::Long } else { Sleep::Short };
            self.more.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
        };
        state.sleep = Sleep::Short;
        state.calls.clone()
    }

    /// Interrupts the thread that performs a waiting call; in the next round if it is not yet in a system call.
    fn interrupt(&self, wait: &Arc<Wait>) {
        let state = self.lock();
        if state.calls.iter().any(|other| Arc::ptr_eq(other, wait)) {
            // The thread is alive, since it takes the lock before it continues.
            system::signal_thread(std::process::id().cast_signed(), wait.thread, interruption());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait {
    /// Returns a verdict if the call must not wait longer. `stopping` caches this round's stopping processes.
    fn judge(&self, listener: &Listener, stopping: &mut HashMap<pid_t, bool>) -> Option<u8> {
        if !listener.waits(self.id) {
            return Some(ENDED);
        }
        // The next look at the call finds out that the caller is gone.
        let status = Status::of(self.caller).ok()?;
        if status.pending & !status.blocked != 0
            || *stopping.entry(status.process).or_insert_with(|| is_to_stop(&status))
        {
            return Some(INTERRUPTED);
        }
        if status.shared_pending & !status.blocked == 0 {
            self.seen.store(0, Ordering::Relaxed);
            return None;
        }
        // The kernel gives a signal of the process to its first thread, if that wants it (complete_signal of
        // kernel/signal.c). Another thread cannot know whether it was chosen, and "the same call again" must
        // not be answered to a thread without a signal, which would see the number of it: it gets EINTR, once
        // nobody else took the signal.
        if status.process == self.caller {
            return Some(INTERRUPTED);
        }
        (self.seen.fetch_add(1, Ordering::Relaxed) >= PATIENCE).then_some(ENDED)
    }
}

/// True if a thread has taken a signal that stops its process. The process stops only when also the threads that wait
/// for an answer stop (`do_signal_stop` of kernel/signal.c). All others already show the stop, unless ended or traced.
fn is_to_stop(status: &Status) -> bool {
    if status.threads < 2 {
        return false;
    }
    let threads = numbers(&format!("/proc/{}/task", status.process)).take(MOST_LOOKED_AT);
    let mut seen = threads.filter_map(|thread| Some(Status::of(thread).ok()?.state));
    seen.find(|state| !matches!(state, b'D' | b'Z' | b'X' | b't')) == Some(b'T')
}

fn pause(calls: &[Arc<Wait>]) -> Duration {
    let wanted = |wait: &Arc<Wait>| (wait.since.elapsed() / 4).clamp(SOONEST, LATEST);
    calls.iter().map(wanted).min().unwrap_or(LATEST)
}

/// Returns the signal that interrupts threads: the last real-time one, which no library uses.
fn interruption() -> c_int {
    libc::SIGRTMAX()
}

/// Makes the signal of [`interruption`] only interrupt calls. Blocks it in this thread and later ones.
pub(in crate::mediate) fn prepare_interruption() -> Result<(), Errno> {
    process::let_interrupt(interruption())?;
    process::mask(libc::SIG_BLOCK, interruption(), false)
}

/// Blocks all signals in this thread except that of [`interruption`].
pub(in crate::mediate) fn allow_interruption() -> Result<(), Errno> {
    process::mask(libc::SIG_SETMASK, interruption(), true)
}
