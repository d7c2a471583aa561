//! The thread that starts every confined process. It lives as long as this process.
//!
//! `PR_SET_PDEATHSIG` fires when the *thread* that forked ends (prctl(2)), and a runtime's threads come and go.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};

use ipc::confinement::{Confinement, Order};
use ipc::frame::FrameError;
use ipc::id::Generation;
use ipc::pipe::Outgoing;
use nix::fcntl::{OFlag, open};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::pipe2;
use tokio::sync::oneshot;

use super::before::BeforeSpawn;
use super::child;
use super::gateway::{GatewayPlan, LaunchedGateway};
use super::spare::PrestartedBroker;
use crate::system;

/// Number of the order pipe's descriptor in the child. Flags tell sandbox-exec this number and the next ones.
const RIGHTS_FD: i32 = 3;
const STATUS_FD: i32 = 4;

/// Descriptor number of the sandbox-exec program itself in the child.
const PROGRAM_FD: i32 = 5;

/// Descriptor number of the socket to the gateway, for a program that has one.
const GATEWAY_FD: i32 = 6;

#[derive(Clone, Debug)]
pub struct Programs {
    pub sandbox_exec: PathBuf,
    pub worker: PathBuf,
}

#[derive(Debug)]
pub struct Launch {
    pub confinement: Confinement,
    pub command: Vec<OsString>,
    /// Arguments after `command`. They may differ at each start: a prestarted sandbox-exec gets them with its order.
    pub arguments: Vec<String>,
    pub stdio: Stdio,
}

#[derive(Debug)]
pub enum Stdio {
    Piped,
    Given { stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd },
}

#[derive(Debug)]
pub struct Launched {
    pub pidfd: OwnedFd,
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    /// Read end of the standard error of program and sandbox-exec; `None` if the caller gave the streams.
    pub stderr: Option<OwnedFd>,
    pub status: OwnedFd,
    pub origin: Origin,
    pub gateway: Option<LaunchedGateway>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Spare,
    Fresh,
}

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot send the order to the sandbox: {0}")]
    Order(#[source] FrameError),
    #[error("cannot keep hidden files hidden: {0}")]
    Hidden(#[source] Box<dyn Error + Send + Sync>),
    #[error("cannot execute {program}: {source}")]
    Execute { program: PathBuf, source: io::Error },
    #[error("cannot start a process in the sandbox: {0}")]
    System(#[from] io::Error),
    #[error("the spawn thread has ended")]
    ThreadGone,
}

impl From<nix::Error> for SpawnError {
    fn from(errno: nix::Error) -> Self {
        Self::System(errno.into())
    }
}

#[derive(Clone, Debug)]
pub struct Spawner {
    requests: Arc<Requests>,
    before: Before,
}

type Before = Arc<Mutex<dyn BeforeSpawn>>;

/// The thread that starts programs, shared by this process's sessions while a `Spawner` uses it.
static OF_THIS_PROCESS: Mutex<Weak<Requests>> = Mutex::new(Weak::new());

#[derive(Debug)]
struct Requests {
    sandbox_exec: PathBuf,
    /// Queue of requests to `thread`. Both fields are `Some` until this value is dropped.
    sender: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Requests {
    /// Starts the thread. Opens sandbox-exec once, so that a file placed at its path later is never executed.
    fn start(sandbox_exec: PathBuf) -> io::Result<Self> {
        // If sandbox-exec is missing, the first start reports that with its path.
        let opened = open(&sandbox_exec, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
        let program = Program { opened, path: sandbox_exec.clone() };
        let (requests, inbox) = mpsc::channel();
        let thread = thread::Builder::new().name("spawn".to_owned()).stack_size(256 << 10);
        let thread = thread.spawn(move || serve(&program, inbox))?;
        Ok(Self { sandbox_exec, sender: Some(requests), thread: Some(thread) })
    }
}

/// Ends the thread and waits for it. The thread ends a prestarted sandbox-exec before it ends.
impl Drop for Requests {
    fn drop(&mut self) {
        drop(self.sender.take());
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

type SpawnAnswer = oneshot::Receiver<Result<Launched, SpawnError>>;

#[derive(Debug)]
enum Request {
    Launch {
        launch: Box<Launch>,
        before: Before,
        origin: Origin,
        reply: oneshot::Sender<Result<Launched, SpawnError>>,
    },
    /// Starts a sandbox-exec in advance. It waits for the order to run this command.
    Prepare { command: Vec<OsString> },
}

impl Programs {
    pub fn beside_current_exe() -> io::Result<Self> {
        Ok(Self::beside(&std::env::current_exe()?))
    }

    pub fn beside(program: &Path) -> Self {
        let directory = program.parent().unwrap_or(Path::new("/"));
        Self { sandbox_exec: directory.join("sandbox-exec"), worker: directory.join("bailiwick-worker") }
    }
}

impl Spawner {
    /// Returns a `Spawner` with a thread of its own. The thread ends with the last clone. `before` completes the
    /// confinement of every program.
    pub fn start(sandbox_exec: PathBuf, before: impl BeforeSpawn + 'static) -> io::Result<Self> {
        let requests = Arc::new(Requests::start(sandbox_exec)?);
        Ok(Self { requests, before: Arc::new(Mutex::new(before)) })
    }

    /// Uses the one thread that all sessions of this process share, and starts it if necessary.
    pub fn of_this_process(sandbox_exec: PathBuf, before: impl BeforeSpawn + 'static) -> io::Result<Self> {
        let mut shared = OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let running = shared.upgrade().filter(|requests| requests.sandbox_exec == sandbox_exec);
        let requests = match running {
            Some(requests) => requests,
            None => Arc::new(Requests::start(sandbox_exec)?),
        };
        *shared = Arc::downgrade(&requests);
        Ok(Self { requests, before: Arc::new(Mutex::new(before)) })
    }

    pub fn sandbox_exec(&self) -> &Path {
        &self.requests.sandbox_exec
    }

    pub async fn spawn(&self, launch: Launch) -> Result<Launched, SpawnError> {
        self.spawn_in(Origin::Spare, launch).await
    }

    pub(super) async fn spawn_in(&self, origin: Origin, launch: Launch) -> Result<Launched, SpawnError> {
        self.request(origin, launch)?.await.map_err(|_| SpawnError::ThreadGone)?
    }

    /// Starts a confined program, and blocks until the program runs. Not for the threads of the async runtime.
    pub fn spawn_and_wait(&self, launch: Launch) -> Result<Launched, SpawnError> {
        self.request(Origin::Fresh, launch)?.blocking_recv().map_err(|_| SpawnError::ThreadGone)?
    }

    fn request(&self, origin: Origin, launch: Launch) -> Result<SpawnAnswer, SpawnError> {
        let (reply, answer) = oneshot::channel();
        let before = Arc::clone(&self.before);
        self.send(Request::Launch { launch: Box::new(launch), before, origin, reply })?;
        Ok(answer)
    }

    pub fn prepare(&self, command: Vec<OsString>) {
        // A thread that has ended launches no more programs.
        let _ = self.send(Request::Prepare { command });
    }

    fn send(&self, request: Request) -> Result<(), SpawnError> {
        let sender = self.requests.sender.as_ref().ok_or(SpawnError::ThreadGone)?;
        sender.send(request).map_err(|_| SpawnError::ThreadGone)
    }
}

fn serve(program: &Program, inbox: mpsc::Receiver<Request>) {
    let mut spare = None;
    for request in inbox {
        match request {
            Request::Launch { launch, before, origin, reply } => {
                let mut none = None;
                let spare = if origin == Origin::Spare { &mut spare } else { &mut none };
                let launched = start(program, spare, &before, *launch);
                // If the caller no longer waits, the pipes are dropped here, and the broker ends.
                let _ = reply.send(launched);
            }
            Request::Prepare { command } => {
                if !spare.as_ref().is_some_and(|spare: &PrestartedBroker| spare.fits(&command)) {
                    let begun = program.begin(&command, Stdio::Piped, None);
                    // Without a waiting process, the next start takes longer.
                    spare = begun.map(|begun| PrestartedBroker::new(begun, command)).ok();
                }
            }
        }
    }
}

fn start(
    program: &Program,
    spare: &mut Option<PrestartedBroker>,
    before: &Before,
    launch: Launch,
) -> Result<Launched, SpawnError> {
    let Launch { mut confinement, command, arguments, stdio } = launch;
    let (gateway, arrivals) = match confinement.rights.net.hosts() {
        Some(hosts) => {
            let worker = Programs::beside(&program.path).worker;
            let (gateway, arrivals) =
                program.begin_gateway(GatewayPlan::new(&worker, &confinement, hosts)?)?;
            (Some(gateway), Some(arrivals))
        }
        None => (None, None),
    };
    let waiting = match stdio {
        // A process that waits has no socket to a gateway.
        Stdio::Piped if arrivals.is_some() => None,
        Stdio::Piped => spare.take_if(|spare| spare.fits(&command)).and_then(PrestartedBroker::into_begun),
        Stdio::Given { .. } => None,
    };
    let origin = if waiting.is_some() { Origin::Spare } else { Origin::Fresh };
    let begun = waiting.map_or_else(|| program.begin(&command, stdio, arrivals), Ok)?;
    // sandbox-exec starts meanwhile and waits for the order.
    let filled = fill(before, &mut confinement).map_err(SpawnError::Hidden);
    let order = filled.map(|()| Order { confinement, arguments });
    begun.execute(order).map(|launched| Launched { origin, gateway, ..launched })
}

/// Runs the hook `before` on a confinement. If the hook panics, this start and all later ones with the same hook fail.
fn fill(before: &Before, confinement: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>> {
    let fill = || before.lock().map_err(|_| "an earlier search for hidden files failed")?.fill(confinement);
    panic::catch_unwind(AssertUnwindSafe(fill))
        .unwrap_or_else(|_| Err("the search for hidden files failed".into()))
}

struct Program {
    path: PathBuf,
    opened: nix::Result<OwnedFd>,
}

impl Program {
    fn begin_gateway(&self, plan: GatewayPlan) -> Result<(LaunchedGateway, OwnedFd), SpawnError> {
        let GatewayPlan { program, order, stdio, arrivals, channel, start } = plan;
        let begun = self.begin(&[program.clone().into_os_string()], stdio, None)?;
        let confinement = order.confinement.clone();
        let Launched { pidfd, status, .. } = begun.execute(Ok(order))?;
        Ok((LaunchedGateway::new(pidfd, status, channel, program, confinement, start), arrivals))
    }

    /// Starts a sandbox-exec that waits for its order. `arrivals` is the socket to the program's gateway.
    fn begin(
        &self,
        command: &[OsString],
        wanted: Stdio,
        arrivals: Option<OwnedFd>,
    ) -> Result<BegunLaunch, SpawnError> {
        let unusable = |source| SpawnError::Execute { program: self.path.clone(), source };
        let opened = self.opened.as_ref().map_err(|errno| unusable((*errno).into()))?;
        let (given, orders) = pipe2(OFlag::O_CLOEXEC)?;
        let (status, status_writer) = pipe2(OFlag::O_CLOEXEC)?;
        let Streams { theirs: [stdin, stdout, stderr], ours } = Streams::new(wanted)?;
        let (rights_fd, status_fd, gateway_fd) =
            (RIGHTS_FD.to_string(), STATUS_FD.to_string(), GATEWAY_FD.to_string());
        let options = ["--rights-fd", &rights_fd, "--status-fd", &status_fd].map(OsStr::new);
        let to_gateway = arrivals.is_some().then(|| ["--gateway-fd", &gateway_fd].map(OsStr::new));
        let arguments: Vec<_> = iter::once(self.path.as_os_str())
            .chain(options)
            .chain(to_gateway.into_iter().flatten())
            .chain(iter::once(OsStr::new("--")))
            .chain(command.iter().map(OsString::as_os_str))
            .collect();
        // Each descriptor gets its index as number. If the program is a script, its interpreter opens it by that
        // number.
        let mut descriptors = vec![stdin, stdout, stderr, given, status_writer, opened.try_clone()?];
        descriptors.extend(arrivals);
        let program = format!("/proc/self/fd/{PROGRAM_FD}");
        let pid = child::execute(&program, &arguments, descriptors).map_err(unusable)?;
        // The child is not reaped yet, so its pid cannot be another process.
        let end = |_: &io::Error| {
            let _ended = kill(pid, Signal::SIGKILL).and_then(|()| waitpid(pid, None));
        };
        let pidfd = system::open_process(pid).inspect_err(end)?;
        let [stdin, stdout, stderr] = ours;
        let launched =
            Launched { pidfd, stdin, stdout, stderr, status, origin: Origin::Fresh, gateway: None };
        Ok(BegunLaunch { launched, orders: Outgoing::new(orders.into(), Generation(0)) })
    }
}

#[derive(Debug)]
pub(super) struct BegunLaunch {
    launched: Launched,
    orders: Outgoing<File, Order>,
}

impl BegunLaunch {
    pub(super) fn order(&mut self, order: &Order) -> Result<(), SpawnError> {
        match self.orders.send(order) {
            // The process has ended. Its report, or the lack of one, gives the reason.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent.map_err(SpawnError::Order),
        }
    }

    /// Sends the order that starts the program. For an `Err`, kills the waiting sandbox-exec and returns the error.
    fn execute(mut self, order: Result<Order, SpawnError>) -> Result<Launched, SpawnError> {
        match order.and_then(|order| self.order(&order)) {
            Ok(()) => Ok(self.launched),
            Err(error) => {
                self.end()?;
                Err(error)
            }
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(waitid(Id::PIDFd(self.launched.pidfd.as_fd()), flags), Ok(WaitStatus::StillAlive))
    }

    pub(super) fn end(&self) -> io::Result<()> {
        let pidfd = self.launched.pidfd.as_fd();
        system::signal_process(pidfd, Signal::SIGKILL)?;
        waitid(Id::PIDFd(pidfd), WaitPidFlag::WEXITED)?;
        Ok(())
    }
}

struct Streams {
    theirs: [OwnedFd; 3],
    ours: [Option<OwnedFd>; 3],
}

impl Streams {
    fn new(wanted: Stdio) -> nix::Result<Self> {
        if let Stdio::Given { stdin, stdout, stderr } = wanted {
            return Ok(Self { theirs: [stdin, stdout, stderr], ours: [const { None }; 3] });
        }
        let (stdin, writer) = pipe2(OFlag::O_CLOEXEC)?;
        let (output, stdout) = pipe2(OFlag::O_CLOEXEC)?;
        let (errors, stderr) = pipe2(OFlag::O_CLOEXEC)?;
        Ok(Self { theirs: [stdin, stdout, stderr], ours: [writer, output, errors].map(Some) })
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[derive(Debug)]
    struct Panicking;

    impl BeforeSpawn for Panicking {
        fn fill(&mut self, _: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>> {
            panic!("a look that breaks off")
        }
    }

    #[derive(Debug)]
    struct Silent;

    impl BeforeSpawn for Silent {
        fn fill(&mut self, _: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>> {
            Ok(())
        }
    }

    fn launch() -> Launch {
        let confinement = Confinement::new(ipc::rights::Rights::default(), "/".into());
        Launch { confinement, command: vec!["true".into()], arguments: vec![], stdio: Stdio::Piped }
    }

    #[tokio::test]
    async fn a_panic_before_one_start_leaves_the_thread_to_others() {
        let program = || PathBuf::from("/bin/true");
        let panicking = Spawner::of_this_process(program(), Panicking).unwrap();
        for wanted in ["the search for hidden files failed", "an earlier search for hidden files failed"] {
            let error = panicking.spawn(launch()).await.unwrap_err().to_string();
            assert_eq!(error, format!("cannot keep hidden files hidden: {wanted}"));
        }
        let other = Spawner::of_this_process(program(), Silent).unwrap();
        assert!(Arc::ptr_eq(&other.requests, &panicking.requests));
        let launched = other.spawn(launch()).await.unwrap();
        waitid(Id::PIDFd(launched.pidfd.as_fd()), WaitPidFlag::WEXITED).unwrap();
    }

    #[tokio::test]
    async fn a_script_is_executed_by_a_descriptor_too() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("sandbox-exec");
        // Written by another process: a child that another test forks meanwhile would inherit the open file, which
        // then could not be executed (ETXTBSY).
        let write = r#"printf '#!/bin/sh\nexit 7\n' > "$1" && chmod 755 "$1""#;
        assert!(
            std::process::Command::new("sh")
                .args(["-c", write, "sh"])
                .arg(&script)
                .status()
                .unwrap()
                .success()
        );
        let launched = Spawner::start(script, Silent).unwrap().spawn(launch()).await.unwrap();
        let status = waitid(Id::PIDFd(launched.pidfd.as_fd()), WaitPidFlag::WEXITED).unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 7)), "{status:?}");
    }
}
