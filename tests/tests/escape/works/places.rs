//! Tests unusual directories and names of a project.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ipc::confinement::Tier;
use nix::unistd::geteuid;
use serde_json::json;
use tests::replies::model;
use tests::world::{PLACE, tool_results};
use tests::{Finished, Programs, World, skip, tier};

use crate::everywhere;

const ACT: &str = "echo x > f && git init -q . && git add f && git status --porcelain";

/// Creates a directory in the world, to be used as a project.
fn directory(world: &World, name: &OsStr) -> PathBuf {
    let place = world.root().join(name);
    fs::create_dir_all(&place).unwrap();
    for path in place.ancestors().take_while(|path| *path != world.root()) {
        world.give(path);
    }
    place
}

fn check_by_sandbox(world: &World, tier: Tier, place: &Path) {
    let mut sandbox = world.bailiwick(["sandbox", "-C"]);
    let done = Finished::of(sandbox.arg(place).args(tier::flags(tier)).args(["--", "bash", "-c", ACT]));
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (0, "A  f\n"),
        "{tier} {} {}",
        place.display(),
        done.stderr
    );
}

fn check_by_model(world: &World, tier: Tier, place: &Path) {
    let server = model(&[
        ("write_file", json!({"path": "g", "content": "y"})),
        ("shell_exec", json!({"command": "cat f g; touch $'\\xff'; ls"})),
    ]);
    let patch = world.own().join("out.diff");
    let mut exec = world.bailiwick(["exec", "--mode", "auto", "--base-url", &server.base_url(), "-C"]);
    exec.arg(place).args(tier::flags(tier)).arg("--patch").arg(&patch);
    let done = Finished::of(exec.arg("do it").env("ANTHROPIC_API_KEY", "k"));
    assert_eq!(done.code, 0, "{tier} {} {}{}", place.display(), done.stdout, done.stderr);
    let said = tool_results(&server, 2)[0]["content"].to_string();
    assert!(said.contains("x\\ny"), "{tier} {} {said}", place.display());
    let patch = fs::read_to_string(patch).unwrap();
    assert!(patch.contains("b/g") && patch.contains("\\377"), "{patch}");
}

#[test]
fn a_project_lies_anywhere_under_any_name() {
    let names = [
        b"with spaces".as_slice(),
        b"caf\xe9-not-utf-8",
        "ünï-漢".as_bytes(),
        b"-dash",
        b"linked",
        b"home/code",
    ];
    // A disk, a directory that is private in the full tier, and a tmpfs.
    let places = [(PLACE, &names[..]), ("/tmp", &names[..1]), ("/dev/shm", &names[..1])];
    for (tier, user) in everywhere() {
        for (name, below) in
            places.iter().flat_map(|(below, names)| names.iter().map(move |name| (name, below)))
        {
            let world = World::below(user, Path::new(below));
            let mut place = directory(&world, OsStr::from_bytes(name));
            if *name == b"linked" {
                symlink(&place, world.root().join("link")).unwrap();
                place = world.root().join("link");
            }
            check_by_sandbox(&world, tier, &place);
            check_by_model(&world, tier, &place);
        }
    }
}

/// Tests a project on overlayfs. The test mounts it in a mount namespace of its own.
#[test]
fn a_project_on_overlayfs_works() {
    let may_mount = || Finished::of(Command::new("unshare").args(["-m", "true"])).code == 0;
    if !geteuid().is_root() || !may_mount() {
        skip!("the owner of the machine mounts overlayfs");
    }
    for (tier, user) in everywhere() {
        let world = World::new(user);
        for name in ["lower", "upper", "work"] {
            directory(&world, OsStr::new(name));
        }
        fs::write(world.root().join("lower/below"), "below\n").unwrap();
        let mount =
            "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work project && exec \"$@\"";
        let uid = user.uid().to_string();
        let mut command = Command::new("unshare");
        command.args([
            "-m",
            "sh",
            "-c",
            mount,
            "sh",
            "setpriv",
            "--reuid",
            &uid,
            "--regid",
            &uid,
            "--clear-groups",
        ]);
        command
            .arg(Programs::get().path("bailiwick"))
            .args(["sandbox", "-C", "project"])
            .args(tier::flags(tier));
        command.args(["--", "bash", "-c"]).arg(format!("cat below > copy && cat copy && {ACT}"));
        command.current_dir(world.root()).env("HOME", world.home()).env("BAILIWICK_HOME", world.own());
        let done = Finished::of(&mut command);
        assert_eq!(done.stdout, "below\nA  f\n?? below\n?? copy\n", "{tier} {user:?} {}", done.stderr);
        assert!(world.root().join("upper/f").exists());
    }
}

/// Tests a linked worktree. Its git directory is in another repository. That directory names the worktree in turn, so
/// it is writable.
#[test]
fn a_worktree_of_a_repository_elsewhere_works() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        world.file("f", "x\n");
        world.commit();
        let tree = world.root().join("tree");
        world.give(world.root());
        let mut git = world.command("git");
        let done = Finished::of(git.args(["worktree", "add", "-q"]).arg(&tree).current_dir(world.project()));
        assert_eq!(done.code, 0, "{}", done.stderr);
        let act = "echo y >> f; git log --format=%s; git diff --stat | tail -1; \
            git -c user.name=t -c user.email=t@example.org commit -qam two && git log --format=%s";
        let mut sandbox = world.bailiwick(["sandbox", "-C"]);
        sandbox.arg(&tree).args(tier::flags(tier)).args(["--", "bash", "-c", act]);
        let done = Finished::of(&mut sandbox);
        assert_eq!(
            done.stdout, "base\n 1 file changed, 1 insertion(+)\ntwo\nbase\n",
            "{tier} {user:?} {}",
            done.stderr
        );
    }
}

/// Tests a device file that is granted by its path, as a GPU needs it.
#[test]
fn a_device_can_be_granted() {
    const DEVICE: &str = "/dev/net/tun";
    if !Path::new(DEVICE).exists() {
        skip!("not on this machine: {DEVICE}");
    }
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let open = ": 3<> /dev/net/tun && echo opened";
        if Finished::of(world.command("bash").args(["-c", open])).code != 0 {
            eprintln!("skipped: not on this machine: {DEVICE} as {user:?}");
            continue;
        }
        let run = |flags: &[&str]| Finished::of(world.sandbox(tier, flags, "bash").args(["-c", open]));
        assert_ne!(run(&[]).code, 0, "{tier} {user:?}");
        let done = run(&["--write", DEVICE]);
        assert_eq!(done.stdout, "opened\n", "{tier} {user:?}: {}", done.stderr);
    }
}
