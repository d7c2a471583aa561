//! Tests gateways and fetches in the log: each start has exactly one end.

use std::process::Stdio;

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::guests::ends;
use tests::replies::{calls, done, model_of, model_of_agents, shell};
use tests::served::Served;
use tests::{Finished, wait_until};

use crate::ground::{Ground, on_a_machine};

const FETCH: &str = "curl -sS http://a.example/";

/// Command that holds a connection open until it is killed.
const HOLD: &str = "exec 3<>/dev/tcp/a.example/7; echo held >&3; head -c 5 <&3 > got; cat <&3";

fn page(url: &str) -> String {
    calls(&[("fetch_url", json!({ "url": url }))])
}

fn is_held(ground: &Ground) -> bool {
    std::fs::read_to_string(ground.world.project().join("got")).is_ok_and(|got| got == "held\n")
}

fn guests_of(log: &[Value], kind: &str) -> Vec<Value> {
    let started = log.iter().filter(|event| event["type"] == "guest_started");
    started.map(|event| event["data"].clone()).filter(|data| data["kind"] == kind).collect()
}

/// Opens a conversation whose agent holds a connection to one host, or fetches a page of a second host that never
/// answers.
fn serve(ground: &Ground, replies: Vec<String>) -> (Served, Value, ReplayServer) {
    let model = model_of(replies);
    let mut served = Served::greeted(&ground.world);
    let net = json!({"hosts": ["a.example:7", "silent.example:80"]});
    let options = json!({
        "cwd": ground.world.project(), "base_url": model.base_url(), "mode": "auto", "tier": ground.tier.to_string(), "net": net,
    });
    let id = served.call("newConversation", options)["conversation_id"].clone();
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "begin"}));
    (served, id, model)
}

#[test]
fn a_session_ends_its_guests_and_counts_what_they_did() {
    on_a_machine("guests::a_session_ends_its_guests_and_counts_what_they_did", |ground| {
        let model = model_of([shell(FETCH), page("http://a.example/x"), done()]);
        let ended = ground.world.run(&model, &["--mode", "auto", "--net", "a.example:80"]);
        assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
        let log = ground.world.log();
        assert_eq!(ends(&log), ["fetch finished", "gateway owner_ended"], "{}", ground.tier);
        for kind in ["gateway", "fetch"] {
            let [guest] = &guests_of(&log, kind)[..] else { panic!("{log:?}") };
            assert_eq!(guest["tier"], ground.tier.to_string());
            let (rights, hosts) = (&guest["rights"], &guest["hosts"]);
            assert_eq!((&rights["read"], &rights["exec"]), (&json!(["system"]), &json!("denied")), "{guest}");
            assert_eq!(hosts, &json!(["a.example:80"]));
            let end = log
                .iter()
                .find(|event| event["type"] == "guest_ended" && event["data"]["guest"] == guest["guest"]);
            let totals = &end.unwrap()["data"]["totals"];
            assert_eq!(totals["connections"], 1, "{totals}");
            assert!(totals["sent"].as_u64() > Some(50) && totals["received"].as_u64() > Some(50), "{totals}");
        }
        let audit =
            Finished::of(ground.world.bailiwick(["audit", "-C"]).arg(ground.world.project())).expect(0);
        let told = "\n  guest gateway: read-only · read system files · network on · no commands · the program connects only to a.example:80 · 1 \
                    connection · ";
        assert!(audit.stdout.contains(told), "{}", audit.stdout);
        assert!(audit.stdout.contains("\n  guest fetch a.example: "), "{}", audit.stdout);
    });
}

#[test]
fn a_sub_agent_ends_with_its_guests() {
    on_a_machine("guests::a_sub_agent_ends_with_its_guests", |ground| {
        let tasks = [("fetch".to_owned(), vec![shell(FETCH), done()])];
        let input = json!({"task": "fetch", "network": true});
        let server = model_of_agents([calls(&[("spawn_agent", input)]), done()], tasks);
        ground.world.run(&server, &["--mode", "auto", "--net", "a.example:80"]).expect(0);
        assert_eq!(ends(&ground.world.log()), ["gateway owner_ended"; 2]);
    });
}

#[test]
fn the_network_that_is_turned_off_ends_the_gateway_and_says_why() {
    on_a_machine("guests::the_network_that_is_turned_off_ends_the_gateway_and_says_why", |ground| {
        let (mut served, id, _model) = serve(ground, vec![shell(HOLD), done()]);
        wait_until("the connection is open", || is_held(ground));
        served.call("setNet", json!({"conversation_id": id, "net": "off"}));
        let ended = served.until("event/guestEnded");
        assert_eq!(ended["data"]["reason"]["type"], "rights_changed", "{ended}");
        served.until("event/rightsChanged");
        served.end();
        assert_eq!(ends(&ground.world.log()), ["gateway rights_changed"]);
    });
}

#[test]
fn an_interrupt_closes_a_fetch_and_leaves_the_gateway() {
    on_a_machine("guests::an_interrupt_closes_a_fetch_and_leaves_the_gateway", |ground| {
        let (mut served, id, _model) = serve(ground, vec![page("http://silent.example/"), done()]);
        while served.until("event/guestStarted")["data"]["kind"] != "fetch" {}
        served.call("interrupt", json!({"conversation_id": id}));
        let ended = served.until("event/guestEnded");
        assert_eq!(ended["data"]["reason"]["type"], "closed", "{ended}");
        served.end();
        assert_eq!(ends(&ground.world.log()), ["fetch closed", "gateway owner_ended"]);
    });
}

#[test]
fn a_gateway_that_is_killed_has_died_and_another_one_starts() {
    on_a_machine("guests::a_gateway_that_is_killed_has_died_and_another_one_starts", |ground| {
        let replies = vec![shell(HOLD), done(), shell("true"), done()];
        let (mut served, id, _model) = serve(ground, replies);
        wait_until("the connection is open", || is_held(ground));
        let pid = guests_of(&ground.world.log(), "gateway")[0]["pid"].as_i64().unwrap();
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
        // The command may notice the end of its connection before the supervisor notices that of the gateway.
        let [ended, _] = served.until_all(["event/guestEnded", "event/turnFinished"]);
        let reason = json!({"type": "died", "status": {"type": "signalled", "signal": 9}});
        assert_eq!(ended["data"]["reason"], reason, "{}: {ended}", ground.tier);
        served.call("sendUserMessage", json!({"conversation_id": id, "text": "again"}));
        served.until("event/turnFinished");
        served.end();
        assert_eq!(ends(&ground.world.log()), ["gateway died", "gateway owner_ended"]);
    });
}

#[test]
fn a_session_that_was_killed_closes_its_guests_when_it_goes_on() {
    on_a_machine("guests::a_session_that_was_killed_closes_its_guests_when_it_goes_on", |ground| {
        let world = &ground.world;
        let server = model_of([shell(HOLD), done()]);
        let flags = ["--mode", "auto", "--net", "a.example:7"];
        let mut command = world.exec(&server, &flags);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("the connection is open", || is_held(ground));
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert_eq!(guests_of(&world.log(), "gateway").len(), 1);
        world.run(&model_of([done()]), &[&flags[..], &["-c"]].concat()).expect(0);
        assert_eq!(ends(&world.log()), ["gateway cut_off", "gateway owner_ended"]);
        let audit = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0);
        assert!(audit.stdout.contains(" · was ended with the session"), "{}", audit.stdout);
    });
}
