//! Tests attacks of one agent of a session on another. Each attack succeeds between two unconfined programs. The
//! attacks that also succeed between agents are listed here and in `docs/security-of-features.md`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod duel;
mod links;

use std::collections::BTreeMap;

use ipc::confinement::Tier;
use tests::{User, World, tier};

use duel::{Machine, Relation, confined, has_containers, unconfined};

/// Attacks of a read-only agent that succeed in any tier, since the file system is shared: the agent empties a fifo,
/// locks files and watches a directory.
const READING: [&str; 4] = ["fifo_read", "file_lock", "read_lock", "watch"];

/// Attacks that the floor tier permits between processes of one user.
const FLOOR: [&str; 8] = [
    "affinity",
    "command_line",
    "io_priority",
    "priority",
    "proc_fd_list",
    "scheduler",
    "status",
    "temp_list",
];

fn open_in(tier: Tier) -> Vec<&'static str> {
    let mut open = READING.to_vec();
    if tier != Tier::Full {
        open.extend(FLOOR);
    }
    open.sort_unstable();
    open
}

fn succeeded(tried: &BTreeMap<String, i32>) -> Vec<&str> {
    tried.iter().filter(|(_, errno)| **errno == 0).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn each_act_succeeds_unconfined() {
    for user in User::all() {
        let duel = unconfined(&World::new(user));
        let failed: Vec<_> = duel.tried.iter().filter(|(_, errno)| **errno != 0).collect();
        assert!(failed.is_empty(), "{user:?}: {failed:?}");
        assert_eq!(duel.tried.len(), 61, "docs/security-of-features.md has the number");
        assert!(duel.is_harmed(), "{user:?}: {}", duel.kept);
    }
}

fn check(machine: Machine, relation: Relation) {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user).in_tier(tier);
        let duel = confined(&world, machine, relation);
        let place = format!("{tier} tier, {user:?}, {relation:?}");
        let has_devices = tier == Tier::Full || machine == Machine::Container;
        let has = |name: &&str| !duel.facts[*name].is_null();
        assert!(!has_devices || ["memory", "terminal"].iter().all(has), "{place}: {}", duel.facts);
        let temp = duel.facts["temp"].as_str().unwrap();
        let has_lasting_caches = !duel.facts["caches"].as_str().unwrap().starts_with(temp);
        assert!(has_lasting_caches, "{place}: {}", duel.facts);
        assert!(!duel.is_harmed(), "{place}: {}\n{:?}", duel.kept, duel.tried);
        assert_eq!(succeeded(&duel.tried), open_in(tier), "{place}: {:?}", duel.tried);
    }
}

#[test]
fn a_reader_has_no_hold_on_its_parent() {
    check(Machine::Host, Relation::ReaderBelowItsParent);
}

#[test]
fn a_reader_has_no_hold_on_its_sibling() {
    check(Machine::Host, Relation::ReaderBesideAWriter);
}

#[test]
fn a_writer_has_no_hold_on_its_sibling_that_writes_elsewhere() {
    check(Machine::Host, Relation::WriterBesideAWriter);
}

#[test]
fn a_reader_has_no_hold_on_its_sibling_with_the_network_on() {
    check(Machine::Host, Relation::ReaderBesideAWriterWithTheNetwork);
}

/// Tests the attacks in a container, because a container's first agent has shared memory and terminals even in the
/// floor tier.
#[test]
fn a_reader_has_no_hold_on_its_parent_in_a_container() {
    if !has_containers() {
        tests::skip!("this machine has no user namespaces to make containers of");
    }
    check(Machine::Container, Relation::ReaderBelowItsParent);
}
