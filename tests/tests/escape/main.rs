//! Tests the confinement from an attacker's view. Each attack succeeds without a sandbox, and fails in each tier: by
//! `bailiwick sandbox`, by `shell_exec` and by a one-shot worker. A developer's normal actions succeed.
//!
//! The attacks are in `table`, and the victim's state shows their results.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod addresses;
mod attack;
mod attributed;
mod beside;
mod leases;
mod machine;
mod neighbour;
mod older;
mod one_shot;
mod ports;
mod run;
mod sockets;
mod table;
mod victim;
mod works;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use attack::{Attack, Held, Place, Tried, Unconfined};
use ipc::confinement::Tier;
use one_shot::one_shot_worker;
use run::{Way, command_of_the_model, sandbox, unconfined};
use tests::{User, World, tier};
use victim::Victim;

fn everywhere() -> Vec<(Tier, User)> {
    tier::all().into_iter().flat_map(|tier| User::all().into_iter().map(move |user| (tier, user))).collect()
}

/// Waits until the victim is harmed, because a signal, for example, must first be delivered. Returns false after a
/// minute.
fn harm_comes(victim: &Victim, said: &str) -> bool {
    let began = Instant::now();
    while victim.harm(said).is_none() {
        if began.elapsed() > Duration::from_mins(1) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Checks that the attack succeeds without a sandbox. `None` if the machine itself denies it.
fn check_control(attack: &Attack, world: &World) -> Option<Result<(), String>> {
    let victim = Victim::new(world);
    let tried = unconfined(world, &victim.aim(&attack.act, world));
    let is_denial = [attack.full, attack.floor].iter().any(|held| match held {
        Held::With(errnos) => tried.is(errnos),
        Held::Apart | Held::Open(_) => false,
    });
    let shown = match attack.unconfined {
        Unconfined::Harms => tried.errno == 0 && harm_comes(&victim, &tried.said),
        Unconfined::Works => tried.errno == 0,
        Unconfined::Reaches => !is_denial,
    };
    if shown {
        Some(Ok(()))
    } else if machine::denies(attack, &tried) {
        None
    } else {
        Some(Err(format!("unconfined, {} is not {:?}: {tried:?}", attack.act, attack.unconfined)))
    }
}

/// Makes all attacks against one victim. If the victim is harmed, repeats halves of the attacks to find the harmful
/// one.
fn check_denials(place: &Place, rows: &[Attack], way: Way) -> Vec<String> {
    let (tried, harm) = against_one(place, rows, way);
    let allowed = rows.iter().zip(&tried).filter(|(row, tried)| match row.held(place.tier) {
        Held::With(errnos) => {
            !tried.is(errnos)
                && !machine::denies_alike(row, place, tried)
                && !older::is_held_otherwise(row, place.tier, tried)
        }
        Held::Apart | Held::Open(_) => false,
    });
    let mut failures: Vec<_> = allowed.map(|(row, tried)| format!("{}: {tried:?}", row.act)).collect();
    if let Some(harm) = harm {
        failures.push(format!("harm: {harm}"));
        failures.extend(culprits(place, rows, way));
    }
    failures.into_iter().map(|failure| format!("{place}: {failure}")).collect()
}

fn against_one(place: &Place, rows: &[Attack], way: Way) -> (Vec<Tried>, Option<String>) {
    let victim = Victim::new(place.world);
    let acts: Vec<_> = rows.iter().map(|row| victim.aim(&row.act, place.world)).collect();
    let tried = way(place, &acts);
    assert_eq!(tried.len(), rows.len(), "{place}");
    let said: String = tried.iter().map(|tried| tried.said.as_str()).collect();
    let harm = victim.harm(&said);
    (tried, harm)
}

fn culprits(place: &Place, rows: &[Attack], way: Way) -> Vec<String> {
    let halves = rows.split_at(rows.len() / 2);
    let harmful = |rows: &[Attack]| match (rows, against_one(place, rows, way)) {
        (_, (_, None)) => vec![],
        ([row], (tried, Some(harm))) => vec![format!("{}: {harm} ({tried:?})", row.act)],
        (rows, _) => culprits(place, rows, way),
    };
    if rows.len() < 2 { harmful(rows) } else { [harmful(halves.0), harmful(halves.1)].concat() }
}

fn fail_with(failures: &[String]) {
    assert!(failures.is_empty(), "{} rows\n{}", failures.len(), failures.join("\n"));
}

/// Returns the attacks that the place's tier denies, with its network on or off.
fn held(place: &Place) -> Vec<Attack> {
    let is_open = |row: &Attack| matches!(row.held(place.tier), Held::Open(_));
    table::all().into_iter().filter(|row| row.concerns(place.world.user()) && !is_open(row)).collect()
}

fn check_everywhere(way: Way) {
    let mut failures = vec![];
    for tier in tier::all() {
        for user in User::all() {
            for net in ["off", "on"] {
                let world = World::new(user);
                let place = Place { world: &world, tier, net };
                failures.extend(check_denials(&place, &held(&place), way));
            }
        }
    }
    fail_with(&failures);
}

#[test]
fn there_are_attacks_of_every_group() {
    let mut counts = BTreeMap::new();
    for row in table::all() {
        *counts.entry(row.group).or_insert(0) += 1;
    }
    for (group, count) in &counts {
        println!("{group:?}: {count} attacks");
    }
    assert_eq!(counts.len(), 11);
    assert!(counts.values().sum::<i32>() > 200);
}

#[test]
fn every_attack_succeeds_unconfined() {
    for user in User::all() {
        let world = World::new(user);
        let table = table::all();
        let possible: Vec<_> = table.iter().filter(|row| row.is_possible(user)).collect();
        let tried: Vec<_> = possible.iter().filter_map(|row| check_control(row, &world)).collect();
        assert!(tried.len() * 2 > possible.len(), "a machine that denies most by itself shows nothing");
        fail_with(&tried.into_iter().filter_map(Result::err).collect::<Vec<_>>());
    }
}

#[test]
fn every_attack_is_denied_in_the_sandbox() {
    check_everywhere(sandbox);
}

#[test]
fn every_attack_is_denied_to_a_command_of_the_model() {
    check_everywhere(command_of_the_model);
}

#[test]
fn every_attack_is_denied_to_an_approved_command() {
    check_everywhere(one_shot_worker);
}

/// Tests that the full tier denies every attack, and the floor tier all but the listed ones. An attack that is denied
/// must leave this list and that in `docs/residual-risks.md`.
#[test]
fn what_a_tier_leaves_open_is_exactly_this() {
    let mut failures = vec![];
    for tier in tier::all() {
        let open = |row: &Attack| matches!(row.held(tier), Held::Open(_));
        let rows: Vec<_> = table::all().into_iter().filter(open).collect();
        assert!(tier == Tier::Floor || rows.is_empty());
        for user in User::all() {
            let world = World::new(user);
            for row in rows.iter().filter(|row| row.concerns(user)) {
                let victim = Victim::new(&world);
                let place = Place { world: &world, tier, net: "off" };
                let tried = &sandbox(&place, &[victim.aim(&row.act, &world)])[0];
                let harmed = row.unconfined == Unconfined::Works || harm_comes(&victim, &tried.said);
                if machine::denies_alike(row, &place, tried) {
                    continue;
                }
                if tried.errno != 0 || !harmed {
                    failures.push(format!("{place}: {} is held by now: {tried:?}", row.act));
                }
            }
        }
    }
    fail_with(&failures);
}
