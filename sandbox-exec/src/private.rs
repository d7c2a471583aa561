//! Shared memory and terminals that no program outside of this container can reach.
//!
//! The full tier mounts its own `/dev/shm` and `/dev/pts`. In the floor tier, a right in one of these directories
//! covers every segment or terminal in it: Landlock cannot distinguish those that the program creates. So a directory
//! is granted only if all of these are known:
//!
//! 1. This pid namespace is not the machine's own.
//! 2. The file system is younger than the namespace's first process: a file system that a container was given from
//!    outside (`--ipc=host`, `-v /dev/shm:/dev/shm`, the memory that the containers of a pod share) is older.
//! 3. The directory has no file of another program, even of another user of the same container.
//! 4. No other agent uses the directory: the supervisor holds its lock ([`ipc::devices`]), and names it in the
//!    confinement.
//!
//! A directory is not granted if a fact is unknown.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use ipc::confinement::Confinement;
pub(crate) use ipc::devices::MEMORY;
use ipc::devices::TERMINALS;
use ipc::path::WirePath;
use ipc::rights::Rights;
use nix::libc;
use nix::time::{ClockId, clock_getres, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

use crate::compile::Access;
use crate::system::file::times;
use crate::terminal;

/// Inode number of the machine's own pid namespace (`PROC_PID_INIT_INO` of `linux/proc_ns.h`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

const ANOTHERS: &str = "another agent has it";

const MACHINES_OWN: &str = "it is this machine's, which other programs use";

#[derive(Debug)]
struct PrivatePlace {
    path: &'static str,
    name: &'static str,
    /// Names of entries that are in every such directory.
    always: &'static [&'static str],
    born: fn(&Path) -> io::Result<SystemTime>,
    rules: &'static [(&'static str, Access)],
}

const PLACES: [PrivatePlace; 2] = [
    PrivatePlace {
        path: MEMORY,
        name: "shared memory",
        always: &[],
        born: created,
        rules: &[(MEMORY, Access::ALL)],
    },
    // devpts has no time of birth. Its root changes only by chmod and chown, which make it look younger to
    // nobody inside: they would have to come from outside, after the container began.
    PrivatePlace {
        path: TERMINALS,
        name: "new terminals",
        always: &["ptmx"],
        born: changed,
        rules: &[(TERMINALS, Access::TERMINALS), ("/dev/ptmx", Access::DEVICE), ("/dev/tty", Access::DEVICE)],
    },
];

#[derive(Debug, Default)]
pub(crate) struct Private {
    places: Vec<&'static PrivatePlace>,
    pub(crate) denied: Vec<String>,
}

impl Private {
    /// Finds the private directories, except those that the rights already grant or hide.
    pub(crate) fn find(confinement: &Confinement) -> Self {
        let mut found = Self::default();
        let first = if is_machines_own() { Err(MACHINES_OWN) } else { first_process() };
        let own = confinement.terminal.then(terminal::name).flatten();
        for place in PLACES.iter().filter(|place| !is_decided(&confinement.rights, place.path)) {
            let has = || confinement.devices.contains(&place.path.into());
            let held = || if has() { Ok(()) } else { Err(ANOTHERS.to_owned()) };
            match place.judge(&first, own.as_deref()).and_then(|()| held()) {
                Ok(()) => found.places.push(place),
                Err(why) => found.denied.push(format!(
                    "{} ({}) not granted: {why}; --write {} grants all that is in it",
                    place.name, place.path, place.path
                )),
            }
        }
        found
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = (&'static str, Access)> {
        self.places.iter().flat_map(|place| place.rules.iter().copied())
    }

    /// Returns the directory for shared memory, if it is private.
    pub(crate) fn memory(&self) -> impl Iterator<Item = PathBuf> {
        self.places.iter().map(|place| place.path).filter(|path| *path == MEMORY).map(PathBuf::from)
    }
}

impl PrivatePlace {
    /// Checks that the directory is private; an error is the reason why it is not. `first` is the time of the
    /// container's start; `own` is the program's terminal.
    fn judge(&self, first: &Result<SystemTime, &'static str>, own: Option<&Path>) -> Result<(), String> {
        fs::symlink_metadata(self.path).map_err(|error| error.to_string())?;
        let first = (*first)?;
        let born =
            (self.born)(Path::new(self.path)).map_err(|error| format!("its age cannot be told ({error})"))?;
        if born < first {
            return Err("it is older than this container: it comes from outside".to_owned());
        }
        match self.stranger(own) {
            Ok(None) => Ok(()),
            Ok(Some(name)) => Err(format!("{name} in it belongs to another program")),
            Err(error) => Err(format!("it cannot be listed ({error})")),
        }
    }

    /// Returns the name of an entry of another program: one that neither every such directory has nor is the program's
    /// terminal. `None` if there is no such entry.
    fn stranger(&self, own: Option<&Path>) -> io::Result<Option<String>> {
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            let is_always = self.always.iter().any(|name| entry.file_name() == *name);
            if !is_always && own != Some(&entry.path()) {
                return Ok(Some(entry.file_name().to_string_lossy().escape_debug().to_string()));
            }
        }
        Ok(None)
    }
}

/// True if the rights name the path, or hide a path in it. A rule for the whole directory would reveal the hidden path.
fn is_decided(rights: &Rights, path: &str) -> bool {
    let place = WirePath::from(path);
    let hides = |hidden: &WirePath| hidden.is_within(&place) || place.is_within(hidden);
    rights.write.contains(&place) || rights.hidden.iter().any(hides)
}

/// True if this pid namespace is the machine's own. True also if that is unknown.
fn is_machines_own() -> bool {
    static IS_ITS_OWN: OnceLock<bool> = OnceLock::new();
    let look =
        || fs::metadata("/proc/self/ns/pid").map_or(true, |namespace| namespace.ino() == FIRST_PID_NAMESPACE);
    *IS_ITS_OWN.get_or_init(look)
}

/// Returns the earliest possible start of this pid namespace's first process. An error tells why it is unknown.
fn first_process() -> Result<SystemTime, &'static str> {
    const UNKNOWN: &str = "when this container began cannot be told";
    let stat = fs::read("/proc/1/stat").map_err(|_| UNKNOWN)?;
    let since_boot = started(&String::from_utf8_lossy(&stat)).ok_or(UNKNOWN)?;
    let now = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).map_err(|_| UNKNOWN)?);
    let age = now.checked_sub(since_boot).ok_or(UNKNOWN)?;
    // A file system's birth is read off a clock that stops between ticks: the first process can seem younger
    // than its mounts.
    let tick = Duration::from(clock_getres(ClockId::CLOCK_REALTIME_COARSE).map_err(|_| UNKNOWN)?);
    SystemTime::now().checked_sub(age + tick).ok_or(UNKNOWN)
}

/// Returns a process's start time since boot, field 22 of `stat` in clock ticks; `None` if malformed.
fn started(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let ticks: u64 = after_name.split(' ').nth(19)?.parse().ok()?;
    let per_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    ticks.checked_mul(1000)?.checked_div(per_second).map(Duration::from_millis)
}

fn created(path: &Path) -> io::Result<SystemTime> {
    let found = times(path)?;
    if found.stx_mask & libc::STATX_BTIME == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    moment(&found.stx_btime)
}

fn changed(path: &Path) -> io::Result<SystemTime> {
    moment(&times(path)?.stx_ctime)
}

fn moment(time: &libc::statx_timestamp) -> io::Result<SystemTime> {
    let since = u64::try_from(time.tv_sec).ok().map(|seconds| Duration::new(seconds, time.tv_nsec));
    since
        .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since))
        .ok_or_else(|| io::Error::other("a time before 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_read_past_any_name() {
        let stat = |name| format!("1 ({name}) S 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 250 1 1");
        assert_eq!(started(&stat("sh")), Some(Duration::from_millis(2500)));
        assert_eq!(started(&stat(") S 0 1 1 ) (")), Some(Duration::from_millis(2500)));
        assert_eq!(started("1 (sh) S 0"), None);
    }

    #[test]
    fn what_is_made_now_is_made_and_changed_now() {
        let before = SystemTime::now() - Duration::from_secs(1);
        let file = tempfile::NamedTempFile::new().unwrap();
        let times = [created(file.path()), changed(file.path())].map(Result::unwrap);
        assert!(times.iter().all(|time| before < *time && *time <= SystemTime::now()), "{times:?}");
        assert_eq!(times[0], fs::metadata(file.path()).unwrap().created().unwrap());
    }

    #[test]
    fn what_the_rights_name_or_hide_is_decided() {
        let decided = |write: &[&str], hidden: &[&str]| {
            let paths = |paths: &[&str]| paths.iter().copied().map(WirePath::from).collect();
            is_decided(&Rights { write: paths(write), hidden: paths(hidden), ..Rights::default() }, MEMORY)
        };
        assert!(decided(&[MEMORY], &[]));
        assert!(decided(&[], &["/dev/shm/key"]));
        assert!(decided(&[], &["/dev"]));
        assert!(!decided(&["/dev/shm/project"], &["/dev/shmx"]));
    }
}
