//! Tests MCP servers of sub-agents, planners and executors: the access that counts, their owners, and their end.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::programs::write_script;
use tests::replies::{calls, done, model_of_agents};
use tests::served::Served;
use tests::{Finished, World, tier};

use crate::sessions::{add, echo, world};

const TASK: &str = "look at the documents";

fn spawn(arguments: &Value) -> String {
    let mut input = arguments.clone();
    input["task"] = json!(TASK);
    calls(&[("spawn_agent", input)])
}

/// Runs a task. The first agent gives the replies `first`, and the agent with the task `task` those of `in_task`.
fn run(world: &World, first: &[String], task: &str, in_task: &[String], flags: &[&str]) -> Finished {
    let with_end = |replies: &[String]| [replies, &[done()]].concat();
    let server = model_of_agents(with_end(first), [(task.to_owned(), with_end(in_task))]);
    let flags = [&["--mcp", "docs", "--output", "stream-json"], flags, &["go"]].concat();
    Finished::of(&mut world.task(&server.base_url(), flags))
}

/// Runs a sub-agent that makes these calls. Returns the result of each call, with the call's status.
fn of_sub_agent(
    world: &World,
    arguments: &Value,
    replies: &[String],
    flags: &[&str],
) -> Vec<(String, String)> {
    results(&run(world, &[spawn(arguments)], TASK, replies, flags), "1.1")
}

/// Returns the results of an agent's calls, each with the status.
fn results(run: &Finished, agent: &str) -> Vec<(String, String)> {
    let events = run.events();
    let finished =
        events.iter().filter(|event| event["type"] == "tool_call_finished" && event["agent"] == agent);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let found: Vec<_> =
        finished.map(|event| (text(&event["data"]["status"]), text(&event["data"]["content"]))).collect();
    assert!(!found.is_empty(), "{}\n{}", run.stdout, run.stderr);
    found
}

#[test]
fn a_sub_agent_has_the_servers_that_its_parent_names_and_no_others() {
    for tier in tier::all() {
        let world = world(tier);
        add(&world, &[]).expect(0);
        let found = of_sub_agent(&world, &json!({"servers": ["docs"]}), &[echo("hello")], &[]);
        assert!(found[0].0 == "completed" && found[0].1.contains("hello"), "{found:?}");
        let forged = ["docs__echo", "docs__echo ", "DOCS__echo", "docs__\u{435}cho", "mcp__docs__echo"];
        let forged = forged.map(|name| calls(&[(name, json!({"text": "x"}))]));
        let by_search = calls(&[("call_tool", json!({"name": "docs__echo", "arguments": {}}))]);
        let tried = [forged.as_slice(), &[by_search]].concat();
        let found = of_sub_agent(&world, &json!({}), &tried, &[]);
        assert_eq!(found.len(), tried.len());
        for (status, text) in &found {
            assert!(status == "failed" && text.contains("there is no tool named"), "{found:?}");
        }
    }
}

#[test]
fn a_parent_names_only_servers_that_it_has_itself() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    let ran = run(&world, &[spawn(&json!({"servers": ["docs", "evil"]}))], TASK, &[], &[]);
    let found = results(&ran, "1");
    assert!(found[0].0 == "failed" && found[0].1.contains("got \"evil\", you have docs"), "{found:?}");
    // A sub-agent without a server has none for its own sub-agents.
    let inner = calls(&[("spawn_agent", json!({"task": "below", "servers": ["docs"]}))]);
    let found = of_sub_agent(&world, &json!({}), &[inner], &[]);
    assert!(found[0].1.contains("expected none: you have no MCP server"), "{found:?}");
}

#[test]
fn a_server_that_may_do_more_than_a_sub_agent_is_denied_to_it_with_a_remedy() {
    let world = world(tier::all()[0]);
    let outside = world.outside();
    let outside = outside.to_str().unwrap();
    add(&world, &["--write", outside]).expect(0);
    let named = json!({"servers": ["docs"]});
    let found = of_sub_agent(&world, &named, &[echo("x")], &["--write", outside]);
    let (status, text) = &found[0];
    assert_eq!(status, "denied", "{text}");
    let remedy = format!("or start a sub-agent with write: [\"{outside}\"]");
    assert!(text.contains("can do more than you") && text.contains(&remedy), "{text}");
    let with_right = json!({"servers": ["docs"], "write": [outside]});
    let found = of_sub_agent(&world, &with_right, &[echo("x")], &["--write", outside]);
    assert_eq!(found[0].0, "completed", "{found:?}");
    add(&world, &["--env", "MCP_TOKEN"]).expect(0);
    let found = of_sub_agent(&world, &named, &[echo("x")], &["--mode", "auto"]);
    assert!(found[0].0 == "denied" && found[0].1.contains("given MCP_TOKEN"), "{found:?}");
}

/// Adds a server that records its starts and ends in its home, and returns that directory.
fn add_noting(world: &World) -> PathBuf {
    write_script(
        &world.project().join("server.sh"),
        "#!/bin/sh\nid=$(od -An -tx8 -N8 /dev/urandom)\necho $id >> \"$HOME/starts\"\n./fake echo\necho $id >> \"$HOME/ends\"\n",
    );
    add(world, &[]).expect(0);
    let home = world.own().join("state/guests/docs/home");
    for name in ["starts", "ends"] {
        fs::write(home.join(name), "").unwrap();
    }
    home
}

#[test]
fn each_agent_has_a_process_of_a_server_and_it_ends_with_the_agent() {
    for tier in tier::all() {
        let world = world(tier);
        let home = add_noting(&world);
        let lines = |name: &str| fs::read_to_string(home.join(name)).unwrap().lines().count();
        let first = [echo("first"), spawn(&json!({"servers": ["docs"]})), echo("again")];
        let ran = run(&world, &first, TASK, &[echo("inside")], &[]).expect(0);
        let of_first = results(&ran, "1");
        assert!(of_first.iter().all(|(status, _)| status == "completed"), "{of_first:?}");
        assert_eq!((lines("starts"), lines("ends")), (2, 2), "{tier}");
        let starts = fs::read_to_string(home.join("starts")).unwrap();
        let ends = fs::read_to_string(home.join("ends")).unwrap();
        let last = |text: &str| text.lines().last().map(str::to_owned);
        assert_eq!(starts.lines().next().map(str::to_owned), last(&ends), "the first agent's ends last");
    }
}

/// Adds a server whose first process behaves well. Further ones behave as the file `mode` says.
fn add_turning(world: &World) -> PathBuf {
    let script = "#!/bin/sh\nif mkdir \"$HOME/first\" 2> /dev/null; then exec ./fake echo; else exec ./fake \"$(cat mode)\"; fi\n";
    write_script(&world.project().join("server.sh"), script);
    add(world, &[]).expect(0);
    let first = world.own().join("state/guests/docs/home/first");
    fs::remove_dir(&first).unwrap();
    first
}

/// Behaviours of a server that harms the sub-agent that calls it, each with the status and text of the call's result.
const HOSTILE: [(&str, &str, &str); 9] = [
    ("dies", "failed", "cannot find the database"),
    ("dies-in-a-call", "failed", "out of luck"),
    ("floods-strays", "failed", "the server sent too many answers without a request"),
    ("answers-others", "completed", "true"),
    ("broken", "failed", "too many lines are not messages of MCP"),
    ("long-line", "failed", "a line of more than"),
    ("large-result", "failed", "a result of more than"),
    ("two-pages", "failed", "was removed since the user approved"),
    ("asks-in-a-storm", "failed", "the server sent too many requests"),
];

#[test]
fn a_hostile_server_of_a_sub_agent_hurts_neither_its_parent_nor_the_session() {
    for tier in tier::all() {
        let world = world(tier);
        let first_process = add_turning(&world);
        for (mode, status, words) in HOSTILE {
            world.file("mode", mode);
            let _ = fs::remove_dir(&first_process);
            let first = [echo("first"), spawn(&json!({"servers": ["docs"]})), echo("again")];
            let ran = run(&world, &first, TASK, &[echo("inside")], &[]).expect(0);
            let of_sub = results(&ran, "1.1");
            assert!(of_sub[0].0 == status && of_sub[0].1.contains(words), "{tier} {mode}: {of_sub:?}");
            assert!(!ran.stdout.contains("forged"), "{tier} {mode}: {}", ran.stdout);
            let of_first = results(&ran, "1");
            assert!(of_first.iter().all(|(status, _)| status == "completed"), "{tier} {mode}: {of_first:?}");
            assert!(
                of_first[0].1.contains("first") && of_first[2].1.contains("again"),
                "{mode}: {of_first:?}"
            );
        }
    }
}

#[test]
fn a_hostile_server_of_a_sub_agent_in_one_conversation_of_serve_leaves_the_other_alone() {
    let world = world(tier::all()[0]);
    let first_process = add_turning(&world);
    for (mode, ..) in [HOSTILE[0], HOSTILE[2], HOSTILE[5]] {
        world.file("mode", mode);
        let _ = fs::remove_dir(&first_process);
        let end = |replies: &[String]| [replies, &[done()]].concat();
        let quiet = model_of_agents(end(&[echo("one"), echo("two")]), []);
        let loud = model_of_agents(
            end(&[spawn(&json!({"servers": ["docs"]}))]),
            [(TASK.to_owned(), end(&[echo("inside"), echo("inside")]))],
        );
        let mut served = Served::greeted(&world);
        let [of_quiet, of_loud] =
            [&quiet, &loud].map(|model| served.converse(&world.project(), &model.base_url(), "auto"));
        let say = |served: &mut Served, conversation: &str| {
            // This reads no events, because the test counts all of them later.
            let params = json!({"conversation_id": conversation, "text": "go"});
            served.line(
                &json!({"jsonrpc": "2.0", "id": conversation, "method": "sendUserMessage", "params": params})
                    .to_string(),
            );
        };
        say(&mut served, &of_quiet);
        tests::wait_until("the well-behaved process runs", || first_process.exists());
        say(&mut served, &of_loud);
        let mut ended = 0;
        let mut results = Vec::new();
        while ended < 2 {
            let event = served.read().expect("serve goes on");
            let is_first = event["params"]["conversation_id"] == of_quiet.as_str();
            match event["method"].as_str() {
                Some("event/toolCallFinished") if is_first => results.push(event["params"].to_string()),
                Some("event/turnFinished") if event["params"]["logged"]["agent"] == "1" => ended += 1,
                _ => {}
            }
        }
        assert_eq!(results.len(), 2, "{mode}: {results:?}");
        assert!(
            results.iter().zip(["one", "two"]).all(|(result, text)| result.contains(text)),
            "{mode}: {results:?}"
        );
        served.end();
    }
}

fn plan(rights: &str) -> String {
    let rights = if rights.is_empty() { String::new() } else { format!("## Rights\n{rights}\n\n") };
    format!("# Ask the documents\n\n{rights}## Steps\n\n### 1. Ask\nAsk once.\n")
}

fn writes(plan: &str) -> String {
    calls(&[("write_plan", json!({ "markdown": plan }))])
}

fn execution(plan: &str) -> String {
    format!("Execute this plan.\n\n<plan>\n{}\n</plan>", plan.trim_end())
}

fn completes() -> String {
    calls(&[("update_step", json!({"step": 1, "status": "completed"}))])
}

const EXECUTE: [&str; 5] = ["--activity", "plan", "--mode", "auto", "--approve-plan"];

#[test]
fn a_planner_calls_what_it_could_do_itself_and_no_more() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    let plans = ["--activity", "plan"];
    let found = results(&run(&world, &[echo("hello")], TASK, &[], &plans), "1");
    assert!(found[0].0 == "completed" && found[0].1.contains("hello"), "{found:?}");
    add(&world, &["--env", "MCP_TOKEN"]).expect(0);
    let found = results(&run(&world, &[echo("hello")], TASK, &[], &plans), "1");
    let (status, text) = &found[0];
    assert!(status == "denied" && text.contains("`- server: docs` below `## Rights`"), "{text}");
}

#[test]
fn an_executor_calls_what_its_rights_cover_and_is_denied_the_rest() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    let text = plan("");
    let task = execution(&text);
    let executed = |rest: &[String], flags: &[&str]| {
        let flags = [&EXECUTE, flags].concat();
        results(&run(&world, &[writes(&text)], &task, &[rest, &[completes()]].concat(), &flags), "1.1")
    };
    let found = executed(&[echo("hello")], &[]);
    assert!(found[0].0 == "completed" && found[0].1.contains("hello"), "{found:?}");
    let outside = world.outside();
    let outside = outside.to_str().unwrap();
    add(&world, &["--write", outside]).expect(0);
    let found = executed(&[echo("x")], &["--write", outside]);
    let (status, said) = &found[0];
    assert!(status == "denied" && said.contains("the approved plan does not list this server"), "{said}");
}

#[test]
fn flags_approve_a_server_of_a_plan_only_as_far_as_they_allow_what_it_may_do() {
    let world = world(tier::all()[0]);
    let outside = world.outside();
    let outside = outside.to_str().unwrap();
    add(&world, &["--write", outside]).expect(0);
    let text = plan("- server: docs");
    let task = execution(&text);
    let refused = run(&world, &[writes(&text)], &task, &[], &EXECUTE);
    let found = results(&refused, "1");
    let (status, said) = &found[0];
    assert!(status == "denied" && said.contains("calls of the MCP server docs"), "{said}");
    assert!(said.contains(&format!("--write {outside} allows it")), "{said}");
    let flags = [&EXECUTE[..], &["--write", outside]].concat();
    let ran = run(&world, &[writes(&text)], &task, &[echo("hello"), completes()], &flags).expect(0);
    assert!(results(&ran, "1.1")[0].1.contains("hello"), "{}", ran.stdout);
    let unknown = plan("- server: evil");
    let found = results(&run(&world, &[writes(&unknown)], TASK, &[], &EXECUTE), "1");
    assert!(found[0].1.contains("server: evil does not exist"), "{found:?}");
}

#[test]
fn a_person_approves_a_plan_with_its_servers_and_the_execution_calls_these_tools_alone() {
    let world = world(tier::all()[0]);
    add(&world, &["--env", "MCP_TOKEN"]).expect(0);
    let text = plan("- tool: docs__echo");
    let other = calls(&[("docs__other", json!({}))]);
    let model = model_of_agents(
        [writes(&text), done()],
        [(execution(&text), vec![echo("hello"), other, completes(), done()])],
    );
    let mut served = Served::greeted(&world);
    let options =
        json!({"cwd": world.project(), "base_url": model.base_url(), "mode": "ask", "activity": "plan"});
    let opened = served.call("newConversation", options);
    let conversation = opened["conversation_id"].as_str().unwrap().to_owned();
    served.call("sendUserMessage", json!({"conversation_id": conversation, "text": "plan it"}));
    let asked = served.asked("planApproval");
    let shown = &asked["params"]["servers"];
    assert_eq!(shown[0]["name"], "docs");
    assert_eq!(shown[0]["tools"], json!(["echo"]));
    assert_eq!(shown[0]["access"]["variables"], json!(["MCP_TOKEN"]));
    let decision = json!({"decision": "approved", "digest": asked["params"]["digest"]});
    served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": decision}).to_string());
    let mut of_executor = Vec::new();
    while of_executor.len() < 2 {
        let finished = served.until("event/toolCallFinished");
        if finished["logged"]["agent"] == "1.1" {
            of_executor.push(finished.to_string());
        }
    }
    assert!(of_executor[0].contains("hello"), "{of_executor:?}");
    assert!(of_executor[1].contains("the approved plan does not list this server"), "{of_executor:?}");
    served.end();
}

#[test]
fn an_approval_for_the_session_reaches_no_sub_agent() {
    let world = world(tier::all()[0]);
    add(&world, &["--env", "MCP_TOKEN"]).expect(0);
    let first = [echo("first"), spawn(&json!({"servers": ["docs"]})), done()];
    let model = model_of_agents(first, [(TASK.to_owned(), vec![echo("inside"), done()])]);
    let mut served = Served::greeted(&world);
    let conversation = served.converse(&world.project(), &model.base_url(), "ask");
    served.call("sendUserMessage", json!({"conversation_id": conversation, "text": "go"}));
    let asked = served.asked("externalToolApproval");
    let decision = json!({
        "decision": "approved_for_session", "scope": {"type": "tool"}, "digest": asked["params"]["digest"],
    });
    served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": decision}).to_string());
    let inside = loop {
        let finished = served.until("event/toolCallFinished");
        if finished["logged"]["agent"] == "1.1" {
            break finished.to_string();
        }
    };
    assert!(
        inside.contains("blocked by") && inside.contains("the agent that started you can make the call"),
        "{inside}"
    );
    served.end();
}

#[test]
fn many_tools_are_found_and_called_by_the_sub_agent_that_has_them() {
    let world = world(tier::all()[0]);
    world.file("mode", "thirty-tools");
    add(&world, &[]).expect(0);
    let find = calls(&[("find_tools", json!({"words": "tool7"}))]);
    let call = calls(&[("call_tool", json!({"name": "docs__tool7", "arguments": {"text": "hello"}}))]);
    let found = of_sub_agent(&world, &json!({"servers": ["docs"]}), &[find.clone(), call.clone()], &[]);
    assert!(found[0].0 == "completed" && found[0].1.contains("docs__"), "{found:?}");
    assert_eq!(found[1].0, "completed", "{found:?}");
    let without = of_sub_agent(&world, &json!({}), &[find, call], &[]);
    assert!(without.iter().all(|(_, text)| text.contains("there is no tool named")), "{without:?}");
}
