//! Tests sessions of root in another user's project: in both tiers, workers run as the owner of the project.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;
use serde_json::json;
use tests::replies::model;
use tests::world::tool_results;
use tests::{Finished, PLAIN_USER, User, World, skip};

const TIERS: [&str; 2] = ["full", "floor"];

/// Creates a world of root whose project belongs to another user.
fn world() -> World {
    let world = World::new(User::Myself);
    fs::write(world.project().join("kept.txt"), "kept\n").unwrap();
    for path in [world.project(), world.project().join("kept.txt")] {
        chown(path, Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
    }
    world
}

fn sandbox(world: &World, flags: &[&str], command: &str) -> Finished {
    let mut bailiwick = world.bailiwick(["sandbox", "-C"]);
    bailiwick.arg(world.project()).args(flags).args(["--", "bash", "-c", command]);
    Finished::of(&mut bailiwick)
}

fn owner(path: &Path) -> (u32, u32) {
    let meta = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (meta.uid(), meta.gid())
}

const OWNER: (u32, u32) = (PLAIN_USER, PLAIN_USER);

/// Command that commits without any user's git configuration.
const COMMIT: &str = "git init -q . && git add -A && git -c user.name=t -c user.email=t@example.org commit -qm one \
    && git log --format=%s";

macro_rules! as_root {
    () => {
        if !geteuid().is_root() {
            skip!("only root works in another user's project");
        }
    };
}

#[test]
fn a_command_is_its_projects_owner_and_nobody_else() {
    as_root!();
    for tier in TIERS {
        let world = world();
        let who = "id -u; id -g; id -G; grep -E '^Cap(Prm|Eff|Bnd|Amb)' /proc/self/status | grep -vc 0000000000000000; \
            stat -c '%u %g' . kept.txt; echo $USER $LOGNAME; [[ $HOME == $TMPDIR ]] && echo at home";
        let said = sandbox(&world, &["--tier", tier], who);
        let uid = PLAIN_USER;
        let expected = format!("{uid}\n{uid}\n{uid}\n0\n{uid} {uid}\n{uid} {uid}\n{uid} {uid}\nat home\n");
        assert_eq!(said.stdout, expected, "{tier}: {}", said.stderr);
        let works = format!(
            "{COMMIT} && echo x > $TMPDIR/x && echo x > $HOME/y && mkfifo $TMPDIR/f && mkdir d && echo z > d/z"
        );
        let done = sandbox(&world, &["--tier", tier], &works).expect(0);
        assert_eq!(done.stdout, "one\n", "{tier}");
        for made in ["d", "d/z", ".git", ".git/HEAD", ".git/objects"] {
            assert_eq!(owner(&world.project().join(made)), OWNER, "{tier}: {made}");
        }
        // The workers cannot read a file that only root can, and leave nothing behind that root owns.
        let secret = world.home().join("secret");
        fs::write(&secret, "s").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let tried =
            sandbox(&world, &["--tier", tier], &format!("cat {} || cat /etc/shadow", secret.display()));
        assert_ne!(tried.code, 0, "{tier}: {}", tried.stdout);
        assert_eq!(fs::read_dir(world.own().join("state/temps")).unwrap().count(), 0);
        assert!(!world.own().join("cache").exists(), "root's cache directory is not the owner's");
    }
}

#[test]
fn an_agent_works_as_the_owner_and_its_patch_applies() {
    as_root!();
    for tier in TIERS {
        let world = world();
        let server = model(&[
            ("shell_exec", json!({"command": format!("id -u; {COMMIT}")})),
            ("write_file", json!({"path": "new.txt", "content": "new\n"})),
            ("edit_file", json!({"path": "kept.txt", "old_string": "kept", "new_string": "changed"})),
        ]);
        let patch = world.root().join("the.patch");
        let flags = ["--mode", "auto", "--tier", tier, "--patch", patch.to_str().unwrap()];
        let run = world.run(&server, &flags).expect(0);
        let told = tool_results(&server, 1)[0].to_string();
        assert!(told.contains(&PLAIN_USER.to_string()) && told.contains("one"), "{tier}: {told}");
        assert!(
            run.events_of("worker_started")
                .iter()
                .all(|started| started["tier"].as_str().unwrap().starts_with(tier))
        );
        assert_eq!(owner(&world.project().join("new.txt")), OWNER);
        assert_eq!(
            (world.read("kept.txt").as_str(), owner(&world.project().join("kept.txt"))),
            ("changed\n", OWNER)
        );
        // The patch is root's, and has both files.
        assert_eq!(owner(&patch), (0, 0));
        let patch = fs::read_to_string(&patch).unwrap();
        assert!(patch.contains("+changed") && patch.contains("b/new.txt"), "{patch}");
    }
}

#[test]
fn a_read_only_session_reads_as_the_owner_and_writes_nothing() {
    as_root!();
    for tier in TIERS {
        let world = world();
        fs::set_permissions(world.project().join("kept.txt"), Permissions::from_mode(0o600)).unwrap();
        let read = sandbox(&world, &["--tier", tier, "--access", "read"], "cat kept.txt; echo x > x").stdout;
        assert_eq!(read, "kept\n");
        assert!(!world.project().join("x").exists());
    }
}

#[test]
fn what_the_owner_cannot_reach_is_refused_with_the_remedy() {
    as_root!();
    let world = world();
    let closed = world.project().join("closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    chown(closed.join("inner"), Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
    let mut bailiwick = world.bailiwick(["sandbox", "-C"]);
    let refused = Finished::of(bailiwick.arg(closed.join("inner")).args(["--", "true"])).expect(5);
    let remedy = format!("hint: chmod a+x {}, or: chown -R root", closed.display());
    assert!(refused.stderr.contains(&remedy), "{}", refused.stderr);
    // Programs that only root may execute.
    let private = world.own().join("bin");
    fs::create_dir(&private).unwrap();
    for name in ["bailiwick", "bailiwick-worker", "sandbox-exec"] {
        tests::programs::copy_program(&tests::Programs::get().path(name), &private.join(name));
    }
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    let mut ours: Command = world.command(private.join("bailiwick"));
    let refused =
        Finished::of(ours.args(["sandbox", "-C"]).arg(world.project()).args(["--", "true"])).expect(5);
    assert!(
        refused.stderr.contains("install Bailiwick's programs where everybody can execute them"),
        "{}",
        refused.stderr
    );
}

#[test]
fn where_everybody_may_write_root_stays_root() {
    as_root!();
    let world = world();
    fs::set_permissions(world.project(), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(sandbox(&world, &[], "id -u").expect(0).stdout, "0\n");
}
