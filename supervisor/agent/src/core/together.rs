//! The changes of files of one reply, asked about as one: each is prepared, all are shown, and one answer decides on all.
//!
//! Exactly the bytes that were shown are carried out, call by call, each in a worker of its own that compares what is there first.

use gate::approval::{Subject, SubjectChange};
use gate::tools::Invocation;
use gate::{Ask, Verdict, plain};
use ipc::id::{ApprovalId, CallId};
use ipc::path::WirePath;
use ipc::rights::Grant;
use ipc::tool::{EditFile, ToolCall, WriteFile};
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{DecidedBy, NoticeCode, ToolCallStatus};

use super::approvals::Case;
use super::call::CallResult;
use super::calls::{Open, Stage};
use super::{Agent, Effect};

/// The most changes that are asked about together.
const MOST: usize = 64;

impl Agent {
    /// The calls after one that change other files, and would be asked about next.
    pub(super) fn changes_after(&self, call: CallId) -> Vec<(CallId, ToolCall)> {
        let mut names: Vec<_> = self.change(call).and_then(|tool| self.named(&tool)).into_iter().collect();
        let mut after = Vec::new();
        for next in self.calls.waiting_after(call).take(MOST) {
            let change = self.change(next);
            let name = change.as_ref().and_then(|tool| self.named(tool));
            match (change, name) {
                // A second change of a file depends on the first.
                (Some(tool), Some(name)) if !names.contains(&name) => {
                    names.push(name);
                    after.push((next, tool));
                }
                _ => break,
            }
        }
        after
    }

    /// The call as a change of files that has to be prepared.
    fn change(&self, call: CallId) -> Option<ToolCall> {
        let invocation = self.calls.tool_use(call)?.read(&self.config.tools).ok()?;
        let is_prepared = self.seen.judge(&invocation, self.position()) == Verdict::Prepare;
        match invocation {
            Invocation::Worker(tool) if is_prepared => Some(tool),
            _ => None,
        }
    }

    fn named(&self, tool: &ToolCall) -> Option<WirePath> {
        match tool {
            ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }) => {
                Some(plain(&self.seen.project.as_path().join(path.as_path()))?.into())
            }
            _ => None,
        }
    }

    /// The user wants to see all changes of the reply before deciding on the first.
    pub(super) fn on_ask_together(&mut self, id: ApprovalId) {
        let first = self.calls.asking(id).and_then(|(call, asking)| match &asking.subject {
            Subject::Effect { tool, proposal, denied: None } if asking.ask.kind == AskKind::Patch => {
                let (tool, proposal, grant) = (tool.clone(), proposal.clone(), asking.ask.grant.clone());
                Some((call, SubjectChange { tool, proposal, grant }))
            }
            _ => None,
        });
        let more = first.as_ref().map(|(call, _)| self.changes_after(*call)).unwrap_or_default();
        let Some((call, change)) = first.filter(|_| !more.is_empty()) else {
            let message = format!("request {id} has no other changes beside it that could be shown with it");
            return self.out.notice(NoticeCode::ApprovalIgnored, &message);
        };
        let cause = "the user wants to see it together with the other changes of the reply".to_owned();
        self.log_answer(call, Some(id), ReviewDecision::DENIED, DecidedBy::Together, Some(cause));
        self.calls.put(call, change, Stage::Gathered);
        for (call, tool) in more {
            if let Some(tool_use) = self.calls.tool_use(call).cloned() {
                self.log_started(call, &tool_use);
            }
            self.out.push(Effect::Prepare { call, tool: tool.clone() });
            self.calls.open_as(call, Open::Preparing(tool));
        }
    }

    /// Asks about all of them when the last one is prepared.
    pub(super) fn ask_gathered(&mut self) {
        if !self.calls.is_gathering() || self.calls.is_preparing() {
            return;
        }
        let mut all: Vec<(CallId, SubjectChange)> = Vec::new();
        for (call, change) in self.calls.changes(Stage::Gathered) {
            let is_new = |path| !all.iter().any(|(_, other)| other.proposal.changes.0.contains_key(path));
            // Two names of one file: what the second would do is known when the first is done.
            if change.proposal.changes.0.keys().all(is_new) {
                all.push((call, change));
            } else {
                self.calls.put_back(call);
            }
        }
        let Some((call, first)) = all.first().cloned() else { return };
        if all.len() == 1 {
            let SubjectChange { tool, proposal, grant } = first;
            let subject = Subject::Effect { tool, proposal, denied: None };
            return self.ask(Case { call, ask: Ask { kind: AskKind::Patch, grant }, subject });
        }
        for (other, change) in all.iter().skip(1) {
            self.calls.put(*other, change.clone(), Stage::Asked);
        }
        let grant = all.iter().fold(Grant::default(), |sum, (_, change)| sum.join(&change.grant));
        self.ask(Case { call, ask: Ask { kind: AskKind::Patch, grant }, subject: Subject::Changes(all) });
    }

    /// All of them are approved: the first is given back, and the others wait for their turn.
    pub(super) fn approve_together(
        &mut self,
        call: CallId,
        all: Vec<(CallId, SubjectChange)>,
    ) -> Option<SubjectChange> {
        let mut first = None;
        for (each, change) in all {
            if each == call {
                first = Some(change);
            } else {
                self.log_answer(each, None, ReviewDecision::Approved, DecidedBy::User, None);
                self.calls.put(each, change, Stage::Approved);
            }
        }
        first
    }

    /// Carries out the next change that was approved together with others, if nothing else is under way.
    pub(super) fn carry_out_next(&mut self) {
        if self.calls.any_begun() {
            return;
        }
        if let Some((call, SubjectChange { tool, proposal, grant })) =
            self.calls.changes(Stage::Approved).into_iter().next()
        {
            let subject = Subject::Effect { tool, proposal, denied: None };
            self.carry_out(Case { call, ask: Ask { kind: AskKind::Patch, grant }, subject }, None);
        }
    }

    /// Closes the changes that a question was about besides its own call.
    pub(super) fn close_together(&mut self, by: DecidedBy, cause: Option<&str>, result: &CallResult) {
        for (call, _) in self.calls.changes(Stage::Asked) {
            let cause = cause.map(str::to_owned);
            self.log_answer(call, None, ReviewDecision::DENIED, by, cause);
            self.close_at_once(call, result.clone());
        }
    }

    /// Closes every change that is to be asked about together with others, or waits for its turn.
    pub(super) fn close_all_together(&mut self, result: &CallResult) {
        for (call, _) in self.calls.changes(Stage::Approved) {
            let text =
                "interrupted: it was approved together with other changes, and nothing of it was carried out";
            self.close_at_once(call, CallResult::not_done(ToolCallStatus::Interrupted, text));
        }
        for call in self.calls.all_together() {
            self.close_at_once(call, result.clone());
        }
    }
}
