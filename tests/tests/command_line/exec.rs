//! Tests the most usual run through all processes: a task as input, a patch as output.

use serde_json::json;
use tests::replies::model;
use tests::tier::everywhere;
use tests::world::tool_results;
use tests::{Finished, User, World};

#[test]
fn a_bug_is_fixed_and_the_patch_makes_the_test_pass() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        world.file("add.sh", "echo $(($1 - $2))\n");
        world.file("test.sh", "[ \"$(bash add.sh 2 3)\" = 5 ]\n");
        world.file("notes.txt", "committed\n");
        world.commit();
        world.file("notes.txt", "the user's own change\n");
        let server = model(&[
            ("shell_exec", json!({"command": "bash test.sh"})),
            ("read_file", json!({"path": "add.sh"})),
            ("edit_file", json!({"path": "add.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"})),
            ("shell_exec", json!({"command": "bash test.sh && echo passed"})),
        ]);
        let patch = world.own().join("out.diff");
        let done =
            Finished::of(&mut world.exec(&server, &["--mode", "auto", "--patch", patch.to_str().unwrap()]));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let said = tool_results(&server, 4);
        assert!(said[0]["content"].to_string().contains("passed"), "{said:?}");
        let text = std::fs::read_to_string(&patch).unwrap();
        assert!(text.contains("+echo $(($1 + $2))") && !text.contains("notes.txt"), "{text}");
        // On a clean checkout, the test fails before the patch is applied, and passes afterwards.
        let clean = World::new(user);
        clean.file("add.sh", "echo $(($1 - $2))\n");
        clean.file("test.sh", "[ \"$(bash add.sh 2 3)\" = 5 ]\n");
        clean.commit();
        let run = |program: &str, arguments: &[&str]| {
            Finished::of(clean.command(program).args(arguments).current_dir(clean.project())).code
        };
        assert_ne!(run("bash", &["test.sh"]), 0);
        assert_eq!(run("git", &["apply", patch.to_str().unwrap()]), 0);
        assert_eq!(run("bash", &["test.sh"]), 0);
    }
}

#[test]
fn the_patch_of_a_directory_of_a_repository_applies_in_it_and_at_the_top() {
    let world = World::new(User::Myself);
    world.file("README", "top\n");
    world.file("sub dir/README", "below\n");
    world.file("sub dir/old", "to be moved\n");
    world.commit();
    let (top, sub) = (world.project(), world.project().join("sub dir"));
    let act = "echo changed > README; echo n > new.txt; mv old moved";
    let server = model(&[("shell_exec", json!({"command": act}))]);
    let patch = world.own().join("out.diff");
    let mut command = world.bailiwick(["exec", "--mode", "auto", "--model", "scripted", "--patch"]);
    command.arg(&patch).args(["--base-url", &server.base_url(), "-C"]).arg(&sub).arg("change it");
    Finished::of(command.env("ANTHROPIC_API_KEY", "no-key-is-needed")).expect(0);
    let git = |arguments: &[&str], directory| {
        Finished::of(world.command("git").args(arguments).current_dir(directory)).expect(0).stdout
    };
    for directory in [&sub, &top] {
        git(&["reset", "-q", "--hard"], &top);
        git(&["clean", "-qfd"], &top);
        assert_eq!(world.read("sub dir/README"), "below\n");
        git(&["apply", patch.to_str().unwrap()], directory);
        assert_eq!(
            (world.read("README"), world.read("sub dir/README")),
            ("top\n".into(), "changed\n".into())
        );
        assert_eq!(world.read("sub dir/new.txt"), "n\n");
        assert!(sub.join("moved").exists() && !sub.join("old").exists());
    }
}
