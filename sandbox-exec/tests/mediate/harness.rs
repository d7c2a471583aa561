use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use ipc::rights::{Network, Reach};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, setgroups, setresgid, setresuid};
use sandbox_exec::compile::{Devices, Plan};
use sandbox_exec::domain::Domain;
use sandbox_exec::mediate::{Filter, Mediation, Mediator, Refusals, Sockets};
use sandbox_exec::platform::{Platform, SCOPES};
use sandbox_exec::system;
use tempfile::TempDir;

use crate::machine::{Machine, deny_as_containers_do, drop_capabilities, private_network};
use crate::messages::receive_descriptor;
use crate::stuck::stuck;

const PATIENCE: u16 = 300;
const LONGEST: u32 = 2 * PATIENCE as u32;

const PLAIN: u32 = 12345;

/// Directory of a test. The program may reach sockets in `in`, but neither in `in/hidden` nor in `out`.
pub(crate) struct Place {
    directory: TempDir,
    user: Option<u32>,
    tier: Tier,
    machine: Machine,
    scoped: bool,
    outside: RefCell<Vec<RawFd>>,
}

/// Runs a test in both tiers, as every possible user; the mediator duplicates sockets, or creates them all.
pub(crate) fn as_each_user(test: impl Fn(&Place)) {
    for machine in [Machine::Bare, Machine::Container] {
        in_tiers(&[Tier::Full, Tier::Floor], machine, &test);
    }
}

/// Runs a test like `as_each_user`, first with the mediator judging abstract names, then with the kernel.
pub(crate) fn by_each_judge(test: impl Fn(&Place)) {
    let has_scopes = Platform::probe().abi >= SCOPES;
    if !has_scopes {
        eprintln!("skipped: names are judged by the kernel (it has no scopes)");
    }
    for scoped in [false, true].into_iter().take(1 + usize::from(has_scopes)) {
        as_each_user(|place| {
            test(&Place { scoped, machine: place.machine, tier: place.tier, ..Place::new(place.user) });
        });
    }
}

pub(crate) fn in_the_floor(test: impl Fn(&Place)) {
    in_tiers(&[Tier::Floor], Machine::Bare, test);
}

pub(crate) fn in_the_floor_on_each_machine(test: impl Fn(&Place)) {
    for machine in [Machine::Bare, Machine::Container] {
        in_tiers(&[Tier::Floor], machine, &test);
    }
}

pub(crate) fn in_each_tier_on_each_machine(test: impl Fn(&Place)) {
    for (tier, machine) in [Tier::Full, Tier::Floor]
        .into_iter()
        .flat_map(|tier| [Machine::Bare, Machine::Container].map(|machine| (tier, machine)))
    {
        test(&Place { tier, machine, ..Place::new(None) });
    }
}

/// Runs a test of a mediator that creates all sockets, in a process of its own: else the child would inherit the
/// sockets of parallel tests.
pub(crate) fn as_containers(test: impl Fn(&Place)) {
    match std::thread::current().name() {
        Some(name) if name != "main" && !is_alone() => alone(name),
        _ => in_tiers(&[Tier::Full, Tier::Floor], Machine::Container, test),
    }
}

const ALONE: &str = "BAILIWICK_TEST_ALONE";

fn is_alone() -> bool {
    [ALONE, "NEXTEST"].iter().any(|name| std::env::var_os(name).is_some())
}

fn alone(name: &str) {
    let mut test = Command::new(std::env::current_exe().unwrap());
    // Descriptors that parallel tests have open for their children must not be inherited: the test counts
    // descriptors.
    // SAFETY: system calls.
    unsafe { test.pre_exec(|| sandbox_exec::descriptors::close_all_but(&[])) };
    let done = test.args([name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let (said, why) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}{why}");
    why.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| eprintln!("{line}"));
}

fn in_tiers(tiers: &[Tier], machine: Machine, test: impl Fn(&Place)) {
    for &tier in tiers {
        test(&Place { tier, machine, ..Place::new(None) });
        if Uid::effective().is_root() {
            test(&Place { tier, machine, ..Place::new(Some(PLAIN)) });
        } else {
            eprintln!("skipped: as root, and as another user (needs root)");
        }
    }
}

pub(crate) fn on_each_machine(test: impl Fn(&Place)) {
    for machine in [Machine::Bare, Machine::Container] {
        test(&Place { machine, ..Place::new(None) });
    }
}

impl Place {
    pub(crate) fn new(user: Option<u32>) -> Self {
        let permissions = fs::Permissions::from_mode(0o755);
        let directory =
            tempfile::Builder::new().prefix("m-").permissions(permissions).tempdir_in("/tmp").unwrap();
        chown(directory.path(), user, user).unwrap();
        let place = Self {
            directory,
            user,
            tier: Tier::Full,
            machine: Machine::Bare,
            scoped: false,
            outside: RefCell::default(),
        };
        for name in ["in", "in/hidden", "out"] {
            fs::create_dir(place.path(name)).unwrap();
            chown(place.path(name), user, user).unwrap();
        }
        place
    }

    pub(crate) fn makes_sockets(&self) -> bool {
        self.machine == Machine::Container
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    pub(crate) fn user(&self) -> Option<u32> {
        self.user
    }

    pub(crate) fn keep_outside(&self, descriptor: &impl AsRawFd) {
        self.outside.borrow_mut().push(descriptor.as_raw_fd());
    }

    pub(crate) fn open(&self, name: &str) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o777)).unwrap();
    }

    pub(crate) fn unmediated(&self, program: impl FnOnce()) {
        self.beside(program).finish();
    }

    pub(crate) fn beside(&self, program: impl FnOnce()) -> Child {
        Child::fork(|| {
            self.become_user();
            drop_capabilities();
            program();
        })
    }

    pub(crate) fn mediated(&self, program: impl FnOnce()) {
        self.mediate(Network::Off, Reach::default(), program);
    }

    pub(crate) fn on_the_hosts_network(&self, program: impl FnOnce()) {
        let net = if self.tier == Tier::Full { Network::On } else { Network::Off };
        self.mediate(net, Reach::default(), program);
    }

    pub(crate) fn refusal(&self) -> i32 {
        if self.tier == Tier::Full { libc::EACCES } else { libc::ECONNREFUSED }
    }

    /// Returns the error of calls on handed-in sockets, some of which the mediator cannot perform.
    pub(crate) fn refusal_of_handed_in(&self) -> i32 {
        if self.makes_sockets() { libc::EACCES } else { self.refusal() }
    }

    pub(crate) fn tier(&self) -> Tier {
        self.tier
    }

    /// Runs a program under a mediator that also judges changes of metadata. If the mediator is root's, it has
    /// capabilities; the program never has any.
    pub(crate) fn with_metadata(&self, program: impl FnOnce()) {
        let mediation = self.mediation(Network::On, Reach::default());
        let child = Child::fork(|| {
            self.become_user();
            broker(Mediation { metadata: true, ..mediation }, || {
                drop_capabilities();
                program();
            });
        });
        child.finish();
    }

    pub(crate) fn mediate(&self, net: Network, reach: Reach, program: impl FnOnce()) {
        self.run(self.mediation(net, reach), self.machine, program);
    }

    pub(crate) fn mediate_signals(&self, program: impl FnOnce()) {
        let mediation = self.mediation(Network::On, Reach::default());
        // The machine matters only to sockets.
        self.run(Mediation { signals: true, ..mediation }, Machine::Bare, program);
    }

    fn mediation(&self, net: Network, reach: Reach) -> Mediation {
        let (writable, hidden) = (vec![self.path("in")], vec![self.path("in/hidden")]);
        let host_network = net == Network::On || self.tier == Tier::Floor;
        let plan = Plan::within(&[], &[self.path("in").into()], Network::On, self.tier, Devices::Own);
        Mediation {
            net,
            reach,
            writable,
            hidden,
            reached: ["stream", "seqpacket", "datagram"].map(|name| self.path("granted").join(name)).into(),
            host_network,
            scoped: host_network && self.scoped,
            objects: self.tier == Tier::Floor,
            signals: false,
            metadata: false,
            sockets: Sockets::Duplicated,
            domain: Some(Arc::new(Domain::build(&plan, Platform::probe()).unwrap())),
            hosts: None,
            led: None,
        }
    }

    fn run(&self, mediation: Mediation, machine: Machine, program: impl FnOnce()) {
        self.start(mediation, machine, program).finish();
    }

    fn start(&self, mediation: Mediation, machine: Machine, program: impl FnOnce()) -> Child {
        Child::fork(|| {
            self.become_user();
            if !mediation.host_network {
                private_network();
            }
            drop_capabilities();
            system::set_subreaper().unwrap();
            if mediation.scoped {
                system::set_no_new_privs().unwrap();
                Domain::of_scopes(Platform::probe()).unwrap().unwrap().enter().unwrap();
            }
            broker(Mediation { sockets: self.sockets(machine), ..mediation }, program);
        })
    }

    fn sockets(&self, machine: Machine) -> Sockets {
        for &number in self.outside.borrow().iter() {
            // SAFETY: in this process nobody uses it any more.
            assert_eq!(unsafe { libc::close(number) }, 0);
        }
        if machine == Machine::Container {
            deny_as_containers_do();
        }
        let sockets = Sockets::probe();
        assert_eq!(matches!(sockets, Sockets::Made(_)), machine == Machine::Container);
        sockets
    }

    pub(crate) fn become_user(&self) {
        if let Some(user) = self.user {
            setgroups(&[]).unwrap();
            setresgid(Gid::from_raw(user), Gid::from_raw(user), Gid::from_raw(user)).unwrap();
            setresuid(Uid::from_raw(user), Uid::from_raw(user), Uid::from_raw(user)).unwrap();
            // Changing users made this process unreadable to itself.
            // SAFETY: integers.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }, 0);
        }
    }
}

fn broker(mediation: Mediation, program: impl FnOnce()) {
    let filter = mediation.filter();
    let (theirs, ours) = UnixStream::pair().unwrap();
    let (mut taken, mut taking) = pipe();
    let child = Child::fork(|| {
        system::set_no_new_privs().unwrap();
        drop(attach(&filter, ours));
        taken.read_exact(&mut [0]).unwrap();
        program();
    });
    let listener = receive_descriptor(&theirs).into();
    drop(theirs);
    let mediator = Mediator::start(listener, mediation, Refusals::untold()).unwrap();
    taking.write_all(b"x").unwrap();
    child.finish();
    mediator.wait();
}

pub(crate) struct Child {
    pid: Pid,
    report: File,
}

impl Child {
    /// Forks a child that runs `life`. If another thread's lock blocks the child, kills it and forks another.
    fn fork(life: impl FnOnce()) -> Self {
        let is_alone = threads() == 1;
        loop {
            let (report, mut reporting) = pipe();
            let (mut told, mut tell) = pipe();
            // SAFETY: glibc keeps its allocator usable, and the rest is tried before it is used.
            match unsafe { fork() }.unwrap() {
                ForkResult::Parent { child } => {
                    let mut is_usable = [0];
                    told.read_exact(&mut is_usable).unwrap();
                    if is_usable == [1] {
                        return Self { pid: child, report };
                    }
                    waitpid(child, None).unwrap();
                }
                ForkResult::Child => {
                    // SAFETY: integers.
                    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                    // SAFETY: an integer.
                    unsafe { libc::alarm(LONGEST) };
                    let hook = reporting.try_clone().unwrap();
                    let hook = move || {
                        std::panic::set_hook(Box::new(move |panic| drop(write!(&hook, "{panic}"))));
                    };
                    let is_usable = if is_alone {
                        hook();
                        true
                    } else {
                        ends_on_a_thread(hook)
                    };
                    tell.write_all(&[is_usable.into()]).unwrap();
                    let code = !is_usable || catch_unwind(AssertUnwindSafe(life)).is_err();
                    drop(reporting.flush());
                    // SAFETY: ends this process without running what belongs to its parent.
                    unsafe { libc::_exit(code.into()) }
                }
            }
        }
    }

    pub(crate) fn finish(mut self) {
        let mut report = String::new();
        let stuck = (!self.ends()).then(|| stuck(self.pid));
        if stuck.is_some() {
            kill(self.pid, Signal::SIGKILL).unwrap();
        }
        let status = waitpid(self.pid, None).unwrap();
        assert!(stuck.is_none(), "after {PATIENCE} s: {}", stuck.unwrap_or_default());
        if status != WaitStatus::Exited(self.pid, 0) {
            self.report.read_to_string(&mut report).unwrap();
        }
        assert_eq!(status, WaitStatus::Exited(self.pid, 0), "{report}");
    }

    /// True if the child ends before the time is up.
    fn ends(&self) -> bool {
        // SAFETY: integers.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid.as_raw(), 0) };
        let process = RawFd::try_from(Errno::result(process).unwrap()).unwrap();
        // SAFETY: the kernel has just made it.
        let process = unsafe { OwnedFd::from_raw_fd(process) };
        let mut ends = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        poll(&mut ends, PollTimeout::try_from(u32::from(PATIENCE) * 1000).unwrap()).unwrap() > 0
    }
}

/// True while a race has to go on: at least for the time `racing`, and then until it has met all cases. On a busy
/// machine two threads seldom meet.
pub(crate) fn goes_on(start: Instant, racing: Duration, has_met_all: bool) -> bool {
    start.elapsed() < racing || !has_met_all && start.elapsed() < Duration::from_mins(3)
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Runs `act` on a new thread. False if the thread does not end.
fn ends_on_a_thread(act: impl FnOnce() + Send + 'static) -> bool {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        act();
        tell.send(()).unwrap();
    });
    if told.recv_timeout(Duration::from_secs(2)).is_err() {
        return false;
    }
    thread.join().unwrap();
    // Only a process without threads can enter namespaces, and the join can return before the thread is gone.
    while threads() > 1 {
        std::thread::yield_now();
    }
    true
}

pub(crate) fn pipe() -> (File, File) {
    let (read, write) = nix::unistd::pipe().unwrap();
    (read.into(), write.into())
}

/// Attaches the filter to this thread. Another thread, whose calls are not mediated, sends the listener.
fn attach(filter: &Filter, to: UnixStream) -> OwnedFd {
    let (tell, told) = std::sync::mpsc::channel::<i32>();
    let passing = std::thread::spawn(move || {
        let rights = [told.recv().unwrap()];
        let control = [ControlMessage::ScmRights(&rights)];
        let data = [std::io::IoSlice::new(b"x")];
        sendmsg::<()>(to.as_raw_fd(), &data, &control, MsgFlags::empty(), None).unwrap();
    });
    let listener = filter.attach().unwrap();
    tell.send(listener.as_raw_fd()).unwrap();
    passing.join().unwrap();
    listener
}
