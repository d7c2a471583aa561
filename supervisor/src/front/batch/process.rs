use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use boundary::system::{open_process, register, signal_process};

/// Time that a child has to end after SIGTERM.
const LEAVING: Duration = Duration::from_secs(20);

/// Longest time to wait until the children of an earlier, killed batch have ended by themselves.
const ORPHANED: Duration = Duration::from_secs(30);

/// The signal that tells this process to end; `None` until one arrives.
pub(super) type ProcessStop = watch::Receiver<Option<i32>>;

pub(super) struct Files {
    /// The file for standard input. Each child holds a lock on it, even after this process has died.
    pub input: PathBuf,
    pub output: PathBuf,
    pub errors: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchEnded {
    pub status: ExitStatus,
    /// True if the child was ended because it reached its time limit.
    pub overdue: bool,
}

impl BatchEnded {
    pub(super) fn words(self) -> String {
        match (self.overdue, self.status.code(), self.status.signal()) {
            (true, ..) => "the process exceeded its time limit".to_owned(),
            (_, Some(code), _) => format!("exit status {code}"),
            (_, None, signal) => format!("signal {}", signal.unwrap_or_default()),
        }
    }
}

/// Runs a command. Ends the command at the deadline, or when this process has to stop.
pub(super) async fn run(
    command: Command,
    files: Files,
    deadline: Option<Duration>,
    mut stop: ProcessStop,
) -> io::Result<BatchEnded> {
    let mut child = BatchChild::start(command, &files)?;
    let deadline = deadline.map(|time| Instant::now() + time);
    let overdue = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    let overdue = tokio::select! {
        status = child.ended() => return Ok(BatchEnded { status: status?, overdue: false }),
        _ = stop.wait_for(Option::is_some) => false,
        () = overdue => true,
    };
    Ok(BatchEnded { status: child.end().await?, overdue })
}

/// A child process, with a pidfd that becomes readable when the child ends.
pub(super) struct BatchChild {
    child: process::Child,
    process: AsyncFd<OwnedFd>,
}

impl BatchChild {
    /// Starts a command. Fails if another process has locked the file for standard input.
    pub(super) fn start(mut command: Command, files: &Files) -> io::Result<Self> {
        let input = File::open(&files.input)?;
        if input.metadata()?.is_file() {
            input.try_lock().map_err(io::Error::from)?;
        }
        let appended = |path: &PathBuf| File::options().create(true).append(true).open(path);
        command.stdin(input).stdout(appended(&files.output)?).stderr(appended(&files.errors)?);
        let child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
        })?;
        // The command holds a descriptor of the locked file too.
        drop(command);
        let process = open_process(Pid::from_raw(child.id().cast_signed()))?;
        Ok(Self { child, process: register(process, Interest::READABLE)? })
    }

    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        // Readable once the process is a zombie (pidfd_open(2)).
        drop(self.process.readable().await?);
        self.child.wait()
    }

    /// Ends the child: first with SIGTERM, and after [`LEAVING`] with SIGKILL. Returns its exit status.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        signal_process(self.process.get_ref().as_fd(), Signal::SIGTERM)?;
        if let Ok(ended) = timeout(LEAVING, self.ended()).await {
            return ended;
        }
        self.child.kill()?;
        self.ended().await
    }
}

/// Waits until no child of an earlier batch holds the lock on the input file.
pub(super) async fn left_alone(input: &Path) -> io::Result<()> {
    let file = match File::open(input) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let until = Instant::now() + ORPHANED;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(fs::TryLockError::WouldBlock) => {
                return Err(io::Error::other("a run of an earlier batch has not ended"));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}
