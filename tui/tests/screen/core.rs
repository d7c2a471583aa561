use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::id::{AgentId, ApprovalId, CallId, EventId, Generation};
use ipc::rights::{Grant, NamedRoot, Network, RightsSummary};
use ipc::tool::Access;
use protocol::approval::{
    ApplyPatchApprovalParams, AskedCommand, DeniedCommandApprovalParams, ExecCommandApprovalParams,
    ExternalToolApprovalParams, FileChange, FileChanges, NetworkApprovalParams, ServerRequest,
};
use protocol::event::{
    Account, EndReason, EventKind, ObservedBy, RightsChanged, SessionEvent, TokenUsage, ToolCallStatus,
    ToolKind, TurnFinished,
};
use protocol::frontend::UiEventKind;
use serde_json::value::RawValue;

use crate::seat::Seat;

pub(crate) fn logged(kind: EventKind) -> UiEventKind {
    logged_as(1, kind)
}

/// Returns an event with this id, as the session log has it.
pub(crate) fn logged_as(id: u64, kind: EventKind) -> UiEventKind {
    UiEventKind::Logged(Box::new(SessionEvent {
        id: EventId(id),
        parent: None,
        time_ms: id * 60_000,
        session: "c".into(),
        agent: AgentId::root(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    }))
}

pub(crate) fn asked(command: &str) -> AskedCommand {
    AskedCommand {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        command: ["bash", "-c", command].map(str::to_owned).to_vec(),
        cwd: "/home/me/project".into(),
        environment: Vec::new(),
        access: Access::Write,
        digest: "d1".to_owned(),
        grant: Grant { write: vec!["/home/me/project".into()], ..Grant::default() },
        rights: read_only().into(),
        timeout_ms: 300_000,
        reason: None,
    }
}

pub(crate) fn exec(command: &str) -> ExecCommandApprovalParams {
    let asked = AskedCommand { reason: Some("the tests have to run".to_owned()), ..asked(command) };
    let prefix = Some(["cargo", "test"].map(str::to_owned).to_vec());
    ExecCommandApprovalParams::new(
        asked,
        None,
        prefix,
        Vec::new(),
        Some("/home/me/project".into()),
        None,
        None,
    )
}

pub(crate) fn read_only() -> RightsSummary {
    let read = vec![NamedRoot::Path("/".into())];
    RightsSummary { write: vec![NamedRoot::Temp], read, hidden: 9, ..RightsSummary::default() }
}

pub(crate) fn online() -> RightsSummary {
    RightsSummary { net: Network::On, ..read_only() }
}

pub(crate) fn patch(files: &[(&str, FileChange)]) -> ApplyPatchApprovalParams {
    let files = files.iter().map(|(path, change)| ((*path).into(), change.clone()));
    ApplyPatchApprovalParams {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(8),
        file_changes: FileChanges(files.collect()),
        digest: "d2".to_owned(),
        grant: Grant { write: vec!["/home/me/project/src/lib.rs".into()], ..Grant::default() },
        rights: read_only().into(),
        timeout_ms: 300_000,
        reason: None,
        grant_root: None,
        with: Vec::new(),
        more: 0,
        turn: None,
        in_part: false,
        texts: std::sync::Arc::default(),
    }
}

pub(crate) fn update(diff: &str) -> FileChange {
    FileChange::Update { unified_diff: diff.to_owned(), move_path: None }
}

pub(crate) fn external(json: &str) -> ExternalToolApprovalParams {
    ExternalToolApprovalParams {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(10),
        server: "docs".to_owned(),
        tool: "search".to_owned(),
        json: json.to_owned(),
        access: None,
        definition: None,
        digest: "d4".to_owned(),
        timeout_ms: 300_000,
        reason: Some("the manual has to be read".to_owned()),
    }
}

pub(crate) fn network(command: &str) -> NetworkApprovalParams {
    let grant = Grant { net: Network::On, ..Grant::default() };
    let asked = AskedCommand { digest: "d3".to_owned(), grant, ..asked(command) };
    NetworkApprovalParams::new(asked, None, Vec::new())
}

impl Seat {
    pub(crate) fn log(&mut self, kind: EventKind) {
        self.core(logged(kind));
    }

    pub(crate) fn stream(&mut self, text: &str) {
        self.core(UiEventKind::TextDelta { text: text.to_owned() });
    }

    pub(crate) fn ask(&mut self, id: u64, request: ServerRequest) {
        self.core(UiEventKind::ApprovalRequested { id: ApprovalId(id), request: Box::new(request) });
    }

    pub(crate) fn ask_command(&mut self, command: &str) {
        self.ask(1, ServerRequest::ExecCommandApproval(exec(command)));
    }

    pub(crate) fn call(&mut self, call: u64, name: &str, input: &serde_json::Value) {
        let input = RawValue::from_string(input.to_string()).unwrap();
        let (name, tool_use) = (name.to_owned(), "t".into());
        let (kind, locations) = (ToolKind::Other, Vec::new());
        self.log(EventKind::ToolCallStarted { call: CallId(call), tool_use, name, kind, locations, input });
    }

    pub(crate) fn finish(&mut self, call: u64, status: ToolCallStatus, content: &str) {
        self.finish_explained(call, status, (content, ""));
    }

    pub(crate) fn finish_explained(
        &mut self,
        call: u64,
        status: ToolCallStatus,
        (said, explanation): (&str, &str),
    ) {
        let explanation_bytes = u64::try_from(explanation.len()).ok().filter(|bytes| *bytes > 0);
        let (content, tool_use) = (format!("{said}{explanation}"), "t".into());
        self.log(EventKind::ToolCallFinished {
            call: CallId(call),
            tool_use,
            status,
            content,
            explanation_bytes,
            duration_ms: 12,
            diffs: vec![],
            diffs_left_out: false,
            images: vec![],
        });
    }

    pub(crate) fn end_turn(&mut self, reason: EndReason) {
        self.turn_finished(reason, None);
    }

    pub(crate) fn fail_turn(&mut self, reason: EndReason, message: &str) {
        self.turn_finished(reason, Some(message.to_owned()));
    }

    fn turn_finished(&mut self, reason: EndReason, message: Option<String>) {
        let usage = TokenUsage {
            input: 1_200,
            cache_creation: 300,
            cache_read: 9_000,
            output: 456,
            ..TokenUsage::default()
        };
        let cost_usd = "0.0321".parse().ok();
        // A reply would also use a part of the context window.
        let accounts = vec![(AgentId::root(), Account::of(usage, cost_usd))];
        self.core(UiEventKind::SpentBefore { accounts });
        self.log(EventKind::TurnFinished(TurnFinished {
            reason,
            message,
            steps: 2,
            usage,
            cost_usd,
            duration_ms: 3_400,
        }));
    }

    pub(crate) fn change_rights(&mut self, rights: RightsSummary) {
        self.log(EventKind::RightsChanged(RightsChanged {
            generation: Generation(2),
            pid: 1,
            rights: rights.into(),
            rights_digest: String::new(),
            ruleset_digest: String::new(),
        }));
    }
}

pub(crate) fn denial() -> EventKind {
    EventKind::Denied {
        call: Some(CallId(12)),
        denial: Denial { grade: Grade::Likely, ..write_denied("/etc/probe") },
        rights: RightsSummary { write: vec![NamedRoot::Project, NamedRoot::Temp], ..read_only() }.into(),
    }
}

/// Denial, known for certain, of writing to a path.
pub(crate) fn write_denied(path: &str) -> Denial {
    Denial {
        layer: Layer::Landlock,
        operation: Operation::Write,
        object: Object::Path(path.into()),
        program: None,
        missing_right: ipc::missing_right::MissingRight::write(&path.into()).into(),
        grant: Some(format!("--write {path}")),
        grade: Grade::Proved,
        errno: Some(13),
    }
}

/// Request about a command that was denied writing to /etc.
pub(crate) fn denied(command: &str) -> DeniedCommandApprovalParams {
    let grant = Grant { write: vec!["/etc".into()], ..Grant::default() };
    let asked = AskedCommand { access: Access::Standing, grant, ..asked(command) };
    DeniedCommandApprovalParams::new(asked, None, write_denied("/etc/probe"), Some("/etc".into()), None)
}
