//! Kill storm: kills random processes of a run at random moments. Afterwards no process of the run lives, and no file
//! is left behind.
//!
//! In the full tier the kernel ends a pid namespace with its init. In the floor tier a daemon may survive if supervisor
//! *and* broker are killed at the same time. So in that tier the storm spares the brokers; `protocol/life.rs` kills
//! them one at a time.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what repeats it"
)]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ipc::confinement::Tier;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::random::Random;
use tests::replies::model;
use tests::{Finished, User, World, marked, tier};

/// Returns the number of rounds in this tier, for all users together.
fn rounds(tier: Tier) -> u64 {
    match (tier, tests::soaks()) {
        (Tier::Full, false) => 60,
        (_, false) => 20,
        (Tier::Full, true) => 2000,
        (_, true) => 600,
    }
}

/// Returns the latest moment of the kills, in milliseconds after the beginning of a run. It depends on the duration of
/// the last start (`start`), because a run begins later on a busy machine.
fn moments(tier: Tier, start: u64) -> u64 {
    let (least, starts) = if tier == Tier::Full { (400, 5) } else { (1200, 15) };
    least.max(starts * start)
}

/// Maximum time for which a process may survive on a busy machine.
const AFTERLIFE: Duration = Duration::from_secs(30);

/// Number of parallel rounds. It exceeds the number of processors, because a round mostly waits.
const AT_ONCE: usize = 4;

/// Starts a run that writes, forks, and leaves orphaned daemons in the temp directory.
fn begin(world: &World, tier: Tier, server: &model::replay::ReplayServer) -> Child {
    let patch = world.own().join("out.diff");
    let mut command = world.exec(server, &["--mode", "auto", "--patch", patch.to_str().unwrap()]);
    command.args(tier::flags(tier)).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Returns the pids of all processes of a run: supervisor, stub, init, worker, reaper, command and daemons.
fn processes(world: &World) -> Vec<u32> {
    marked(world.mark().as_bytes())
}

/// True if the storm may kill this process.
fn is_fair_game(tier: Tier, pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    tier == Tier::Full || !program.ends_with("sandbox-exec")
}

fn slay(pid: u32) {
    // It may have ended by itself in the meantime.
    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
}

fn status(world: &World) -> String {
    let mut git = world.command("git");
    let done = Finished::of(git.args(["status", "--porcelain", "--ignored"]).current_dir(world.project()));
    assert_eq!(done.code, 0, "{}", done.stderr);
    done.stdout
}

/// Returns the existing private temp directories, with or without a lock file.
fn temps(world: &World) -> Vec<OsString> {
    let place = world.own().join("cache/temps");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
    fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Plays one round: starts a run, waits for a random moment, and kills a random subset of the processes. Returns their
/// number. `start` has the duration of the last start in milliseconds.
fn storm(tier: Tier, user: User, random: &mut Random, start: &AtomicU64) -> Result<usize, String> {
    let world = World::new(user);
    world.file("kept.txt", "kept\n");
    world.file(".gitignore", "ignored\n");
    world.commit();
    let before = status(&world);
    let server = model(&[
        ("read_file", json!({"path": "kept.txt"})),
        ("shell_exec", json!({"command": "touch $TMPDIR/x; (setsid sleep 99 &) ; echo 1"})),
        (
            "shell_exec",
            json!({"command": "trap '' TERM HUP INT; (setsid sleep 99 > /dev/null 2>&1 &); sleep 99"}),
        ),
    ]);
    let mut child = begin(&world, tier, &server);
    // A fixed time and no event, since the test must hold for any moment.
    std::thread::sleep(Duration::from_millis(random.below(moments(tier, start.load(Ordering::Relaxed)))));
    let alive = processes(&world);
    let mut victims: Vec<_> = alive.iter().copied().filter(|_| random.below(2) == 0).collect();
    victims.retain(|&pid| is_fair_game(tier, pid));
    victims.sort_by_key(|_| random.next());
    victims.iter().copied().for_each(slay);
    // The supervisor's end now ends the run, whichever processes were killed.
    slay(child.id());
    let killed = Instant::now();
    child.wait().unwrap();
    while !processes(&world).is_empty() {
        if killed.elapsed() > AFTERLIFE {
            let who = names_of(&processes(&world));
            processes(&world).into_iter().for_each(slay);
            return Err(format!("{who:?} live on"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let after = status(&world);
    if after != before {
        return Err(format!("the project changed: {after}"));
    }
    let mut next = world.sandbox(tier, &[], "true");
    let begun = Instant::now();
    let next = Finished::of(&mut next);
    start.store(u64::try_from(begun.elapsed().as_millis()).unwrap(), Ordering::Relaxed);
    if next.code != 0 || !temps(&world).is_empty() {
        return Err(format!("the next start: {} {:?}", next.stderr, temps(&world)));
    }
    Ok(victims.len())
}

fn names_of(pids: &[u32]) -> HashMap<u32, String> {
    let name = |pid: &u32| (*pid, fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    pids.iter().map(name).collect()
}

/// Plays all rounds. Prints the seed; with `STORM_SEED`, the storm is repeated as far as the scheduler permits.
fn nothing_survives_in(tier: Tier) {
    let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
    let seed = std::env::var("STORM_SEED").ok().map_or_else(now, |seed| seed.parse().unwrap());
    eprintln!("STORM_SEED={seed}");
    if !tier::all().contains(&tier) {
        return;
    }
    let (users, rounds) = (User::all(), rounds(tier));
    let (round, hit, start) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut failures = vec![];
        loop {
            let number = round.fetch_add(1, Ordering::Relaxed);
            if number >= rounds {
                return failures;
            }
            let user = users[usize::try_from(number).unwrap() % users.len()];
            let mut random = Random::new(seed.wrapping_add(number));
            match storm(tier, user, &mut random, &start) {
                Ok(victims) => {
                    hit.fetch_add(victims as u64, Ordering::Relaxed);
                }
                Err(failure) => failures.push(format!("round {number}, {user:?}: {failure}")),
            }
        }
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "STORM_SEED={seed}\n{}", failures.join("\n"));
    // Control: some processes were killed.
    let hit = hit.into_inner();
    assert!(hit > rounds, "hardly anybody was alive: {hit} victims in {rounds} rounds");
}

#[test]
fn nothing_survives_a_kill_storm_and_nothing_is_left() {
    nothing_survives_in(Tier::Full);
}

#[test]
fn nothing_survives_a_kill_storm_in_the_floor_that_spares_the_brokers() {
    nothing_survives_in(Tier::Floor);
}
