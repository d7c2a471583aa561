//! Approval requests for a person, built from the exact action.

use std::sync::Arc;
use std::time::Duration;

use ipc::effect::{Effect, Exec};
use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network};
use protocol::approval::{
    AgentAccess, AgentRightsApprovalParams, ApplyPatchApprovalParams, AskKind, AskedCommand,
    DeniedCommandApprovalParams, ExecCommandApprovalParams, ExternalToolApprovalParams, FetchApprovalParams,
    FileChanges, NetworkApprovalParams, PlanApprovalParams, ProjectPrefixes, ServerRequest, TurnAccess,
};

use super::in_project::offered_in_project;
use super::scope::{root_after_denial, script};
use super::{AgentSpawn, PlanProposal, Proposal, Subject, SubjectChange};
use crate::judgement::command_line::{offered_parts, offered_prefix};
use crate::judgement::{Ask, StandingRights};
use crate::tools::{ExternalCall, FetchCall};

/// Context of an approval request: the agent, its call, its reason, and the time limit.
pub struct Question<'a> {
    pub conversation: &'a ConversationId,
    pub agent: &'a AgentId,
    pub call: CallId,
    pub standing: &'a StandingRights,
    pub timeout: Duration,
    /// Text that the model wrote before the call; `None` if it wrote none.
    pub reason: Option<String>,
    /// Number of other changes in the same reply of the model that could be shown together with this one.
    pub more: usize,
    /// Access for the rest of the turn; `None` if the request does not offer to approve the whole turn.
    pub turn: Option<TurnAccess>,
    /// The person's settings file for approvals that last in the project; `None` if none can be kept.
    pub kept_in: Option<&'a WirePath>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    #[error("a part of the command is not UTF-8, so that the command cannot be shown exactly")]
    NotText,
    #[error("the prepared change does not belong to this kind of request")]
    Misfit,
}

impl Question<'_> {
    /// Returns the request, which shows exactly what would run. Fails if the action cannot be shown.
    pub fn request(self, ask: &Ask, subject: &Subject) -> Result<ServerRequest, CannotAsk> {
        let (proposal, denied) = match subject {
            Subject::Effect { proposal, denied, .. } => (proposal, denied.as_deref()),
            Subject::Changes(all) => return Ok(self.changes(ask, subject, all)),
            Subject::Agent(spawn) => return Ok(self.agent(ask, spawn)),
            Subject::Plan(plan) => return Ok(self.plan(ask, plan)),
            Subject::Fetch(call) => return Ok(self.fetch(ask, call, subject.digest().into_owned())),
            Subject::External(call) => return Ok(self.external(call, subject.digest().into_owned())),
        };
        let exec = match &*proposal.effect {
            Effect::Exec(exec) => exec,
            Effect::Patch(_) if ask.kind == AskKind::Patch => return Ok(self.patch(ask, subject, proposal)),
            Effect::Patch(_) => return Err(CannotAsk::Misfit),
        };
        let (grant_root, turn) = (grant_root(self.standing, &ask.grant), self.turn.clone());
        match (ask.kind, denied) {
            (AskKind::Exec, _) => {
                let in_project = self.in_project(ask, exec);
                let asked = self.command(ask, proposal, exec)?;
                let (prefix, parts) = offered(exec);
                let params = ExecCommandApprovalParams::new(
                    asked,
                    exec.network.clone(),
                    prefix,
                    parts,
                    grant_root,
                    turn,
                    in_project,
                );
                Ok(ServerRequest::ExecCommandApproval(params))
            }
            (AskKind::Network, _) => {
                let asked = self.command(ask, proposal, exec)?;
                let (prefix, parts) = offered(exec);
                Ok(ServerRequest::NetworkApproval(NetworkApprovalParams::new(asked, prefix, parts)))
            }
            (AskKind::Denied, Some(denial)) => {
                let asked = self.command(ask, proposal, exec)?;
                let (denial, root) = (denial.clone(), root_after_denial(&ask.grant));
                let params =
                    DeniedCommandApprovalParams::new(asked, exec.network.clone(), denial, root, turn);
                Ok(ServerRequest::DeniedCommandApproval(params))
            }
            _ => Err(CannotAsk::Misfit),
        }
    }

    fn patch(self, ask: &Ask, subject: &Subject, proposal: &Proposal) -> ServerRequest {
        let (grant_root, more) = (grant_root(self.standing, &ask.grant), self.more);
        let params = self.files(ask, subject, proposal.changes.clone());
        ServerRequest::ApplyPatchApproval(ApplyPatchApprovalParams { grant_root, more, ..params })
    }

    /// Returns one request for the changes of several calls, with the files in the order of their paths.
    fn changes(self, ask: &Ask, subject: &Subject, all: &[(CallId, SubjectChange)]) -> ServerRequest {
        let files = all.iter().flat_map(|(_, change)| change.proposal.changes.0.clone());
        let with = all.iter().map(|(call, _)| *call).filter(|call| *call != self.call).collect();
        let params = self.files(ask, subject, FileChanges(files.collect()));
        ServerRequest::ApplyPatchApproval(ApplyPatchApprovalParams { with, ..params })
    }

    /// Returns the parameters of a request for a change of files. The request offers no directory and no other changes.
    fn files(self, ask: &Ask, subject: &Subject, file_changes: FileChanges) -> ApplyPatchApprovalParams {
        let texts = subject.texts();
        ApplyPatchApprovalParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            file_changes,
            digest: subject.digest().into_owned(),
            grant: ask.grant.clone(),
            rights: self.standing.summary().into(),
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
            grant_root: None,
            with: Vec::new(),
            more: 0,
            turn: self.turn,
            in_part: texts.is_some(),
            texts: Arc::new(texts.unwrap_or_default()),
        }
    }

    fn command(self, ask: &Ask, proposal: &Proposal, exec: &Exec) -> Result<AskedCommand, CannotAsk> {
        Ok(AskedCommand {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            command: words(exec)?,
            cwd: exec.cwd.clone(),
            environment: exec.environment.clone(),
            access: exec.access,
            digest: proposal.digest.clone(),
            grant: ask.grant.clone(),
            rights: self.standing.summary().into(),
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
        })
    }

    /// Returns the prefixes that the person's settings could keep, and the settings file; `None` if there are none.
    fn in_project(&self, ask: &Ask, exec: &Exec) -> Option<ProjectPrefixes> {
        let file = self.kept_in?.clone();
        let prefixes = offered_in_project(exec, ask, self.standing);
        (!prefixes.is_empty()).then_some(ProjectPrefixes { prefixes, file })
    }

    fn external(self, call: &ExternalCall, digest: String) -> ServerRequest {
        ServerRequest::ExternalToolApproval(ExternalToolApprovalParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            server: call.server.clone(),
            tool: call.tool.clone(),
            json: call.json.clone(),
            access: call.guest.as_ref().map(|guest| guest.access.clone()),
            definition: call.guest.as_ref().map(|guest| guest.definition.clone()),
            digest,
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
        })
    }

    fn fetch(self, ask: &Ask, call: &FetchCall, digest: String) -> ServerRequest {
        ServerRequest::FetchApproval(FetchApprovalParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            url: call.url.to_string(),
            host: call.url.rule().to_string(),
            digest,
            grant: ask.grant.clone(),
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
        })
    }

    fn agent(self, ask: &Ask, spawn: &AgentSpawn) -> ServerRequest {
        let AgentSpawn { spawn: asked, child, digest } = spawn;
        ServerRequest::AgentRightsApproval(AgentRightsApprovalParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            task: asked.task.clone(),
            role: asked.role.clone(),
            access: if asked.writes { AgentAccess::Write } else { AgentAccess::Read },
            write: asked.write.clone(),
            network: if asked.network { Network::On } else { Network::Off },
            rights: child.rights.clone(),
            grant: ask.grant.clone(),
            servers: asked.servers.clone(),
            digest: digest.clone(),
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
            turn: self.turn,
        })
    }

    fn plan(self, ask: &Ask, proposal: &PlanProposal) -> ServerRequest {
        ServerRequest::PlanApproval(PlanApprovalParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            path: proposal.path.clone(),
            markdown: proposal.markdown.clone(),
            plan: proposal.plan.clone(),
            finished: proposal.finished.clone(),
            rights: proposal.child.rights.clone(),
            caches: proposal.caches.clone(),
            to_create: proposal.to_create.clone(),
            grant: ask.grant.clone(),
            network_refused: proposal.network_refused,
            servers: proposal.servers.iter().map(|server| server.shown.clone()).collect(),
            confirms_commands: proposal.confirms_commands,
            digest: proposal.digest.clone(),
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
        })
    }

    pub(super) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the project's directory if write access to it would include all write access of `grant`; `None` if `grant`
/// has paths outside the project or protected paths.
pub fn grant_root(standing: &StandingRights, grant: &Grant) -> Option<WirePath> {
    let covered = |path: &WirePath| {
        path.is_within(standing.project())
            && !standing.rights().protected.iter().any(|place| path.is_within(place))
    };
    let covers = !grant.write.is_empty() && grant.write.iter().all(covered);
    covers.then(|| standing.project().clone())
}

fn words(exec: &Exec) -> Result<Vec<String>, CannotAsk> {
    let word = |word: &WirePath| std::str::from_utf8(word.as_bytes()).map(str::to_owned);
    exec.argv.iter().map(word).collect::<Result<_, _>>().map_err(|_| CannotAsk::NotText)
}

/// Returns the prefix of a whole command, and a prefix for each of its parts, to be approved for the session.
fn offered(exec: &Exec) -> (Option<Vec<String>>, Vec<Vec<String>>) {
    let Some(text) = script(exec) else { return (None, Vec::new()) };
    (offered_prefix(text), offered_parts(text))
}
