//! Creates a repository with an attacker's program. A person's command might later execute it.

use std::path::{Path, PathBuf};

use crate::process::Finished;
use crate::programs::User;
use crate::world::{PLACE, World};

/// Creates a repository with a committed file, and with the attacker's program `evil.sh`, which leaves a mark in the
/// home directory.
pub fn repository(user: User) -> World {
    repository_below(user, Path::new(PLACE))
}

/// Like [`repository`], in a subdirectory of `directory`. Every user must be able to enter `directory`.
pub fn repository_below(user: User, directory: &Path) -> World {
    let world = World::below(user, directory);
    world.file("kept.txt", "kept\n");
    world.commit();
    let mark = mark(&world);
    world.script("evil.sh", &format!("#!/bin/sh\necho run >> {}\ncat\nexit 0\n", mark.display()));
    world
}

/// Runs a command in the project without confinement, as the person would.
pub fn shell(world: &World, command: &str) -> Finished {
    let mut sh = world.command("bash");
    sh.args(["-c", command]).current_dir(world.project());
    for (name, value) in [("NAME", "t"), ("EMAIL", "t@example.org")] {
        sh.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    Finished::of(&mut sh)
}

/// True if the attacker's program has left its mark.
pub fn is_marked(world: &World) -> bool {
    mark(world).exists()
}

fn mark(world: &World) -> PathBuf {
    world.home().join("canary")
}
