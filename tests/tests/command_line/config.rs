//! Tests settings: as a person sees them, with the file of a hostile project, and at their limits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use ipc::confinement::Tier;
use serde_json::{Value, json};
use tests::replies::{done, model_of, shell};
use tests::trust::{answer, trust};
use tests::{Finished, User, World, tier};

const NAME: &str = ".bailiwick.toml";

/// Address without a server. A run that tries to connect ends with status 6.
const NOWHERE: &str = "http://127.0.0.1:9";

fn sandbox(world: &World, tier: Tier, flags: &[&str], script: &str) -> Finished {
    Finished::of(world.sandbox(tier, flags, "sh").args(["-c", script]))
}

/// Returns what `bailiwick config --json` prints about a key: the values, each with its origin.
fn settings(world: &World, key: &str) -> Vec<(Value, String)> {
    let run = Finished::of(world.bailiwick(["config", "--json", "-C"]).arg(world.project())).expect(0);
    let all: Value = serde_json::from_str(&run.stdout).unwrap();
    let rows = all["settings"].as_array().unwrap().iter().filter(|row| row["key"] == key);
    let origin = |row: &Value| {
        let from = row["from"].as_str().map(|from| format!(" {}:{}", world.stable(from), row["line"]));
        let ignored = if row["ignored"] == true { " ignored" } else { "" };
        format!("{}{}{ignored}", row["origin"].as_str().unwrap(), from.unwrap_or_default())
    };
    rows.map(|row| (row["value"].clone(), origin(row))).collect()
}

#[test]
fn what_is_wrong_in_a_file_is_a_usage_error_with_its_place() {
    let world = World::new(User::Myself);
    world.configure("[rights]\nhiden = [\"a\"]\n");
    let expected = "bailiwick: [world]/own/config/config.toml:2:1: unknown key `rights.hiden`; did you mean `rights.hide`?\n";
    let run = Finished::of(&mut world.task(NOWHERE, ["do it"])).expect(2);
    assert_eq!(world.stable(&run.stderr), expected);
    let run = Finished::of(world.bailiwick(["config", "-C"]).arg(world.project())).expect(2);
    assert_eq!(world.stable(&run.stderr), expected);
    let run = sandbox(&world, tier::all()[0], &[], "true").expect(5);
    assert_eq!(world.stable(&run.stderr), expected);
    let doctor = Finished::of(world.bailiwick(["doctor"]).current_dir(world.project()));
    let line = doctor.stdout.lines().find(|line| line.contains("settings")).unwrap();
    assert!(line.starts_with("warn") && line.contains("config.toml:2:1"), "{line}");
}

#[test]
fn the_keys_are_listed_while_a_file_is_wrong() {
    let world = World::new(User::Myself);
    world.configure("wrong = 1\n");
    let run = Finished::of(&mut world.task(NOWHERE, ["do it"])).expect(2);
    assert!(run.stderr.contains("`bailiwick config keys` lists them"), "{}", run.stderr);
    let keys = |name: &[&str]| Finished::of(world.bailiwick(["config", "keys"]).args(name));
    let all = keys(&[]).expect(0).stdout;
    assert!(all.contains("\nrights.net\n") && all.contains("\nagents.depth\n"), "{all}");
    insta::assert_snapshot!(keys(&["rights.net"]).expect(0).stdout, @r#"
    rights.net
      `off`, or list of hosts; default: `off`; a project's file: can only restrict the value
      The network of commands: `off`, or the hosts that commands can reach by name, such as `["docs.example", "*.docs.example:8443", "@npm"]` (port 443 unless another is named). No file turns all of it on: `--net on` and `:net on` do. A project's `off` or list also restricts `--net`: at the start, only hosts that both name can be reached.

    Further tables: [keys.MODE] sets keys of the terminal UI, [models."NAME"] describes a model, [agents.NAME] defines a role of sub-agents.
    "#);
    insta::assert_snapshot!(keys(&["nothing"]).expect(2).stderr, @"
    bailiwick: no key has `nothing` in its name
      hint: bailiwick config keys
    ");
}

#[test]
fn a_users_file_that_others_may_write_is_refused() {
    let world = World::new(User::Myself);
    let file = world.configure("mode = \"auto\"\n");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let run = Finished::of(&mut world.task(NOWHERE, ["do it"])).expect(2);
    assert!(
        run.stderr.contains("other users can change this file") && run.stderr.contains("hint: chmod go-w "),
        "{}",
        run.stderr
    );
}

#[test]
fn a_hostile_file_in_a_project_is_an_error_and_is_not_followed() {
    for user in User::all() {
        let world = World::new(user);
        let file = world.project().join(NAME);
        let secret = world.root().join("secret");
        fs::write(&secret, "[canary]\n").unwrap();
        let cases: [(&str, &dyn Fn()); 6] = [
            ("is a fifo", &|| nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap()),
            ("is a link", &|| symlink("/etc/shadow", &file).unwrap()),
            ("is a link", &|| symlink(&secret, &file).unwrap()),
            ("is a directory", &|| fs::create_dir(&file).unwrap()),
            ("more than 65536 bytes", &|| fs::write(&file, vec![b'#'; 1 << 20]).unwrap()),
            (".bailiwick.toml:1:9: not UTF-8", &|| fs::write(&file, b"mode = \"\xff\"").unwrap()),
        ];
        for (expected, make) in cases {
            make();
            let run = Finished::of(&mut world.task(NOWHERE, ["do it"])).expect(2);
            assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
            assert!(!run.stderr.contains("canary") && !run.stderr.contains("root:"), "{}", run.stderr);
            if file.is_dir() { fs::remove_dir(&file).unwrap() } else { fs::remove_file(&file).unwrap() }
        }
    }
}

#[test]
fn a_person_sees_the_settings_that_differ_and_all_of_them_on_request() {
    let world = World::new(User::Myself);
    world.configure("model = \"m\"\n");
    let shown = |flags: &[&str]| {
        let run =
            Finished::of(world.bailiwick(["config"]).args(flags).current_dir(world.project())).expect(0);
        world.stable(&run.stdout)
    };
    insta::assert_snapshot!(shown(&[]), @r#"
    model  "m"  [world]/own/config/config.toml:1
    58 settings have their defaults
      hint: bailiwick config --all shows them
    "#);
    let all = shown(&["--all"]);
    assert!(all.contains("retries.attempts") && all.lines().count() > 30, "{all}");
}

#[test]
fn settings_hold_and_say_where_they_come_from() {
    let world = World::new(User::Myself);
    let outside = world.outside();
    world.configure(&format!(
        "model = \"m\"\n[rights]\nwrite = [{outside:?}, \"missing\"]\nenv = [\"CANARY=1\"]\n"
    ));
    world.file(NAME, "[rights]\nhide = [\"secret\"]\nwrite = [\"/srv\"]\n[limits]\ncommand_timeout_s = 60\n");
    world.file("secret", "s3cret\n");
    world.file(".agent.toml", "x");
    assert_eq!(settings(&world, "model"), [(json!("m"), "user [world]/own/config/config.toml:1".to_owned())]);
    assert_eq!(
        settings(&world, "rights.hide"),
        [(json!(["secret"]), "project .bailiwick.toml:2".to_owned())]
    );
    assert_eq!(
        settings(&world, "limits.command_timeout_s"),
        [(json!(60), "project .bailiwick.toml:5".to_owned())]
    );
    assert_eq!(settings(&world, "rights.net"), [(json!("off"), "default".to_owned())]);
    assert_eq!(
        settings(&world, "rights.write").last().unwrap(),
        &(json!(["/srv"]), "project .bailiwick.toml:3 ignored".to_owned())
    );
    for tier in tier::all() {
        let script =
            format!("echo $CANARY; cat secret; echo new > {}/there.txt; touch /srv/x", outside.display());
        let run = sandbox(&world, tier, &[], &script);
        assert_eq!(run.stdout, "1\n", "{}", run.stderr);
        assert_eq!(fs::read_to_string(outside.join("there.txt")).unwrap(), "new\n");
        assert!(!PathBuf::from("/srv/x").exists());
        let said = world.stable(&run.stderr);
        assert!(said.contains("note: .agent.toml belongs to another agent and is not read"), "{said}");
        assert!(
            said.contains(
                "these settings have no effect: rights.write [\"/srv\"]\n  hint: bailiwick config trust -C [world]/project"
            ),
            "{said}"
        );
        assert!(
            said.contains("config.toml:3: \"missing\" is not made writable: it does not exist"),
            "{said}"
        );
    }
}

#[test]
fn what_a_project_narrows_is_narrow_whatever_the_flags_say() {
    let world = World::new(User::Myself);
    world.file(NAME, "[rights]\nnet = \"off\"\nprotect = [\"kept\"]\n[limits]\nmax_steps = 1\n");
    world.file("kept/a.txt", "a\n");
    let server = model_of([shell("echo b > kept/a.txt; echo c > kept/new; echo d > d.txt"), done()]);
    let run = world
        .run(&server, &["--mode", "auto", "--net", "on", "--max-steps", "9", "--write", "kept"])
        .expect(3);
    assert_eq!(run.result()["reason"], "step_limit", "{}", run.stderr);
    assert!(
        run.stderr.contains("note: --net has no effect: .bailiwick.toml:2 sets rights.net = \"off\""),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("note: --max-steps has no effect: .bailiwick.toml:5"), "{}", run.stderr);
    let note = "note: --write \"kept\" has no effect: .bailiwick.toml:3 protects \"kept\"";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    let hint = "hint: .bailiwick.toml:5 sets limits.max_steps, and no flag can raise this limit: change the limit there";
    assert!(run.stderr.contains(hint) && !run.stderr.contains("with --max-steps"), "{}", run.stderr);
    assert_eq!(run.events_of("session_started")[0]["rights"]["net"], "off");
    assert_eq!(world.read("kept/a.txt"), "a\n");
    assert!(!world.project().join("kept/new").exists());
    assert_eq!(world.read("d.txt"), "d\n");
}

#[test]
fn a_project_narrows_the_mode_of_exec() {
    let world = World::new(User::Myself);
    world.file(NAME, "mode = \"deny\"\n");
    let server = model_of([shell("echo d > d.txt"), done()]);
    let run = world.run(&server, &["--mode", "auto"]).expect(4);
    assert!(!world.project().join("d.txt").exists(), "{}", run.stderr);
    assert!(run.stderr.contains("note: --mode has no effect: .bailiwick.toml:1"), "{}", run.stderr);
}

#[test]
fn a_flag_without_effect_gets_a_note() {
    let world = World::new(User::Myself);
    let flags = ["--hide", "nosuch", "--env", "NOT_SET_ANYWHERE", "--env", "SET=1", "--reach", "lan"];
    let run = world.run(&model_of([done()]), &flags).expect(0);
    for note in [
        "note: --hide \"nosuch\": there is no such file or directory\n",
        "note: --env NOT_SET_ANYWHERE: this variable is not set\n",
        "note: --reach has no effect while the network is off\n  hint: --net on\n",
    ] {
        assert_eq!(run.stderr.matches(note).count(), 1, "{note}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("--env SET:"), "{}", run.stderr);
    let given = ["--hide", "a.txt", "--reach", "lan", "--net", "on"];
    world.file("a.txt", "a\n");
    let run = world.run(&model_of([done()]), &given).expect(0);
    assert!(!run.stderr.contains("note: --"), "{}", run.stderr);
}

#[test]
fn what_is_protected_stays_in_every_tier() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        world.file(NAME, "rights.protect = [\".github/workflows\", \"later\"]\n");
        world.file(".github/workflows/ci.yml", "mine\n");
        let script =
            "echo theirs > .github/workflows/ci.yml; mv .github moved; echo x > later; echo y > other";
        let run = sandbox(&world, tier, &[], script);
        assert_eq!(world.read(".github/workflows/ci.yml"), "mine\n", "{tier} {user:?}: {}", run.stderr);
        assert!(!world.project().join("later").exists(), "{tier} {user:?}: {}", run.stderr);
        assert_eq!(world.read("other"), "y\n");
    }
}

#[test]
fn a_project_never_turns_exec_to_auto() {
    let world = World::new(User::Myself);
    world.file(NAME, "mode = \"auto\"\n");
    let server = || model_of([shell("touch made"), done()]);
    for is_trusted in [false, true] {
        if is_trusted {
            assert_eq!(trust(&world, "y\n").0, 0);
        }
        let run = world.run(&server(), &[]);
        assert!(!run.stderr.contains("not trusted"), "it would change nothing: {}", run.stderr);
        assert_eq!(run.events_of("session_started")[0]["mode"], "deny");
        assert!(!world.project().join("made").exists());
    }
}

#[test]
fn trust_is_given_at_a_terminal_to_exactly_this_file() {
    let world = World::new(User::Myself);
    let outside = world.outside();
    world.file(NAME, format!("rights.write = [{outside:?},\n\"a\\u001b[2J\\u202eb\"]\n"));
    let tier = tier::all()[0];
    let writes = || {
        fs::write(outside.join("there.txt"), "untouched\n").unwrap();
        sandbox(&world, tier, &[], &format!("echo new > {}/there.txt", outside.display()));
        fs::read_to_string(outside.join("there.txt")).unwrap() == "new\n"
    };
    let piped = Finished::of(world.bailiwick(["config", "trust", "-C"]).arg(world.project())).expect(2);
    assert!(piped.stderr.contains("cannot ask for your trust in .bailiwick.toml"), "{}", piped.stderr);
    assert!(!writes());
    let question = [
        ".bailiwick.toml of [world]/project would enable, in every session there:",
        "  rights.write [\"[world]/outside\"]  (.bailiwick.toml:1)",
        "  rights.write [\"a\\u{1b}[2J\\u{202e}b\"]  (.bailiwick.toml:2)",
        "Trust these settings? [y/N] ",
    ]
    .join("\n");
    for no in ["\n", "n\n", "yeah\n", " \n", "\x04"] {
        let (code, seen) = trust(&world, no);
        assert!(code == 0 && seen.starts_with(&question) && seen.contains("not trusted"), "{no:?}: {seen:?}");
        assert!(!writes(), "{no:?}");
    }
    let (code, seen) = trust(&world, "y\n");
    assert!(code == 0 && seen.contains("trusted in this form"), "{seen}");
    assert!(writes());
    assert!(trust(&world, "").1.contains("the project's settings are already trusted"));
    // A changed file needs a new answer. Trust in an earlier content does not return when the file is changed back.
    world.file(NAME, format!("rights.write = [{outside:?}]\nmodel = \"big\"\n"));
    assert!(!writes());
    assert!(trust(&world, "n\n").1.contains("model \"big\""));
    assert_eq!(trust(&world, "y\n").0, 0);
    assert!(writes());
    let forget =
        world.bailiwick(["config", "trust", "--forget", "-C"]).arg(world.project()).status().unwrap();
    assert!(forget.success() && !writes());
}

#[test]
fn a_copy_of_a_trusted_project_is_not_trusted() {
    let world = World::new(User::Myself);
    world.file(NAME, "model = \"big\"\n");
    assert_eq!(trust(&world, "y\n").0, 0);
    let copy = world.root().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(world.project().join(NAME), copy.join(NAME)).unwrap();
    let run = Finished::of(world.bailiwick(["config", "-C"]).arg(&copy)).expect(0);
    assert!(run.stdout.contains("not trusted: no effect"), "{}", run.stdout);
    // By a link, it is the same project.
    let link = world.root().join("link");
    symlink(world.project(), &link).unwrap();
    let run = Finished::of(world.bailiwick(["config", "-C"]).arg(&link)).expect(0);
    assert!(!run.stdout.contains("not trusted"), "{}", run.stdout);
}

#[test]
fn an_agents_command_writes_neither_settings_nor_trust() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let config = world.configure("model = \"m\"\n");
        let trusted = world.own().join("state/trust");
        let script = format!(
            "echo 'mode = \"auto\"' > {config}; mkdir -p {trusted}; echo x > {trusted}/x; cat {config}; \
             echo 'model = \"big\"' > .bailiwick.toml; mkdir .bailiwick.d",
            config = config.display(),
            trusted = trusted.display(),
        );
        let run = sandbox(&world, tier, &[], &script);
        assert_eq!(run.stdout, "", "{tier} {user:?}");
        assert_eq!(fs::read_to_string(&config).unwrap(), "model = \"m\"\n", "{tier} {user:?}");
        assert!(!trusted.join("x").exists(), "{tier} {user:?}");
        assert!(!world.project().join(NAME).exists(), "{tier} {user:?}: {}", run.stderr);
    }
}

#[test]
fn an_agents_command_cannot_answer_for_the_user() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        world.file(NAME, "model = \"big\"\n");
        let mut inside =
            world.sandbox(tier, &["--env", "BAILIWICK_HOME"], tests::Programs::get().path("bailiwick"));
        inside.args(["config", "trust"]);
        let (code, seen) = answer(&world, &mut inside, "y\n");
        // The confined program reads neither the user's settings nor the list of trusted files.
        assert!(code != 0 && seen.contains("Permission denied"), "{tier} {code}: {seen}");
        let run = Finished::of(world.bailiwick(["config", "-C"]).arg(world.project())).expect(0);
        assert!(run.stdout.contains("not trusted: no effect"), "{tier}: {}\n{seen}", run.stdout);
    }
}

#[test]
fn the_users_file_says_where_the_provider_is_and_a_flag_says_otherwise() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    world.configure(&format!("base_url = {:?}\nmodel = \"m\"\n", server.base_url()));
    let exec = |arguments: &[&str]| {
        let mut command = world.bailiwick(["exec", "-C"]);
        command.arg(world.project()).args(arguments).arg("do it").env("ANTHROPIC_API_KEY", tests::world::KEY);
        Finished::of(&mut command)
    };
    assert_eq!(exec(&[]).code, 0);
    let request: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(request["model"], "m");
    let other = model_of([done()]);
    assert_eq!(exec(&["--base-url", &other.base_url(), "--model", "n"]).code, 0);
    let request: Value = serde_json::from_slice(&other.requests()[0].body).unwrap();
    assert_eq!(request["model"], "n");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn only_the_users_own_word_approves_a_command_beforehand() {
    let preapproved = "approvals.preapproved = [[\"touch\"]]\n";
    let made = |world: &World| {
        let call = json!({"command": "touch made", "access": "write"});
        let server = model_of([tests::replies::calls(&[("shell_exec", call)]), done()]);
        let run = world.run(&server, &["--mode", "ask"]);
        (world.project().join("made").exists(), run.stderr)
    };
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        assert!(!made(&world).0, "{tier}: nobody was there to ask");
        world.file(NAME, preapproved);
        let (is_made, said) = made(&world);
        assert!(
            !is_made && said.contains("these settings have no effect: approvals.preapproved [\"touch\"]"),
            "{tier}: {said}"
        );
        fs::remove_file(world.project().join(NAME)).unwrap();
        world.configure(preapproved);
        let (is_made, said) = made(&world);
        assert!(is_made, "{tier}: {said}");
    }
}
