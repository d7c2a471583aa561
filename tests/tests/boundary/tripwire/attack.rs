//! Runs attacks as a model's commands, and collects the reports about them.

use ipc::confinement::Tier;
use model::replay::ReplayServer;
use protocol::event::{PlaceChange, RestoredPlace};
use serde_json::{Value, json};
use tests::replies::model;
use tests::world::tool_results;
use tests::{Finished, World, tier};

/// Options of git with an identity for an agent's commits.
pub(crate) const IDENTITY: &str =
    "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e; ";

/// Runs a session to its end. It must exit successfully, or with a denial.
pub(crate) fn run(world: &World, tier: Tier, server: &ReplayServer, flags: &[&str]) -> Finished {
    let done = world.run(server, &[&["--mode", "auto"], tier::flags(tier), flags].concat());
    assert!([0, 4].contains(&done.code), "{}\n{}", done.stdout, done.stderr);
    done
}

/// Runs one command in the project. Returns the run, and the tool result of the command.
pub(crate) fn attack(world: &World, tier: Tier, command: &str) -> (Finished, Value) {
    attack_with(world, tier, &[], command)
}

pub(crate) fn attack_with(world: &World, tier: Tier, flags: &[&str], command: &str) -> (Finished, Value) {
    let server = model(&[("shell_exec", json!({"command": command}))]);
    let done = run(world, tier, &server, flags);
    let told = tool_results(&server, 1)[0].clone();
    (done, told)
}

/// True if the kernel refused something, according to the command's own messages.
fn is_refused(told: &Value) -> bool {
    let told = told.to_string();
    ["Read-only file system", "Device or resource busy"].iter().any(|refusal| told.contains(refusal))
}

pub(crate) fn is_known(tier: Tier, done: &Finished, told: &Value) -> bool {
    !restored(done).is_empty() || (tier == Tier::Full && is_refused(told))
}

pub(crate) fn restored(done: &Finished) -> Vec<String> {
    let events = done.events_of("restored");
    let places = events.iter().flat_map(|event| event["places"].as_array().unwrap().clone());
    places
        .map(|place| {
            let place: RestoredPlace = serde_json::from_value(place).unwrap();
            assert!(place.restored, "{place:?}");
            // The file is moved away, and never lost.
            let is_aside = matches!(place.what, PlaceChange::Created | PlaceChange::Changed);
            let moved_to = if is_aside { None } else { place.moved_to.clone() };
            let place = RestoredPlace { moved_to, ..place };
            format!("{}: {}", place.path, place.phrase())
        })
        .collect()
}
