//! Tests `exec --patch`: the patch contains exactly the changes of the run, and `git apply` accepts it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;
use serde_json::json;
use tests::replies::{calls, done, model_of, says, shell};
use tests::tier::everywhere;
use tests::{Finished, User, World, wait_until};

/// Script that makes every kind of change that a patch can contain.
const CHANGES: &str = r"set -e
printf 'new\n' > new.txt
rm gone.txt
mv old-name.txt new-name.txt
chmod +x tool.sh
printf '\000\001\002\377' > data.bin
printf '\000\377new binary' > fresh.bin
printf 'one\r\nTWO\r\nthree' > dos.txt
ln -s new.txt link
ln -sfn elsewhere moved-link
printf 'grüße\n' > 'übung mit leerraum.txt'
printf 'raw\n' > $'raw-\xff\xfe.txt'
mkdir -p deep/er
printf '#!/bin/sh\n' > deep/er/run && chmod 755 deep/er/run
: > empty.txt
printf 'ignored\n' > build.log
sed -i s/secnod/second/ mended.txt
";

fn project(world: &World) {
    world.file(".gitignore", "*.log\n");
    world.file("gone.txt", "to be deleted\n");
    world.file("old-name.txt", "the content of a file that moves\n");
    world.file("tool.sh", "#!/bin/sh\necho tool\n");
    world.file("data.bin", [0, 1, 2, 3]);
    world.file("dos.txt", "one\r\ntwo\r\nthree\r\n");
    world.file("mended.txt", "first\nsecnod\nthird\n");
    world.file("notes.txt", "committed\n");
    std::os::unix::fs::symlink("somewhere", world.project().join("moved-link")).unwrap();
    world.commit();
}

fn clean_copy(world: &World) -> PathBuf {
    let place = world.own().join("clean");
    let mut git = world.command("git");
    git.args(["clone", "-q"]).arg(world.project()).arg(&place);
    Finished::of(&mut git).expect(0);
    place
}

fn git_apply(world: &World, place: &Path, patch: &Path) {
    for check in [&["--check"][..], &[]] {
        let mut git = world.command("git");
        git.arg("apply").args(check).arg(patch).current_dir(place);
        Finished::of(&mut git).expect(0);
    }
}

/// Returns names, modes, contents and link targets of all files except git's own.
fn tree(root: &Path) -> Vec<(OsString, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            let name = path.strip_prefix(root).unwrap().as_os_str().to_owned();
            if name == ".git" {
            } else if meta.is_dir() {
                open.push(path);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap().into_os_string().into_vec();
                found.push((name, 0o120_000, target));
            } else {
                found.push((name, meta.permissions().mode() & 0o111, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn patch_arguments(patch: &Path) -> [&str; 4] {
    ["--mode", "auto", "--patch", patch.to_str().unwrap()]
}

#[test]
fn every_kind_of_change_is_right_in_the_patch() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        project(&world);
        let patch = world.own().join("out.diff");
        let server = model_of([shell(CHANGES), done()]);
        let run = world.run(&server, &patch_arguments(&patch)).expect(0);
        let clean = clean_copy(&world);
        git_apply(&world, &clean, &patch);
        let mut worked = tree(&world.project());
        worked.retain(|(name, ..)| name != "build.log");
        assert_eq!(tree(&clean), worked);
        assert!(clean.join(OsStr::from_bytes(b"raw-\xff\xfe.txt")).exists());
        let changes = &run.events_of("change_set")[0]["files"];
        let of = |path: &str| {
            let file = changes.as_array().unwrap().iter().find(|file| file["path"] == path);
            file.map(|file| file["change"].clone()).unwrap_or_default()
        };
        assert_eq!(of("new.txt"), "added");
        assert_eq!(of("gone.txt"), "deleted");
        assert_eq!(of("tool.sh"), "modified");
        assert_eq!(of("new-name.txt"), json!({"renamed_from": "old-name.txt"}));
        assert!(of("build.log").is_null() && of("notes.txt").is_null(), "{changes}");
    }
}

#[test]
fn the_users_own_changes_are_not_in_the_patch() {
    let world = World::new(User::Myself);
    project(&world);
    // Changed, staged, untracked and deleted files from before the run are the user's.
    world.file("notes.txt", "the user's own change\n");
    world.file("untracked.txt", "the user's own file\n");
    world.file("staged.txt", "staged\n");
    Finished::of(world.command("git").args(["add", "staged.txt"]).current_dir(world.project())).expect(0);
    fs::remove_file(world.project().join("gone.txt")).unwrap();
    let patch = world.own().join("out.diff");
    let edit = json!({"path": "mended.txt", "old_string": "secnod", "new_string": "second"});
    let server = model_of([calls(&[("edit_file", edit)]), done()]);
    world.run(&server, &patch_arguments(&patch)).expect(0);
    insta::assert_snapshot!(fs::read_to_string(patch).unwrap(), @r"
    diff --git a/mended.txt b/mended.txt
    index 0afae477bd4431f9179f8b37e42e0ba5d0f27b2c..ff6e6b1a505523bd4c9af36bd9d70d136872b225 100644
    --- a/mended.txt
    +++ b/mended.txt
    @@ -1,3 +1,3 @@
     first
    -secnod
    +second
     third
    ");
}

#[test]
fn a_patch_file_inside_the_project_is_not_part_of_itself() {
    let world = World::new(User::Myself);
    project(&world);
    // The patch file is new, or an earlier run has left it there.
    for before in [None, Some("an earlier patch\n")] {
        if let Some(before) = before {
            world.file("out.diff", before);
        }
        let name = if before.is_some() { "second.txt" } else { "first.txt" };
        let server = model_of([shell(&format!("echo x > {name}")), done()]);
        let mut command = world.exec(&server, &["--mode", "auto", "--patch", "out.diff"]);
        Finished::of(command.current_dir(world.project())).expect(0);
        let text = world.read("out.diff");
        assert!(text.contains(name) && !text.contains("out.diff") && !text.contains("earlier"), "{text}");
    }
}

#[test]
fn a_dash_is_no_file_for_a_patch() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let mut exec = world.exec(&server, &["--mode", "auto", "--patch", "-"]);
    let refused = Finished::of(exec.current_dir(world.project())).expect(2);
    assert!(refused.stderr.contains("cannot write the patch to -: ") && server.requests().is_empty());
    assert!(refused.stderr.contains("hint: --patch FILE"), "{}", refused.stderr);
    assert!(!world.project().join("-").exists());
}

#[test]
fn a_run_that_changes_nothing_leaves_an_empty_patch() {
    let world = World::new(User::Myself);
    project(&world);
    let patch = world.own().join("out.diff");
    fs::write(&patch, "an earlier patch\n").unwrap();
    let run = world.run(&model_of([done()]), &patch_arguments(&patch)).expect(0);
    assert_eq!(fs::read_to_string(patch).unwrap(), "");
    assert_eq!(run.events_of("change_set")[0]["files"], json!([]));
}

#[test]
fn what_cannot_be_read_has_not_changed_by_that() {
    for user in User::all() {
        let world = World::new(user);
        project(&world);
        let (closed, huge) = (world.file("closed.txt", "closed\n"), world.file("huge.bin", ""));
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).unwrap();
        fs::File::options().write(true).open(huge).unwrap().set_len(33 << 20).unwrap();
        let server = model_of([done()]);
        let mut exec = world.task(&server.base_url(), ["do it", "--mode", "auto", "--output", "json"]);
        let run = Finished::of(&mut exec).expect(0);
        let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(summary["files_changed"], json!([]), "{user:?}: {}", run.stderr);
        assert!(!run.stderr.contains("closed.txt changed"), "{}", run.stderr);
    }
}

#[test]
fn the_patch_is_written_whatever_the_exit_status() {
    let write = || shell("echo x > made.txt");
    let outside = || shell("echo x > ../outside/there.txt");
    let cases: [(i32, &[&str], Vec<String>); 3] = [
        (3, &["--max-steps", "1"], vec![write()]),
        (4, &[], vec![write(), outside(), done()]),
        // The script has no more replies: a provider error.
        (6, &[], vec![write()]),
    ];
    for (code, arguments, replies) in cases {
        let world = World::new(User::Myself);
        world.outside();
        project(&world);
        let patch = world.own().join("out.diff");
        let server = model_of(replies);
        world.run(&server, &[&patch_arguments(&patch), arguments].concat()).expect(code);
        git_apply(&world, &clean_copy(&world), &patch);
        assert!(fs::read_to_string(&patch).unwrap().contains("b/made.txt"), "{code}");
    }
}

#[test]
fn the_patch_is_written_after_an_interrupt() {
    for (signal, code) in [(nix::sys::signal::SIGINT, 130), (nix::sys::signal::SIGTERM, 143)] {
        let world = World::new(User::Myself);
        project(&world);
        let patch = world.own().join("out.diff");
        let server = model_of([shell("echo x > made.txt; exec sleep 1000"), done()]);
        let mut command = world.exec(&server, &patch_arguments(&patch));
        let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = child.stdin(std::process::Stdio::null()).spawn().unwrap();
        let made = world.project().join("made.txt");
        wait_until("the command runs", || fs::read(&made).is_ok_and(|text| text == b"x\n"));
        nix::sys::signal::kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let run = Finished::from(child.wait_with_output().unwrap()).expect(code);
        assert_eq!(run.result()["exit_code"], code);
        git_apply(&world, &clean_copy(&world), &patch);
        assert!(fs::read_to_string(&patch).unwrap().contains("b/made.txt"));
    }
}

#[test]
fn a_project_without_git_has_a_patch_too() {
    let world = World::new(User::Myself);
    world.file("mended.txt", "secnod\n");
    let patch = world.own().join("out.diff");
    let server = model_of([shell("sed -i s/secnod/second/ mended.txt"), says("Mended.", "end_turn")]);
    world.run(&server, &patch_arguments(&patch)).expect(0);
    let text = fs::read_to_string(patch).unwrap();
    assert!(text.contains("-secnod\n+second\n"), "{text}");
}

#[test]
fn python_tests_pass_after_the_patch_and_not_before() {
    let world = World::new(User::Myself);
    if Finished::of(world.command("sh").args(["-c", "command -v python3"])).code != 0 {
        tests::skip!("no python3");
    }
    world.file("stats.py", "def mean(xs):\n    return sum(xs) / (len(xs) - 1)\n");
    world.file(
        "test_stats.py",
        "import unittest\nfrom stats import mean\n\nclass T(unittest.TestCase):\n    def test_mean(self):\n        \
         self.assertEqual(mean([1, 2, 3]), 2)\n\nunittest.main()\n",
    );
    world.file(".gitignore", "__pycache__/\n");
    world.commit();
    let edit = json!({"path": "stats.py", "old_string": "(len(xs) - 1)", "new_string": "len(xs)"});
    let server = model_of([
        shell("python3 test_stats.py"),
        calls(&[("edit_file", edit)]),
        shell("python3 test_stats.py && echo passed"),
        done(),
    ]);
    let patch = world.own().join("out.diff");
    let run = world.run(&server, &patch_arguments(&patch)).expect(0);
    let finished = run.events_of("tool_call_finished");
    assert!(finished[0]["content"].as_str().unwrap().contains("FAILED"), "{}", finished[0]);
    assert!(finished[2]["content"].as_str().unwrap().contains("passed"), "{}", finished[2]);
    let clean = clean_copy(&world);
    let test = || Finished::of(world.command("python3").arg("test_stats.py").current_dir(&clean)).code;
    assert_eq!(test(), 1);
    git_apply(&world, &clean, &patch);
    // Another time stamp within the same second would let Python take its stale cache.
    fs::remove_dir_all(clean.join("__pycache__")).unwrap();
    assert_eq!(test(), 0);
}
