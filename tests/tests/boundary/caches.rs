//! Tests that the caches of package managers are private to a project, in both tiers.

use std::fs;
use std::path::{Path, PathBuf};

use tests::replies::{done, model_of, shell};
use tests::standing::line_of;
use tests::{Finished, User, World, skip};

const TIERS: [&str; 2] = ["full", "floor"];

/// Runs a command in a directory with the access that an agent's command would have.
fn sandbox(world: &World, project: &Path, flags: &[&str], command: &str) -> Finished {
    let mut bailiwick = world.bailiwick(["sandbox", "-C"]);
    bailiwick.arg(project).args(flags).args(["--", "bash", "-c", command]);
    Finished::of(&mut bailiwick)
}

/// Returns the existing cache directories.
fn kept(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.own().join("cache/projects")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn what_one_session_caches_the_next_has_and_no_other_project() {
    for user in User::all() {
        let world = World::new(user);
        let other = world.root().join("other");
        fs::create_dir(&other).unwrap();
        world.give(&other);
        for tier in TIERS {
            let flags = ["--tier", tier];
            let fill =
                format!("mkdir -p $GOCACHE $PIP_CACHE_DIR && echo {tier} > $GOCACHE/{tier} && echo $GOCACHE");
            let filled = sandbox(&world, &world.project(), &flags, &fill).expect(0);
            let cached = format!("{}/{tier}", filled.stdout.trim_end());
            assert!(kept(&world).iter().any(|own| Path::new(&cached).starts_with(own)), "{cached}");
            let again = sandbox(&world, &world.project(), &flags, &format!("cat $GOCACHE/{tier}")).expect(0);
            assert_eq!(again.stdout.trim_end(), tier);
            // Agents of the other project cannot read or change the file. The user can.
            for attack in
                [format!("cat {cached}"), format!("echo poison >> {cached}"), format!("ls {cached}/..")]
            {
                let tried = sandbox(&world, &other, &flags, &attack);
                assert_ne!(tried.code, 0, "{tier}: {attack}: {}", tried.stdout);
                let control = Finished::of(world.command("bash").args(["-c", &attack.replace("/..", "")]));
                assert_eq!(control.code, 0, "{}", control.stderr);
                fs::write(&cached, format!("{tier}\n")).unwrap();
            }
            // They cannot create another directory next to their own either.
            sandbox(&world, &other, &flags, "mkdir -p $GOCACHE; mkdir $GOCACHE/../../beside");
        }
        assert_eq!(kept(&world).len(), 2, "{:?}", kept(&world));
        assert_eq!(fs::read_dir(world.home()).unwrap().count(), 0, "nothing is written into the home");
    }
}

#[test]
fn npm_and_pip_keep_what_they_fetch_there() {
    let world = World::new(User::Myself);
    world.file("package.json", r#"{"name": "x", "version": "1.0.0"}"#);
    let works = |program: &str| {
        let tried = world.command(program).arg("--version").output();
        tried.is_ok_and(|output| output.status.success())
    };
    if !works("npm") || !works("pip") {
        skip!("not on this machine: npm and pip");
    }
    let before = fs::read_dir(world.home()).unwrap().count();
    for tier in TIERS {
        let flags = ["--tier", tier];
        let command =
            "npm pack --silent && npm cache add ./x-1.0.0.tgz && npm config get cache && pip cache dir";
        let done = sandbox(&world, &world.project(), &flags, command).expect(0);
        let own = kept(&world).remove(0);
        let led: Vec<_> =
            done.stdout.lines().map(Path::new).filter(|place| place.starts_with(&own)).collect();
        assert!(
            matches!(led[..], [npm, pip] if npm.ends_with("npm") && pip.ends_with("pip")),
            "{}",
            done.stdout
        );
        assert!(led[0].join("_cacache/content-v2").is_dir());
        fs::remove_dir_all(led[0]).unwrap();
    }
    assert_eq!(fs::read_dir(world.home()).unwrap().count(), before);
}

#[test]
fn what_the_user_says_of_a_cache_wins() {
    let world = World::new(User::Myself);
    let flags = ["--env", "GOCACHE=/somewhere", "--env", "PIP_CACHE_DIR"];
    let mut bailiwick = world.bailiwick(["sandbox", "-C"]);
    bailiwick.arg(world.project()).args(flags).args(["--", "bash", "-c", "echo $GOCACHE $PIP_CACHE_DIR"]);
    let said = Finished::of(bailiwick.env("PIP_CACHE_DIR", "/mine")).expect(0);
    assert_eq!(said.stdout, "/somewhere /mine\n");
}

#[test]
fn a_session_that_may_not_change_its_project_keeps_nothing() {
    let world = World::new(User::Myself);
    for tier in TIERS {
        let command = r#"[[ $GOCACHE == $TMPDIR/* ]] && mkdir -p "$GOCACHE" && echo x > "$GOCACHE/x""#;
        sandbox(&world, &world.project(), &["--access", "read", "--tier", tier], command).expect(0);
    }
    assert!(kept(&world).is_empty(), "{:?}", kept(&world));
}

#[test]
fn a_project_of_our_own_invention_leaves_no_cache() {
    let world = World::new(User::Myself);
    let doctor = Finished::of(&mut world.bailiwick(["doctor"]));
    assert!(doctor.stdout.contains("tier        full"), "{}", doctor.stdout);
    assert!(!world.own().join("cache/projects").exists());
}

#[test]
fn the_line_of_rights_names_the_caches_and_the_directory_says_what_it_is() {
    let world = World::new(User::Myself);
    let server = model_of([shell("true"), done()]);
    let run = world.run(&server, &["--mode", "auto", "--tier", "floor"]).expect(0);
    let started = run.events_of("session_started").remove(0);
    assert_eq!(
        line_of(&started["rights"]),
        "writes in the project, $TMPDIR, caches · network off · secrets hidden"
    );
    assert_eq!(run.events_of("worker_started")[0]["rights"], started["rights"]);
    let tag = fs::read_to_string(world.own().join("cache/CACHEDIR.TAG")).unwrap();
    assert!(tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"), "{tag}");
}

#[test]
fn cargo_builds_from_a_warm_registry_that_it_cannot_write() {
    let world = World::new(User::Myself);
    let Some(home) = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from)?;
        Some(home.join(".cargo"))
    }) else {
        skip!("not on this machine: a home of cargo's")
    };
    let rustup =
        std::env::var_os("RUSTUP_HOME").map_or_else(|| home.with_file_name(".rustup"), PathBuf::from);
    world.file("Cargo.toml", "[package]\nname = \"x\"\nedition = \"2021\"\n[dependencies]\ncfg-if = \"1\"\n");
    world.file("src/lib.rs", "cfg_if::cfg_if! { if #[cfg(unix)] { pub fn f() {} } }\n");
    let environment = [("CARGO_HOME", &home), ("RUSTUP_HOME", &rustup)];
    let build = ["cargo", "build", "-q", "--offline"];
    let mut unconfined = world.command("cargo");
    unconfined.args(&build[1..]).current_dir(world.project()).envs(environment);
    if Finished::of(&mut unconfined).code != 0 {
        skip!("not on this machine: a warm registry with cfg-if");
    }
    for tier in TIERS {
        fs::remove_dir_all(world.project().join("target")).unwrap();
        let mut confined = world.bailiwick(["sandbox", "--tier", tier, "-C"]);
        confined.arg(world.project()).arg("--").args(build).envs(environment);
        Finished::of(&mut confined).expect(0);
        assert!(world.project().join("target/debug/libx.rlib").is_file());
    }
}
