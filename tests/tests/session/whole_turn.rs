//! Tests an approval for a whole turn, over `serve`: the turn's changes can be undone byte for byte, sub-agents get no
//! more access than the turn, and a continued session has nothing of the approval.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, model_of_agents};
use tests::served::Served;
use tests::{User, World, tier};

use crate::rewind::{names, tree};

fn answer(served: &mut Served, request: &Value, decision: &str) {
    let digest = &request["params"]["digest"];
    let result = json!({"decision": decision, "digest": digest});
    served.line(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
}

fn edit() -> String {
    calls(&[("write_file", json!({"path": "kept.txt", "content": "other\n"}))])
}

fn command(text: &str) -> String {
    calls(&[("shell_exec", json!({"command": text, "access": "write"}))])
}

#[test]
fn all_of_the_turn_is_undone_byte_for_byte() {
    let world = World::new(User::Myself);
    world.file("kept.txt", "as it was\r\n");
    world.file("bin", [0, 159, 146, 150, 255]);
    world.file("tool", "#!/bin/sh\n");
    fs::set_permissions(world.project().join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    world.file("deep/er/file", "deep\n");
    symlink("kept.txt", world.project().join("link")).unwrap();
    let before = tree(&world);
    let all = "rm -r deep && chmod 600 tool && ln -sfn bin link && printf y >> bin && mkdir new && echo n > new/file";
    let model = model_of([edit(), command(all), done()]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "ask");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
    let said = served.until("event/userMessage")["logged"]["id"].as_u64().unwrap();
    let request = served.asked("applyPatchApproval");
    assert_eq!(request["params"]["turn"]["network_after"], "off");
    answer(&mut served, &request, "approved_for_turn");
    let access = served.until("event/turnAllowed")["data"]["access"].clone();
    assert_eq!(access, request["params"]["turn"]);
    assert_eq!(served.until("event/rightsChanged")["data"]["rights"], access["rights"]);
    served.until("event/turnAllowanceEnded");
    assert_ne!(tree(&world), before);
    let target = json!({"conversation_id": id, "to": said, "scope": "files"});
    served.call("rewind", target.clone());
    let preview = served.until("event/rewindPreview")["data"].clone();
    assert_eq!(names(&preview["files"]).len(), 6, "{preview}");
    let mut confirmed = target;
    confirmed["digest"] = preview["digest"].clone();
    served.call("rewind", confirmed);
    served.until("event/rewound");
    assert_eq!(tree(&world), before);
    served.end().1.expect(0);
}

#[test]
fn a_sub_agent_of_the_turn_gets_no_more_than_the_turn_has() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(
        "if (exec 3<>/dev/tcp/127.0.0.1/{}) 2>/dev/null; then echo it-reached; else echo it-could-not; fi",
        listener.local_addr().unwrap().port()
    );
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        world.file("kept.txt", "as it was\n");
        let outside = world.outside();
        let spawn = |task: &str, more: Value| {
            let mut input = json!({"task": task, "access": "write"});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            calls(&[("spawn_agent", input)])
        };
        let tries = command(&format!(
            "echo s > of-sub-agent; echo y > {}/made || echo kept-out; {connect}",
            outside.display()
        ));
        let first = [
            edit(),
            spawn("reach", json!({"network": true})),
            spawn("leave", json!({"write": [outside]})),
            spawn("work", json!({})),
            done(),
        ];
        let model = model_of_agents(first, [("work".to_owned(), vec![tries, done()])]);
        let mut served = Served::greeted(&world);
        let options =
            json!({"cwd": world.project(), "base_url": model.base_url(), "mode": "ask", "net": "on"});
        let id = served.call("newConversation", options)["conversation_id"].clone();
        served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
        let request = served.asked("applyPatchApproval");
        answer(&mut served, &request, "approved_for_turn");
        let mut asked = Vec::new();
        loop {
            let line = served.read().unwrap();
            match line["method"].as_str() {
                Some("event/turnAllowanceEnded") => break,
                Some(method) if line.get("id").is_some() => {
                    asked.push(method.to_owned());
                    answer(&mut served, &line, "denied");
                }
                _ => {}
            }
        }
        served.end().1.expect(0);
        let log = world.log();
        let of_kind = |kind: &str| log.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
        let said = of_kind("tool_call_finished");
        let said = said.iter().find(|event| event["data"]["content"].to_string().contains("kept-out"));
        let said = said.unwrap()["data"]["content"].to_string();
        assert!(said.contains("it-could-not"), "{tier}: {said}");
        assert_eq!(world.read("of-sub-agent"), "s\n", "{tier}: the control");
        assert!(!outside.join("made").exists(), "{tier}");
        assert_eq!(asked, ["agentRightsApproval"], "{tier}: a place beyond the turn's is asked for");
        let of_sub_agents: Vec<_> =
            of_kind("worker_started").into_iter().filter(|event| event["agent"] != "1").collect();
        assert!(!of_sub_agents.is_empty(), "{tier}");
        for started in of_sub_agents {
            let rights = &started["data"]["rights"];
            assert_eq!(rights["net"], "off", "{tier}: {started}");
            assert!(!rights["write"].to_string().contains("outside"), "{tier}: {started}");
        }
    }
}

#[test]
fn a_session_that_goes_on_has_nothing_of_it() {
    let world = World::new(User::Myself);
    world.file("kept.txt", "as it was\n");
    let model = model_of([edit(), command("echo it-runs; sleep 600"), command("echo x > made"), done()]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "ask");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
    let request = served.asked("applyPatchApproval");
    answer(&mut served, &request, "approved_for_turn");
    served.until("event/outputDelta");
    served.process.kill().unwrap();
    served.process.wait().unwrap();
    assert_eq!(world.read("kept.txt"), "other\n");
    let mut served = Served::greeted(&world);
    let options = json!({"cwd": world.project(), "base_url": model.base_url(), "mode": "ask", "resume": id});
    served.call("newConversation", options);
    let started = served.until("event/sessionStarted");
    assert_eq!(started["data"]["resumed"], true);
    assert_eq!(started["data"]["rights"]["write"], json!(["temp"]), "{started}");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "go on"}));
    let request = served.asked("execCommandApproval");
    assert!(request["params"]["turn"].is_object());
    answer(&mut served, &request, "denied");
    served.until("event/turnFinished");
    assert!(!world.project().join("made").exists());
    served.end().1.expect(0);
}
