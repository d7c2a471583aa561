//! The start of an agent run: a worker, and what the project says to agents. Both are waited for like anything else, and the
//! core begins no turn before them.

use agent::core::{ContextItem, EndReason, Input, ReadyWorker};
use agent::prompt::environment_context;
use boundary::monitor::StartError;
use ipc::confinement::Confinement;
use protocol::event::{EventKind, NoticeCode, ObservedBy, WorkerStarted};

use super::boundary::StartedWorker;
use super::digest::Digests;
use super::own_calls::{OwnOrder, ProjectWords};
use super::{AgentRun, SessionError, Shared};

/// The context that the user's own instructions come from.
const USERS: &str = "the user's AGENTS.md";

impl AgentRun {
    pub(super) fn worker_is_ready(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let Some(worker) = self.worker.serving() else { return Ok(()) };
        let started = worker_started(worker, self.worker.confinement());
        let ready = ReadyWorker {
            generation: worker.generation,
            pid: worker.pid,
            tier: worker.ruleset.tier,
            rights_digest: started.rights_digest.clone(),
            ruleset_digest: started.ruleset_digest.clone(),
        };
        let digest = started.ruleset_digest.clone();
        self.sink.record(shared, EventKind::WorkerStarted(started), ObservedBy::Supervisor)?;
        self.feed(shared, Input::WorkerReady(ready))?;
        self.live.publish(&shared.conversation, &self.worker, self.agent.standing(), digest);
        let project = &self.agent.host_standing().project;
        let orders = self.own_calls.worker_is_ready(self.sink.agent().is_top_level(), project);
        self.do_own(shared, orders)
    }

    /// There is no first worker.
    pub(super) fn cannot_start(
        &mut self,
        shared: &mut Shared,
        error: &StartError,
    ) -> Result<(), SessionError> {
        self.own_calls.cannot_start();
        self.feed(
            shared,
            Input::Broken { reason: EndReason::NoSandbox, message: error.code().mark(&error.to_string()) },
        )
    }

    /// Carries out orders about our own calls.
    pub(super) fn do_own(
        &mut self,
        shared: &mut Shared,
        orders: impl IntoIterator<Item = OwnOrder>,
    ) -> Result<(), SessionError> {
        for order in orders {
            match order {
                OwnOrder::Send(call, work) => self.worker.call(call.id(), work),
                OwnOrder::Cancel(call) => _ = self.worker.cancel(call.id()),
                OwnOrder::Show(kind) => self.sink.show(shared, kind),
                OwnOrder::ReplaceWorker => self.worker.replace(Ok(self.worker.watched().clone())),
                OwnOrder::Begin(words) => self.tell_place(shared, words)?,
            }
        }
        Ok(())
    }

    /// Begins without the project's instructions, which do not come in time.
    pub(super) fn give_up_instructions(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let (message, orders) = self.own_calls.give_up();
        self.sink.notice(shared, NoticeCode::NoInstructions, &message)?;
        self.do_own(shared, orders)
    }

    /// Tells the agent of its place, as its worker sees it, of the user's instructions and of the project's. People hear once for all
    /// agents of instructions that the agent does not have.
    fn tell_place(&mut self, shared: &mut Shared, words: ProjectWords) -> Result<(), SessionError> {
        let text = environment_context(&self.surroundings, self.agent.standing());
        let mut items = vec![ContextItem { source: "environment".to_owned(), text }];
        let users = self.surroundings.instructions.clone();
        items.extend(users.map(|text| ContextItem { source: USERS.to_owned(), text }));
        items.extend(words.items);
        for remark in words.remarks {
            self.sink.notice(shared, NoticeCode::NoInstructions, &remark)?;
        }
        self.feed(shared, Input::Context(items))
    }
}

/// What is told of a worker that is ready; `confinement` has the host's own paths.
pub(super) fn worker_started(worker: &StartedWorker, confinement: &Confinement) -> WorkerStarted {
    let digests = Digests::new(confinement, &worker.ruleset);
    WorkerStarted {
        generation: worker.generation,
        pid: worker.pid,
        tier: worker.ruleset.tier,
        landlock_abi: worker.ruleset.landlock_abi,
        rules: worker.ruleset.rules,
        rights: confinement.summary().into(),
        rights_digest: digests.rights,
        ruleset_digest: digests.ruleset,
        one_shot: None,
        no_full_tier: worker.ruleset.no_full_tier.as_ref().map(|reason| reason.detail.clone()),
        not_enforced: worker.ruleset.missing.clone(),
        startup_us: u64::try_from(worker.startup.as_micros()).unwrap_or(u64::MAX),
    }
}
