mod execute;
mod reaper;
mod request;
mod start;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use ipc::path::WirePath;
use ipc::rights::{Execution, Network, Rights};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc::{self, pid_t};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, pipe2};

use crate::compile::{Devices, Plan};
use crate::descendants;
use crate::domain::{Domain, DomainError};
use crate::platform::Platform;
use crate::seccomp::{Policy, Program};
use crate::stage::Stage;
pub use reaper::reap;
use request::{CommandFilter, Request};
use start::Given;

/// Only argument of a reaper process; makes the worker's program call [`reap`].
pub const REAP: &str = "--reap";

#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CommandError {
    #[error("the rights do not allow commands")]
    Denied,
    #[error("cannot build the domain of a command: {0}")]
    Domain(#[from] DomainError),
    #[error("{what} holds a NUL byte")]
    Nul { what: &'static str },
    #[error("the command is empty")]
    Empty,
    #[error("{0} is not an absolute path")]
    Relative(WirePath),
    #[error("cannot {act}: {source}")]
    System { act: &'static str, source: io::Error },
}

#[derive(Debug)]
pub struct CommandDomain {
    platform: Platform,
    read: Vec<WirePath>,
    standing: Domain,
    signals: Option<Domain>,
    null: File,
    may_execute: bool,
    net: Network,
    tier: Tier,
}

#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// Absolute path of the program, and its arguments.
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    pub access: DomainAccess,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainAccess {
    Standing,
    /// All access of the worker except the network: the command declared that it needs none.
    Offline,
    /// Access of a command that declared that it only reads. The command can write only its temp directory and the null
    /// device, and reaches only hosts that were granted by name.
    Read {
        temp: PathBuf,
        /// Network that the command may use, at most the worker's.
        net: Network,
    },
}

#[derive(Debug)]
pub struct Running {
    /// Pipe with the command's standard output and error, in order. Nonblocking.
    pub output: OwnedFd,
    /// Pipe that delivers four bytes once the command *and all its descendants* have ended ([`Ending::from_bytes`]). If
    /// the pipe ends without them, the reaper was killed. Nonblocking.
    pub status: OwnedFd,
    reaper: Option<Pid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    Signalled(i32),
    NotStarted { stage: Stage, errno: i32 },
}

impl CommandDomain {
    /// Prepares the Landlock domain of commands under `rights`. `temp` is the worker's private temp directory; `None`
    /// if a write root contains it. Makes this process adopt a killed reaper's orphans ([`end_orphans`]).
    pub fn prepare(rights: &Rights, temp: Option<&Path>, tier: Tier) -> Result<Self, CommandError> {
        let platform = Platform::probe();
        let write: Vec<_> = rights.write.iter().cloned().chain(temp.map(WirePath::from)).collect();
        let null = File::open("/dev/null").map_err(system("open /dev/null"))?;
        crate::system::set_subreaper().map_err(system("adopt orphans"))?;
        descendants::fence().map_err(system("bound the signals of commands"))?;
        Ok(Self {
            platform,
            read: rights.read.clone(),
            standing: Domain::build(
                &Plan::within(&rights.read, &write, rights.net.clone(), tier, Devices::Own),
                platform,
            )?,
            signals: Domain::of_scopes(platform)?,
            null,
            may_execute: rights.exec == Execution::Allowed,
            net: rights.net.clone(),
            tier,
        })
    }

    /// Starts a command, which ends with the calling *thread*. Fails if the access denies commands, the command is
    /// malformed, or no process can be started.
    pub fn spawn(&self, command: &CommandSpec) -> Result<Running, CommandError> {
        if !self.may_execute {
            return Err(CommandError::Denied);
        }
        let narrow = self.narrow(&command.access)?;
        let domain = narrow.as_ref().unwrap_or(&self.standing).ruleset();
        let signals = self.signals.as_ref().and_then(Domain::ruleset);
        let mut request = Request::new(command)?;
        request.has_domain = domain.is_some();
        request.has_signals = signals.is_some();
        request.filter = self.filter(&command.access);
        let (output, printed) = pipe()?;
        let (status, ended) = pipe()?;
        let (orders, order) = pipe()?;
        for end in [&output, &status] {
            let nonblocking = OFlag::O_NONBLOCK;
            fcntl(end, FcntlArg::F_SETFL(nonblocking))
                .map_err(|errno| system("prepare a pipe")(errno.into()))?;
        }
        let null = self.null.as_fd();
        let given = Given {
            null,
            output: printed.as_fd(),
            status: ended.as_fd(),
            request: orders.as_fd(),
            domain: domain.unwrap_or(null),
            signals: signals.unwrap_or(null),
        };
        let reaper = start::execute(&given).map_err(system("start a process"))?;
        let running = Running { output, status, reaper: Some(reaper) };
        // From now on the reaper's end is the pipe's.
        drop(orders);
        request.send(order).map_err(system("order a command"))?;
        Ok(running)
    }

    /// Returns the seccomp program of a command that has less access than its worker; `None` if it has the same access.
    fn filter(&self, access: &DomainAccess) -> Option<CommandFilter> {
        let policy = |net| Policy::of(net, self.platform, self.tier);
        match (access, self.net.reaches_out()) {
            (DomainAccess::Standing, _) | (DomainAccess::Offline, false) => None,
            (DomainAccess::Offline, true) => Some(CommandFilter::Offline(policy(&self.net))),
            (DomainAccess::Read { net, .. }, true) if net.reaches_out() => {
                Some(CommandFilter::ReadOnlyOnline(policy(&self.net)))
            }
            (DomainAccess::Read { .. }, _) => Some(CommandFilter::ReadOnly(policy(&Network::Off))),
        }
    }

    fn narrow(&self, access: &DomainAccess) -> Result<Option<Domain>, CommandError> {
        let DomainAccess::Read { temp, net } = access else {
            return Ok(None);
        };
        let net = self.net.meet(net);
        let plan = Plan::within(&self.read, &[temp.into()], net, self.tier, Devices::Harmless);
        Ok(Some(Domain::build(&plan, self.platform)?))
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.reaper.map_or(0, |reaper| reaper.as_raw().cast_unsigned())
    }

    /// Makes the reaper kill the command and all its descendants; [`Running::status`] reports the end.
    pub fn end(&self) -> io::Result<()> {
        self.reaper.map_or(Ok(()), |reaper| descendants::send(reaper.as_raw(), libc::SIGTERM))
    }

    pub fn reap(mut self) -> io::Result<()> {
        self.wait()
    }

    fn wait(&mut self) -> io::Result<()> {
        let Some(reaper) = self.reaper.take() else { return Ok(()) };
        loop {
            match waitpid(reaper, None) {
                Err(Errno::EINTR) => {}
                waited => return waited.map(drop).map_err(Into::into),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end());
        drop(self.wait());
    }
}

impl Ending {
    pub fn from_bytes(bytes: [u8; 4]) -> Self {
        let status = i32::from_le_bytes(bytes);
        let code = libc::WEXITSTATUS(status);
        if status & NOT_STARTED != 0 {
            let stage = u8::try_from(code).ok().and_then(Stage::from_code).unwrap_or(Stage::Start);
            return Self::NotStarted { stage, errno: status >> 16 & 0xff };
        }
        if libc::WIFSIGNALED(status) { Self::Signalled(libc::WTERMSIG(status)) } else { Self::Exited(code) }
    }
}

/// Bit in the status of a command that was never executed. Bits 8–15 are then the stage's code, 16–23 the errno.
const NOT_STARTED: i32 = 1 << 30;

/// Kills and reaps this process's children except `reapers`. The others are orphans that a killed reaper left. Does
/// nothing without `/proc`, which lists the children.
pub fn end_orphans(reapers: &[u32]) {
    while let Ok(mut orphans) = children() {
        orphans.retain(|pid| !reapers.contains(&pid.cast_unsigned()));
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            // Its children come to this process as it ends: the next round finds them.
            drop(descendants::send(orphan, libc::SIGKILL));
            let _gone = waitpid(Pid::from_raw(orphan), None);
        }
    }
}

fn children() -> io::Result<Vec<pid_t>> {
    let mut children = vec![];
    for thread in fs::read_dir("/proc/self/task")? {
        match fs::read_to_string(thread?.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<pid_t>().ok())),
            // A thread that has ended has no children.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(children)
}

/// Forbids execution to this thread and all its later threads and processes.
pub fn deny_execution() -> io::Result<()> {
    Program::no_execution().attach()
}

/// Makes this process non-dumpable. Must be called before anything else, since execve(2) has made it dumpable.
pub fn make_undumpable() -> io::Result<()> {
    crate::system::make_undumpable()
}

fn pipe() -> Result<(OwnedFd, OwnedFd), CommandError> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| system("make a pipe")(errno.into()))
}

fn system(act: &'static str) -> impl Fn(io::Error) -> CommandError {
    move |source| CommandError::System { act, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_how_a_command_ended() {
        let ending = |status: i32| Ending::from_bytes(status.to_le_bytes());
        assert_eq!(ending(0), Ending::Exited(0));
        assert_eq!(ending(3 << 8), Ending::Exited(3));
        assert_eq!(ending(libc::SIGKILL), Ending::Signalled(libc::SIGKILL));
        let execute = i32::from(Stage::Execute.code()) << 8 | NOT_STARTED | libc::ENOENT << 16;
        assert_eq!(ending(execute), Ending::NotStarted { stage: Stage::Execute, errno: libc::ENOENT });
        assert!(
            libc::WIFEXITED(execute),
            "a reader that knows only wait statuses sees the stage's exit code"
        );
    }
}
