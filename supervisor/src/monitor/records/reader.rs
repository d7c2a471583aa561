//! Reads records as they come, in a task of its own: what waits unread is bounded by the socket, and lost where it is full.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use ipc::recorded::Recorded;
use nix::errno::Errno;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::socket::{self, Unreadable};
use super::trail::{Trail, Whose};

/// A record is sent by a thread of the kernel, some time after the call has failed (`kauditd`): when nothing has come for so long,
/// nothing more is awaited.
const QUIET: Duration = Duration::from_millis(20);
/// The longest that is waited for the last.
const SETTLED: Duration = Duration::from_millis(200);
/// The most records that are read without looking at anything else.
const MOST_AT_ONCE: usize = 256;
/// More than the longest record that the kernel makes (`MAX_AUDIT_MESSAGE_LENGTH`).
const BUFFER: usize = 16 << 10;

/// The records of what programs of ours were refused.
#[derive(Debug)]
pub struct Records {
    shared: Arc<Shared>,
    reading: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    socket: AsyncFd<OwnedFd>,
    trail: Mutex<Trail>,
}

impl Records {
    /// Asks whether they can be read, so that who subscribes first need not wait for the answer where they cannot.
    pub(in crate::monitor) fn ask_ahead() {
        static ASKED: Once = Once::new();
        ASKED.call_once(|| drop(open()));
    }

    /// Reads the machine's records from now on, of domains that these programs make. Must be called within the runtime.
    pub fn subscribe(programs: &[&Path]) -> Result<Self, Unreadable> {
        let socket = open()?;
        // As the kernel names what it executes.
        let programs = programs.iter().filter_map(|program| program.canonicalize().ok());
        let trail = Mutex::new(Trail::new(programs.collect::<Vec<PathBuf>>()));
        // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives.
        let socket = unsafe { AsyncFd::register(socket) }.map_err(|_| Errno::EIO)?;
        let shared = Arc::new(Shared { socket, trail });
        let reading = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move { while shared.read().await {} }
        });
        Ok(Self { shared, reading })
    }

    /// Takes what they were refused, once everything has come that is on its way.
    pub async fn take(&self, whose: Whose) -> Vec<Recorded> {
        let end = Instant::now() + SETTLED;
        while Instant::now() < end {
            let quiet = (Instant::now() + QUIET).min(end);
            if !timeout_at(quiet, self.shared.read()).await.unwrap_or(false) {
                break;
            }
        }
        self.shared.trail.lock().unwrap_or_else(PoisonError::into_inner).take(whose)
    }
}

/// Who could not read them once is not asked again: each time the kernel starts a thread to answer. Auditing that is switched on
/// later is heard of by the next process.
fn open() -> Result<OwnedFd, Unreadable> {
    static UNREADABLE: OnceLock<Unreadable> = OnceLock::new();
    if let Some(known) = UNREADABLE.get() {
        return Err(*known);
    }
    let subscribed = socket::subscribe();
    if let Err(error) = &subscribed
        && !matches!(error, Unreadable::System(_))
    {
        let _somebody_else_was_told_too = UNREADABLE.set(*error);
    }
    subscribed
}

impl Drop for Records {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Shared {
    /// Waits for records and reads what is there; whether there may be more at any time.
    async fn read(&self) -> bool {
        let Ok(mut ready) = self.socket.readable().await else { return false };
        for _ in 0..MOST_AT_ONCE {
            match ready.try_io(|socket| self.next(socket.get_ref())) {
                // Nothing is there any more.
                Err(_) => return true,
                Ok(Err(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    tracing::info!("audit records came faster than they were read, and some are lost");
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "audit records cannot be read");
                    return false;
                }
                Ok(Ok(())) => {}
            }
        }
        tokio::task::yield_now().await;
        true
    }

    fn next(&self, socket: &OwnedFd) -> io::Result<()> {
        let mut buffer = [0; BUFFER];
        if let Some((kind, content)) = socket::receive(socket, &mut buffer)? {
            self.trail.lock().unwrap_or_else(PoisonError::into_inner).feed(kind, content);
        }
        Ok(())
    }
}
