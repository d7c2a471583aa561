//! The confinement as an adversary meets it: each act succeeds unconfined, and fails in the kernel when it is confined, by
//! `bailiwick sandbox` and by `shell_exec` alike.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod attacks;
mod victim;
mod works;

use std::time::{Duration, Instant};

use attacks::{Attack, Unconfined};
use serde_json::{Value, json};
use tests::world::{model, tool_results};
use tests::{Finished, Programs, User, World};
use victim::Victim;

/// What a probe printed of an act.
#[derive(Debug)]
struct Tried {
    errno: i64,
    said: String,
}

fn read(line: &str) -> Tried {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    Tried { errno: line["errno"].as_i64().unwrap(), said: line["said"].as_str().unwrap().to_owned() }
}

fn unconfined(world: &World, act: &[String]) -> Tried {
    let done = Finished::of(world.command(Programs::get().path("probe")).args(act));
    read(done.stdout.trim_end())
}

fn confined(world: &World, act: &[String]) -> Tried {
    let hidden = world.root().join("outside/hidden");
    let mut command = world.bailiwick(["sandbox", "-C"]);
    command.arg(world.project()).arg("--hide").arg(hidden).arg("--").arg(Programs::get().path("probe"));
    let done = Finished::of(command.args(act));
    assert_eq!(done.code, 0, "{act:?}: {}", done.stderr);
    read(done.stdout.trim_end())
}

/// Harm comes a moment after the act: a signal has to be delivered.
fn harm_comes(victim: &Victim, said: &str) -> bool {
    let began = Instant::now();
    while victim.harm(said).is_none() {
        if began.elapsed() > Duration::from_secs(5) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

fn check_control(attack: &Attack, world: &World) -> Result<(), String> {
    if attack.root && world.user() != User::Myself {
        return Ok(());
    }
    let victim = Victim::new(world);
    let tried = unconfined(world, &victim.aim(&attack.act, world));
    let denied = attack.denied_with.iter().any(|errno| i64::from(*errno) == tried.errno);
    let shown = match attack.unconfined {
        Unconfined::Harms => tried.errno == 0 && harm_comes(&victim, &tried.said),
        Unconfined::Works => tried.errno == 0,
        Unconfined::Reaches => !denied,
    };
    if shown {
        Ok(())
    } else {
        Err(format!("unconfined, {} is not {:?}: {tried:?}", attack.act, attack.unconfined))
    }
}

fn check_denial(attack: &Attack, world: &World) -> Result<(), String> {
    let victim = Victim::new(world);
    let tried = confined(world, &victim.aim(&attack.act, world));
    let denied = attack.denied_with.iter().any(|errno| i64::from(*errno) == tried.errno);
    match victim.harm(&tried.said) {
        Some(harm) => Err(format!("{}: {harm} ({tried:?})", attack.act)),
        None if !denied => {
            Err(format!("{}: {tried:?}, expected one of {:?}", attack.act, attack.denied_with))
        }
        None => Ok(()),
    }
}

fn report(user: User, failures: Vec<String>) {
    assert!(failures.is_empty(), "{user:?}: {} rows\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_attack_succeeds_unconfined() {
    for user in User::all() {
        let world = World::new(user);
        report(user, attacks::all().iter().filter_map(|row| check_control(row, &world).err()).collect());
        let _ = std::fs::remove_file("/dev/shm/bailiwick-probe");
    }
}

#[test]
fn every_attack_is_denied_in_the_sandbox() {
    for user in User::all() {
        let world = World::new(user);
        report(user, attacks::all().iter().filter_map(|row| check_denial(row, &world).err()).collect());
    }
}

/// A command of the model has the rights that `bailiwick sandbox` shows: the same answers to the same acts.
#[test]
fn every_attack_is_denied_to_a_command_of_the_model() {
    for user in User::all() {
        let world = World::new(user);
        let victim = Victim::new(&world);
        let table = attacks::all();
        let acts: Vec<_> = table.iter().map(|row| victim.aim(&row.act, &world).join(" ")).collect();
        let probe = Programs::get().path("probe");
        let command = format!("{} {} > tried", probe.display(), acts.join(" -- "));
        let server = model(&[("shell_exec", json!({"command": command}))]);
        let hidden = world.root().join("outside/hidden");
        let done =
            Finished::of(&mut world.exec(&server, &["--mode", "auto", "--hide", hidden.to_str().unwrap()]));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let tried = world.read("tried");
        assert_eq!(victim.harm(&tried), None);
        let rows = table.iter().zip(tried.lines().map(read));
        let wrong = rows.filter(|(row, tried)| !row.denied_with.iter().any(|e| i64::from(*e) == tried.errno));
        report(user, wrong.map(|(row, tried)| format!("{}: {tried:?}", row.act)).collect());
        assert_eq!(tried.lines().count(), table.len());
    }
}

/// The network opens TCP and UDP, and nothing else.
#[test]
fn the_network_opens_tcp_and_udp_and_nothing_else() {
    for user in User::all() {
        let world = World::new(user);
        let victim = Victim::new(&world);
        let opened = ["tcp", "udp"];
        let (open, closed): (Vec<_>, Vec<_>) =
            attacks::all().into_iter().partition(|row| opened.iter().any(|act| row.act.starts_with(act)));
        let run = |rows: &[Attack]| {
            let acts: Vec<_> = rows.iter().map(|row| victim.aim(&row.act, &world)).collect();
            let mut command = world.bailiwick(["sandbox", "--net", "on", "--hide"]);
            command.arg(world.root().join("outside/hidden")).arg("-C").arg(world.project()).arg("--");
            let done =
                Finished::of(command.arg(Programs::get().path("probe")).args(acts.join(&"--".to_owned())));
            assert_eq!(done.stdout.lines().count(), rows.len(), "{}", done.stderr);
            done
        };
        let done = run(&closed);
        assert_eq!(victim.harm(&done.stdout), None);
        let tried = closed.iter().zip(done.stdout.lines().map(read));
        let wrong =
            tried.filter(|(row, tried)| !row.denied_with.iter().any(|e| i64::from(*e) == tried.errno));
        report(user, wrong.map(|(row, tried)| format!("{}: {tried:?}", row.act)).collect());
        let done = run(&open);
        let refused: Vec<_> = done.stdout.lines().filter(|line| read(line).errno != 0).collect();
        assert_eq!(refused, [] as [&str; 0]);
        assert!(victim.harm(&done.stdout).is_some());
    }
}

/// A command that says that it only reads is held to its word, down to the modes and times of files.
#[test]
fn a_command_that_only_reads_changes_nothing() {
    for user in User::all() {
        let world = World::new(user);
        let victim = Victim::new(&world);
        let acts = "chmod {p}/mine -- utime {p}/mine -- setxattr {p}/mine -- set-acl-owner {p}/mine {uid} {uid} \
                    -- write {p}/mine -- append {p}/mine -- truncate {p}/mine -- write {p}/taken -- unlink {p}/mine \
                    -- rename {p}/mine {p}/moved -- link {p}/mine {p}/taken -- symlink x {p}/taken -- mkdir {p}/taken \
                    -- chmod {o}/file -- utime {o}/file -- setxattr {o}/file -- set-acl-owner {o}/file {uid} {uid} \
                    -- tcp {tcp4} -- unix-stream {o}/stream";
        let probe = Programs::get().path("probe");
        let command = format!("{} {}", probe.display(), victim.aim(acts, &world).join(" "));
        // `bailiwick sandbox` shows what such a command can do.
        let mut sandbox = world.bailiwick(["sandbox", "--access", "read", "--net", "on", "-C"]);
        let done = Finished::of(sandbox.arg(world.project()).args(["--", "bash", "-c", &command]));
        let shown: Vec<_> = done.stdout.lines().map(|line| read(line).errno).collect();
        let call = |access: &str| ("shell_exec", json!({"command": command, "access": access}));
        let server = model(&[call("read"), call("standing")]);
        let done = Finished::of(&mut world.exec(&server, &["--mode", "auto", "--net", "on"]));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let errnos = |request: usize| {
            let said = tool_results(&server, request)[0]["content"].as_str().unwrap().to_owned();
            let lines = said.lines().filter(|line| line.starts_with('{')).map(|line| read(line).errno);
            lines.collect::<Vec<_>>()
        };
        let denied = [nix::libc::EPERM, nix::libc::EACCES].map(i64::from);
        let reading = errnos(1);
        assert_eq!(reading.len(), 19, "{reading:?}");
        assert!(reading.iter().all(|errno| denied.contains(errno)), "{user:?}: {reading:?}");
        assert_eq!(shown, reading);
        // The twin: the same command with the standing rights does most of it.
        let standing = errnos(2);
        assert!(standing.iter().filter(|errno| **errno == 0).count() >= 12, "{user:?}: {standing:?}");
    }
}

/// Keeps `SECURITY.md` honest: a row that becomes denied has to leave the list.
#[test]
fn what_this_tier_leaves_open_is_exactly_this() {
    for user in User::all() {
        let world = World::new(user);
        for (act, reason) in attacks::OPEN {
            let victim = Victim::new(&world);
            let tried = confined(&world, &victim.aim(act, &world));
            let harmed = tried.errno == 0 && victim.harm(&tried.said).is_some();
            assert!(harmed, "{act} is held by now ({tried:?}), although {reason}");
        }
    }
}

#[test]
fn an_inherited_descriptor_does_not_get_through() {
    for user in User::all() {
        let world = World::new(user);
        let victim = Victim::new(&world);
        let probe = Programs::get().path("probe").display().to_string();
        let bailiwick = Programs::get().path("bailiwick").display().to_string();
        let acts = "write-descriptor 9 -- read-descriptor 8 -- through-directory-descriptor 7 new";
        let run = |prefix: &str| {
            let script =
                format!("exec 9>>\"$0/file\" 8<\"$0/hidden\" 7<\"$0\"; exec {prefix} {probe} {acts}");
            let mut bash = world.command("bash");
            let outside = world.root().join("outside");
            let done = Finished::of(bash.arg("-c").arg(script).arg(outside).current_dir(world.project()));
            assert_eq!(done.code, 0, "{}", done.stderr);
            (done.stdout.lines().map(|line| read(line).errno).collect::<Vec<_>>(), done.stdout)
        };
        let (errnos, said) = run(&format!("{bailiwick} sandbox --"));
        assert_eq!(errnos, [number(nix::libc::EBADF), number(nix::libc::ENOENT), number(nix::libc::EBADF)]);
        assert_eq!(victim.harm(&said), None);
        let (errnos, said) = run("");
        assert_eq!(errnos, [0, 0, 0], "{said}");
        assert!(victim.harm(&said).is_some());
    }
}

fn number(errno: i32) -> i64 {
    errno.into()
}
