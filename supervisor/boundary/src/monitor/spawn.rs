//! The spawn thread: one thread, as long-lived as the process, from which every broker is forked.
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
use super::spare::PrestartedBroker;
use crate::system;

/// Descriptors that sandbox-exec is told of, as it sees them.
const RIGHTS_FD: i32 = 3;
const STATUS_FD: i32 = 4;

/// Under this number a child has sandbox-exec itself.
const PROGRAM_FD: i32 = 5;

/// Where the programs of the system are: beside each other.
#[derive(Clone, Debug)]
pub struct Programs {
    pub sandbox_exec: PathBuf,
    pub worker: PathBuf,
}

/// What is to be executed, and how it is confined.
#[derive(Debug)]
pub struct Launch {
    /// The confinement.
    pub confinement: Confinement,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Further arguments: by them one start differs from the next of the same program.
    pub arguments: Vec<String>,
    /// What becomes of its standard streams.
    pub stdio: Stdio,
}

/// What becomes of the standard streams of a confined program.
#[derive(Debug)]
pub enum Stdio {
    /// Three pipes to the supervisor.
    Piped,
    Given {
        /// Its standard input.
        stdin: OwnedFd,
        /// Its standard output.
        stdout: OwnedFd,
        /// Its standard error, and sandbox-exec's own.
        stderr: OwnedFd,
    },
}

/// A broker that was spawned, and our ends of its pipes.
#[derive(Debug)]
pub struct Launched {
    /// Stands for the broker until it is reaped.
    pub pidfd: OwnedFd,
    /// Writes to the program's standard input.
    pub stdin: Option<OwnedFd>,
    /// Reads the program's standard output.
    pub stdout: Option<OwnedFd>,
    /// Reads the program's standard error, and sandbox-exec's own.
    pub stderr: Option<OwnedFd>,
    /// Reads the broker's reports.
    pub status: OwnedFd,
    /// What it began in.
    pub origin: Origin,
}

/// What a confined program begins in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A sandbox-exec that waited.
    Spare,
    /// One that was executed for it.
    Fresh,
}

/// Why nothing was spawned.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The rights do not fit on the wire.
    #[error("cannot order the confinement: {0}")]
    Order(#[source] FrameError),
    /// What is hidden could be anywhere.
    #[error("cannot keep hidden what is hidden: {0}")]
    Hidden(#[source] Box<dyn Error + Send + Sync>),
    /// A program of ours is missing or cannot be executed.
    #[error("cannot execute {program}: {source}")]
    Execute { program: PathBuf, source: io::Error },
    /// The system refused a descriptor, a pipe or a process.
    #[error("cannot spawn a confined process: {0}")]
    System(#[from] io::Error),
    /// The spawn thread is gone: the process is ending.
    #[error("the spawn thread has ended")]
    ThreadGone,
}

impl From<nix::Error> for SpawnError {
    fn from(errno: nix::Error) -> Self {
        Self::System(errno.into())
    }
}

/// Hands launches to a spawn thread, each with the last word of one place on its confinement.
#[derive(Clone, Debug)]
pub struct Spawner {
    requests: Arc<Requests>,
    before: Before,
}

/// The last word of a place: what it hides is the same for all who start programs there.
type Before = Arc<Mutex<dyn BeforeSpawn>>;

/// The spawn thread of this process, while somebody uses it.
static OF_THIS_PROCESS: Mutex<Weak<Requests>> = Mutex::new(Weak::new());

#[derive(Debug)]
struct Requests {
    sandbox_exec: PathBuf,
    /// Both are there until this is dropped.
    sender: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Requests {
    /// sandbox-exec is opened here, once: what lies at its path later, in a place that an agent may write, is not
    /// executed. (What runs cannot be written in place: ETXTBSY, execve(2).)
    fn start(sandbox_exec: PathBuf) -> io::Result<Self> {
        // Whether it is there is told by the first spawn, with its name.
        let opened = open(&sandbox_exec, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
        let program = Program { opened, path: sandbox_exec.clone() };
        let (requests, inbox) = mpsc::channel();
        let thread = thread::Builder::new().name("spawn".to_owned()).stack_size(256 << 10);
        let thread = thread.spawn(move || serve(&program, inbox))?;
        Ok(Self { sandbox_exec, sender: Some(requests), thread: Some(thread) })
    }
}

/// When nobody launches anything any more, what waits is ended before anything else is.
impl Drop for Requests {
    fn drop(&mut self) {
        drop(self.sender.take());
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

/// The answer to a launch.
type SpawnAnswer = oneshot::Receiver<Result<Launched, SpawnError>>;

#[derive(Debug)]
enum Request {
    Launch {
        launch: Box<Launch>,
        before: Before,
        /// The best that it may begin in.
        origin: Origin,
        reply: oneshot::Sender<Result<Launched, SpawnError>>,
    },
    /// Keep a sandbox-exec ready for this command.
    Prepare { command: Vec<OsString> },
}

impl Programs {
    /// The programs beside the running one.
    pub fn beside_current_exe() -> io::Result<Self> {
        Ok(Self::beside(&std::env::current_exe()?))
    }

    /// The programs beside this one.
    pub fn beside(program: &Path) -> Self {
        let directory = program.parent().unwrap_or(Path::new("/"));
        Self { sandbox_exec: directory.join("sandbox-exec"), worker: directory.join("bailiwick-worker") }
    }
}

impl Spawner {
    /// Starts a spawn thread; it ends when the last `Spawner` of it is gone.
    ///
    /// Everything that may write starts here: `before` sees each confinement.
    pub fn start(sandbox_exec: PathBuf, before: impl BeforeSpawn + 'static) -> io::Result<Self> {
        let requests = Arc::new(Requests::start(sandbox_exec)?);
        Ok(Self { requests, before: Arc::new(Mutex::new(before)) })
    }

    /// The same on the spawn thread of this process, which is started if nobody uses it: the sessions of one process have one
    /// thread, and one program that waits.
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

    /// Where sandbox-exec was when this began.
    pub fn sandbox_exec(&self) -> &Path {
        &self.requests.sandbox_exec
    }

    /// Spawns a confined program under a broker: in a sandbox-exec that waits, if one does that fits.
    pub async fn spawn(&self, launch: Launch) -> Result<Launched, SpawnError> {
        self.spawn_in(Origin::Spare, launch).await
    }

    /// The same, at best in this.
    pub(super) async fn spawn_in(&self, origin: Origin, launch: Launch) -> Result<Launched, SpawnError> {
        self.request(origin, launch)?.await.map_err(|_| SpawnError::ThreadGone)?
    }

    /// The same on a thread that no runtime uses, which waits.
    pub fn spawn_and_wait(&self, launch: Launch) -> Result<Launched, SpawnError> {
        self.request(Origin::Fresh, launch)?.blocking_recv().map_err(|_| SpawnError::ThreadGone)?
    }

    fn request(&self, origin: Origin, launch: Launch) -> Result<SpawnAnswer, SpawnError> {
        let (reply, answer) = oneshot::channel();
        let before = Arc::clone(&self.before);
        self.send(Request::Launch { launch: Box::new(launch), before, origin, reply })?;
        Ok(answer)
    }

    /// Has a sandbox-exec wait for the next launch of this command, if that will be piped.
    pub fn prepare(&self, command: Vec<OsString>) {
        // A thread that has ended launches nothing any more.
        let _ = self.send(Request::Prepare { command });
    }

    fn send(&self, request: Request) -> Result<(), SpawnError> {
        let sender = self.requests.sender.as_ref().ok_or(SpawnError::ThreadGone)?;
        sender.send(request).map_err(|_| SpawnError::ThreadGone)
    }
}

/// The spawn thread: launches one program after another.
fn serve(program: &Program, inbox: mpsc::Receiver<Request>) {
    let mut spare = None;
    for request in inbox {
        match request {
            Request::Launch { launch, before, origin, reply } => {
                let mut none = None;
                let spare = if origin == Origin::Spare { &mut spare } else { &mut none };
                let launched = start(program, spare, &before, *launch);
                // A caller that no longer waits drops what was spawned, and with it the pipes: the broker ends.
                let _ = reply.send(launched);
            }
            Request::Prepare { command } => {
                if !spare.as_ref().is_some_and(|spare: &PrestartedBroker| spare.fits(&command)) {
                    let begun = program.begin(&command, Stdio::Piped);
                    // Without one, the next start takes longer.
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
    let waiting = match stdio {
        Stdio::Piped => spare.take_if(|spare| spare.fits(&command)).and_then(PrestartedBroker::into_begun),
        Stdio::Given { .. } => None,
    };
    let origin = if waiting.is_some() { Origin::Spare } else { Origin::Fresh };
    let begun = waiting.map_or_else(|| program.begin(&command, stdio), Ok)?;
    // Filled while sandbox-exec is executed, which waits for it.
    let filled = fill(before, &mut confinement).map_err(SpawnError::Hidden);
    let order = filled.map(|()| Order { confinement, arguments });
    begun.execute(order).map(|launched| Launched { origin, ..launched })
}

/// Says the last word. Others use this thread: a panic is an error of this start, and what it left half done is not built upon.
fn fill(before: &Before, confinement: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>> {
    let fill = || before.lock().map_err(|_| "an earlier look for it broke off")?.fill(confinement);
    panic::catch_unwind(AssertUnwindSafe(fill)).unwrap_or_else(|_| Err("the look for it broke off".into()))
}

/// sandbox-exec itself.
struct Program {
    path: PathBuf,
    opened: nix::Result<OwnedFd>,
}

impl Program {
    /// Executes it; it waits for its orders.
    fn begin(&self, command: &[OsString], wanted: Stdio) -> Result<BegunLaunch, SpawnError> {
        let unusable = |source| SpawnError::Execute { program: self.path.clone(), source };
        let opened = self.opened.as_ref().map_err(|errno| unusable((*errno).into()))?;
        let (given, orders) = pipe2(OFlag::O_CLOEXEC)?;
        let (status, status_writer) = pipe2(OFlag::O_CLOEXEC)?;
        let Streams { theirs: [stdin, stdout, stderr], ours } = Streams::new(wanted)?;
        let (rights_fd, status_fd) = (RIGHTS_FD.to_string(), STATUS_FD.to_string());
        let options = ["--rights-fd", &rights_fd, "--status-fd", &status_fd, "--"].map(OsStr::new);
        let arguments: Vec<_> = iter::once(self.path.as_os_str())
            .chain(options)
            .chain(command.iter().map(OsString::as_os_str))
            .collect();
        // Each under its number. The program too: where it is a script, its interpreter opens it by that.
        let descriptors = vec![stdin, stdout, stderr, given, status_writer, opened.try_clone()?];
        let program = format!("/proc/self/fd/{PROGRAM_FD}");
        let pid = child::execute(&program, &arguments, descriptors).map_err(unusable)?;
        // Not reaped yet, so that the number is still the child's.
        let end = |_: &io::Error| {
            let _ended = kill(pid, Signal::SIGKILL).and_then(|()| waitpid(pid, None));
        };
        let pidfd = system::open_process(pid).inspect_err(end)?;
        let [stdin, stdout, stderr] = ours;
        let launched = Launched { pidfd, stdin, stdout, stderr, status, origin: Origin::Fresh };
        Ok(BegunLaunch { launched, orders: Outgoing::new(orders.into(), Generation(0)) })
    }
}

/// A sandbox-exec that waits for its orders.
#[derive(Debug)]
pub(super) struct BegunLaunch {
    launched: Launched,
    orders: Outgoing<File, Order>,
}

impl BegunLaunch {
    /// Gives it an order.
    pub(super) fn order(&mut self, order: &Order) -> Result<(), SpawnError> {
        match self.orders.send(order) {
            // It is gone: its report, or that there is none, says why.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent.map_err(SpawnError::Order),
        }
    }

    /// Gives it its last order; without one it is ended.
    fn execute(mut self, order: Result<Order, SpawnError>) -> Result<Launched, SpawnError> {
        match order.and_then(|order| self.order(&order)) {
            Ok(()) => Ok(self.launched),
            Err(error) => {
                self.end()?;
                Err(error)
            }
        }
    }

    /// Whether it still waits.
    pub(super) fn is_alive(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(waitid(Id::PIDFd(self.launched.pidfd.as_fd()), flags), Ok(WaitStatus::StillAlive))
    }

    /// Ends and reaps it.
    pub(super) fn end(&self) -> io::Result<()> {
        let pidfd = self.launched.pidfd.as_fd();
        system::signal_process(pidfd, Signal::SIGKILL)?;
        waitid(Id::PIDFd(pidfd), WaitPidFlag::WEXITED)?;
        Ok(())
    }
}

/// The standard streams of a child.
struct Streams {
    theirs: [OwnedFd; 3],
    /// The other ends of those that are pipes to the supervisor.
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
    use std::os::unix::fs::PermissionsExt;

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
        for wanted in ["the look for it broke off", "an earlier look for it broke off"] {
            let error = panicking.spawn(launch()).await.unwrap_err().to_string();
            assert_eq!(error, format!("cannot keep hidden what is hidden: {wanted}"));
        }
        let other = Spawner::of_this_process(program(), Silent).unwrap();
        assert!(Arc::ptr_eq(&other.requests, &panicking.requests));
        let launched = other.spawn(launch()).await.unwrap();
        waitid(Id::PIDFd(launched.pidfd.as_fd()), WaitPidFlag::WEXITED).unwrap();
    }

    /// As tests have one, and whoever wraps it.
    #[tokio::test]
    async fn a_script_is_executed_by_a_descriptor_too() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("sandbox-exec");
        std::fs::write(&script, "#!/bin/sh\nexit 7\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let launched = Spawner::start(script, Silent).unwrap().spawn(launch()).await.unwrap();
        let status = waitid(Id::PIDFd(launched.pidfd.as_fd()), WaitPidFlag::WEXITED).unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 7)), "{status:?}");
    }
}
