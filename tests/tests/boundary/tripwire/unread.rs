//! Tests a file that cannot be read at the start of a session. A change of such a file could not be undone.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use nix::libc;
use tests::repository::{is_marked, repository, shell};
use tests::{Finished, User, World, tier, wait_until};

/// Command `F_SETSIG` of fcntl(2), which the libc crate lacks.
const F_SETSIG: i32 = 10;

/// Write lease on a file, held by this process.
struct Lease(File);

impl Lease {
    fn take(world: &World, name: &str) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(world.project().join(name)).unwrap();
        let lease = Self(file);
        // SIGIO, which announces that another process opens the file, is ignored by default.
        assert_eq!(lease.control(F_SETSIG, libc::SIGURG), 0);
        assert_eq!(lease.control(libc::F_SETLEASE, libc::F_WRLCK), 0, "{}", std::io::Error::last_os_error());
        lease
    }

    /// Gives up the lease a moment after another process has tried to open the file.
    fn give_up_when_asked(&self, world: &World) {
        wait_until("the leased file is opened", || self.control(libc::F_GETLEASE, 0) != libc::F_WRLCK);
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until && !world.project().join("started").exists() {
            std::thread::yield_now();
        }
        assert_eq!(self.control(libc::F_SETLEASE, libc::F_UNLCK), 0);
    }

    fn control(&self, command: i32, argument: i32) -> i32 {
        // SAFETY: fcntl(2) with these commands takes an integer, and touches no memory of ours.
        unsafe { libc::fcntl(self.0.as_raw_fd(), command, argument) }
    }
}

#[test]
fn a_lease_that_another_program_holds_at_the_start_unprotects_nothing() {
    for (user, tier) in tier::everywhere() {
        let world = repository(user);
        let lease = Lease::take(&world, ".git/config");
        let mut plant = world.sandbox(tier, &[], "bash");
        plant.args(["-c", "touch started; git config core.fsmonitor $PWD/evil.sh; true"]);
        let child = plant.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        lease.give_up_when_asked(&world);
        let done = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{tier}, {user:?}: {}", done.stderr);
        shell(&world, "git status");
        assert!(!is_marked(&world), "{tier}, {user:?}: {}", done.stderr);
        let told = ["changed and restored: .git/config", "Device or resource busy", "Read-only file system"];
        assert!(told.iter().any(|told| done.stderr.contains(told)), "{tier}, {user:?}: {}", done.stderr);
    }
}

#[test]
fn a_watched_file_that_cannot_be_read_stops_the_start_unless_it_is_given_away() {
    let Some(user) = User::all().into_iter().find(|user| *user == User::Plain) else {
        eprintln!("skipped: only root can make a file that its directory's owner cannot read");
        return;
    };
    for tier in tier::all() {
        let world = closed(user);
        let done = start(&world, tier, &[]);
        assert_eq!(done.code, 5, "{tier}: {}", done.stderr);
        assert!(!world.project().join("started").exists(), "{tier}: the command was started");
        let file = world.project().join(".vscode/settings.json").display().to_string();
        let told = format!("cannot read {file}: Permission denied");
        assert!(done.stderr.contains(&told), "{tier}: {}", done.stderr);
        assert!(
            done.stderr.contains(&format!("hint: make the path readable, or use --write {file} to let")),
            "{}",
            done.stderr
        );
        let given = start(&world, tier, &["--write", &file]);
        assert_eq!(given.code, 0, "{tier}: {}", given.stderr);
    }
}

/// Creates a project with a settings file that belongs to root and that nobody else can read.
fn closed(user: User) -> World {
    let world = repository(user);
    let file = world.file(".vscode/settings.json", "{}");
    std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    world
}

fn start(world: &World, tier: Tier, flags: &[&str]) -> Finished {
    Finished::of(world.sandbox(tier, flags, "touch").arg("started"))
}
