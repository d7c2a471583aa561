//! Tests access to hosts by name in sessions: the log, the audit, sub-agents, and the network turned off.

use serde_json::json;
use tests::Finished;
use tests::replies::{calls, done, model_of, model_of_agents, shell};
use tests::served::Served;

use crate::ground::{Ground, Packet, on_a_machine};

const FETCH: &str = "curl -sS http://a.example/";

fn logged(ground: &Ground, kind: &str) -> Vec<serde_json::Value> {
    ground.world.log().into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_session_logs_the_hosts_that_its_commands_used() {
    on_a_machine("sessions::a_session_logs_the_hosts_that_its_commands_used", |ground| {
        let model = model_of([shell(FETCH), done()]);
        let world = &ground.world;
        let ended = world.run(&model, &["--mode", "auto", "--net", "a.example:80"]);
        assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("GET answered by ::ffff:203.0.113.1"), "{}", ended.stdout);
        let uses = logged(ground, "hosts_used");
        let last =
            &uses.last().unwrap_or_else(|| panic!("no use is logged: {}", ended.stdout))["data"]["uses"];
        let first = &last[0];
        assert_eq!(
            (&first["host"], &first["port"], &first["program"], &first["connections"], &first["address"]),
            (&json!("a.example"), &json!(80), &json!("curl"), &json!(1), &json!("203.0.113.1:80")),
            "{uses:?}"
        );
        assert!(first["sent"].as_u64() > Some(50) && first["received"].as_u64() > Some(50), "{first}");
        let page = world.own().join("page.html");
        let audit =
            Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project()).arg("--html").arg(&page));
        let told = "\n  curl reached a.example:80 · 1 connection · ";
        assert!(audit.code == 0 && audit.stdout.contains(told), "{audit:?}");
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("curl reached a.example:80 · 1 connection · "), "{page}");
    });
}

#[test]
fn a_sub_agent_reaches_hosts_only_if_it_is_given_the_network() {
    on_a_machine("sessions::a_sub_agent_reaches_hosts_only_if_it_is_given_the_network", |ground| {
        for (input, is_reached) in
            [(json!({"task": "fetch"}), false), (json!({"task": "fetch", "network": true}), true)]
        {
            let tasks = [("fetch".to_owned(), vec![shell(FETCH), done()])];
            let server = model_of_agents([calls(&[("spawn_agent", input)]), done()], tasks);
            ground.take();
            let ended = ground.world.run(&server, &["--mode", "auto", "--net", "a.example:80"]);
            let came = ground.outside.take();
            let reached = came.iter().any(|packet| packet.starts_with("tcp 203.0.113.1:80"));
            assert_eq!(reached, is_reached, "{came:?} {}\n{}", ended.stdout, ended.stderr);
            assert!(is_reached || came == Vec::<Packet>::new(), "{came:?}");
        }
    });
}

#[test]
fn before_the_answer_to_net_off_open_connections_have_ended() {
    on_a_machine("sessions::before_the_answer_to_net_off_open_connections_have_ended", |ground| {
        let hold = "exec 3<>/dev/tcp/a.example/7; echo held >&3; head -c 5 <&3 > got; cat <&3";
        let model = model_of([shell(hold), done()]);
        let world = &ground.world;
        let mut served = Served::greeted(world);
        let net = json!({"hosts": ["a.example:7"]});
        let options = json!({"cwd": world.project(), "base_url": model.base_url(), "mode": "auto", "tier": ground.tier.to_string(), "net": net});
        let opened = served.call("newConversation", options);
        let id = opened["conversation_id"].clone();
        served.call("sendUserMessage", json!({"conversation_id": id, "text": "begin"}));
        tests::wait_until("the connection is open", || {
            std::fs::read_to_string(world.project().join("got")).is_ok_and(|got| got == "held\n")
        });
        assert_eq!(ground.outside.open_connections(), 1);
        served.call("setNet", json!({"conversation_id": id, "net": "off"}));
        served.until("event/rightsChanged");
        assert_eq!(ground.outside.open_connections(), 0);
        served.end();
    });
}
