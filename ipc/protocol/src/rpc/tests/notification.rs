use std::collections::BTreeSet;

use ipc::id::{AgentId, ApprovalId, CallId, EventId};
use serde_json::{Value, json};

use super::super::methods::type_of;
use super::super::*;
use crate::event::{EventKind, ObservedBy, RewindPreview, RewindScope, RewindTarget, SessionEvent};
use crate::frontend::{UiEvent, UiEventKind};
use crate::server_prompt::ExpandedPrompt;

fn id(text: &str) -> RequestId {
    text.into()
}

fn logged(parent: Option<u64>, kind: Value) -> Notification {
    Notification::Logged(Box::new(SessionEvent {
        id: EventId(2),
        parent: parent.map(EventId),
        time_ms: 7,
        session: "c".into(),
        agent: AgentId::root(),
        parent_agent: parent.map(|_| "0".into()),
        observed_by: ObservedBy::Supervisor,
        kind: serde_json::from_str::<EventKind>(&kind.to_string()).unwrap(),
    }))
}

fn passing(kind: Passing) -> Notification {
    Notification::Passing { conversation_id: "c".into(), kind }
}

fn typed(told: &Notification, line: &str) {
    assert_eq!(notification(told, NotificationForm::Typed).unwrap(), line);
}

fn all() -> Vec<Notification> {
    let mut all = vec![];
    for (kind, data, more) in [conversation(), calls(), approvals(), workers(), agents()].concat() {
        all.push(logged(None, json!({"type": kind, "data": data})));
        all.push(logged(Some(1), json!({"type": kind, "data": with(data, more)})));
    }
    let text = || "t".to_owned();
    all.extend(
        [
            Passing::TextDelta { agent: AgentId::root(), text: text() },
            Passing::ThinkingDelta { agent: AgentId::root(), text: text() },
            Passing::OutputDelta { agent: "1.2".into(), call: CallId(1), text: text() },
            Passing::DeltasSkipped { agent: AgentId::root(), bytes: 9 },
            Passing::ApprovalClosed { agent: AgentId::root(), id: ApprovalId(1), request_id: id("c:1:1") },
            Passing::RewindPreview(RewindPreview {
                target: RewindTarget { to: None, scope: RewindScope::Both },
                only: vec!["a".into()],
                files: vec![],
                left: vec![],
                messages: 1,
                notes: vec![text()],
                digest: text(),
            }),
            Passing::PromptExpanded(ExpandedPrompt {
                server: text(),
                name: text(),
                text: Some(text()),
                failed: Some(text()),
            }),
            Passing::PromptExpanded(ExpandedPrompt {
                server: text(),
                name: text(),
                text: None,
                failed: None,
            }),
            Passing::ConversationClosed { message: None },
            Passing::ConversationClosed { message: Some(text()) },
        ]
        .map(passing),
    );
    all
}

fn with(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    base.as_object_mut().unwrap().extend(more);
    base
}

type Sample = (&'static str, Value, Value);

fn usage() -> Value {
    json!({"input": 1, "cache_creation": 2, "cache_read": 3, "output": 4})
}

fn conversation() -> Vec<Sample> {
    let started = json!({"version": "v", "project": "/p", "activity": "execute", "mode": "ask", "model": "m",
        "provider": "p", "rights": "r"});
    let message = json!({"message_id": "i", "model": "m", "content": [{"type": "text", "text": "t"}],
        "stop_reason": "end_turn", "usage": usage()});
    let turn = json!({"reason": "done", "steps": 1, "usage": usage(), "duration_ms": 1});
    let result = with(turn.clone(), json!({"exit_code": 0, "text": ""}));
    let compacted = json!({"cause": "overflow", "summary": "record", "tokens_before": 1, "tokens_after": 2,
        "usage": usage(), "first_message": ["m"]});
    vec![
        ("session_started", started, json!({})),
        ("user_message", json!({"text": "t"}), json!({})),
        (
            "prompt_fixed",
            json!({}),
            json!({"system": "s", "tools": [{"name": "n", "description": "d", "input_schema": {}}],
            "same_as": 2, "new_context": {"tool": "x"}}),
        ),
        ("context_added", json!({"source": "s", "text": "t"}), json!({})),
        ("model_requested", json!({"step": 1, "attempt": 2}), json!({})),
        ("assistant_message", message, json!({})),
        ("model_failed", json!({"kind": "k", "message": "m"}), json!({"retry_in_ms": 5})),
        ("compaction_started", json!({"cause": "limit", "tokens": 1, "window": 2}), json!({})),
        ("context_compacted", compacted, json!({"cost_usd": 0.5})),
        ("notice", json!({"code": "c", "message": "m"}), json!({})),
        ("turn_finished", turn, json!({"message": "m"})),
        ("result", result, json!({"message": "m", "missing": ["x"]})),
    ]
}

fn calls() -> Vec<Sample> {
    let started = json!({"call": 1, "tool_use": "u", "name": "n", "input": {"b": 1, "a": 2}});
    let finished = json!({"call": 1, "tool_use": "u", "status": "denied", "content": "c", "duration_ms": 1});
    let denied = json!({"call": 1, "layer": "policy", "operation": "write", "object": {"path": "/x"},
        "missing_right": "m", "grade": "proved", "rights": "r"});
    let restored = json!({"places": [{"path": "a", "what": "changed", "restored": true}]});
    let changes = json!({"files": [{"path": "a", "change": {"renamed_from": "b"}}]});
    let seen = json!({"files": [{"path": "a", "change": "added", "by": [{"agent": "1", "call": 2}],
        "content": "text", "added": 1, "diff": {"path": "/p/a", "first_line": 1, "new_text": "x\n"}}]});
    let rewound = json!({"target": {"to": 3, "scope": "both"}, "files": [{"path": "a", "change": "added"}]});
    vec![
        ("tool_call_started", started, json!({})),
        ("tool_call_finished", finished, json!({})),
        ("denied", denied, json!({"grant": "--write /x", "errno": 13})),
        ("restored", restored, json!({"call": 1})),
        ("change_set", changes, json!({"patch": "/x"})),
        (
            "files_changed",
            seen,
            json!({"more": 1, "cut_off": true, "ignored": {"count": 1, "first": ["target"]}}),
        ),
        ("rewound", rewound, json!({"left": [{"path": "b", "reason": "r"}], "error": "e"})),
    ]
}

fn approvals() -> Vec<Sample> {
    let reach = json!({"host": false, "lan": false, "link_local": false, "metadata": false});
    let request = json!({"method": "networkApproval", "params": {
        "conversation_id": "c", "agent": "1", "call_id": 7, "command": ["a"], "cwd": "/p", "environment": [],
        "access": "standing", "digest": "d", "grant": {"write": [], "net": "on", "reach": reach},
        "rights": "r", "timeout_ms": 1}});
    let answered = json!({"call": 1, "decision": {"decision": "denied"}, "by": "deadline"});
    vec![
        ("approval_requested", json!({"id": 1, "request": request}), json!({})),
        ("approval_answered", answered, json!({"id": 1, "cause": "late"})),
        ("grant_added", json!({"id": 1, "covers": "c", "grant": "g"}), json!({})),
        ("grant_revoked", json!({"id": 1}), json!({})),
        (
            "turn_allowed",
            json!({"call": 1, "access": {"write": ["/p"], "rights": "rights", "network_after": "on"}}),
            json!({}),
        ),
        ("turn_allowance_ended", json!({"cause": "turn_ended"}), json!({})),
        ("mode_changed", json!({"mode": "auto"}), json!({})),
    ]
}

fn workers() -> Vec<Sample> {
    let changed =
        json!({"generation": 1, "pid": 2, "rights": "r", "rights_digest": "a", "ruleset_digest": "b"});
    let started =
        with(changed.clone(), json!({"tier": "full", "landlock_abi": 7, "rules": 9, "startup_us": 1}));
    let one_shot = json!({"call": 1, "grant": "g", "effect_digest": "e"});
    vec![
        ("worker_started", started, json!({"one_shot": one_shot, "missing": ["x"]})),
        ("rights_changed", changed, json!({})),
        ("worker_ended", json!({"generation": 1, "reason": "r"}), json!({})),
        (
            "guest_started",
            json!({"guest": 1, "kind": "mcp_server", "name": "docs", "pid": 7, "tier": "full", "landlock_abi": 7, "rules": 3,
                "rights": {"net": "off", "hidden": 0, "protected": 0}, "rights_digest": "d", "ruleset_digest": "e", "startup_us": 1}),
            json!({"not_enforced": [], "variables": []}),
        ),
        (
            "guest_ended",
            json!({"guest": 1, "reason": {"type": "finished"}}),
            json!({"totals": {"denials": 0}, "hosts": []}),
        ),
        ("tool_pinned", json!({"server": "docs", "digest": "d", "tools": 2, "change": "first"}), json!({})),
        (
            "hosts_used",
            json!({"generation": 1, "uses": [
                {"host": "a.example", "port": 443, "program": "curl", "connections": 1, "sent": 2, "received": 3}
            ]}),
            json!({}),
        ),
        ("protocol_violation", json!({"generation": 1, "violation": "v"}), json!({})),
    ]
}

fn agents() -> Vec<Sample> {
    let reach = json!({"host": false, "lan": false, "link_local": false, "metadata": false});
    let usage =
        json!({"input": 1, "cache_creation": 0, "cache_creation_1h": 0, "cache_read": 0, "output": 1});
    let spawned = json!({"agent": "1.1", "call": 1, "task": "t", "model": "m", "write": [], "net": "off",
        "reach": reach, "rights_digest": "a"});
    let plan = json!({"call": 1, "path": "/s/p.md", "digest": "d", "author": "planner", "markdown": "m",
        "plan": {"title": "t", "steps": [{"title": "s"}]}});
    let approved = json!({"path": "/s/p.md", "digest": "d", "write": ["/p"], "net": "off", "reach": reach,
        "by": "user"});
    let step = json!({"step": 1, "title": "s", "from": "pending", "to": "completed"});
    let ended = json!({"agent": "1.1", "call": 1, "status": "done", "denials": 0, "steps": 1, "usage": usage,
        "duration_ms": 1, "text": "x"});
    vec![
        ("sub_agent_spawned", spawned, json!({"max_steps": 3})),
        ("sub_agent_result", ended, json!({"message": "m", "files": ["a"]})),
        ("plan_created", plan, json!({})),
        ("plan_approved", approved, json!({"call": 1, "markdown": "m"})),
        ("plan_step_status", step, json!({"note": "n", "files": ["a"]})),
        ("tasks_updated", json!({"tasks": [{"text": "a", "state": "in_progress"}]}), json!({"call": 1})),
        ("write_turn_awaited", json!({"call": 1, "holders": ["1.1"]}), json!({})),
        ("write_turn_taken", json!({"call": 1, "waited_ms": 20}), json!({})),
        ("model_changed", json!({"from": "a", "to": "b", "new_context": true}), json!({})),
    ]
}

#[test]
fn the_method_is_the_kinds_own_name() {
    let mut seen = BTreeSet::new();
    for told in all() {
        let generic: Value =
            serde_json::from_str(told.params(NotificationForm::Generic).unwrap().get()).unwrap();
        assert_eq!(type_of(told.method()).as_deref(), generic["type"].as_str(), "{told:?}");
        seen.insert(told.method());
    }
    assert_eq!(seen, NOTIFICATION_METHODS.iter().copied().collect());
    assert_eq!(type_of("event/nothing"), None);
}

#[test]
fn either_form_is_one_line_without_a_null() {
    for told in all() {
        for form in [NotificationForm::Typed, NotificationForm::Generic] {
            let line = notification(&told, form).unwrap();
            assert!(!line.contains("null") && !line.contains('\n'), "{line}");
        }
    }
}

#[test]
fn each_form_has_its_shape() {
    let call = || json!({"call": 1, "tool_use": "u", "name": "n", "input": {"b": 1, "a": 2}});
    let started = logged(Some(1), json!({"type": "tool_call_started", "data": call()}));
    typed(
        &started,
        concat!(
            r#"{"jsonrpc":"2.0","method":"event/toolCallStarted","params":{"v":7,"conversation_id":"c","#,
            r#""logged":{"id":2,"parent":1,"time_ms":7,"agent":"1","parent_agent":"0","observed_by":"supervisor"},"#,
            r#""data":{"call":1,"tool_use":"u","name":"n","kind":"other","input":{"b":1,"a":2}}}}"#
        ),
    );
    assert_eq!(
        notification(&started, NotificationForm::Generic).unwrap(),
        concat!(
            r#"{"jsonrpc":"2.0","method":"sessionEvent","params":{"v":7,"conversation_id":"c","#,
            r#""type":"tool_call_started","#,
            r#""logged":{"id":2,"parent":1,"time_ms":7,"agent":"1","parent_agent":"0","observed_by":"supervisor"},"#,
            r#""data":{"call":1,"tool_use":"u","name":"n","kind":"other","input":{"b":1,"a":2}}}}"#
        )
    );
    typed(
        &logged(None, json!({"type": "user_message", "data": {"text": "t"}})),
        concat!(
            r#"{"jsonrpc":"2.0","method":"event/userMessage","params":{"v":7,"conversation_id":"c","#,
            r#""logged":{"id":2,"time_ms":7,"agent":"1","observed_by":"supervisor"},"data":{"text":"t"}}}"#
        ),
    );
    typed(
        &passing(Passing::ApprovalClosed {
            agent: "1.2".into(),
            id: ApprovalId(1),
            request_id: id("c:1.2:1"),
        }),
        concat!(
            r#"{"jsonrpc":"2.0","method":"event/approvalClosed","params":{"v":7,"conversation_id":"c","#,
            r#""data":{"agent":"1.2","id":1,"request_id":"c:1.2:1"}}}"#
        ),
    );
}

#[test]
fn what_is_asked_is_no_notification_and_everything_else_is_one() {
    let of = |kind| Notification::of(UiEvent { conversation_id: "c".into(), agent: "1.2".into(), kind });
    let closed = of(UiEventKind::ApprovalClosed { id: ApprovalId(4) }).unwrap();
    let (agent, request_id) = ("1.2".into(), id("c:1.2:4"));
    assert_eq!(closed, passing(Passing::ApprovalClosed { agent, id: ApprovalId(4), request_id }));
    let text = of(UiEventKind::TextDelta { text: "t".to_owned() }).unwrap();
    assert_eq!((text.method(), text.conversation_id().as_str()), (TEXT_DELTA_METHOD, "c"));
    let asked = all().into_iter().find_map(|told| match told {
        Notification::Logged(event) => match event.kind {
            EventKind::ApprovalRequested { id, request } => {
                Some(UiEventKind::ApprovalRequested { id, request })
            }
            _ => None,
        },
        Notification::Passing { .. } => None,
    });
    assert_eq!(of(asked.unwrap()), None);
}
