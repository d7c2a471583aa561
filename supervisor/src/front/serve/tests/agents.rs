use ipc::id::{AgentId, CallId, EventId};
use ipc::rights::{Network, Reach};
use protocol::event::{
    EventKind, ObservedBy, SessionEvent, SubAgentResult, SubAgentSpawned, SubAgentStatus, TokenUsage,
    ToolKind, WriteTurnAwaited,
};
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserActionKind};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Client, Core};

impl Core {
    fn logs(&self, (agent, time_ms): (&str, u64), kind: EventKind) {
        let event = SessionEvent {
            id: EventId(1),
            parent: None,
            time_ms,
            session: self.id.clone(),
            agent: agent.into(),
            parent_agent: None,
            observed_by: ObservedBy::Supervisor,
            kind,
        };
        let kind = UiEventKind::Logged(Box::new(event));
        let _ = self.events.send(UiEvent { conversation_id: self.id.clone(), agent: agent.into(), kind });
    }

    fn spawns(&self, agent: &str) {
        let spawned = SubAgentSpawned {
            servers: Vec::new(),
            agent: agent.into(),
            call: Some(CallId(1)),
            activity: None,
            plan: None,
            finished: 0,
            task: format!("the task of {agent}"),
            role: None,
            model: "m".to_owned(),
            write: vec![],
            caches: None,
            net: Network::Off,
            reach: Reach::default(),
            sockets: Vec::new(),
            rights_digest: "d".to_owned(),
            grant: None,
            max_steps: None,
        };
        self.logs(("1", 20), EventKind::SubAgentSpawned(spawned));
        self.says((agent, 21));
    }

    fn says(&self, at: (&str, u64)) {
        self.logs(at, EventKind::UserMessage { text: "go".to_owned(), images: vec![] });
    }
}

async fn with_sub_agents() -> (Client, Core) {
    let mut client = Client::greeted().await;
    let core = client.converse().await;
    core.says(("1", 10));
    for agent in ["1.2", "1.10"] {
        core.spawns(agent);
    }
    let started = EventKind::ToolCallStarted {
        call: CallId(3),
        tool_use: "t".into(),
        name: "shell_exec".to_owned(),
        kind: ToolKind::Execute,
        locations: vec![],
        input: RawValue::from_string("{}".to_owned()).unwrap(),
    };
    core.logs(("1.10", 22), started);
    let over = SubAgentResult {
        agent: "1.2".into(),
        call: Some(CallId(1)),
        status: SubAgentStatus::GaveUp,
        message: None,
        files: vec![],
        unseen: None,
        denials: 0,
        denied: vec![],
        steps: 0,
        usage: TokenUsage::default(),
        cost_usd: None,
        duration_ms: 5,
        plan: vec![],
        text: String::new(),
    };
    core.logs(("1", 30), EventKind::SubAgentResult(over));
    // Reads the seven events, which come before the answer to a list request.
    for _ in 0..7 {
        client.read().await;
    }
    (client, core)
}

async fn listed(client: &mut Client) -> Vec<Value> {
    let result = client.call(5, "listAgents", json!({"conversation_id": "c1"})).await["result"].clone();
    result["agents"].as_array().unwrap().clone()
}

#[tokio::test]
async fn guests_are_listed_with_their_agent_and_the_last_of_those_that_have_ended() {
    let mut client = Client::greeted().await;
    let core = client.converse().await;
    let rights = json!({"write": ["temp"], "net": "off", "hidden": 1, "protected": 0});
    let started = |guest: u64| {
        let data = json!({
            "guest": guest, "kind": "mcp_server", "name": "docs", "call": 4, "pid": 9, "tier": "full", "landlock_abi": 6, "rules": 1,
            "rights": rights, "rights_digest": "d", "ruleset_digest": "d", "startup_us": 1,
        });
        serde_json::from_value(json!({"type": "guest_started", "data": data})).unwrap()
    };
    let ended = |guest: u64| {
        let data = json!({"guest": guest, "reason": {"type": "late"}, "totals": {"calls": 2, "denials": 0}});
        serde_json::from_value(json!({"type": "guest_ended", "data": data})).unwrap()
    };
    for guest in 1..=23 {
        core.logs(("1", guest), started(guest));
        if guest < 23 {
            core.logs(("1", guest + 100), ended(guest));
        }
    }
    for _ in 0..45 {
        client.read().await;
    }
    let guests = listed(&mut client).await[0]["guests"].as_array().unwrap().clone();
    let numbers: Vec<_> = guests.iter().map(|guest| guest["guest"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (3..=23).collect::<Vec<_>>());
    let of = |guest: u64| json!({"guest": guest, "kind": "mcp_server", "name": "docs", "call": 4, "rights": rights, "began_ms": guest});
    let mut late = of(3);
    late.as_object_mut().unwrap().extend([
        ("ended_ms".to_owned(), json!(103)),
        ("reason".to_owned(), json!({"type": "late"})),
        ("totals".to_owned(), json!({"calls": 2, "denials": 0})),
    ]);
    assert_eq!((&guests[0], &guests[20]), (&late, &of(23)));
}

#[tokio::test]
async fn agents_are_listed_as_they_were_told_of() {
    let (mut client, core) = with_sub_agents().await;
    let usage =
        json!({"input": 0, "cache_creation": 0, "cache_creation_1h": 0, "cache_read": 0, "output": 0});
    assert_eq!(
        listed(&mut client).await,
        [
            json!({"agent": "1", "model": "", "state": "model", "steps": 0, "usage": usage, "began_ms": 10}),
            json!({
                "agent": "1.2", "parent": "1", "task": "the task of 1.2", "model": "m", "state": "over",
                "status": "gave_up", "steps": 0, "usage": usage, "began_ms": 21, "ended_ms": 30,
            }),
            json!({
                "agent": "1.10", "parent": "1", "task": "the task of 1.10", "model": "m", "state": "calls",
                "calls": [{"call": 3, "name": "shell_exec"}], "steps": 0, "usage": usage, "began_ms": 21,
            }),
        ]
    );
    let waits = WriteTurnAwaited { call: CallId(3), holders: vec![] };
    core.logs(("1.10", 40), EventKind::WriteTurnAwaited(waits));
    core.asks(1);
    for _ in 0..2 {
        client.read().await;
    }
    let states: Vec<_> = listed(&mut client).await.iter().map(|agent| agent["state"].clone()).collect();
    assert_eq!(states, ["approval", "over", "write_turn"]);
    assert_eq!(client.word("listAgents", json!({"conversation_id": "c9"})).await, "no_such_conversation");
}

#[tokio::test]
async fn a_message_and_a_stop_reach_the_agent_that_is_named() {
    let (mut client, mut core) = with_sub_agents().await;
    let named = |agent: &str| json!({"conversation_id": "c1", "agent": agent});
    let mut message = named("1.10");
    message["text"] = json!("only in src");
    assert_eq!(client.call(5, "sendToAgent", message.clone()).await["result"], json!({}));
    let prompt =
        UserActionKind::Agent(AgentAction::Prompt { text: "only in src".to_owned(), images: vec![] });
    assert_eq!(core.wanted().await, (Some(AgentId::from("1.10")), prompt));
    assert_eq!(client.call(6, "stopAgent", named("1.10")).await["result"], json!({}));
    assert_eq!(
        core.wanted().await,
        (Some(AgentId::from("1.10")), UserActionKind::Agent(AgentAction::Interrupt))
    );
    for agent in ["1.2", "1.3", "2", ""] {
        message["agent"] = json!(agent);
        assert_eq!(client.word("sendToAgent", message.clone()).await, "no_such_agent", "{agent}");
        assert_eq!(client.word("stopAgent", named(agent)).await, "no_such_agent", "{agent}");
    }
    assert!(core.actions.try_recv().is_err(), "nothing else reached it");
}
