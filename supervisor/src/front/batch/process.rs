//! A child of the batch: started, waited for, ended.

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

/// The time that a child has to end in good order.
const LEAVING: Duration = Duration::from_secs(20);

/// The time that a child of a batch that was killed has to end.
const ORPHANED: Duration = Duration::from_secs(30);

/// Told to end: a number of a signal that this process got, or none so far.
pub(super) type ProcessStop = watch::Receiver<Option<i32>>;

/// The files of a child.
pub(super) struct Files {
    /// Its standard input. It is locked for as long as the child lives, even if this process does not.
    pub input: PathBuf,
    pub output: PathBuf,
    pub errors: PathBuf,
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchEnded {
    pub status: ExitStatus,
    /// True if it was over its time.
    pub overdue: bool,
}

impl BatchEnded {
    /// The end in words.
    pub(super) fn words(self) -> String {
        match (self.overdue, self.status.code(), self.status.signal()) {
            (true, ..) => "it did not end in its time".to_owned(),
            (_, Some(code), _) => format!("exit status {code}"),
            (_, None, signal) => format!("signal {}", signal.unwrap_or_default()),
        }
    }
}

/// Runs a command to its end; one that is overdue, and one that goes on when this process has to end, is ended.
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

/// A child with a descriptor that says when it has ended.
pub(super) struct BatchChild {
    child: process::Child,
    process: AsyncFd<OwnedFd>,
}

impl BatchChild {
    /// Starts a command.
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
        // The command holds the lock's descriptor as well.
        drop(command);
        let process = open_process(Pid::from_raw(child.id().cast_signed()))?;
        Ok(Self { child, process: register(process, Interest::READABLE)? })
    }

    /// True if it has ended by now.
    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        // Readable once the process is a zombie (pidfd_open(2)).
        drop(self.process.readable().await?);
        self.child.wait()
    }

    /// Has it end.
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

/// Waits until no child of an earlier batch holds the input of a run.
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
