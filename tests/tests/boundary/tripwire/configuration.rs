//! Tests changes of git's configuration key by key, and files that git does not accept.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use serde_json::json;
use tests::replies::model;
use tests::repository::repository;
use tests::world::tool_results;
use tests::{User, tier};

use crate::tripwire::attack::{attack, attack_with, is_known, restored, run};

#[test]
fn a_configuration_that_is_no_configuration_is_put_back() {
    for tier in tier::all() {
        for (name, command) in [
            ("a fifo", "rm .git/config; mkfifo .git/config"),
            ("endless", "rm .git/config; ln -s /dev/zero .git/config"),
            ("huge", "truncate -s 3G .git/config"),
            ("binary", "printf '[core]\\n\\000\\377fsmonitor=x\\n' > .git/config"),
            ("cut", "printf '[core' > .git/config"),
            ("a directory", "rm .git/config; mkdir -p .git/config/deep"),
            ("not UTF-8", "printf '[alias]\\nx = !\\377\\n' >> .git/config"),
        ] {
            let world = repository(User::Myself);
            let before = world.read(".git/config");
            let began = Instant::now();
            let (done, told) = attack(&world, tier, command);
            assert!(began.elapsed() < Duration::from_mins(1), "{name}, {tier}: {:?}", began.elapsed());
            assert_eq!(world.read(".git/config"), before, "{name}, {tier}: {}", done.stdout);
            assert!(told.to_string().contains(".git/config"), "{name}, {tier}: {told}");
        }
    }
}

#[test]
fn what_a_repository_brings_along_is_left_alone_and_holds_nobody() {
    for tier in tier::all() {
        let world = repository(User::Myself);
        let config = world.project().join(".git/config");
        fs::remove_file(&config).unwrap();
        nix::unistd::mkfifo(&config, nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/nowhere", world.project().join(".claude")).unwrap();
        world.file(".envrc", vec![b'x'; 5 << 20]);
        let (done, _) = attack(&world, tier, "echo y > kept.txt");
        assert_eq!(restored(&done), Vec::<String>::new());
        assert_eq!(world.read("kept.txt"), "y\n");
    }
}

/// Tests a changed file that is too large to be restored. The change is reported, and the file is moved away.
#[test]
fn what_was_too_large_to_be_kept_is_reported_and_moved_aside() {
    let world = repository(User::Myself);
    world.file(".envrc", vec![b'x'; 17 << 20]);
    // Only in the floor tier can the command change the file.
    let (done, told) = attack(&world, Tier::Floor, "echo evil > .envrc");
    let place = &done.events_of("restored")[0]["places"][0];
    assert_eq!(place["restored"], false, "{}", done.stdout);
    assert!(told.to_string().contains("could not be restored: .envrc (changed; "), "{told}");
    assert!(!world.project().join(".envrc").exists(), "{told}");
    assert_eq!(fs::read(place["moved_to"].as_str().unwrap()).unwrap(), b"evil\n");
}

#[test]
fn file_tools_are_held_to_it_as_well() {
    for tier in tier::all() {
        let world = repository(User::Myself);
        world.file(".envrc", "export A=1\n");
        let server = model(&[
            ("write_file", json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"})),
            ("edit_file", json!({"path": ".envrc", "old_string": "A=1", "new_string": "A=2"})),
        ]);
        let done = run(&world, tier, &server, &[]);
        assert_eq!(world.read(".envrc"), "export A=1\n");
        assert!(!world.project().join(".git/hooks/pre-commit").exists());
        let said = [1, 2].map(|request| tool_results(&server, request)[0].to_string());
        match tier {
            Tier::Full => {
                let refused = "protected by the settings or by Bailiwick; ";
                let hints = ["it cannot be allowed here", "the user can allow it with --write .envrc"];
                for (said, hint) in said.iter().zip(hints) {
                    assert!(said.contains(&format!("{refused}{hint}")), "{said}");
                }
                assert_eq!(restored(&done), Vec::<String>::new());
            }
            Tier::Floor | Tier::FloorUnmediated => {
                assert_eq!(restored(&done), [".git/hooks/pre-commit: created", ".envrc: changed"]);
                let told = "Changed and restored: .git/hooks/pre-commit (created";
                assert!(said[0].contains(told), "{said:?}");
                let called = &done.events_of("restored")[0]["call"];
                let finished = &done.events_of("tool_call_finished")[0]["call"];
                assert_eq!(called, finished, "it is known after which call");
            }
        }
    }
}

#[test]
fn keys_that_an_agent_may_set_stay_when_another_goes() {
    let world = repository(User::Myself);
    let (done, told) =
        attack(&world, Tier::Floor, "git remote add o https://example.org/o.git; git config core.editor vi");
    assert_eq!(restored(&done), [".git/config: core.editor"]);
    let config = world.read(".git/config");
    assert!(config.contains("https://example.org/o.git") && !config.contains("vi"), "{config}");
    assert!(told.to_string().contains("--write .git/config"), "{told}");
}

#[test]
fn the_right_to_configure_git_is_exactly_that() {
    for tier in tier::all() {
        let world = repository(User::Myself);
        let command = "git config core.editor vi && cp evil.sh .git/hooks/pre-commit";
        let (done, told) = attack_with(&world, tier, &["--write", ".git/config"], command);
        assert!(is_known(tier, &done, &told), "{told}");
        assert!(!world.project().join(".git/hooks/pre-commit").exists());
        assert!(world.read(".git/config").contains("editor = vi"), "{told}");
    }
}
