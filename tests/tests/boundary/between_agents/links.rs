//! Tests that a write root of a sub-agent that is or contains a symbolic link makes nothing behind the link writable.

use std::fs;

use model::replay::ReplayServer;
use serde_json::json;
use tests::replies::{calls, done, model_of_agents, shell};
use tests::{Finished, User, World, tier};

/// Test case: a write root with a symbolic link, through which a sub-agent tries to write elsewhere.
struct Root {
    /// Commands of the parent before the sub-agent starts. `OUTSIDE` stands for a directory outside of the project.
    before: &'static str,
    /// Write root that the parent passes to the sub-agent.
    given: &'static str,
    /// Command of the sub-agent. It succeeds without a sandbox.
    act: &'static str,
}

const ROOTS: [Root; 6] = [
    Root { before: "ln -s OUTSIDE link", given: "link", act: "echo lost > link/kept" },
    Root { before: "ln -s OUTSIDE link", given: "link/sub", act: "echo lost > link/sub/kept" },
    Root { before: "ln -s OUTSIDE/kept link", given: "link", act: "echo lost > link" },
    Root { before: "ln -s b link", given: "link", act: "echo lost > link/kept" },
    Root { before: "ln -s b link", given: "link", act: "echo lost > b/kept" },
    Root {
        before: "mkdir a/sub; ln -s ../../b a/sub/link",
        given: "a/sub/link",
        act: "echo lost > a/sub/link/kept",
    },
];

const KEPT: [&str; 4] = ["outside/kept", "outside/sub/kept", "project/b/kept", "project/b/new"];

fn lay_out(world: &World) {
    world.file("b/kept", "kept\n");
    fs::create_dir_all(world.root().join("outside/sub")).unwrap();
    for name in ["outside/kept", "outside/sub/kept"] {
        fs::write(world.root().join(name), "kept\n").unwrap();
    }
    for name in ["outside", "outside/sub", "outside/kept", "outside/sub/kept"] {
        world.give(&world.root().join(name));
    }
    fs::create_dir_all(world.project().join("a")).unwrap();
    world.give(&world.project().join("a"));
}

/// Returns the files beyond the links whose content has changed.
fn lost(world: &World) -> Vec<&'static str> {
    let is_lost =
        |name: &&str| fs::read_to_string(world.root().join(name)).is_ok_and(|text| text != "kept\n");
    KEPT.into_iter().filter(is_lost).collect()
}

fn outside(world: &World, command: &str) -> String {
    command.replace("OUTSIDE", &world.root().join("outside").display().to_string())
}

/// Returns a model server whose first agent creates the link and passes the write root to a sub-agent.
fn model(world: &World, root: &Root) -> ReplayServer {
    let spawn = calls(&[("spawn_agent", json!({"task": "write", "write": [root.given]}))]);
    let task = ("write".to_owned(), vec![shell(root.act), done()]);
    model_of_agents([shell(&outside(world, root.before)), spawn, done()], [task])
}

#[test]
fn a_write_root_behind_a_link_gives_nothing() {
    for root in &ROOTS {
        let world = World::new(User::Myself);
        lay_out(&world);
        let both = format!("{}; {}", outside(&world, root.before), root.act);
        let done = Finished::of(world.command("bash").args(["-c", &both]).current_dir(world.project()));
        assert_eq!((done.code, lost(&world).len()), (0, 1), "unconfined: {both}: {}", done.stderr);
        for (user, tier) in tier::everywhere() {
            let world = World::new(user).in_tier(tier);
            lay_out(&world);
            let server = model(&world, root);
            let done = Finished::of(&mut world.exec(&server, &["--mode", "auto"]));
            let place = format!("{tier} tier, {user:?}: {both}");
            assert!(done.stdout.contains("sub_agent_result"), "{place}: {}", done.stdout);
            assert_eq!(lost(&world), [""; 0], "{place}: {}", done.stdout);
        }
    }
}
