//! Tests denials and the causes that they name: the declared access of the call, file modes, the network, and hidden
//! paths.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ipc::confinement::Tier;
use serde_json::json;
use tests::tier::{self, everywhere};
use tests::{Finished, User, World};

use crate::tools::turn::{command, content, told, turn};

#[test]
fn a_command_that_declared_to_read_cannot_write_though_the_project_is_writable() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        world.file("a.txt", "a\n");
        let read = |line: &str| ("shell_exec", json!({"command": line, "access": "read"}));
        for line in [
            "echo x > a.txt",
            "rm a.txt",
            "touch new",
            "chmod 600 a.txt",
            "mkdir d",
            "ln a.txt b",
            "mv a.txt b",
        ] {
            let (results, run) = turn(&world, &[read(line)], &["--mode", "auto"]);
            assert_eq!(results[0]["is_error"], true, "{line}: {results:?}");
            // The call's own declaration denied the write, so there is no access that the user could grant.
            assert!(run.events_of("denied").is_empty() && run.code == 0, "{line}: {}", run.stdout);
            assert!(content(&results[0]).contains("access \"read\""), "{line}: {results:?}");
        }
        assert_eq!(fs::read_dir(world.project()).unwrap().count(), 1);
        assert_eq!(world.read("a.txt"), "a\n");
        // Controls: the command reads the project, and writes its temp directory.
        let said = told(
            &world,
            "shell_exec",
            read("cat a.txt; echo t > $TMPDIR/t && cat $TMPDIR/t").1,
            &["--mode", "auto"],
        );
        assert!(said.contains("a\nt\n"), "{said}");
        let (results, _) = turn(&world, &[command("echo x > a.txt")], &["--mode", "auto"]);
        assert_ne!(results[0]["is_error"], true);
    }
}

#[test]
fn plain_permissions_are_no_denial_of_ours() {
    // Root passes every permission check. A worker of root has no capability, but owns root's files.
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let path = world.file("closed.txt", "closed\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let asked = [
            ("read_file", json!({"path": "closed.txt"})),
            command("cat closed.txt"),
            command("echo x > /dev/full"),
        ];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(results.iter().all(|result| result["is_error"] == true), "{user:?}: {results:?}");
        assert!(content(&results[0]).contains("permissions"), "{results:?}");
        assert_eq!((run.code, run.events_of("denied").len()), (0, 0), "{user:?}: {}", run.stdout);
    }
}

#[test]
fn the_network_is_off_and_the_flag_is_named() {
    for tier in tier::all() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let world = World::new(User::Myself).in_tier(tier);
        let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let unconfined = Finished::of(world.command("bash").args(["-c", &connect]));
        assert_eq!(unconfined.code, 0, "{}", unconfined.stderr);
        let (results, run) = turn(&world, &[command(&connect)], &["--mode", "auto"]);
        assert_eq!(results[0]["is_error"], true);
        // The sandbox has its own loopback, on which nobody listens. That is no denial, but the result says so.
        let denied: Vec<_> = run.events_of("denied").iter().map(|denied| denied["grant"].clone()).collect();
        let expected: &[&str] = match tier {
            Tier::Full => &[],
            Tier::Floor | Tier::FloorUnmediated => &["--net on --reach host"],
        };
        assert_eq!(
            (run.code == 4, denied),
            (!expected.is_empty(), expected.iter().map(|grant| json!(grant)).collect())
        );
        assert!(content(&results[0]).contains("are the sandbox's own"), "{results:?}");
        // An address for documentation (RFC 5737).
        let (_, run) = turn(&world, &[command("exec 3<>/dev/tcp/192.0.2.1/9")], &["--mode", "auto"]);
        let layer = match tier {
            Tier::Full => "network_namespace",
            Tier::Floor | Tier::FloorUnmediated => "mediation",
        };
        let denied = &run.events_of("denied")[0];
        assert_eq!(
            (&denied["operation"], &denied["grant"]),
            (&json!("network"), &json!("--net on")),
            "{denied}"
        );
        assert_eq!((&denied["layer"], &denied["grade"]), (&json!(layer), &json!("proved")), "{denied}");
        assert_eq!(
            (&denied["object"], &denied["program"]),
            (&json!({"address": "192.0.2.1:9"}), &json!("bash"))
        );
        assert_eq!(run.code, 4);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_ok() && listener.accept().is_err(), "only the unconfined one came");
        // A call that says that it needs the network is denied before it runs.
        let asked = ("shell_exec", json!({"command": "touch ran", "network": true}));
        let (_, run) = turn(&world, &[asked], &["--mode", "auto"]);
        let denied = &run.events_of("denied")[0];
        assert_eq!((&denied["layer"], &denied["grant"]), (&json!("policy"), &json!("--net on")), "{denied}");
        assert!(!world.project().join("ran").exists());
    }
}

#[test]
fn hidden_paths_cannot_be_read_and_their_names_can() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        world.file("secret/key.txt", "hidden content\n");
        world.file("open.txt", "open\n");
        let asked = [
            ("read_file", json!({"path": "secret/key.txt"})),
            command("cat secret/key.txt"),
            ("search_files", json!({"pattern": "content"})),
            command("cat open.txt"),
        ];
        let (results, run) = turn(&world, &asked, &["--mode", "auto", "--hide", "secret"]);
        assert!(!run.stdout.contains("hidden content"), "{}", run.stdout);
        assert!(content(&results[3]).contains("open"));
        let denied = run.events_of("denied");
        assert!(denied.len() == 2 && denied.iter().all(|denied| denied.get("grant").is_none()), "{denied:?}");
        let layer = match tier {
            Tier::Full => "mask",
            Tier::Floor | Tier::FloorUnmediated => "landlock",
        };
        let graded: Vec<_> = denied.iter().map(|denied| (&denied["layer"], &denied["grade"])).collect();
        assert_eq!(graded, [(&json!(layer), &json!("proved")), (&json!(layer), &json!("proved"))]);
        // The mode of the mount that covers a file is not reported as the file's.
        assert!(!content(&results[0]).contains("permissions"), "{results:?}");
        // Control: without hidden paths, the files are readable.
        let (results, _) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(results[..3].iter().all(|result| content(result).contains("hidden content")), "{results:?}");
    }
}
