//! Tests unix sockets of the host: without a grant none is reachable, and with a grant only the granted one.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use nix::libc::{EACCES, ENOENT};
use serde_json::json;
use tests::replies::model;
use tests::world::tool_results;
use tests::{Finished, World};

use crate::everywhere;

/// Program that connects to each path, and prints the result.
const CLIENT: &str = "import os, socket, sys
os.chdir(sys.argv[1])
for path in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path)
        print(s.recv(9).decode())
    except OSError as error:
        print(error.errno)
";

/// Serves the socket's name to every client, until the test ends.
fn serve(world: &World, path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    world.give(path);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    thread::spawn(move || {
        for client in listener.incoming() {
            // The client may have disconnected already.
            let _ = client.unwrap().write_all(name.as_bytes());
        }
    });
}

fn lines(done: &Finished) -> Vec<&str> {
    done.stdout.lines().collect()
}

#[test]
fn with_a_grant_exactly_one_socket_is_reached_by_every_notation() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let outside = world.root().join("outside");
        std::fs::create_dir_all(&outside).unwrap();
        let [granted, beside, link] = ["granted", "beside", "link"].map(|name| outside.join(name));
        serve(&world, &granted);
        serve(&world, &beside);
        symlink(&granted, world.project().join("to-granted")).unwrap();
        symlink(&beside, &link).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let by_root = format!("/proc/self/root{}", text(&granted));
        let paths = [text(&granted), "to-granted".to_owned(), by_root, text(&beside), text(&link)];
        let run = |flags: &[&str]| {
            let mut command = world.sandbox(tier, flags, "python3");
            let done = Finished::of(command.args(["-c", CLIENT, "."]).args(&paths));
            assert_eq!(done.code, 0, "{tier} {user:?}: {}", done.stderr);
            done
        };
        let denied = |line: &str| [EACCES, ENOENT].iter().any(|errno| line == errno.to_string());
        let none = run(&[]);
        assert!(lines(&none).len() == 5 && lines(&none).into_iter().all(denied), "{tier} {user:?}: {none:?}");
        let one = run(&["--socket", granted.to_str().unwrap()]);
        assert_eq!(lines(&one)[..3], ["granted"; 3], "{tier} {user:?}: {one:?}");
        assert!(lines(&one)[3..].iter().all(|line| denied(line)), "{tier} {user:?}: {one:?}");
        let done = Finished::of(world.command("python3").args(["-c", CLIENT, "."]).args(&paths[3..4]));
        assert_eq!(lines(&done), ["beside"], "unconfined: {done:?}");
    }
}

/// Tests also a project in the host's `/tmp`. In the full tier, `/tmp` is a private and writable directory.
#[test]
fn a_socket_of_a_project_that_may_not_be_written_is_out_of_reach() {
    for (tier, user) in everywhere() {
        for place in [None, Some("/tmp")] {
            let world = place.map_or_else(|| World::new(user), |place| World::below(user, Path::new(place)));
            serve(&world, &world.project().join("served"));
            let command = format!("python3 -c '{CLIENT}' . served");
            for (mode, reached) in [("deny", false), ("auto", true)] {
                let server = model(&[("shell_exec", json!({"command": command}))]);
                let mut exec = world.exec(&server, &["--mode", mode]);
                let done = Finished::of(exec.args(tests::tier::flags(tier)));
                assert_eq!(done.code, 0, "{tier} {user:?}: {}", done.stderr);
                let said = tool_results(&server, 1)[0]["content"].as_str().unwrap().to_owned();
                let line = if reached { "served".to_owned() } else { EACCES.to_string() };
                assert!(said.lines().any(|said| said == line), "{tier} {user:?} {place:?} {mode}: {said}");
            }
        }
    }
}

#[test]
fn what_is_hidden_or_no_socket_cannot_be_granted() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let hidden = world.home().join(".gnupg");
        std::fs::create_dir_all(&hidden).unwrap();
        world.give(&hidden);
        serve(&world, &hidden.join("S.gpg-agent"));
        for (path, why) in [
            (hidden.join("S.gpg-agent"), "no socket there can be allowed"),
            (world.project(), "is not a unix socket"),
            (world.root().join("none"), "does not exist"),
        ] {
            let done = Finished::of(&mut world.sandbox(tier, &["--socket", path.to_str().unwrap()], "true"));
            assert!(done.code != 0 && done.stderr.contains(why), "{tier} {user:?}: {}", done.stderr);
        }
    }
}
