//! The tools through the whole stack: what the model asks for, what the kernel allows, what the model is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use ipc::confinement::Tier;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, shell};
use tests::tier::{self, everywhere};
use tests::world::{KEY, tool_results};
use tests::{Finished, User, World};

/// The tool results of one turn with these calls, and the run.
fn turn(world: &World, asked: &[(&str, Value)], arguments: &[&str]) -> (Vec<Value>, Finished) {
    let server = model_of([calls(asked), done()]);
    let run = world.run(&server, arguments);
    assert!([0, 4].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
    (tool_results(&server, 1), run)
}

/// What the model is told of one call.
fn told(world: &World, name: &str, input: Value, arguments: &[&str]) -> String {
    let (results, _) = turn(world, &[(name, input)], arguments);
    content(&results[0])
}

fn content(result: &Value) -> String {
    match &result["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        other => other.to_string(),
    }
}

fn command(line: &str) -> (&'static str, Value) {
    ("shell_exec", json!({"command": line}))
}

#[test]
fn three_calls_in_one_turn_are_answered_in_their_order() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        world.file("a.txt", "alpha\n");
        let asked = [
            ("read_file", json!({"path": "a.txt"})),
            ("read_file", json!({"path": "missing.txt"})),
            command("echo gamma"),
        ];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        let ids: Vec<_> = results.iter().map(|result| result["tool_use_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["toolu_0", "toolu_1", "toolu_2"]);
        let errors: Vec<_> = results.iter().map(|result| result["is_error"] == true).collect();
        assert_eq!(errors, [false, true, false]);
        assert!(
            content(&results[0]).contains("alpha") && content(&results[2]).contains("gamma"),
            "{results:?}"
        );
        assert_eq!(run.code, 0);
    }
}

#[test]
fn effects_of_one_turn_happen_in_their_order() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let write = |text: &str| ("write_file", json!({"path": "a.txt", "content": text}));
        let asked = [
            write("1\n"),
            command("cat a.txt; echo 2 >> a.txt"),
            ("edit_file", json!({"path": "a.txt", "old_string": "2", "new_string": "3"})),
            ("read_file", json!({"path": "a.txt"})),
        ];
        let (results, _) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(content(&results[1]).contains('1'), "{results:?}");
        assert!(content(&results[3]).contains('3'), "{results:?}");
        assert_eq!(world.read("a.txt"), "1\n3\n");
    }
}

#[test]
fn arguments_that_do_not_fit_come_back_with_what_was_expected() {
    let world = World::new(User::Myself);
    let of = |name, input| told(&world, name, input, &[]);
    insta::assert_snapshot!(of("read_file", json!({"file": "a.txt"})), @"`read_file` was not run: argument `file`: unknown field `file`, expected one of `path`, `offset`, `limit`. Its arguments are {path, offset?, limit?}");
    insta::assert_snapshot!(of("read_file", json!({"path": 7})), @"`read_file` was not run: argument `path`: invalid type: integer `7`, expected a string. Its arguments are {path, offset?, limit?}");
    insta::assert_snapshot!(of("shell_exec", json!({"command": "true", "access": "root"})), @"`shell_exec` was not run: argument `access`: unknown variant `root`, expected one of `standing`, `read`, `write`. Its arguments are {command, access?, network?, cwd?, timeout_s?}");
    insta::assert_snapshot!(of("read_file", json!(["a.txt"])), @"`read_file` was not run: got no JSON object (the arguments are not a JSON object), expected one with the arguments {path, offset?, limit?}");
    insta::assert_snapshot!(of("launch_rocket", json!({})), @"there is no tool named `launch_rocket`; the tools are: read_file, list_directory, search_files, write_file, edit_file, shell_exec");
}

#[test]
fn an_ambiguous_or_absent_edit_is_refused_and_changes_nothing() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\ntwo\none\n");
    let edit = |old: &str| json!({"path": "a.txt", "old_string": old, "new_string": "x"});
    let of = |old| told(&world, "edit_file", edit(old), &["--mode", "auto"]);
    insta::assert_snapshot!(of("one"), @"old_string occurs 2 times, at lines 1, 3; add lines around it until it is unique, or set replace_all.");
    insta::assert_snapshot!(of("three"), @"old_string does not occur in the file. Nothing in it is similar; read the file again, or check the path.");
    assert_eq!(world.read("a.txt"), "one\ntwo\none\n");
    let mut all = edit("one");
    all["replace_all"] = true.into();
    told(&world, "edit_file", all, &["--mode", "auto"]);
    assert_eq!(world.read("a.txt"), "x\ntwo\nx\n");
}

/// A directory outside the project, as text.
fn outside(world: &World) -> String {
    world.outside().display().to_string()
}

/// The flags of a grant, as a shell splits them.
fn flags(grant: &Value) -> Vec<String> {
    grant.as_str().unwrap_or_else(|| panic!("no grant: {grant}")).split(' ').map(str::to_owned).collect()
}

/// A call that is denied, and the same run again with exactly the grant that it named: it succeeds.
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
    let right = denied["missing_right"].as_str().unwrap();
    assert!(sentence.contains(right) && sentence.contains(denied["grant"].as_str().unwrap()), "{sentence}");
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
            Tier::FloorUnmediated => (json!("landlock"), json!(nix::libc::EACCES)),
        };
        let existing = denied_then_granted(place, "auto", |place| {
            ("write_file", json!({"path": format!("{place}/there.txt"), "content": "x"}))
        });
        insta::allow_duplicates! {
            let mut stable = existing.clone();
            assert_eq!((stable["layer"].take(), stable["errno"].take()), (layer.clone(), errno));
            insta::assert_snapshot!(serde_json::to_string_pretty(&stable).unwrap(), @r#"
            {
              "call": 1,
              "layer": null,
              "operation": "write",
              "object": {
                "path": "[world]/outside/there.txt"
              },
              "missing_right": "write [world]/outside/there.txt",
              "grant": "--write [world]/outside/there.txt",
              "grade": "proved",
              "errno": null,
              "rights": "rw . $TMPDIR caches · ro / minus hidden · net off"
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
        // What does not exist cannot be granted: its directory is.
        assert_eq!(new["missing_right"], "write [world]/outside/new.txt");
        assert_eq!(new["grant"], "--write [world]/outside");
        let deep = denied_then_granted(place, "auto", |place| {
            ("write_file", json!({"path": format!("{place}/new/deep/er.txt"), "content": "x"}))
        });
        assert_eq!(deep["grade"], "proved");
    }
}

#[test]
fn a_commands_denied_write_is_likely_and_its_grant_works() {
    for (user, tier) in everywhere() {
        let place = (user, tier);
        let existing =
            denied_then_granted(place, "auto", |place| command(&format!("echo x > {place}/there.txt")));
        assert_eq!((&existing["grade"], &existing["operation"]), (&json!("likely"), &json!("write")));
        denied_then_granted(place, "auto", |place| command(&format!("cp inside.txt {place}/there.txt")));
        // To take a file away is a right on its directory.
        for line in ["rm", "mv -t ."] {
            let removed =
                denied_then_granted(place, "auto", |place| command(&format!("{line} {place}/there.txt")));
            assert_eq!(removed["grant"], "--write [world]/outside", "{line}");
        }
    }
}

#[test]
fn a_commands_new_file_outside_is_denied_and_the_remedy_is_named_in_the_end() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let place = outside(&world);
        let asked = [command(&format!("touch {place}/new.txt"))];
        let (_, run) = turn(&world, &asked, &["--mode", "auto"]);
        let denied = run.events_of("denied").remove(0);
        assert_eq!(denied["grant"], format!("--write {place}/new.txt"));
        // Nothing is made for a grant: what is missing cannot be granted, and its directory is named instead.
        let server = model_of([done()]);
        let refused = world.run(&server, &["--write", &format!("{place}/new.txt")]).expect(2);
        assert!(
            refused.stderr.contains(&format!("grant its directory: --write {place}")),
            "{}",
            refused.stderr
        );
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
        let likely = denied_then_granted((User::Myself, tier), "deny", |_| command("echo x > inside.txt"));
        assert_eq!((&likely["grant"], &likely["grade"]), (&json!("--mode auto"), &json!("likely")));
        let declared = denied_then_granted((User::Myself, tier), "deny", |_| {
            ("shell_exec", json!({"command": "echo x > inside.txt", "access": "write"}))
        });
        assert_eq!((&declared["layer"], &declared["grade"]), (&json!("policy"), &json!("proved")));
        // It is the default mode.
        let world = World::new(User::Myself).in_tier(tier);
        world.file("inside.txt", "inside\n");
        let (_, run) = turn(&world, &[("write_file", json!({"path": "inside.txt", "content": "x"}))], &[]);
        assert_eq!((run.code, world.read("inside.txt").as_str()), (4, "inside\n"));
    }
}

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
            // It lacked its own declaration, no right: there is nothing that the user could grant.
            assert!(run.events_of("denied").is_empty() && run.code == 0, "{line}: {}", run.stdout);
            assert!(content(&results[0]).contains("access \"read\""), "{line}: {results:?}");
        }
        assert_eq!(fs::read_dir(world.project()).unwrap().count(), 1);
        assert_eq!(world.read("a.txt"), "a\n");
        // Its positive twins: it reads, and it writes its own temp.
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
    // Root passes every permission; a worker of root has no capability, but owns its files.
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
        // In the full tier loopback is the sandbox's own, and nobody listens there: no denial, but it is said whose it is.
        let run = match tier {
            Tier::FloorUnmediated => run,
            Tier::Full => {
                assert_eq!((run.code, run.events_of("denied").len()), (0, 0), "{}", run.stdout);
                assert!(content(&results[0]).contains("are the sandbox's own"), "{results:?}");
                // An address of nobody's (RFC 5737).
                turn(&world, &[command("exec 3<>/dev/tcp/192.0.2.1/9")], &["--mode", "auto"]).1
            }
        };
        let layer = match tier {
            Tier::Full => "network_namespace",
            Tier::FloorUnmediated => "seccomp",
        };
        let denied = &run.events_of("denied")[0];
        assert_eq!(
            (&denied["operation"], &denied["grant"]),
            (&json!("network"), &json!("--net on")),
            "{denied}"
        );
        assert_eq!((&denied["layer"], &denied["grade"]), (&json!(layer), &json!("likely")), "{denied}");
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
            Tier::FloorUnmediated => "landlock",
        };
        let graded: Vec<_> = denied.iter().map(|denied| (&denied["layer"], &denied["grade"])).collect();
        assert_eq!(graded, [(&json!(layer), &json!("proved")), (&json!(layer), &json!("likely"))]);
        // A mode that only the cover has is not told as the file's own.
        assert!(!content(&results[0]).contains("permissions"), "{results:?}");
        // Its positive twin.
        let (results, _) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(results[..3].iter().all(|result| content(result).contains("hidden content")), "{results:?}");
    }
}

#[test]
fn variables_pass_by_allowlist_and_by_flag() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let print = "echo \"[$PASSED] [$SET] [$OTHER] [$ANTHROPIC_API_KEY] [$AWS_SECRET_ACCESS_KEY] [$GITHUB_TOKEN] [$LC_ALL]\"";
        let server = model_of([shell(print), shell("env; cat /proc/self/environ"), done()]);
        let mut task = world.exec(&server, &["--env", "PASSED", "--env", "SET=a=b c"]);
        for name in ["PASSED", "OTHER", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"] {
            task.env(name, format!("value of {name}"));
        }
        Finished::of(&mut task).expect(0);
        let said = content(&tool_results(&server, 1)[0]);
        assert!(said.contains("[value of PASSED] [a=b c] [] [] [] [] [C.UTF-8]"), "{said}");
        let all = content(&tool_results(&server, 2)[0]);
        assert!(!all.contains(KEY) && !all.contains("value of AWS") && all.contains("PATH="), "{all}");
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

#[test]
fn the_projects_instructions_reach_the_model() {
    let world = World::new(User::Myself);
    world.file("AGENTS.md", "Always run test.sh.\n");
    let server = model_of([done()]);
    world.run(&server, &[]).expect(0);
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert!(body["messages"][0].to_string().contains("Always run test.sh."), "{body}");
    // The fixed prefix holds nothing of the project.
    assert!(!body["system"].to_string().contains("Always run"), "{body}");
    let prefix = body["system"].to_string().len() + body["tools"].to_string().len();
    assert!(prefix <= 12 << 10, "system and tools have {prefix} bytes");
}

#[test]
fn instructions_that_are_a_link_out_of_the_readable_stay_unread() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let secret = world.home().join(".ssh");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("id_ed25519"), "a private key\n").unwrap();
        std::os::unix::fs::symlink(secret.join("id_ed25519"), world.project().join("AGENTS.md")).unwrap();
        let server = model_of([done()]);
        world.run(&server, &[]).expect(0);
        let body = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
        assert!(!body.contains("a private key"), "{body}");
    }
}

#[test]
fn names_that_are_not_utf_8_work_in_commands_and_listings() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let asked = [
            command("echo raw > $'r\\xffw.txt'; echo ok"),
            ("list_directory", json!({"path": "."})),
            ("search_files", json!({"pattern": "raw"})),
            command("cat r*w.txt"),
        ];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(results.iter().all(|result| result["is_error"] != true), "{results:?}");
        assert!(content(&results[1]).contains("w.txt"), "{results:?}");
        assert!(content(&results[2]).contains("raw") && content(&results[3]).contains("raw"), "{results:?}");
        assert_eq!(run.code, 0);
    }
}

#[test]
fn a_project_whose_own_name_is_not_utf_8_works() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let project = world.root().join(OsStr::from_bytes(b"pro ject \xff\xfe"));
        fs::create_dir(&project).unwrap();
        world.give(&project);
        let asked = [
            ("write_file", json!({"path": "new.txt", "content": "new\n"})),
            command("cat new.txt && echo more >> new.txt"),
            ("read_file", json!({"path": "new.txt"})),
        ];
        let server = model_of([calls(&asked), done()]);
        let mut task = world.bailiwick(["exec", "--base-url", &server.base_url(), "--mode", "auto", "do it"]);
        task.args(world.tier_flags());
        task.arg("-C").arg(&project).args(["--patch", "out.diff"]).env("ANTHROPIC_API_KEY", KEY);
        task.current_dir(&project);
        let run = Finished::of(&mut task).expect(0);
        assert_eq!(run.stdout, "Done.\n");
        let results = tool_results(&server, 1);
        assert!(results.iter().all(|result| result["is_error"] != true), "{results:?}");
        assert!(content(&results[2]).contains("more"), "{results:?}");
        let patch = fs::read_to_string(project.join("out.diff")).unwrap();
        assert!(patch.contains("+new\n+more\n") && !patch.contains("out.diff"), "{patch}");
    }
}

#[test]
fn a_command_that_takes_too_long_ends_with_everything_below_it() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let asked =
            [("shell_exec", json!({"command": "echo begun; sleep 1000 & sleep 1000", "timeout_s": 1}))];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        let said = content(&results[0]);
        assert!(results[0]["is_error"] == true && said.contains("begun"), "{said}");
        assert_eq!((run.code, run.events_of("denied").len()), (0, 0));
    }
}

#[test]
fn output_beyond_the_budget_keeps_its_head_and_tail() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let said = told(&world, "shell_exec", command("echo first; seq 1 1000000; echo last").1, &[]);
        assert!(said.contains("first\n1\n2\n") && said.contains("1000000\nlast"), "{}", said.len());
        assert!(said.len() < 100_000, "{}", said.len());
    }
}
