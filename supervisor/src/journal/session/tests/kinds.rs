use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::id::{AgentCall, AgentId, ApprovalId, CallId, EventId, Generation, GrantId};
use ipc::image::Image;
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::rights::{Grant, Hosts, NamedRoot, Network, Reach, RightsSummary};
use proptest::prelude::*;
use protocol::approval::{
    ApplyPatchApprovalParams, ApprovalMode, ChangePart, FileChanges, FilePart, ReviewDecision, ServerRequest,
    SessionGrant, SessionScope, TurnAccess,
};
use protocol::event::{
    Activity, AppliedPart, ApprovalAnswered, AssistantMessage, ChangeKind, ChangedFile, CompactionCause,
    CompactionStarted, ContextCompacted, DecidedBy, EndReason, EventKind, FileDiff, FilesChanged, HostUse,
    Ignored, LeftFile, LeftOutHunks, Location, ModelChanged, NewContext, NoticeCode, ObservedBy, OneShot,
    PlaceChange, PromptFixed, Recorded, RecordedTool, RestoredPlace, RewindScope, RewindTarget, Rewound,
    RightsChanged, RunResult, SeenChange, SeenContent, SessionEvent, SessionStarted, SubAgentResult,
    SubAgentSpawned, SubAgentStatus, SummaryFrom, TokenUsage, ToolCallStatus, ToolKind, TurnAllowanceEnd,
    TurnAllowed, TurnFinished, WorkerEnd, WorkerStarted, WriteTurnAwaited, WriteTurnTaken,
};
use serde_json::value::RawValue;

use super::Scratch;
use super::guest_kinds::guests;
use super::plan_kinds::{plans, step_account};
use crate::journal::session::rebuild;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn usage() -> TokenUsage {
    TokenUsage { input: 1, cache_creation: 2, cache_creation_1h: 1, cache_read: 3, output: 4, estimated: 0 }
}

fn denial(object: Object) -> EventKind {
    let denial = Denial {
        layer: Layer::Landlock,
        operation: Operation::Write,
        object,
        program: None,
        missing_right: MissingRight::write(&odd()).into(),
        grant: Some("--write /etc/x".to_owned()),
        grade: Grade::Proved,
        errno: Some(13),
    };
    EventKind::Denied { call: Some(CallId(1)), denial, rights: rights().into() }
}

pub(super) fn rights() -> RightsSummary {
    let write = vec![NamedRoot::Project, NamedRoot::Temp, NamedRoot::Caches, NamedRoot::Path(odd())];
    RightsSummary { write, hidden: 2, ..RightsSummary::default() }
}

/// Returns events of every kind and of each important variant.
fn samples() -> Vec<EventKind> {
    [conversation(), calls(), approvals(), workers(), guests(), sub_agents(), plans(), ends()].concat()
}

/// A path and text that need escapes in JSON.
const ODD: &[u8] = b"a\xff\n\"b";

pub(super) fn odd() -> WirePath {
    ODD.to_vec().into()
}

fn conversation() -> Vec<EventKind> {
    let started = SessionStarted {
        version: "0.1.0".to_owned(),
        project: odd(),
        activity: Activity::Execute,
        mode: ApprovalMode::Auto,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        base_url: Some("https://m.example".to_owned()),
        rights: rights().into(),
        resumed: true,
    };
    let message = AssistantMessage {
        message_id: "msg".to_owned(),
        model: "m".to_owned(),
        content: vec![raw(r#"{"type":"text", "text":"\u00e9 1.0"}"#), raw(r#"{"b":1.10,"a":[]}"#)],
        stop_reason: "tool_use".to_owned(),
        usage: usage(),
        estimated: false,
        cost_usd: "0.25".parse().ok(),
    };
    let failed = |kind: &str, retry_in_ms| EventKind::ModelFailed {
        kind: kind.into(),
        message: "m".to_owned(),
        discarded: true,
        retry_in_ms,
        left_out: None,
    };
    vec![
        EventKind::SessionStarted(started),
        EventKind::UserMessage { text: "hi \u{2028} \"x\"\n".to_owned(), images: vec![] },
        EventKind::UserMessage { text: "look".to_owned(), images: vec![picture(), picture()] },
        EventKind::ContextAdded { source: "AGENTS.md".to_owned(), text: "be good".to_owned() },
        EventKind::PromptFixed(PromptFixed {
            system: Some("be good\n".to_owned()),
            tools: vec![RecordedTool {
                name: "t".to_owned(),
                description: "\"d\"".to_owned(),
                input_schema: raw(r#"{"b":1.10, "a":[]}"#),
            }],
            same_as: None,
            new_context: Some(NewContext::Tool("gone".to_owned())),
        }),
        EventKind::PromptFixed(PromptFixed {
            system: None,
            tools: vec![],
            same_as: Some(EventId(2)),
            new_context: Some(NewContext::Model),
        }),
        EventKind::ModelRequested { step: 1, attempt: 2 },
        EventKind::AssistantMessage(message),
        EventKind::CompactionStarted(CompactionStarted {
            cause: CompactionCause::Limit,
            tokens: 9,
            window: 10,
        }),
        EventKind::ContextCompacted(ContextCompacted {
            cause: CompactionCause::Request,
            summary: SummaryFrom::Conversation,
            tokens_before: 9,
            tokens_after: 1,
            usage: usage(),
            cost_usd: None,
            first_message: vec!["a \u{2028}".to_owned(), "b\n".to_owned()],
        }),
        failed("overloaded_error", Some(5)),
        failed("foreign", None),
    ]
}

fn picture() -> Image {
    picture::read(&include_bytes!("../../../../../fixtures/images/shapes.gif")[..]).unwrap()
}

fn calls() -> Vec<EventKind> {
    let started = EventKind::ToolCallStarted {
        call: CallId(1),
        tool_use: "t".into(),
        name: "read_file".to_owned(),
        kind: ToolKind::Read,
        locations: vec![Location { path: odd(), line: Some(3) }],
        input: raw(r#"{"path" : "a", "n":1e3}"#),
    };
    let finished = EventKind::ToolCallFinished {
        call: CallId(1),
        tool_use: "t".into(),
        status: ToolCallStatus::Interrupted,
        content: "gone \0".to_owned(),
        explanation_bytes: Some(1),
        duration_ms: 3,
        diffs: vec![],
        diffs_left_out: true,
        images: vec![],
    };
    let seen = EventKind::ToolCallFinished {
        call: CallId(2),
        tool_use: "t".into(),
        status: ToolCallStatus::Completed,
        content: picture().to_string(),
        explanation_bytes: None,
        duration_ms: 0,
        diffs: vec![FileDiff {
            path: odd(),
            first_line: Some(7),
            old_text: None,
            new_text: "\u{2028}".to_owned(),
        }],
        diffs_left_out: false,
        images: vec![picture()],
    };
    vec![
        started,
        finished,
        seen,
        denial(Object::Path(odd())),
        denial(Object::Address("example.org".to_owned())),
        denial(Object::Syscall("unshare".to_owned())),
        denial(Object::Command("make".to_owned())),
    ]
}

fn approvals() -> Vec<EventKind> {
    let change = protocol::approval::FileChange::Add { content: "x\n\0".to_owned() };
    let request = ServerRequest::ApplyPatchApproval(ApplyPatchApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(1),
        file_changes: FileChanges([(b"/\xff".to_vec().into(), change)].into()),
        digest: "44".repeat(32),
        grant: Grant { write: vec![odd()], ..Grant::default() },
        rights: Recorded::Unstructured("ro /".to_owned()),
        timeout_ms: 1000,
        reason: None,
        grant_root: Some("/p".into()),
        with: Vec::new(),
        more: 0,
        turn: None,
        in_part: true,
        texts: std::sync::Arc::default(),
    });
    let answered = |by, decision| {
        let (id, call, cause) = (Some(ApprovalId(1)), CallId(1), Some("late".to_owned()));
        EventKind::ApprovalAnswered(ApprovalAnswered { id, call, decision, by, cause, in_part: None })
    };
    let prefix = SessionScope::CommandPrefix(vec!["cargo".to_owned(), "test".to_owned()]);
    let (id, covers) = (GrantId(2), "x".to_owned());
    let grant = Some(Grant { write: vec![odd()], ..Grant::default() }.into());
    vec![
        EventKind::ApprovalRequested { id: ApprovalId(1), request: Box::new(request) },
        answered(DecidedBy::User, ReviewDecision::ApprovedForSession { scope: prefix }),
        answered(DecidedBy::SessionGrant(id), ReviewDecision::Approved),
        answered(DecidedBy::Deadline, ReviewDecision::DENIED),
        EventKind::ApprovalAnswered(ApprovalAnswered {
            id: Some(ApprovalId(1)),
            call: CallId(1),
            decision: ReviewDecision::ApprovedInPart {
                part: ChangePart {
                    files: vec![
                        FilePart::Hunks { path: odd(), hunks: vec![1, 3] },
                        FilePart::Text { path: odd(), text: "x\n".to_owned() },
                    ],
                    digest: "55".repeat(32),
                },
            },
            by: DecidedBy::User,
            cause: None,
            in_part: Some(AppliedPart {
                effect: "66".repeat(32),
                hunks: 3,
                left_out: vec![LeftOutHunks { path: odd(), hunks: vec![2] }],
                edited: vec![odd()],
            }),
        }),
        EventKind::GrantAdded(SessionGrant { id, covers, grant }),
        EventKind::GrantRevoked { id },
        EventKind::TurnAllowed(TurnAllowed {
            call: CallId(1),
            access: TurnAccess {
                write: vec![odd()],
                rights: rights().into(),
                network_after: Network::On,
                confirms_commands: true,
            },
        }),
        EventKind::TurnAllowanceEnded { cause: TurnAllowanceEnd::ModeChanged },
        EventKind::ModeChanged { mode: ApprovalMode::Ask },
        EventKind::ModelChanged(ModelChanged {
            from: "a".to_owned(),
            to: "b".to_owned(),
            new_context: true,
            window: None,
        }),
    ]
}

fn workers() -> Vec<EventKind> {
    let worker = WorkerStarted {
        generation: Generation(2),
        pid: 7,
        tier: Tier::FloorUnmediated,
        landlock_abi: 7,
        rules: 40,
        rights: rights().into(),
        rights_digest: "00".repeat(32),
        ruleset_digest: "11".repeat(32),
        one_shot: Some(OneShot {
            call: Some(CallId(4)),
            grant: Grant { write: vec![odd()], ..Grant::default() }.into(),
            effect_digest: "44".repeat(32),
        }),
        no_full_tier: Some("y".to_owned()),
        not_enforced: vec!["x".to_owned()],
        startup_us: 900,
    };
    let ended = |reason| EventKind::WorkerEnded { generation: Generation(2), reason };
    let used = HostUse {
        host: "a.example".to_owned(),
        port: 443,
        program: "curl".to_owned(),
        connections: 2,
        failures: 1,
        failure: Some("the name has no address".to_owned()),
        sent: 10,
        ..HostUse::default()
    };
    let changed = RightsChanged {
        generation: Generation(3),
        pid: 9,
        rights: RightsSummary {
            net: Network::Hosts(Hosts::new(["h".parse().unwrap()]).unwrap()),
            ..rights()
        }
        .into(),
        rights_digest: "22".repeat(32),
        ruleset_digest: "33".repeat(32),
    };
    vec![
        EventKind::WorkerStarted(worker),
        EventKind::RightsChanged(changed),
        EventKind::HostsUsed { generation: Generation(2), uses: vec![used] },
        ended(WorkerEnd::ProtocolBroken { violation: "v".to_owned() }.into()),
        ended(WorkerEnd::Exited { code: 1 }.into()),
        ended(WorkerEnd::RunOver.into()),
        ended(Recorded::Unstructured("killed".to_owned())),
        EventKind::ProtocolViolation {
            generation: Generation(2),
            violation: "Bye in phase greeting".to_owned(),
        },
        EventKind::Notice { code: NoticeCode::NoWorker, message: "m".to_owned() },
        EventKind::Notice { code: "later".into(), message: "m".to_owned() },
    ]
}

fn sub_agents() -> Vec<EventKind> {
    let spawned = SubAgentSpawned {
        servers: Vec::new(),
        agent: "1.1".into(),
        call: Some(CallId(1)),
        activity: Some(Activity::Plan),
        plan: Some("cd".to_owned()),
        finished: 2,
        task: "look".to_owned(),
        role: None,
        model: "m".to_owned(),
        write: vec![odd()],
        caches: Some(odd()),
        net: Network::On,
        reach: Reach { host: true, ..Reach::default() },
        sockets: vec![odd()],
        rights_digest: "ab".to_owned(),
        grant: Some(Grant { write: vec![odd()], net: Network::On, ..Grant::default() }),
        max_steps: Some(3),
    };
    let result = SubAgentResult {
        agent: "1.1".into(),
        call: Some(CallId(1)),
        status: SubAgentStatus::GaveUp,
        message: Some("m".to_owned()),
        files: vec![odd()],
        unseen: None,
        denials: 1,
        denied: vec![],
        steps: 2,
        usage: usage(),
        cost_usd: "0.5".parse().ok(),
        duration_ms: 9,
        plan: vec![step_account()],
        text: "t".to_owned(),
    };
    let waits = WriteTurnAwaited { call: CallId(2), holders: vec!["1.2".into()] };
    vec![
        EventKind::SubAgentSpawned(spawned),
        EventKind::SubAgentResult(result),
        EventKind::WriteTurnAwaited(waits),
        EventKind::WriteTurnTaken(WriteTurnTaken { call: CallId(2), waited_ms: 30 }),
    ]
}

fn ends() -> Vec<EventKind> {
    let changes =
        [ChangeKind::RenamedFrom("b".into()), ChangeKind::Added, ChangeKind::Deleted, ChangeKind::Modified];
    let files = changes.map(|change| ChangedFile { path: odd(), change }).to_vec();
    let result = RunResult {
        no_full_tier: None,
        not_enforced: vec!["a layer".to_owned()],
        exit_code: 0,
        reason: EndReason::Done,
        error: None,
        message: None,
        text: "ok\n".to_owned(),
        output: Some(serde_json::json!({ "b": [1, 2.5], "a": null })),
        steps: 2,
        usage: usage(),
        cost_usd: "1.000000000001".parse().ok(),
        duration_ms: 9,
    };
    let place = |what| RestoredPlace {
        path: odd(),
        what,
        moved_to: None,
        error: None,
        closed: false,
        restored: true,
    };
    let keys = PlaceChange::Keys(vec!["core.hooksPath".to_owned()]);
    let aside = RestoredPlace { moved_to: Some(odd()), ..place(PlaceChange::NotAFile) };
    let phrase = PlaceChange::Unstructured("gone astray".to_owned());
    let places = vec![place(PlaceChange::Created), place(keys), aside, place(phrase)];
    let restored = EventKind::Restored { call: None, beside: vec![], places };
    let turn = TurnFinished {
        reason: EndReason::Done,
        message: None,
        steps: 2,
        usage: usage(),
        cost_usd: None,
        duration_ms: 9,
    };
    let set = EventKind::ChangeSet { files, patch: Some("out.diff".into()) };
    let rewound = Rewound {
        target: RewindTarget { to: Some(EventId(3)), scope: RewindScope::Files },
        files: vec![ChangedFile { path: odd(), change: ChangeKind::Deleted }],
        left: vec![LeftFile { path: odd(), reason: "changed".to_owned() }],
        error: Some("no room".to_owned()),
    };
    let seen = SeenChange {
        path: odd(),
        change: ChangeKind::RenamedFrom(odd()),
        by: vec![AgentCall { agent: AgentId::root(), call: CallId(1) }],
        content: SeenContent::Text,
        modes: Some([0o644, 0o755]),
        added: 1,
        removed: 2,
        diff: Some(FileDiff { path: odd(), first_line: None, old_text: None, new_text: "a".to_owned() }),
    };
    let ignored = Ignored { count: 1, first: vec![odd()] };
    let told = EventKind::FilesChanged(FilesChanged { files: vec![seen], more: 1, cut_off: true, ignored });
    vec![
        told,
        restored,
        set,
        EventKind::Rewound(rewound),
        EventKind::TurnFinished(turn),
        EventKind::Result(result),
    ]
}

/// Returns the name of an event's kind. Without a wildcard, the match does not compile after a kind was added, as a
/// reminder to add it to the samples.
fn name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::SessionStarted(_) => "session_started",
        EventKind::UserMessage { .. } => "user_message",
        EventKind::PromptFixed(_) => "prompt_fixed",
        EventKind::ContextAdded { .. } => "context_added",
        EventKind::ModelRequested { .. } => "model_requested",
        EventKind::AssistantMessage(_) => "assistant_message",
        EventKind::ModelFailed { .. } => "model_failed",
        EventKind::CompactionStarted(_) => "compaction_started",
        EventKind::ContextCompacted(_) => "context_compacted",
        EventKind::ToolCallStarted { .. } => "tool_call_started",
        EventKind::ToolCallFinished { .. } => "tool_call_finished",
        EventKind::Denied { .. } => "denied",
        EventKind::ApprovalRequested { .. } => "approval_requested",
        EventKind::ApprovalAnswered(_) => "approval_answered",
        EventKind::GrantAdded(_) => "grant_added",
        EventKind::GrantRevoked { .. } => "grant_revoked",
        EventKind::TurnAllowed(_) => "turn_allowed",
        EventKind::TurnAllowanceEnded { .. } => "turn_allowance_ended",
        EventKind::ModeChanged { .. } => "mode_changed",
        EventKind::ModelChanged(_) => "model_changed",
        EventKind::WorkerStarted(_) => "worker_started",
        EventKind::RightsChanged(_) => "rights_changed",
        EventKind::WorkerEnded { .. } => "worker_ended",
        EventKind::HostsUsed { .. } => "hosts_used",
        EventKind::GuestStarted(_) => "guest_started",
        EventKind::GuestEnded(_) => "guest_ended",
        EventKind::ToolPinned(_) => "tool_pinned",
        EventKind::ProtocolViolation { .. } => "protocol_violation",
        EventKind::Notice { .. } => "notice",
        EventKind::SubAgentSpawned(_) => "sub_agent_spawned",
        EventKind::SubAgentResult(_) => "sub_agent_result",
        EventKind::WriteTurnAwaited(_) => "write_turn_awaited",
        EventKind::WriteTurnTaken(_) => "write_turn_taken",
        EventKind::PlanCreated(_) => "plan_created",
        EventKind::PlanApproved(_) => "plan_approved",
        EventKind::PlanStepStatus(_) => "plan_step_status",
        EventKind::TasksUpdated(_) => "tasks_updated",
        EventKind::Restored { .. } => "restored",
        EventKind::FilesChanged(_) => "files_changed",
        EventKind::Rewound(_) => "rewound",
        EventKind::ChangeSet { .. } => "change_set",
        EventKind::TurnFinished(_) => "turn_finished",
        EventKind::Result(_) => "result",
    }
}

fn json(event: &SessionEvent) -> String {
    serde_json::to_string(event).unwrap()
}

#[test]
fn every_kind_survives_its_line_byte_for_byte() {
    let mut scratch = Scratch::new();
    let samples = samples();
    let names: std::collections::BTreeSet<_> = samples.iter().map(name).collect();
    assert_eq!(names.len(), 43, "a kind is missing among the samples: {names:?}");
    let written: Vec<_> = samples.into_iter().map(|kind| scratch.append("1", kind)).collect();
    let loaded = rebuild(&scratch.bytes());
    assert_eq!(loaded.faults, []);
    assert_eq!(loaded.tree.len(), written.len());
    for (read, written) in loaded.tree.events().zip(&written) {
        assert_eq!(json(read), json(written));
        assert!(json(read).contains(&format!(r#""type":"{}""#, name(&written.kind))));
    }
}

fn observer() -> impl Strategy<Value = ObservedBy> {
    prop_oneof![Just(ObservedBy::Supervisor), Just(ObservedBy::Broker), Just(ObservedBy::Worker)]
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    let all = samples();
    let path = proptest::collection::vec(1u8.., 0..30);
    prop_oneof![
        (0..all.len()).prop_map(move |place| all[place].clone()),
        ".*".prop_map(|text| EventKind::UserMessage { text, images: vec![] }),
        (".*", any::<u64>()).prop_map(|(content, duration_ms)| EventKind::ToolCallFinished {
            call: CallId(duration_ms),
            tool_use: content.as_str().into(),
            status: ToolCallStatus::Denied,
            content,
            explanation_bytes: None,
            duration_ms,
            diffs: vec![],
            diffs_left_out: false,
            images: vec![],
        }),
        path.prop_map(|path| denial(Object::Path(path.into()))),
    ]
}

proptest! {
    #[test]
    fn any_event_survives_json(
        kind in any_kind(),
        observed_by in observer(),
        id in any::<u64>(),
        parent in proptest::option::of(any::<u64>()),
        time_ms in any::<u64>(),
    ) {
        let event = SessionEvent {
            id: EventId(id),
            parent: parent.map(EventId),
            time_ms,
            session: "s".into(),
            agent: AgentId::from("1.2"),
            parent_agent: Some(AgentId::root()),
            observed_by,
            kind,
        };
        let line = json(&event);
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(json(&serde_json::from_str(&line).unwrap()), line);
    }
}
