//! Control group of a program, on machines where control groups (`cgroups(7)`, version 2) are delegated to the user.
//! Descendants of the program stay in the group, so those that outlive supervisor *and* broker can be found.
//!
//! The program is cloned into the group (`CLONE_INTO_CGROUP`, Linux 5.7), since moving it there takes milliseconds. The
//! broker removes the group at its end. If it was killed, the next start below the same parent group does
//! (`cgroup.kill`, Linux 5.14), since the group's name identifies the broker. A lock held by the broker would not
//! serve: any process that can read the file could take it.
//!
//! In the full tier a pid namespace ends the descendants, and the control group only bounds resources.

mod bounds;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipc::confinement::{Bounds, Tier};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

use crate::privilege;

const PREFIX: &str = "bailiwick-";

/// Maximum time in milliseconds to wait for the next end of a killed process.
const PATIENCE: u16 = 2000;

/// Usual mount points of control groups of version 2 (`file-hierarchy(7)` of systemd). They are tried first, since
/// reading the list of mounts costs as much as a fork.
const USUAL: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Write bits of a directory's mode. If none is set, only capabilities let a process create files there.
const WRITABLE: u32 = 0o222;

/// Inode number of the root of a control group hierarchy.
const ROOT: u64 = 1;

#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    directory: File,
    bounds: Bounds,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    bounds: bool,
}

impl Cgroup {
    /// Creates a control group with as many of the bounds `wanted` as possible. `None` if none can be created. `None`
    /// also in the full tier if no bound is wanted or none can be set: the group has no other use there.
    ///
    /// The group is created without capabilities, since it is removed without them, too.
    pub(crate) fn for_program(tier: Tier, wanted: Bounds) -> Option<Self> {
        let useful = |place: &Place| tier != Tier::Full || (place.bounds && wanted != Bounds::default());
        let place = Place::find().filter(useful)?;
        privilege::without_effect(|| Self::make(&place, wanted)).ok().flatten()
    }

    fn make(place: &Place, wanted: Bounds) -> Option<Self> {
        let path = place.path.join(BrokerCgroup::this()?.name());
        fs::create_dir(&path).ok()?;
        match File::open(&path) {
            // A group without `cgroup.kill` is of no use.
            Ok(directory) if path.join("cgroup.kill").exists() => {
                let bounds =
                    if place.bounds { bounds::set(&place.path, &path, wanted) } else { Bounds::default() };
                Some(Self { path, directory, bounds })
            }
            _ => {
                drop(fs::remove_dir(&path));
                None
            }
        }
    }

    /// Kills the processes in control groups that other brokers left behind when they ended, and removes these groups.
    pub(crate) fn end_left(&self) {
        for entry in
            self.path.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten()
        {
            let broker = entry.file_name().to_str().and_then(BrokerCgroup::parse);
            if broker.is_some_and(|broker| broker.is_dead()) {
                end(&entry.path());
            }
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Place {
    /// Finds a control group in which new ones can be created without capabilities: the parent of this process's group
    /// if that parent is delegated, else this process's group. `None` if neither is writable.
    fn find() -> Option<Self> {
        let is_root = |path: &PathBuf| fs::metadata(path).is_ok_and(|group| group.ino() == ROOT);
        let own = own_group().filter(|own| !is_root(own))?;
        let writable = |path: &Path| fs::metadata(path).is_ok_and(|group| group.mode() & WRITABLE != 0);
        let beside = own.parent().filter(|parent| bounds::is_delegated(parent) && writable(parent));
        match beside {
            Some(parent) => Some(Self { path: parent.to_owned(), bounds: true }),
            None => writable(&own).then_some(Self { path: own, bounds: false }),
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        end(&self.path);
    }
}

/// Identity of a broker, unique until a reboot. The name of its control group has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BrokerCgroup {
    namespace: u64,
    pid: u32,
    start: u64,
}

impl BrokerCgroup {
    fn this() -> Option<Self> {
        let pid = std::process::id();
        Some(Self { namespace: own_namespace()?, pid, start: start(pid)? })
    }

    fn name(&self) -> String {
        format!("{PREFIX}{}-{}-{}", self.namespace, self.pid, self.start)
    }

    fn parse(name: &str) -> Option<Self> {
        let mut numbers = name.strip_prefix(PREFIX)?.split('-');
        let broker = Self {
            namespace: numbers.next()?.parse().ok()?,
            pid: numbers.next()?.parse().ok()?,
            start: numbers.next()?.parse().ok()?,
        };
        (broker.name() == name).then_some(broker)
    }

    /// True if the broker has ended. False in another pid namespace, where the broker cannot be seen.
    fn is_dead(&self) -> bool {
        own_namespace() == Some(self.namespace) && start(self.pid) != Some(self.start)
    }
}

fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino())
}

/// Returns the start time of a process in clock ticks since boot; `None` if it has ended. This is field 22 of
/// `/proc/PID/stat`; field 2, a name in parentheses, may contain anything.
fn start(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// Kills every process in a control group and removes the group. The group stays if a process does not end.
fn end(group: &Path) {
    // Usually the last process has been reaped by now.
    if fs::remove_dir(group).is_err() && fs::write(group.join("cgroup.kill"), "1").is_ok() {
        drop(wait_until_empty(group));
        drop(fs::remove_dir(group));
    }
}

/// Waits until a control group has no process (`cgroup.events`). Fails if nothing changes for [`PATIENCE`].
fn wait_until_empty(group: &Path) -> io::Result<()> {
    let path = group.join("cgroup.events");
    loop {
        let events = File::open(&path)?;
        if io::read_to_string(&events)?.lines().any(|line| line == "populated 0") {
            return Ok(());
        }
        match poll(&mut [PollFd::new(events.as_fd(), PollFlags::POLLPRI)], PollTimeout::from(PATIENCE)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn own_group() -> Option<PathBuf> {
    let groups = read("/proc/self/cgroup").ok()?;
    let group = group(&groups)?;
    let usual = USUAL.iter().find(|point| is_version_2(point)).map(|point| beneath(point, "/", group));
    // In a container, another part of the hierarchy may be mounted there.
    usual.flatten().filter(|path| path.exists()).or_else(|| {
        let mounts = read("/proc/self/mountinfo").ok()?;
        directory(group, &mounts)
    })
}

fn is_version_2(point: &str) -> bool {
    statfs(point).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC)
}

/// Reads a generated file in large pieces: the kernel generates the content anew for each read.
fn read(path: &str) -> io::Result<String> {
    let mut text = String::with_capacity(16 << 10);
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the control group of version 2, the path in the line `0::PATH` of `/proc/self/cgroup` (`cgroups(7)`).
fn group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Returns the directory of a control group, found in the list of mounts (`proc_pid_mountinfo(5)`).
fn directory(group: &str, mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // Unusual bytes are written in octal: our names have none.
        let plain = !mount.contains('\\');
        (plain && kind.starts_with("cgroup2 ")).then(|| beneath(point, root, group)).flatten()
    })
}

/// Returns a control group's directory below the mount point `point`, at which the groups below `root` are mounted.
fn beneath(point: &str, root: &str, group: &str) -> Option<PathBuf> {
    let plain = !group.contains('\\');
    let beneath = Path::new(group).strip_prefix(root).ok()?;
    (plain && beneath.components().all(is_normal)).then(|| Path::new(point).join(beneath))
}

fn is_normal(component: std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::Normal(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_is_known_by_its_name() {
        let this = BrokerCgroup::this().unwrap();
        assert_eq!(BrokerCgroup::parse(&this.name()), Some(this.clone()));
        assert!(!this.is_dead());
        assert!(BrokerCgroup { start: this.start + 1, ..this.clone() }.is_dead());
        assert!(BrokerCgroup { pid: u32::MAX, ..this.clone() }.is_dead());
        assert!(!BrokerCgroup { namespace: 1, pid: u32::MAX, ..this }.is_dead(), "numbers of elsewhere");
        for name in
            ["bailiwick-1-2", "bailiwick-1-2-3-4", "bailiwick-1-2-x", "other-1-2-3", "bailiwick-01-2-3"]
        {
            assert_eq!(BrokerCgroup::parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_own_group_is_found_beneath_a_mount_of_it() {
        let line = |root: &str, point: &str, kind: &str| {
            format!("30 24 0:26 {root} {point} rw,nosuid shared:9 - {kind} cgroup2 rw\n")
        };
        let unified = line("/", "/sys/fs/cgroup", "cgroup2");
        let found = |path: &str, mounts: &str| {
            directory(group(&format!("1:name=systemd:/x\n0::{path}\n")).unwrap(), mounts)
        };
        assert_eq!(found("/user.slice/a", &unified), Some("/sys/fs/cgroup/user.slice/a".into()));
        assert_eq!(found("/", &unified), Some("/sys/fs/cgroup".into()));
        let part = line("/docker/1", "/sys/fs/cgroup", "cgroup2");
        assert_eq!(found("/docker/1/x", &part), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(found("/elsewhere", &part), None);
        assert_eq!(found("/../x", &unified), None);
        assert_eq!(found("/a", &line("/", "/sys/fs/cgroup/cpu", "cgroup")), None);
        assert_eq!(group("1:name=systemd:/x\n"), None);
    }
}
