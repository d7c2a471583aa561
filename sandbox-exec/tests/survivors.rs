//! Tests that processes which survive a killed broker are ended by the next start, in a delegated control group.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use common::order::{encoded, order, ordered_in};
use common::place::{Place, errors, in_tier_as_each_user, text};
use ipc::confinement::{Bounds, BrokerReport, Confinement, Tier};

static NUMBER: AtomicU32 = AtomicU32::new(0);

struct Delegated(PathBuf);

impl Delegated {
    fn new(place: &Place) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(mount).join(format!("sx-{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        if !path.join("cgroup.kill").exists() {
            fs::remove_dir(&path).unwrap();
            return None;
        }
        let owner = place.user();
        for name in ["", "cgroup.procs", "cgroup.subtree_control"] {
            chown(path.join(name), owner, owner).unwrap();
        }
        Some(Self(path))
    }

    fn enter(&self, command: &mut Command) {
        let processes = fs::File::options().write(true).open(self.0.join("cgroup.procs")).unwrap();
        // SAFETY: writes to a descriptor that the closure owns.
        unsafe {
            command.pre_exec(move || Ok(nix::unistd::write(&processes, b"0").map(|_| ())?));
        }
    }

    /// Marks this control group as delegated, and returns a new child group for the broker.
    fn with_subgroup(&self, place: &Place) -> Self {
        let mark = Command::new("python3")
            .args(["-c", "import os, sys; os.setxattr(sys.argv[1], 'user.delegate', b'1')"])
            .arg(&self.0)
            .status();
        assert!(mark.unwrap().success());
        let path = self.0.join("main");
        fs::create_dir(&path).unwrap();
        for name in ["", "cgroup.procs"] {
            chown(path.join(name), place.user(), place.user()).unwrap();
        }
        Self(path)
    }

    fn has(&self, controller: &str) -> bool {
        let controllers = fs::read_to_string(self.0.join("cgroup.controllers")).unwrap();
        controllers.split_whitespace().any(|there| there == controller)
    }

    fn groups(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for group in self.groups() {
            drop(fs::write(group.join("cgroup.kill"), "1"));
            drop(fs::remove_dir(group));
        }
        drop(fs::remove_dir(&self.0));
    }
}

/// Runs a test in a delegated control group, in the floor tier.
fn delegated(test: impl Fn(&Place, &Delegated)) {
    in_tier_as_each_user(Tier::Floor, |place| match Delegated::new(place) {
        Some(group) => test(place, &group),
        None => eprintln!(
            "skipped: this machine delegates no control group (needs root, cgroup v2 and Linux 5.14)"
        ),
    });
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Starts a broker whose program leaves a daemon running. Returns the broker, and the daemon's pid.
fn with_daemon(place: &Place, group: &Delegated) -> (std::process::Child, u32) {
    let mut command = place.sandbox(&[]);
    group.enter(&mut command);
    let script = "setsid -f bash -c 'echo $$; exec sleep 1000'; exec sleep 1000";
    command.args(["/bin/bash", "-c", script]).stdout(Stdio::piped());
    let mut broker = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(broker.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (broker, line.trim().parse().unwrap())
}

fn run(place: &Place, group: &Delegated, script: &str) -> std::process::Output {
    let mut command = place.sandbox(&[]);
    group.enter(&mut command);
    command.args(["/bin/bash", "-c", script]).output().unwrap()
}

#[test]
fn a_program_has_a_group_of_its_own_for_as_long_as_it_lives() {
    delegated(|place, group| {
        let output = run(place, group, "grep ^0:: /proc/self/cgroup; echo 1 > /sys/fs/cgroup/x; true");
        let name = group.0.file_name().unwrap().to_str().unwrap();
        assert!(
            text(&output).contains(&format!("/{name}/bailiwick-")),
            "{}{}",
            text(&output),
            errors(&output)
        );
        assert!(group.groups().is_empty(), "{:?}", group.groups());
    });
}

#[test]
fn a_program_cannot_leave_its_group() {
    delegated(|place, group| {
        let script = format!("echo $$ > {}/cgroup.procs && echo left; true", group.0.display());
        assert_eq!(
            text(&place.unconfined(&format!("test -w {}/cgroup.procs && echo mine", group.0.display()))),
            "mine\n"
        );
        let output = run(place, group, &script);
        assert_eq!(text(&output), "", "{}", errors(&output));
    });
}

#[test]
fn what_a_killed_broker_left_is_ended_by_the_next_start() {
    delegated(|place, group| {
        let (mut broker, daemon) = with_daemon(place, group);
        let (mut other, others) = with_daemon(place, group);
        broker.kill().unwrap();
        broker.wait().unwrap();
        assert!(is_alive(daemon), "nobody was there to end it");
        assert_eq!(text(&run(place, group, "echo ran")), "ran\n");
        assert!(!is_alive(daemon));
        assert!(is_alive(others), "its broker lives");
        assert_eq!(group.groups().len(), 1);
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(other.id().cast_signed()),
            nix::sys::signal::Signal::SIGTERM,
        )
        .unwrap();
        other.wait().unwrap();
        assert!(!is_alive(others));
        assert!(group.groups().is_empty(), "{:?}", group.groups());
    });
}

/// Tests that no control group is created where only capabilities allow it: the broker could not remove it later.
#[test]
fn where_only_capabilities_would_make_a_group_there_is_none() {
    delegated(|place, group| {
        fs::set_permissions(&group.0, fs::Permissions::from_mode(0o555)).unwrap();
        let output = run(place, group, "grep ^0:: /proc/self/cgroup");
        let name = group.0.file_name().unwrap().to_str().unwrap();
        assert!(text(&output).ends_with(&format!("/{name}\n")), "{}{}", text(&output), errors(&output));
        assert!(group.groups().is_empty(), "{:?}", group.groups());
    });
}

#[test]
fn a_program_of_a_delegated_parent_has_a_group_with_bounds_beside_the_brokers() {
    for tier in [Tier::Full, Tier::Floor] {
        in_tier_as_each_user(tier, |place| {
            let Some(parent) = Delegated::new(place) else {
                eprintln!("skipped: this machine delegates no control group");
                return;
            };
            let main = parent.with_subgroup(place);
            let bounds = Bounds { processes: Some(64), memory: Some(1 << 30) };
            let order = encoded(&Confinement { bounds, ..order(place) });
            let script =
                "grep ^0:: /proc/self/cgroup; for n in {1..100}; do sleep 1 & done 2>&1 | grep -c fork; true";
            let (output, reports) =
                ordered_in(place, &order, &["/bin/bash", "-c", script], |command| main.enter(command));
            let name = parent.0.file_name().unwrap().to_str().unwrap();
            let printed = text(&output);
            assert!(printed.contains(&format!("/{name}/bailiwick-")), "{printed}{}", errors(&output));
            let Some(BrokerReport::Started { ruleset, .. }) = reports.first() else { panic!("{reports:?}") };
            assert_eq!(ruleset.bounds.memory.is_some(), parent.has("memory"));
            if parent.has("pids") {
                assert_eq!(ruleset.bounds.processes, Some(64));
                assert!(!printed.ends_with("\n0\n"), "{printed}");
            } else {
                eprintln!("skipped: the bounds themselves, of which this machine's groups have none");
            }
            assert_eq!(parent.groups(), std::slice::from_ref(&main.0), "it is removed");
        });
    }
}

#[test]
fn a_parent_that_is_not_delegated_gets_no_group() {
    delegated(|place, parent| {
        let path = parent.0.join("main");
        fs::create_dir(&path).unwrap();
        for name in ["", "cgroup.procs"] {
            chown(path.join(name), place.user(), place.user()).unwrap();
        }
        let main = Delegated(path);
        let output = run(place, &main, "grep ^0:: /proc/self/cgroup");
        assert!(text(&output).contains("/main/bailiwick-"), "{}{}", text(&output), errors(&output));
    });
}
