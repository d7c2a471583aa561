//! Tests connections to hosts that are not allowed yet. They wait while a person is asked through the front end.

use std::time::{Duration, Instant};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, model_of_agents, shell};
use tests::served::Served;
use tests::wait_until;

use crate::ground::{Ground, Packet, on_a_machine, on_a_machine_at_length};

const FETCH: &str = "curl -sS http://a.example/";
const TWICE: &str = "curl -sS http://a.example/ & curl -sS http://a.example/; wait";
const ANSWERED: &str = "GET answered by ::ffff:203.0.113.1";

/// Conversation whose agent may ask for other hosts. The test plays the front end.
struct Conversation {
    served: Served,
    id: Value,
    /// All messages that the server has sent.
    lines: Vec<Value>,
}

impl Conversation {
    fn open(ground: &Ground, model: &ReplayServer) -> Self {
        let mut served = Served::greeted(&ground.world);
        let net = json!({"hosts": ["b.example:7"]});
        let options = json!({
            "cwd": ground.world.project(), "base_url": model.base_url(), "mode": "ask", "tier": ground.tier.to_string(), "net": net,
        });
        let id = served.call("newConversation", options)["conversation_id"].clone();
        served.call("sendUserMessage", json!({"conversation_id": id, "text": "begin"}));
        Self { served, id, lines: Vec::new() }
    }

    /// Reads messages up to the next one with this method, and returns that one.
    fn until(&mut self, method: &str) -> Value {
        loop {
            let line = self.served.read().unwrap();
            self.lines.push(line.clone());
            if line["method"] == method {
                return line;
            }
        }
    }

    fn respond(&mut self, id: &Value, result: &Value) {
        self.served.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    /// Reads messages up to a question about a host, and checks its content.
    fn asked(&mut self) -> Value {
        let request = self.until("hostApproval");
        let params = &request["params"];
        assert_eq!(
            (&params["host"], &params["program"]),
            (&json!("a.example:80"), &json!("curl")),
            "{params}"
        );
        assert_eq!(params["grant"]["net"], json!({"hosts": ["a.example:80"]}), "{params}");
        assert!(params["timeout_ms"].as_u64() <= Some(20_000), "{params}");
        request
    }

    /// Answers a question about a host, with the digest in the question.
    fn answer(&mut self, request: &Value, decision: &Value) {
        let mut answer = decision.clone();
        answer["digest"] = request["params"]["digest"].clone();
        self.respond(&request["id"], &answer);
    }

    /// Declines the offer to run a command again, and returns the request with that offer.
    fn leave(&mut self) -> Value {
        let offer = self.until("deniedCommandApproval");
        self.respond(&offer["id"], &json!({"decision": "denied"}));
        offer
    }

    fn questions(&self) -> usize {
        self.lines.iter().filter(|line| line["method"] == "hostApproval").count()
    }

    fn result(&mut self) -> Value {
        self.until("event/toolCallFinished")["params"]["data"].clone()
    }

    fn end(mut self) {
        self.served.call("closeConversation", json!({"conversation_id": self.id}));
        self.served.end();
    }
}

/// Returns the decisions in the log, each with who made it.
fn decisions(ground: &Ground) -> Vec<(String, String)> {
    let log = ground.world.log();
    let answers = log.iter().filter(|event| event["type"] == "approval_answered");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    answers.map(|event| (word(&event["data"]["decision"]["decision"]), word(&event["data"]["by"]))).collect()
}

fn reached(packets: &[Packet]) -> usize {
    packets.iter().filter(|packet| packet.starts_with("tcp 203.0.113.1:80")).count()
}

#[test]
fn two_connections_wait_for_one_yes_which_ends_with_their_command() {
    on_a_machine("waiting::two_connections_wait_for_one_yes_which_ends_with_their_command", |ground| {
        let model = model_of([shell(TWICE), shell(FETCH), done()]);
        let mut front = Conversation::open(ground, &model);
        let request = front.asked();
        assert_eq!(request["params"]["command"], TWICE);
        // Both connections of the command wait, and no packet has left the machine.
        assert_eq!(ground.outside.take(), Vec::<Packet>::new());
        front.answer(&request, &json!({"decision": "approved"}));
        let result = front.result();
        let content = result["content"].as_str().unwrap();
        assert_eq!(content.matches(ANSWERED).count(), 2, "{content}");
        assert!(!content.contains("blocked by"), "{content}");
        assert_eq!((front.questions(), reached(&ground.take())), (1, 2));
        // The person is asked again about another run of the command.
        let request = front.asked();
        front.answer(&request, &json!({"decision": "denied"}));
        let offer = front.leave();
        let denial = &offer["params"]["denial"]["missing_right"];
        assert_eq!(*denial, json!({"type": "host", "host": "a.example:80"}), "{offer}");
        assert_eq!(front.result()["status"], "failed");
        front.until("event/turnFinished");
        assert_eq!(reached(&ground.take()), 0);
        front.end();
        let [user, denied] = ["approved", "denied"].map(|word| (word.to_owned(), "user".to_owned()));
        assert_eq!(decisions(ground), [user, denied.clone(), denied]);
    });
}

#[test]
fn an_answer_that_is_late_or_for_something_else_does_nothing() {
    on_a_machine_at_length("waiting::an_answer_that_is_late_or_for_something_else_does_nothing", |ground| {
        let model = model_of([shell(FETCH), shell(FETCH), done()]);
        let mut front = Conversation::open(ground, &model);
        let request = front.asked();
        let began = Instant::now();
        for id in [json!(request["id"].as_str().unwrap().replace(":1:1", ":1:9")), json!(77)] {
            front.respond(&id, &json!({"decision": "approved"}));
        }
        let offer = front.until("deniedCommandApproval");
        let waited = began.elapsed();
        assert!(waited > Duration::from_secs(18) && waited < Duration::from_secs(25), "{waited:?}");
        // The first question is no longer open, and its answer does not answer the offer.
        front.answer(&request, &json!({"decision": "approved"}));
        front.respond(&offer["id"], &json!({"decision": "denied"}));
        assert_eq!(front.result()["status"], "failed");
        let request = front.asked();
        front.respond(&request["id"], &json!({"decision": "approved", "digest": "00"}));
        front.answer(&request, &json!({"decision": "approved"}));
        front.leave();
        front.until("event/turnFinished");
        assert_eq!(reached(&ground.take()), 0);
        front.end();
        let by: Vec<_> =
            decisions(ground).into_iter().map(|(decision, by)| format!("{decision} {by}")).collect();
        assert_eq!(by, ["denied deadline", "denied user", "denied bad_answer", "denied user"]);
    });
}

#[test]
fn a_host_that_is_allowed_for_the_session_is_asked_about_once() {
    on_a_machine("waiting::a_host_that_is_allowed_for_the_session_is_asked_about_once", |ground| {
        let model = model_of([shell(FETCH), shell(FETCH), done()]);
        let mut front = Conversation::open(ground, &model);
        let request = front.asked();
        front.answer(&request, &json!({"decision": "approved_for_session", "scope": {"type": "network"}}));
        assert!(front.result()["content"].as_str().unwrap().contains(ANSWERED));
        let changed = front.until("event/rightsChanged")["params"]["data"].clone();
        assert!(changed["rights"]["net"].to_string().contains("a.example:80"), "{changed}");
        assert!(front.result()["content"].as_str().unwrap().contains(ANSWERED));
        front.until("event/turnFinished");
        assert_eq!((front.questions(), reached(&ground.take())), (1, 2));
        front.end();
    });
}

#[test]
fn what_waits_ends_before_the_network_is_off_and_with_an_interrupt() {
    on_a_machine("waiting::what_waits_ends_before_the_network_is_off_and_with_an_interrupt", |ground| {
        let mut ended = 0;
        for (method, more, until) in [
            ("setNet", json!({"net": "off"}), "event/rightsChanged"),
            ("interrupt", json!({}), "event/turnFinished"),
        ] {
            let model = model_of([shell(FETCH), done()]);
            let mut front = Conversation::open(ground, &model);
            let request = front.asked();
            let mut params = more.clone();
            params["conversation_id"] = front.id.clone();
            front
                .served
                .line(&json!({"jsonrpc": "2.0", "id": 50, "method": method, "params": params}).to_string());
            front.until("event/approvalClosed");
            front.answer(&request, &json!({"decision": "approved"}));
            front.until(until);
            front.end();
            ended += 1;
            let decided = vec![("denied".to_owned(), "interrupted".to_owned()); ended];
            assert_eq!(decisions(ground), decided, "{method}");
            assert_eq!(reached(&ground.take()), 0, "{method}");
        }
    });
}

#[test]
fn with_the_end_of_the_command_its_question_ends() {
    on_a_machine("waiting::with_the_end_of_the_command_its_question_ends", |ground| {
        let model = model_of([shell("timeout 2 curl -sS http://a.example/; echo over"), done()]);
        let mut front = Conversation::open(ground, &model);
        let request = front.asked();
        front.until("event/approvalClosed");
        front.answer(&request, &json!({"decision": "approved"}));
        // The command was denied the host. Now the person is offered another run of the command with access to this
        // host.
        front.leave();
        let left = front.until("event/turnFinished");
        assert_eq!(left["params"]["data"]["reason"], "done", "{left}");
        assert_eq!(reached(&ground.take()), 0);
        front.end();
    });
}

#[test]
fn sub_agents_and_runs_that_nobody_answers_are_refused_at_once() {
    on_a_machine("waiting::sub_agents_and_runs_that_nobody_answers_are_refused_at_once", |ground| {
        let began = Instant::now();
        let model = model_of([shell(FETCH), done()]);
        let flags = ["--mode", "ask", "--net", "b.example:7"];
        let ended = ground.world.run(&model, &flags);
        assert!(
            ended.stdout.contains("Connection refused") || ended.stdout.contains("Failed to connect"),
            "{ended:?}"
        );
        assert!(ended.stdout.contains("a.example:80"), "the name and the remedy: {ended:?}");
        let spawn = calls(&[("spawn_agent", json!({"task": "fetch", "network": true}))]);
        let tasks = [("fetch".to_owned(), vec![shell(FETCH), done()])];
        let model = model_of_agents([spawn, done()], tasks);
        let mut front = Conversation::open(ground, &model);
        front.until("event/turnFinished");
        assert_eq!(front.questions(), 0);
        front.end();
        let log = ground.world.log();
        let denied = log.iter().filter(|event| event["type"] == "denied" && event["agent"] != "1");
        assert!(denied.count() > 0, "{log:?}");
        assert!(began.elapsed() < Duration::from_secs(18), "{:?}", began.elapsed());
        assert_eq!(reached(&ground.take()), 0);
    });
}

#[test]
fn when_the_front_end_goes_what_waits_is_over() {
    on_a_machine("waiting::when_the_front_end_goes_what_waits_is_over", |ground| {
        let model = model_of([shell(FETCH), done()]);
        let mut front = Conversation::open(ground, &model);
        front.asked();
        let Conversation { served, .. } = front;
        served.end();
        wait_until("the question is over", || !decisions(ground).is_empty());
        assert_eq!(decisions(ground)[0].0, "denied");
        assert_eq!(reached(&ground.take()), 0);
    });
}
