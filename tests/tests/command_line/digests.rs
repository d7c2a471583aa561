//! Tests the digests of access in all reports of a session: reports of different access differ in digest, line and
//! reason, and reports of equal access do not. Runs in both tiers, as root and as a plain user.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ipc::rights::RightsChange;
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::replies::{done, model_of, shell};
use tests::session::{Beginning, FrontEnd};
use tests::standing::line_of;
use tests::tier::{self, everywhere};
use tests::{Finished, User, World};

/// Creates a directory in the host's `/tmp`. In the full tier, `/tmp` is private.
fn below_tmp(world: &World) -> TempDir {
    let place = tempfile::Builder::new().prefix("host-").tempdir_in("/tmp").unwrap();
    world.give(place.path());
    place
}

/// Returns the flags of a session in mode `auto`, with `root` as an additional write root.
fn flags(root: Option<&Path>) -> Vec<&str> {
    let write = root.map(|root| ["--write", root.to_str().unwrap()]);
    ["--mode", "auto"].into_iter().chain(write.into_iter().flatten()).collect()
}

fn ask(world: &World, command: &[&str], root: Option<&Path>) -> Value {
    let mut asked = world.bailiwick(command);
    asked.arg("-C").arg(world.project()).args(world.tier_flags()).args(flags(root));
    serde_json::from_str(&Finished::of(&mut asked).expect(0).stdout).unwrap()
}

/// Returns the `data` of the last `worker_started` event.
fn worker_started(log: &[Value]) -> &Value {
    let started = log.iter().rfind(|event| event["type"] == "worker_started");
    &started.unwrap_or_else(|| panic!("no worker was started: {log:#?}"))["data"]
}

#[test]
fn a_probe_tells_a_write_root_below_the_hosts_tmp_from_the_private_one() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let place = below_tmp(&world);
        let [without, with] =
            [None, Some(place.path())].map(|root| ask(&world, &["audit", "--probe", "--json"], root));
        for audit in [&without, &with] {
            assert_eq!(audit["differences"], json!([]), "{user:?} {tier}");
        }
        assert_ne!(with["ruleset_digest"], without["ruleset_digest"], "{user:?} {tier}");
        assert_eq!(
            line_of(&without["rights"]),
            "writes in the project, $TMPDIR, caches · network off · secrets hidden",
            "{user:?} {tier}"
        );
        let line = format!(
            "writes in the project, $TMPDIR, caches, {} · network off · secrets hidden",
            place.path().display()
        );
        assert_eq!(line_of(&with["rights"]), line, "{user:?} {tier}");
    }
}

#[test]
fn a_flag_is_the_reason_for_a_write_below_the_hosts_tmp() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let place = below_tmp(&world);
        let path = place.path().to_str().unwrap();
        let said = ask(&world, &["explain", path, "--json"], Some(place.path()));
        let write = &said["path"]["write"];
        assert_eq!(
            write["because"],
            format!("the path is in the writable directory {path}"),
            "{user:?} {tier}"
        );
        assert_eq!(write["origin"], "--write", "{user:?} {tier}");
        assert_eq!(write["tried"]["outcome"], "done", "{user:?} {tier}");
        assert!(line_of(&said["rights"]).contains(path), "{user:?} {tier} {said:#}");
        let said = ask(&world, &["explain", path, "--json"], None);
        assert_ne!(said["path"]["write"]["origin"], "--write", "{user:?} {tier}");
    }
}

#[test]
fn the_log_and_the_models_context_name_a_write_root_below_the_hosts_tmp() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let place = below_tmp(&world);
        let path = place.path().display().to_string();
        let server = model_of([done()]);
        world.run(&server, &flags(None)).expect(0);
        let without = worker_started(&world.log()).clone();
        fs::remove_dir_all(world.own().join("state/sessions")).unwrap();
        let server = model_of([shell(&format!("echo written > {path}/by-the-command")), done()]);
        world.run(&server, &flags(Some(place.path()))).expect(0);
        let written = fs::read_to_string(place.path().join("by-the-command")).unwrap();
        assert_eq!(written, "written\n", "{user:?} {tier}: it is the host's own");
        let log = world.log();
        let with = worker_started(&log);
        for digest in ["rights_digest", "ruleset_digest"] {
            assert_ne!(with[digest], without[digest], "{user:?} {tier} {digest}");
        }
        let line = format!("writes in the project, $TMPDIR, caches, {path} · network off · secrets hidden");
        assert_eq!(line_of(&with["rights"]), line, "{user:?} {tier}");
        let told = String::from_utf8_lossy(&server.requests()[0].body).into_owned();
        assert!(told.contains(&format!("your rights: {line}")), "{user:?} {tier}: {told}");
        let probed = ask(&world, &["audit", "--probe", "--json"], Some(place.path()));
        assert_eq!(probed["ruleset_digest"], with["ruleset_digest"], "{user:?} {tier}: probed as logged");
    }
}

#[tokio::test]
async fn a_change_of_rights_names_a_write_root_below_the_hosts_tmp() {
    for tier in tier::all() {
        let beginning = Beginning { tier: tier::choice(tier), ..Beginning::default() };
        let mut front = FrontEnd::open_with(beginning, [done()]);
        let provider = Arc::clone(&front.provider);
        let place = below_tmp(&front.world);
        front.until("worker 1 started").await;
        let change = RightsChange::AddWrite { path: place.path().into() };
        front.act(UserActionKind::Agent(AgentAction::SetRights { change })).await;
        front.until("rights changed for worker 2").await;
        let log = front.world.log();
        let first = log.iter().find(|event| event["type"] == "worker_started").unwrap();
        let changed = &log.iter().find(|event| event["type"] == "rights_changed").unwrap()["data"];
        for digest in ["rights_digest", "ruleset_digest"] {
            assert_ne!(changed[digest], first["data"][digest], "{tier} {digest}");
        }
        let path = place.path().display().to_string();
        let line = line_of(&changed["rights"]);
        assert!(line.starts_with(&format!("writes in the project, $TMPDIR, {path} · ")), "{tier} {line}");
        front.prompt("begin").await;
        front.until("result").await;
        let told = format!("{:?}", provider.requests().last().unwrap().messages);
        assert!(told.contains(&line), "{tier} {told}");
        front.end().await;
    }
}

#[test]
fn two_sessions_of_the_same_rights_have_equal_digests() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let place = below_tmp(&world);
        let digests = [(); 2].map(|()| {
            world.run(&model_of([done()]), &flags(Some(place.path()))).expect(0);
            let started = worker_started(&world.log()).clone();
            fs::remove_dir_all(world.own().join("state/sessions")).unwrap();
            [started["rights_digest"].clone(), started["ruleset_digest"].clone()]
        });
        assert_eq!(digests[0], digests[1], "{tier}");
        assert_eq!(digests[0][0].as_str().unwrap().len(), 64, "{tier}");
    }
}
