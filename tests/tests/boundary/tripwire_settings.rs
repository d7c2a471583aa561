//! Tests every line of the list of watched settings. A command plants the file, and the project must end unchanged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use tests::repository::shell;
use tests::{Finished, User, World, tier};

const LIST: &str = include_str!("../../../supervisor/gate/src/protected/settings.txt");

fn places() -> Vec<String> {
    let places = LIST.lines().filter(|line| !line.starts_with('#'));
    places.filter_map(|line| Some(line.split_once(" # ")?.0.replace('*', "x"))).collect()
}

const FORMS: [&str; 2] = ["", "/deep/x"];

fn files(form: &str) -> Vec<String> {
    places().into_iter().map(|place| format!("{place}{form}")).collect()
}

/// Returns a command that writes each file, even if another one fails.
fn plant(files: &[String]) -> String {
    let files = files.join("' '");
    format!("for f in '{files}'; do mkdir -p \"$(dirname \"$f\")\"; echo evil > \"$f\"; done; true")
}

fn content(project: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![project.to_owned()];
    while let Some(directory) = ahead.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(project).unwrap().to_owned();
            if path.is_dir() {
                found.insert(name, "directory".to_owned());
                ahead.push(path);
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn furnished(user: User, files: &[String]) -> World {
    let world = World::new(user);
    for file in files {
        world.file(file, "# the user's own\n");
    }
    world
}

fn attack(world: &World, tier: Tier, command: &str) -> Finished {
    Finished::of(world.sandbox(tier, &[], "bash").args(["-c", command])).expect(0)
}

#[test]
fn without_a_tripwire_each_setting_is_planted() {
    for form in FORMS {
        let files = files(form);
        for world in [World::new(User::Myself), furnished(User::Myself, &files)] {
            shell(&world, &plant(&files));
            for file in &files {
                assert_eq!(world.read(file), "evil\n", "{file}");
            }
        }
    }
}

#[test]
fn a_setting_that_is_missing_stays_missing() {
    for (user, tier) in tier::everywhere() {
        for form in FORMS {
            let world = World::new(user);
            let files = files(form);
            let done = attack(&world, tier, &plant(&files));
            assert_eq!(content(&world.project()), BTreeMap::new(), "{user:?} {tier}: {}", done.stderr);
            let told = |place: &String| done.stderr.contains(&format!("restored: {place} (created"));
            let untold: Vec<_> = places().into_iter().filter(|place| !told(place)).collect();
            assert_eq!(untold, [] as [&str; 0], "{user:?} {tier}: {}", done.stderr);
        }
    }
}

#[test]
fn a_setting_that_exists_stays_what_it_was() {
    for (user, tier) in tier::everywhere() {
        for form in FORMS {
            let files = files(form);
            let world = furnished(user, &files);
            let before = content(&world.project());
            let remove = format!("rm -rf '{}'; true", places().join("' '"));
            for command in [plant(&files), remove] {
                let done = attack(&world, tier, &command);
                assert_eq!(content(&world.project()), before, "{user:?} {tier}: {}", done.stderr);
            }
        }
    }
}
