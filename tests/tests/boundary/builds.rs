//! Tests a person's environment variables that name build directories which no agent may write. The variables then name
//! directories in the project's private caches, and a note says so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::replies::{done, model_of, shell};
use tests::tier::everywhere;
use tests::{Finished, User, World, tier};

/// Returns a directory outside of the project that the world's user may write.
fn outside(world: &World) -> PathBuf {
    let outside = world.root().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    world.give(&outside);
    outside
}

/// Creates a small crate with a test and the files that cargo needs.
fn crate_in(world: &World) {
    world.file("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    world.file("src/main.rs", "fn main() { println!(\"built\"); }\n");
}

/// Sets the homes of cargo and rustup to those of the user that runs the tests.
fn with_cargo(command: &mut Command) -> &mut Command {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    for (name, place) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(name, std::env::var_os(name).map_or_else(|| home.join(place), PathBuf::from));
    }
    command
}

/// True if the world's user can build the crate without a sandbox.
fn builds_unconfined(world: &World, target: &Path) -> bool {
    // Runs in a shell, since cargo may be missing.
    let mut cargo = world.command("bash");
    cargo
        .args(["-c", "cargo build -q --offline"])
        .current_dir(world.project())
        .env("CARGO_TARGET_DIR", target);
    let built = Finished::of(with_cargo(&mut cargo)).code == 0 && target.join("debug/small").is_file();
    fs::remove_dir_all(target).unwrap_or_default();
    built
}

#[test]
fn cargo_builds_although_its_target_directory_lies_outside() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        crate_in(&world);
        let target = outside(&world).join("target");
        if !builds_unconfined(&world, &target) {
            eprintln!("skipped: not on this machine: cargo as {user:?}");
            continue;
        }
        for access in ["write", "read"] {
            let line = "cargo build -q --offline && $CARGO_TARGET_DIR/debug/small && echo $CARGO_TARGET_DIR";
            // With the access `read`, cargo cannot write the project, so the lock file exists already.
            let mut sandbox = world.sandbox(tier, &["--access", access], "bash");
            let done = Finished::of(with_cargo(sandbox.args(["-c", line]).env("CARGO_TARGET_DIR", &target)));
            assert_eq!(done.code, 0, "{user:?} {tier} {access}: {}", done.stderr);
            let place = done.stdout.strip_prefix("built\n").unwrap().trim_end();
            let lasting = place.starts_with(world.own().join("cache/projects").to_str().unwrap());
            assert_eq!(lasting, access == "write", "{user:?} {tier} {access}: {place}");
            let said = format!("note: CARGO_TARGET_DIR={} is outside", target.display());
            assert_eq!(done.stderr.matches(&said).count(), 1, "{tier} {access}: {}", done.stderr);
            assert!(!target.exists(), "nothing was built there");
        }
    }
}

#[test]
fn a_build_directory_that_may_be_written_stays() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let outside = outside(&world);
        let show = "echo $CARGO_TARGET_DIR $RUFF_CACHE_DIR";
        let run = |flags: &[&str], target: &str, ruff: &str| {
            let mut sandbox = world.sandbox(tier, flags, "bash");
            sandbox.args(["-c", show]).env("CARGO_TARGET_DIR", target).env("RUFF_CACHE_DIR", ruff);
            let done = Finished::of(&mut sandbox).expect(0);
            (done.stdout.trim_end().to_owned(), done.stderr)
        };
        let inside = world.project().join("out").display().to_string();
        let outside = outside.display().to_string();
        assert_eq!(run(&[], "build", &inside), (format!("build {inside}"), String::new()), "{tier}");
        let granted = run(&["--write", &outside], &format!("{outside}/target"), &outside);
        assert_eq!(granted, (format!("{outside}/target {outside}"), String::new()), "{tier}");
        // A variable that the user sets by a flag is passed unchanged.
        let said = run(&["--env", "CARGO_TARGET_DIR=/x", "--env", "RUFF_CACHE_DIR"], "/y", &outside);
        assert_eq!(said, (format!("/x {outside}"), String::new()), "{tier}");
        let moved = run(&[], "build", &outside);
        assert!(moved.0.ends_with("/ruff") && moved.1.contains("note: RUFF_CACHE_DIR="), "{tier}: {moved:?}");
        // A link in the project counts as its target.
        std::os::unix::fs::symlink(&outside, world.project().join("link")).unwrap();
        let moved = run(&[], "link/target", &inside);
        assert!(moved.0.contains("/cargo-target ") && moved.1.contains("CARGO_TARGET_DIR"), "{moved:?}");
    }
}

#[test]
fn cargos_own_settings_are_moved_too() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let outside = outside(&world);
        let [home, agents] = ["cargo", "project/cargo"].map(|name| world.root().join(name));
        for home in [&home, &agents] {
            fs::create_dir(home).unwrap();
        }
        let told_by = |home: &Path, setting: &str| {
            fs::write(home.join("config.toml"), setting).unwrap();
            let mut sandbox = world.sandbox(tier, &[], "bash");
            sandbox.args(["-c", "echo $CARGO_TARGET_DIR"]).env("CARGO_HOME", home);
            let done = Finished::of(&mut sandbox).expect(0);
            (done.stdout.trim_end().to_owned(), done.stderr)
        };
        let told = |setting: &str| told_by(&home, setting);
        let moved = told(&format!("[build]\ntarget-dir = \"{}\"\n", outside.display()));
        assert!(moved.0.ends_with("/cargo-target"), "{tier}: {moved:?}");
        assert!(moved.1.contains("note: build.target-dir="), "{tier}: {moved:?}");
        // The path is relative to the parent of the directory that contains the settings file.
        assert!(told("build.target-dir = \"elsewhere\"").0.ends_with("/cargo-target"));
        assert!(told("build.build-dir = \"{cargo-cache-home}/b\"").1.contains("note: build.build-dir="));
        for stays in ["build.target-dir = \"project/out\"", "[build]\njobs = 1\n", "no = [toml", ""] {
            assert_eq!(told(stays), (String::new(), String::new()), "{tier}: {stays}");
        }
        let setting = format!("build.target-dir = \"{}\"", outside.display());
        assert_eq!(told_by(&agents, &setting).1, "", "{tier}: agents may write it");
        nix::unistd::mkfifo(&home.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::rename(home.join("pipe"), home.join("config.toml")).unwrap();
        let mut sandbox = world.sandbox(tier, &[], "true");
        assert_eq!(
            Finished::of(sandbox.env("CARGO_HOME", &home)).expect(0).stderr,
            "",
            "nobody waits for it"
        );
    }
}

#[test]
fn a_session_says_it_once_and_its_commands_build_there() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let target = outside(&world).join("target");
        let line = "mkdir -p $CARGO_TARGET_DIR && echo x > $CARGO_TARGET_DIR/x";
        for mode in ["auto", "deny"] {
            let server = model_of([shell(line), shell(line), done()]);
            let mut exec = world.exec(&server, &["--mode", mode]);
            exec.args(tier::flags(tier)).env("CARGO_TARGET_DIR", &target);
            let run = Finished::of(&mut exec).expect(0);
            assert_eq!(run.events_of("denied").len(), 0, "{user:?} {tier} {mode}: {}", run.stdout);
            assert_eq!(
                run.stderr.matches("CARGO_TARGET_DIR").count(),
                1,
                "{user:?} {tier} {mode}: {}",
                run.stderr
            );
        }
    }
}
