//! Tests `bailiwick plan`: plans are used outside of the sessions that made them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::world::tool_results;
use tests::{Finished, User, World, wait_until};

const PLAN: &str = "# Two words\n\n## Steps\n\n### 1. Write two\n\nAcceptance:\n- `grep -q two a.txt`\n\n### 2. Write three\n\nAcceptance:\n- `grep -q three a.txt`\n";

fn plan(world: &World, arguments: &[&str]) -> Finished {
    let (command, rest) = arguments.split_first().unwrap();
    Finished::of(world.bailiwick(["plan", command, "-C"]).arg(world.project()).args(rest))
}

/// Runs a command that asks the model, with these arguments.
fn with_model(world: &World, server: &ReplayServer, arguments: &[&str]) -> Finished {
    let mut command = world.bailiwick(arguments);
    command.args(["--base-url", &server.base_url(), "--model", "scripted", "-C"]).arg(world.project());
    Finished::of(command.env("ANTHROPIC_API_KEY", "no-key-is-needed"))
}

fn planned(markdown: &str) -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    world.file("old", "");
    let server = model_of([calls(&[("write_plan", json!({ "markdown": markdown }))]), done()]);
    let run = with_model(&world, &server, &["exec", "--activity", "plan", "plan it"]).expect(0);
    let path = run.stdout.lines().last().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), markdown);
    world
}

fn shown(world: &World) -> Value {
    serde_json::from_str(&plan(world, &["show", "--json"]).expect(0).stdout).unwrap()
}

fn approve(world: &World) {
    let digest = shown(world)["digest"].as_str().unwrap().to_owned();
    plan(world, &["approve", "--digest", &digest]).expect(0);
}

fn file_of(world: &World) -> PathBuf {
    shown(world)["path"].as_str().unwrap().into()
}

fn step(number: u32, word: &str) -> String {
    calls(&[
        ("update_step", json!({"step": number, "status": "in_progress"})),
        ("shell_exec", json!({"command": format!("echo {word} >> a.txt && rm -f old && touch {word}")})),
        ("update_step", json!({"step": number, "status": "completed"})),
    ])
}

#[test]
fn an_approved_plan_is_executed_and_goes_on_at_the_step_that_failed() {
    let world = planned(PLAN);
    let nobody = model_of([]);
    let refused = with_model(&world, &nobody, &["plan", "execute"]).expect(4);
    assert!(
        refused.stderr.contains("is not approved") && refused.stderr.contains("hint: bailiwick plan approve")
    );
    approve(&world);
    let server = model_of([step(1, "two"), step(2, "four"), done()]);
    let run = with_model(&world, &server, &["plan", "execute"]).expect(3);
    assert!(run.stderr.contains("step 2 is failed: Write three"), "{}", run.stderr);
    assert_eq!(shown(&world)["record"]["done"], 1);
    // What commands changed counts for the step, too.
    let ended = |event: &&Value| event["type"] == "plan_step_status" && event["data"]["to"] != "in_progress";
    let log = world.log();
    let changed = log.iter().filter(ended).map(|event| world.stable(&event["data"]["files"].to_string()));
    let project = "[world]/project";
    assert_eq!(
        changed.collect::<Vec<_>>(),
        [
            format!(r#"["{project}/a.txt","{project}/old","{project}/two"]"#),
            format!(r#"["{project}/a.txt","{project}/four"]"#)
        ]
    );
    let server = model_of([step(2, "three"), done()]);
    let run = with_model(&world, &server, &["plan", "execute"]).expect(0);
    assert!(run.stderr.contains("1 completed: Write two (finished before)"), "{}", run.stderr);
    assert_eq!(world.read("a.txt"), "one\ntwo\nfour\nthree\n");
    assert_eq!(shown(&world)["fate"], "executed");
    let again = with_model(&world, &nobody, &["plan", "execute"]).expect(2);
    assert!(again.stderr.contains("has already been executed"), "{}", again.stderr);
    assert!(nobody.requests().is_empty());
    let audited = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0);
    assert!(!audited.stdout.contains("finding:"), "{}", audited.stdout);
}

#[test]
fn a_planner_that_writes_no_plan_has_given_up() {
    let flags: [&[&str]; 2] = [&[], &["--mode", "auto", "--approve-plan"]];
    for flags in flags {
        let world = World::new(User::Myself);
        let arguments = [&["exec", "--activity", "plan"], flags, &["plan it"]].concat();
        let run = with_model(&world, &model_of([done()]), &arguments).expect(3);
        assert!(run.stderr.contains("bailiwick: no plan was written"), "{}", run.stderr);
        let arguments = [&arguments[..], &["--output", "json"]].concat();
        let run = with_model(&world, &model_of([done()]), &arguments).expect(3);
        let result: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&result["data"]["exit_code"], &result["data"]["reason"]), (&json!(3), &json!("gave_up")));
    }
}

#[test]
fn an_execution_that_was_killed_goes_on_at_its_step_within_its_session() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    let flags = ["exec", "--mode", "auto", "--activity", "plan", "--approve-plan"];
    let first = model_of([
        calls(&[("write_plan", json!({ "markdown": PLAN }))]),
        step(1, "two"),
        calls(&[
            ("update_step", json!({"step": 2, "status": "in_progress"})),
            ("shell_exec", json!({"command": "touch began; sleep 600"})),
        ]),
    ]);
    let mut command = world.bailiwick(flags);
    command
        .args(["--base-url", &first.base_url(), "--model", "scripted", "plan it", "-C"])
        .arg(world.project());
    command.env("ANTHROPIC_API_KEY", "no-key-is-needed").stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_until("the second step has begun", || world.project().join("began").exists());
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let second = model_of([step(2, "three"), done(), done(), done()]);
    let resumed = [&flags[..], &["-c", "go on"]].concat();
    let run = with_model(&world, &second, &resumed).expect(0);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n", "{}", run.stdout);
    let log = world.log();
    let ended = log.iter().filter(|event| event["type"] == "sub_agent_result").map(|event| &event["data"]);
    let ended: Vec<_> = ended.map(|data| (data["status"].clone(), data["plan"][0]["note"].clone())).collect();
    assert_eq!(ended, [(json!("interrupted"), Value::Null), (json!("done"), json!("finished before"))]);
    let approved = log.iter().filter(|event| event["type"] == "plan_approved").count();
    assert_eq!(approved, 2, "it is decided on anew");
}

#[test]
fn an_approval_is_of_exactly_these_bytes_in_exactly_this_project() {
    let world = planned(PLAN);
    let wrong = plan(&world, &["approve", "--digest", &"0".repeat(64)]).expect(2);
    assert!(wrong.stderr.contains("has another digest"), "{}", wrong.stderr);
    assert_eq!(shown(&world)["fate"], "proposed");
    // Without a terminal nobody is asked, and nothing is approved.
    plan(&world, &["approve"]).expect(2);
    approve(&world);
    let file = file_of(&world);
    fs::write(&file, PLAN.replace("grep -q two a.txt", "touch hacked")).unwrap();
    assert_eq!(shown(&world)["fate"], "proposed");
    assert!(plan(&world, &["list"]).expect(0).stdout.contains("edited after the plan was approved"));
    let nobody = model_of([]);
    with_model(&world, &nobody, &["plan", "execute"]).expect(4);
    // A plan of one project is not executed in another.
    fs::write(&file, PLAN).unwrap();
    let other = world.root().join("other");
    fs::create_dir(&other).unwrap();
    let id = shown(&world)["id"].as_str().unwrap().to_owned();
    let run = Finished::of(world.bailiwick(["plan", "execute", &id, "-C"]).arg(&other)).expect(2);
    assert!(run.stderr.contains("was made for"), "{}", run.stderr);
    plan(&world, &["reject"]).expect(0);
    with_model(&world, &nobody, &["plan", "execute"]).expect(4);
}

#[test]
fn a_plan_that_needs_more_than_the_flags_allow_ends_with_the_difference() {
    let wants = PLAN.replace("## Steps", "## Rights\n\n- network: on\n\n## Steps");
    let world = planned(&wants);
    assert!(plan(&world, &["show"]).expect(0).stdout.contains("needs --net on"));
    approve(&world);
    let nobody = model_of([]);
    let run = with_model(&world, &nobody, &["plan", "execute"]).expect(4);
    assert!(run.stderr.contains("the network (--net on allows it)"), "{}", run.stderr);
    assert_eq!(world.read("a.txt"), "one\n");
}

#[test]
fn a_place_that_no_approval_gives_is_a_denial_with_the_place_and_its_remedy() {
    let wants = PLAN.replace("## Steps", "## Rights\n\n- write: /etc\n\n## Steps");
    let flags: [&[&str]; 2] = [&[], &["--mode", "auto", "--approve-plan"]];
    for flags in flags {
        let world = World::new(User::Myself);
        world.file("a.txt", "one\n");
        let server = model_of([calls(&[("write_plan", json!({ "markdown": wants }))]), done()]);
        let arguments = [&["exec", "--activity", "plan"], flags, &["plan it"]].concat();
        let run = with_model(&world, &server, &arguments).expect(4);
        assert!(run.stderr.contains("write: /etc") && run.stderr.contains("--write /etc"), "{}", run.stderr);
        let told = String::from_utf8(server.requests()[1].body.to_vec()).unwrap();
        assert!(told.contains("the user can allow it with --write /etc"), "{told}");
        // If the planner then writes a narrower plan, the run succeeds.
        let writes = |markdown: &str| calls(&[("write_plan", json!({ "markdown": markdown }))]);
        let steps = if flags.is_empty() { vec![] } else { vec![step(1, "two"), step(2, "three"), done()] };
        let replies = [writes(&wants), writes(PLAN)].into_iter().chain(steps).chain([done()]);
        let server = model_of(replies);
        with_model(&world, &server, &arguments).expect(0);
    }
}

#[test]
fn an_edit_is_taken_as_a_whole_or_kept_for_its_author() {
    let world = planned(PLAN);
    approve(&world);
    let edit = |editor: &str| {
        let mut command = world.bailiwick(["plan", "edit", "-C"]);
        Finished::of(command.arg(world.project()).env_remove("VISUAL").env("EDITOR", editor))
    };
    assert!(edit("true").expect(0).stderr.contains("is unchanged"));
    assert_eq!(shown(&world)["fate"], "approved");
    let broken = edit("sed -i 's/## Steps/## Stops/'").expect(2);
    let kept = broken.stderr.trim_end().rsplit_once(" is in ").unwrap().1;
    assert!(fs::read_to_string(kept).unwrap().contains("## Stops"), "{}", broken.stderr);
    fs::remove_file(kept).unwrap();
    assert_eq!(fs::read_to_string(file_of(&world)).unwrap(), PLAN);
    assert!(
        edit("sed -i 's/Write three/Write 3/'").expect(0).stderr.contains("the plan needs a new approval")
    );
    assert_eq!(fs::read_to_string(file_of(&world)).unwrap(), PLAN.replace("Write three", "Write 3"));
    assert_eq!(shown(&world)["fate"], "proposed");
    // No key is in the editor's environment.
    let mut command = world.bailiwick(["plan", "edit", "-C"]);
    let environment = world.root().join("environment");
    let editor = format!("env > {}; true", environment.display());
    command.arg(world.project()).env("EDITOR", editor).env("ANTHROPIC_API_KEY", "the-canary");
    Finished::of(&mut command).expect(0);
    assert!(!fs::read_to_string(&environment).unwrap().contains("canary"));
}

#[test]
fn plans_are_listed_found_by_the_beginning_of_their_names_and_exported() {
    let world = planned(PLAN);
    let server = model_of([
        calls(&[("write_plan", json!({ "markdown": PLAN.replace("Two words", "Another") }))]),
        done(),
    ]);
    with_model(&world, &server, &["exec", "--activity", "plan", "again"]).expect(0);
    let listed = plan(&world, &["list", "--json"]).expect(0).stdout;
    let rows: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let titles: Vec<_> = rows.iter().map(|row| row["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Two words", "Another"]);
    let first = rows[0]["id"].as_str().unwrap();
    assert_eq!(plan(&world, &["export", first]).expect(0).stdout, PLAN);
    let several = plan(&world, &["show", "2"]).expect(2);
    assert!(several.stderr.contains("the names of several plans begin with"), "{}", several.stderr);
    assert!(plan(&world, &["show", "x"]).expect(2).stderr.contains("no plan \"x\""));
    // A link that an agent left is not written through.
    let victim = world.root().join("victim");
    fs::write(&victim, "kept").unwrap();
    symlink(&victim, world.project().join("plan.md")).unwrap();
    let target = world.project().join("plan.md");
    plan(&world, &["export", first, "-o", target.to_str().unwrap()]).expect(2);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    let empty = World::new(User::Myself);
    assert!(plan(&empty, &["show"]).expect(2).stderr.contains("there is no plan for"));
    assert!(plan(&empty, &["list"]).expect(0).stderr.contains("no plans"));
}

#[test]
fn what_lies_in_the_directory_of_plans_by_mistake_is_named_and_executes_nothing() {
    let world = planned(PLAN);
    let file = file_of(&world);
    for (text, word) in [
        (vec![b'x'; 300 << 10], "at most 262144 bytes, found 307200"),
        (b"# P\n\x1b]0;title\x07\n".to_vec(), "line"),
        (b"# \xff\n".to_vec(), "utf-8"),
    ] {
        fs::write(&file, text).unwrap();
        let run = plan(&world, &["approve", "--digest", &"0".repeat(64)]);
        assert!(run.code == 2 || run.code == 1, "{}", run.stderr);
        assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
        assert!(!run.stderr.contains('\x1b'));
    }
    fs::write(&file, PLAN).unwrap();
    fs::write(file.with_extension("json"), "{").unwrap();
    let id = file.file_stem().unwrap().to_str().unwrap();
    let run = plan(&world, &["execute", id]).expect(2);
    assert!(run.stderr.contains("the project of the plan"), "{}", run.stderr);
}

#[test]
fn a_link_in_the_project_makes_nothing_beyond_it_writable() {
    for tier in tests::tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let outside = world.root().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, world.project().join("out")).unwrap();
        let wants = PLAN.replace("## Steps", "## Rights\n\n- write: out\n\n## Steps");
        let server = model_of([
            calls(&[("write_plan", json!({ "markdown": wants }))]),
            calls(&[
                ("update_step", json!({"step": 1, "status": "in_progress"})),
                ("shell_exec", json!({"command": "echo two > out/x; echo two > a.txt"})),
                ("update_step", json!({"step": 1, "status": "completed"})),
            ]),
            done(),
            done(),
        ]);
        let mut arguments = vec!["exec", "--activity", "plan", "--mode", "auto", "--approve-plan", "do it"];
        arguments.extend(world.tier_flags());
        let run = with_model(&world, &server, &arguments);
        assert_ne!(run.code, 0, "{}", run.stderr);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{}", run.stderr);
    }
}

#[test]
fn what_cannot_begin_is_refused_before_anybody_is_asked() {
    let wants = PLAN.replace("## Steps", "## Rights\n\n- write: a.txt/b\n\n## Steps");
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    let plans = |markdown: &str| calls(&[("write_plan", json!({ "markdown": markdown }))]);
    // The planner is told what is wrong, and names the directory instead.
    let server = model_of([plans(&wants), plans(&wants.replace("a.txt/b", ".")), done()]);
    with_model(&world, &server, &["exec", "--activity", "plan", "plan it"]).expect(0);
    let told = String::from_utf8(server.requests()[1].body.to_vec()).unwrap();
    assert!(told.contains("a.txt/b: Not a directory"), "{told}");
    // A person who edits the plan in the same way gets the error at the approval.
    fs::write(file_of(&world), &wants).unwrap();
    let digest = shown(&world)["digest"].as_str().unwrap().to_owned();
    let refused = plan(&world, &["approve", "--digest", &digest]).expect(2);
    assert!(refused.stderr.contains("cannot be approved: write: "), "{}", refused.stderr);
    assert_eq!(shown(&world)["fate"], "proposed");
}

#[test]
fn a_plan_is_refused_before_its_approval_where_no_sub_agent_may_execute_it() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    world.configure("agents.depth = 0\n");
    let server = model_of([calls(&[("write_plan", json!({ "markdown": PLAN }))]), done()]);
    let flags = ["exec", "--activity", "plan", "--mode", "auto", "--approve-plan", "do it"];
    with_model(&world, &server, &flags).expect(3);
    let told = tool_results(&server, 1).remove(0).to_string();
    assert!(told.contains("agents.depth is 0 in the settings"), "{told}");
    let log = world.log();
    assert!(log.iter().all(|event| event["type"] != "plan_created" && event["type"] != "approval_requested"));
}

/// Returns a plan that is to create two files in an existing directory.
fn creates() -> String {
    PLAN.replace("## Steps", "## Rights\n\n- write: src/two\n- write: src/three\n\n## Steps")
        .replace("a.txt", "src/*")
}

fn creates_step(number: u32, command: &str) -> String {
    calls(&[
        ("update_step", json!({"step": number, "status": "in_progress"})),
        ("shell_exec", json!({"command": command})),
        ("update_step", json!({"step": number, "status": "completed"})),
    ])
}

#[test]
fn a_file_to_create_is_granted_as_its_directory_and_nothing_beside_it() {
    for tier in tests::tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        world.file("a.txt", "one\n");
        fs::create_dir(world.project().join("src")).unwrap();
        let server = model_of([
            calls(&[("write_plan", json!({ "markdown": creates() }))]),
            creates_step(1, "echo two > src/two; echo no > a.txt; echo no > b.txt"),
            creates_step(2, "echo three > src/three"),
            done(),
            done(),
        ]);
        let mut arguments = vec!["exec", "--activity", "plan", "--mode", "auto", "--approve-plan", "do it"];
        arguments.extend(world.tier_flags());
        with_model(&world, &server, &arguments).expect(0);
        assert_eq!((world.read("src/two"), world.read("src/three")), ("two\n".into(), "three\n".into()));
        assert_eq!(world.read("a.txt"), "one\n");
        assert!(!world.project().join("b.txt").exists());
        let log = world.log();
        let approved = log.iter().find(|event| event["type"] == "plan_approved").unwrap();
        assert_eq!(world.stable(&approved["data"]["write"].to_string()), r#"["[world]/project/src"]"#);
        let told = String::from_utf8(server.requests().last().unwrap().body.to_vec()).unwrap();
        assert!(
            told.contains("src/two does not exist yet: to create it, execution can write the directory "),
            "{told}"
        );
    }
}

#[test]
fn an_execution_gets_the_directories_that_its_approval_showed_and_no_others() {
    let world = World::new(User::Myself);
    fs::create_dir(world.project().join("src")).unwrap();
    let server = model_of([calls(&[("write_plan", json!({ "markdown": creates() }))]), done()]);
    with_model(&world, &server, &["exec", "--activity", "plan", "plan it"]).expect(0);
    let access = |world: &World| world.stable(&plan(world, &["show"]).expect(0).stdout);
    let shown_access = "  write    [world]/project/src (to create [world]/project/src/two)";
    assert!(access(&world).contains(shown_access), "{}", access(&world));
    approve(&world);
    // Files that were created since the approval, or by an earlier execution, do not change the shown access.
    fs::write(world.project().join("src/two"), "").unwrap();
    assert!(access(&world).contains(shown_access), "{}", access(&world));
    let server = model_of([
        creates_step(1, "echo two > src/tmp && mv src/tmp src/two"),
        creates_step(2, "false"),
        done(),
    ]);
    with_model(&world, &server, &["plan", "execute"]).expect(3);
    let listed = plan(&world, &["list"]).expect(0).stdout;
    assert!(
        listed.contains("1 step done; end of the last execution: gave up: step 2 of the plan is failed"),
        "{listed}"
    );
    // Write access to the whole project was never shown, so it is not given instead.
    fs::remove_dir_all(world.project().join("src")).unwrap();
    let nobody = model_of([]);
    let refused = with_model(&world, &nobody, &["plan", "execute"]).expect(3);
    assert!(refused.stderr.contains("src does not exist"), "{}", refused.stderr);
    approve(&world);
    assert!(access(&world).contains("  write    [world]/project (to create [world]/project/src/two)"));
}

#[test]
fn a_plan_whose_executor_could_not_start_is_told_so_and_may_be_followed_by_another() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    world.configure("[agents]\nper_turn = 1\n");
    let again = PLAN.replace("Two words", "Again");
    let plans = |markdown: &str| calls(&[("write_plan", json!({ "markdown": markdown }))]);
    // The planner's sub-agent is the only one that the turn may start.
    let asked = calls(&[("spawn_agent", json!({"task": "look"}))]);
    let server = model_of([asked, done(), plans(PLAN), plans(&again), done()]);
    let flags = ["exec", "--activity", "plan", "--mode", "auto", "--approve-plan", "do it"];
    with_model(&world, &server, &flags).expect(3);
    let told = String::from_utf8(server.requests()[3].body.to_vec()).unwrap();
    assert!(told.contains("this turn has started 1 sub-agent"), "{told}");
    assert!(told.contains("[the plan was not started: look what went wrong, then call write_plan"), "{told}");
    let listed = plan(&world, &["list"]).expect(0).stdout;
    assert!(listed.contains("Again (2 steps)"), "{listed}");
    assert!(
        listed.contains("unfinished 2")
            && listed.contains("end of the last execution: crashed: this turn has started 1 sub-agent"),
        "{listed}"
    );
}

#[test]
fn no_line_of_a_plan_looks_like_one_of_the_account() {
    const END: &str = "──────── end of the plan; the rest is from Bailiwick ────────";
    let account = format!("{END}\n\nplan    x\nits execution may write nothing\n");
    let forged = PLAN.replacen("\n\nAcceptance", &format!("\n\n{account}\nAcceptance"), 1);
    let world = planned(&forged);
    let shown = plan(&world, &["show"]).expect(0).stdout;
    let (text, account) = shown.split_once(&format!("\n{END}\n")).unwrap();
    assert!(text.lines().all(|line| line.starts_with("│ ")), "{shown}");
    assert_eq!(text.lines().count(), forged.lines().count());
    assert!(account.contains("sha256  ") && !account.contains("its execution may write nothing"), "{shown}");
}
