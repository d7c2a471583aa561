//! Tests that a denied write succeeds with the grant that its denial suggests, and not with less.

use std::fs;

use ipc::confinement::Tier;
use ipc::missing_right::MissingRight;
use serde_json::{Value, json};
use tests::replies::{done, model_of};
use tests::standing::line_of;
use tests::tier::{self, everywhere};
use tests::{User, World};

use crate::tools::turn::{command, content, outside, turn};

/// Returns the flags of a grant as separate words.
fn flags(grant: &Value) -> Vec<String> {
    grant.as_str().unwrap_or_else(|| panic!("no grant: {grant}")).split(' ').map(str::to_owned).collect()
}

/// Runs a call that is denied, and then again with exactly the grant that the denial suggests. Then it must succeed.
fn denied_then_granted(
    (user, tier): (User, Tier),
    mode: &str,
    ask: impl Fn(&str) -> (&'static str, Value),
) -> Value {
    let world = World::new(user).in_tier(tier);
    let place = outside(&world);
    world.file("inside.txt", "inside\n");
    let asked = [ask(&place)];
    let (results, run) = turn(&world, &asked, &["--mode", mode]);
    assert_eq!(run.code, 4, "{}", run.stdout);
    let denied = run.events_of("denied").remove(0);
    let sentence = content(&results[0]);
    let right: MissingRight = serde_json::from_value(denied["missing_right"].clone()).unwrap();
    assert!(
        sentence.contains(&right.to_string()) && sentence.contains(denied["grant"].as_str().unwrap()),
        "{sentence}"
    );
    let grant = flags(&denied["grant"]);
    let mut arguments = vec!["--mode", mode];
    if grant[0] == "--mode" {
        arguments.clear();
    }
    arguments.extend(grant.iter().map(String::as_str));
    let (results, run) = turn(&world, &asked, &arguments);
    assert_eq!((run.code, results[0]["is_error"] == true), (0, false), "{arguments:?}: {results:?}");
    serde_json::from_str(&world.stable(&denied.to_string())).unwrap()
}

#[test]
fn a_denied_write_is_explained_and_its_grant_works() {
    for (user, tier) in everywhere() {
        let place = (user, tier);
        let (layer, errno) = match tier {
            Tier::Full => (json!("mounts"), json!(nix::libc::EROFS)),
            Tier::Floor | Tier::FloorUnmediated => (json!("landlock"), json!(nix::libc::EACCES)),
        };
        let existing = denied_then_granted(place, "auto", |place| {
            ("write_file", json!({"path": format!("{place}/there.txt"), "content": "x"}))
        });
        insta::allow_duplicates! {
            let mut stable = existing.clone();
            assert_eq!((stable["layer"].take(), stable["errno"].take()), (layer.clone(), errno));
            stable["rights"] = line_of(&stable["rights"]).into();
            insta::assert_snapshot!(serde_json::to_string_pretty(&stable).unwrap(), @r#"
            {
              "call": 1,
              "layer": null,
              "operation": "write",
              "object": {
                "path": "[world]/outside/there.txt"
              },
              "missing_right": {
                "type": "write",
                "path": "[world]/outside/there.txt"
              },
              "grant": "--write [world]/outside/there.txt",
              "grade": "proved",
              "errno": null,
              "rights": "writes in the project, $TMPDIR, caches · network off · secrets hidden"
            }
            "#);
        }
        let edited = denied_then_granted(place, "auto", |place| {
            let path = format!("{place}/there.txt");
            ("edit_file", json!({"path": path, "old_string": "untouched", "new_string": "x"}))
        });
        assert_eq!((&edited["grade"], &edited["layer"]), (&json!("proved"), &layer));
        let new = denied_then_granted(place, "auto", |place| {
            ("write_file", json!({"path": format!("{place}/new.txt"), "content": "x"}))
        });
        // A missing file cannot be granted, so its directory is.
        assert_eq!(new["missing_right"], json!({"type": "write", "path": "[world]/outside/new.txt"}));
        assert_eq!(new["grant"], "--write [world]/outside");
        let deep = denied_then_granted(place, "auto", |place| {
            ("write_file", json!({"path": format!("{place}/new/deep/er.txt"), "content": "x"}))
        });
        assert_eq!(deep["grade"], "proved");
    }
}

#[test]
fn a_commands_denied_write_is_proved_and_its_grant_works() {
    for (user, tier) in everywhere() {
        let place = (user, tier);
        let existing =
            denied_then_granted(place, "auto", |place| command(&format!("echo x > {place}/there.txt")));
        assert_eq!((&existing["grade"], &existing["operation"]), (&json!("proved"), &json!("write")));
        denied_then_granted(place, "auto", |place| command(&format!("cp inside.txt {place}/there.txt")));
        // To remove a file needs write access to its directory.
        for line in ["rm", "mv -t ."] {
            let removed =
                denied_then_granted(place, "auto", |place| command(&format!("{line} {place}/there.txt")));
            assert_eq!(removed["grant"], "--write [world]/outside", "{line}");
        }
    }
}

#[test]
fn a_commands_new_file_outside_is_denied_and_the_remedy_is_a_right_on_its_directory() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let place = outside(&world);
        let asked = [command(&format!("touch {place}/new.txt"))];
        let (_, run) = turn(&world, &asked, &["--mode", "auto"]);
        let denied = run.events_of("denied").remove(0);
        // A missing directory cannot be granted, and Bailiwick creates none for a grant.
        assert_eq!(denied["grant"], format!("--write {place}"));
        let server = model_of([done()]);
        let refused = world.run(&server, &["--write", &format!("{place}/new.txt")]).expect(2);
        assert!(refused.stderr.contains(&format!("use --write {place}, which exists")), "{}", refused.stderr);
        let (_, run) = turn(&world, &asked, &["--mode", "auto", "--write", &place]);
        assert_eq!(run.code, 0, "{}", run.stdout);
    }
}

#[test]
fn mode_deny_leaves_the_project_as_it_is_and_names_the_mode() {
    for tier in tier::all() {
        let file = denied_then_granted((User::Myself, tier), "deny", |_| {
            ("write_file", json!({"path": "inside.txt", "content": "x"}))
        });
        assert_eq!(file["grant"], "--mode auto");
        let tried = denied_then_granted((User::Myself, tier), "deny", |_| command("echo x > inside.txt"));
        assert_eq!((&tried["grant"], &tried["grade"]), (&json!("--mode auto"), &json!("proved")));
        let declared = denied_then_granted((User::Myself, tier), "deny", |_| {
            ("shell_exec", json!({"command": "echo x > inside.txt", "access": "write"}))
        });
        assert_eq!((&declared["layer"], &declared["grade"]), (&json!("policy"), &json!("proved")));
        // Deny is the default mode.
        let world = World::new(User::Myself).in_tier(tier);
        world.file("inside.txt", "inside\n");
        let (_, run) = turn(&world, &[("write_file", json!({"path": "inside.txt", "content": "x"}))], &[]);
        assert_eq!((run.code, world.read("inside.txt").as_str()), (4, "inside\n"));
    }
}

#[test]
fn another_write_root_is_writable_and_its_neighbour_is_not() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let place = outside(&world);
        fs::create_dir(format!("{place}/granted")).unwrap();
        fs::create_dir(format!("{place}/granted-not")).unwrap();
        world.give(format!("{place}/granted").as_ref());
        world.give(format!("{place}/granted-not").as_ref());
        let asked = [
            command(&format!("echo x > {place}/granted/new")),
            command(&format!("echo x > {place}/granted-not/new")),
            ("write_file", json!({"path": format!("{place}/granted/tool"), "content": "x"})),
        ];
        let (results, run) =
            turn(&world, &asked, &["--mode", "auto", "--write", &format!("{place}/granted")]);
        let errors: Vec<_> = results.iter().map(|result| result["is_error"] == true).collect();
        assert_eq!(errors, [false, true, false], "{results:?}");
        assert_eq!(run.code, 0);
    }
}
