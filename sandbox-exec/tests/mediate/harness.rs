//! A mediator and a program under it, in processes of their own.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use ipc::confinement::Tier;
use ipc::rights::{Network, Reach};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, setgroups, setresgid, setresuid};
use sandbox_exec::mediate::{Mediation, Mediator};
use tempfile::TempDir;

/// A user that owns nothing.
const PLAIN: u32 = 12345;

/// A directory of the user's, with `in`, where the program may reach sockets, `in/hidden`, and `out`.
pub(crate) struct Place {
    directory: TempDir,
    user: Option<u32>,
    tier: Tier,
}

/// Runs a test in both tiers as every user that this process can be.
pub(crate) fn as_each_user(test: impl Fn(&Place)) {
    in_tiers(&[Tier::Full, Tier::Floor], test);
}

/// The same in the floor alone.
pub(crate) fn in_the_floor(test: impl Fn(&Place)) {
    in_tiers(&[Tier::Floor], test);
}

fn in_tiers(tiers: &[Tier], test: impl Fn(&Place)) {
    for &tier in tiers {
        test(&Place { tier, ..Place::new(None) });
        if Uid::effective().is_root() {
            test(&Place { tier, ..Place::new(Some(PLAIN)) });
        } else {
            eprintln!("skipped: as root, and as another user (needs root)");
        }
    }
}

impl Place {
    pub(crate) fn new(user: Option<u32>) -> Self {
        let permissions = fs::Permissions::from_mode(0o755);
        let directory =
            tempfile::Builder::new().prefix("m-").permissions(permissions).tempdir_in("/tmp").unwrap();
        chown(directory.path(), user, user).unwrap();
        let place = Self { directory, user, tier: Tier::Full };
        for name in ["in", "in/hidden", "out"] {
            fs::create_dir(place.path(name)).unwrap();
            chown(place.path(name), user, user).unwrap();
        }
        place
    }

    /// A path in the place.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    /// The user, if it is another than this process's.
    pub(crate) fn user(&self) -> Option<u32> {
        self.user
    }

    /// Lets the user use what the test made there.
    pub(crate) fn open(&self, name: &str) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o777)).unwrap();
    }

    /// Runs a program as the user's, without a mediator: the twin of every denial.
    pub(crate) fn unmediated(&self, program: impl FnOnce()) {
        let mut child = Child::fork(|| {
            self.become_user();
            drop_capabilities();
            program();
        });
        child.finish();
    }

    /// Runs a program under a mediator with the network off.
    pub(crate) fn mediated(&self, program: impl FnOnce()) {
        self.mediate(Network::Off, Reach::default(), program);
    }

    /// Runs a program under a mediator on the host's network: with the network on in the full tier, with it off in the floor.
    pub(crate) fn on_the_hosts_network(&self, program: impl FnOnce()) {
        let net = if self.tier == Tier::Full { Network::On } else { Network::Off };
        self.mediate(net, Reach::default(), program);
    }

    /// How [`Place::on_the_hosts_network`] what is not from inside is refused.
    pub(crate) fn refusal(&self) -> i32 {
        if self.tier == Tier::Full { libc::EACCES } else { libc::ECONNREFUSED }
    }

    /// The tier.
    pub(crate) fn tier(&self) -> Tier {
        self.tier
    }

    /// Runs a program under a mediator that also performs changes of metadata. As root it has capabilities, and the program none.
    pub(crate) fn with_metadata(&self, program: impl FnOnce()) {
        let mediation = self.mediation(Network::On, Reach::default());
        let mut child = Child::fork(|| {
            self.become_user();
            broker(Mediation { metadata: true, ..mediation }, || {
                drop_capabilities();
                program();
            });
        });
        child.finish();
    }

    /// Runs a program under a mediator: with the network off in the full tier in a network namespace of its own, else in this
    /// one.
    pub(crate) fn mediate(&self, net: Network, reach: Reach, program: impl FnOnce()) {
        self.run(self.mediation(net, reach), program);
    }

    /// Runs a program under a mediator of signals, on the host's network.
    pub(crate) fn mediate_signals(&self, program: impl FnOnce()) {
        let mediation = self.mediation(Network::On, Reach::default());
        self.run(Mediation { signals: true, ..mediation }, program);
    }

    fn mediation(&self, net: Network, reach: Reach) -> Mediation {
        let (writable, hidden) = (vec![self.path("in")], vec![self.path("in/hidden")]);
        let host_network = net == Network::On || self.tier == Tier::Floor;
        Mediation {
            net,
            reach,
            writable,
            hidden,
            host_network,
            objects: self.tier == Tier::Floor,
            signals: false,
            metadata: false,
        }
    }

    fn run(&self, mediation: Mediation, program: impl FnOnce()) {
        let mut broker = Child::fork(|| {
            self.become_user();
            if !mediation.host_network {
                private_network();
            }
            drop_capabilities();
            sandbox_exec::system::set_subreaper().unwrap();
            broker(mediation, program);
        });
        broker.finish();
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
    let (mut theirs, mut ours) = pipe();
    let (mut taken, mut taking) = pipe();
    let mut child = Child::fork(|| {
        sandbox_exec::system::set_no_new_privs().unwrap();
        let listener = filter.attach().unwrap();
        ours.write_all(&listener.as_raw_fd().to_ne_bytes()).unwrap();
        taken.read_exact(&mut [0]).unwrap();
        drop(listener);
        program();
    });
    let mut number = [0; 4];
    theirs.read_exact(&mut number).unwrap();
    let listener = get_descriptor(child.pid, i32::from_ne_bytes(number));
    taking.write_all(b"x").unwrap();
    let mediator = Mediator::start(listener, mediation).unwrap();
    child.finish();
    mediator.wait();
}

/// A child process that reports what it panicked with.
struct Child {
    pid: nix::unistd::Pid,
    report: File,
}

impl Child {
    fn fork(life: impl FnOnce()) -> Self {
        let (report, mut reporting) = pipe();
        // SAFETY: the other thread of this process only waits for this one; glibc keeps its allocator usable.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => Self { pid: child, report },
            ForkResult::Child => {
                // SAFETY: integers.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let hook = reporting.try_clone().unwrap();
                std::panic::set_hook(Box::new(move |panic| drop(write!(&hook, "{panic}"))));
                let code = i32::from(catch_unwind(AssertUnwindSafe(life)).is_err());
                drop(reporting.flush());
                // SAFETY: ends this process without running what belongs to its parent.
                unsafe { libc::_exit(code) }
            }
        }
    }

    fn finish(&mut self) {
        let status = waitpid(self.pid, None).unwrap();
        let mut report = String::new();
        if status != WaitStatus::Exited(self.pid, 0) {
            self.report.read_to_string(&mut report).unwrap();
        }
        assert_eq!(status, WaitStatus::Exited(self.pid, 0), "{report}");
    }
}

pub(crate) fn pipe() -> (File, File) {
    let (read, write) = nix::unistd::pipe().unwrap();
    (read.into(), write.into())
}

fn get_descriptor(pid: nix::unistd::Pid, number: i32) -> OwnedFd {
    // SAFETY: integers; the descriptors are new.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        assert!(process >= 0, "{}", std::io::Error::last_os_error());
        let process = OwnedFd::from_raw_fd(i32::try_from(process).unwrap());
        let descriptor = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
        assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(i32::try_from(descriptor).unwrap())
    }
}

/// A network namespace with nothing but lo, which is up.
fn private_network() {
    let (uid, gid) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).unwrap();
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).unwrap();
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).unwrap();
    // SAFETY: a structure of bytes and integers, which the kernel reads.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l'.cast_signed(), b'o'.cast_signed()]);
        request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap();
        assert_eq!(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request), 0);
        libc::close(socket);
    }
    // SAFETY: integers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }, 0);
}

fn drop_capabilities() {
    for set in
        [caps::CapSet::Ambient, caps::CapSet::Inheritable, caps::CapSet::Effective, caps::CapSet::Permitted]
    {
        caps::clear(None, set).unwrap();
    }
}
