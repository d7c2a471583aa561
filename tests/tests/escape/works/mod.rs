//! Tests actions that must work in the sandbox with the network off: each that works on this machine without a sandbox
//! has the same output in it.

mod acts;
mod places;

use std::path::Path;
use std::process::Command;

use ipc::confinement::Tier;
use tests::side_by_side::side_by_side;
use tests::{Finished, Programs, User, World, skip, tier};

use crate::machine;
use acts::{ACTS, GIT, OF_DUPLICATES, OF_THE_FULL_TIER, SOCKETS};

/// Puts the toolchain's programs before those in `PATH`. The latter may be rustup's proxies and need a home.
fn with_toolchain(world: &World, command: &mut Command) {
    let cargo = std::env::var_os("CARGO").map(std::path::PathBuf::from);
    let toolchain = cargo.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(toolchain.into_iter().chain(std::env::split_paths(&path))).unwrap();
    command.env("PATH", path).current_dir(world.project());
}

fn script(text: &str) -> String {
    let sandbox_exec = Programs::get().path("sandbox-exec");
    text.replace("GIT", GIT).replace("SANDBOX_EXEC", sandbox_exec.to_str().unwrap())
}

/// Time limit of an action in seconds. Then the action counts as failed.
const PATIENCE: &str = "60";

/// Shorter time limit, in seconds, for actions that are known to fail, since some of these would wait for ever.
const IMPATIENCE: &str = "5";

fn unconfined(user: User, text: &str) -> Finished {
    let world = World::new(user);
    let mut bash = world.command("timeout");
    with_toolchain(&world, bash.args(["-s", "KILL", PATIENCE, "bash", "-c", &script(text)]));
    Finished::of(&mut bash)
}

fn confined(tier: Tier, user: User, text: &str, patience: &str) -> Finished {
    let world = World::new(user);
    let mut command = world.sandbox(tier, &[], "timeout");
    command.args(["-s", "KILL", patience, "bash", "-c", &script(text)]);
    with_toolchain(&world, &mut command);
    Finished::of(&mut command)
}

fn check_the_same(tiers: &[Tier], acts: &[(&str, &str)]) {
    let cases = User::all().into_iter().flat_map(|user| acts.iter().map(move |act| (user, act)));
    let failures = side_by_side(cases, |(user, act)| failures(tiers, user, act)).concat();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns the tiers in which an action has another result than without a sandbox.
fn failures(tiers: &[Tier], user: User, (name, text): &(&str, &str)) -> Vec<String> {
    let control = unconfined(user, text);
    if control.code != 0 || control.stdout.trim().is_empty() {
        let why = control.stderr.lines().next().unwrap_or_default().to_owned();
        eprintln!("skipped: not on this machine: {name} as {user:?}: {why}");
        return vec![];
    }
    let differs = |tier: &Tier| {
        let done = confined(*tier, user, text, PATIENCE);
        let is_same = (done.code, &done.stdout) == (control.code, &control.stdout);
        (!is_same).then(|| format!("{tier}, {user:?}: {name}: {done:?}, unconfined {:?}", control.stdout))
    };
    tiers.iter().filter_map(differs).collect()
}

#[test]
fn development_goes_on() {
    check_the_same(&tier::all(), ACTS);
}

#[test]
fn servers_and_clients_inside_meet() {
    check_the_same(&tier::all(), SOCKETS);
}

/// With Docker's default profile the broker cannot duplicate descriptors, except with `--cap-add SYS_PTRACE`.
/// `docs/residual-risks.md` lists what then fails.
#[test]
fn descriptors_pass_in_a_datagram_where_the_broker_can_duplicate_them() {
    if machine::lets_duplicate() {
        return check_the_same(&tier::all(), OF_DUPLICATES);
    }
    for (user, tier) in tier::everywhere() {
        for (name, text) in OF_DUPLICATES {
            assert_eq!(unconfined(user, text).stdout, "1\n", "{name} as {user:?}");
            let done = confined(tier, user, text, PATIENCE);
            assert!(done.stderr.contains("Operation not permitted"), "{tier}, {user:?}: {name}: {done:?}");
            eprintln!("skipped: the container itself denies it: pidfd_getfd, for {name}");
        }
    }
}

#[test]
fn terminals_and_shared_memory_work_in_the_full_tier() {
    let full: Vec<_> = tier::all().into_iter().filter(|tier| *tier == Tier::Full).collect();
    check_the_same(&full, OF_THE_FULL_TIER);
}

#[test]
fn what_the_floor_breaks_is_exactly_this() {
    if machine::is_filtered() {
        skip!("a container's own shared memory and terminals are granted: tests/containers/checks.py");
    }
    for user in User::all() {
        for (name, text) in OF_THE_FULL_TIER {
            if unconfined(user, text).stdout != "1\n" {
                eprintln!("skipped: not on this machine: {name} as {user:?}");
                continue;
            }
            let done = confined(Tier::Floor, user, text, IMPATIENCE);
            assert_ne!(done.stdout, "1\n", "{name} works by now: {done:?}");
        }
    }
}
