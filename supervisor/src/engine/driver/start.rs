//! The start of an agent run: a worker, and what the project says to agents. Both are waited for like anything else, and the
//! core begins no turn before them.

use std::time::Duration;

use agent::core::{ContextItem, EndReason, Input, ReadyWorker};
use agent::prompt::environment_context;
use boundary::monitor::StartError;
use ipc::confinement::Confinement;
use ipc::message::{CallOutcome, Work};
use protocol::event::{EventKind, NoticeCode, ObservedBy, WorkerStarted};
use tokio::time::{Instant, sleep_until};

use super::boundary::StartedWorker;
use super::call_origin::CallOrigin;
use super::digest::Digests;
use super::instructions::{INSTRUCTIONS, InstructionsLooking};
use super::repository_above::{dead_link, instructions_above};
use super::{AgentRun, SessionError, Shared};

/// The longest that the search for instructions may hold a run: a worker that was taken over need not answer.
const INSTRUCTIONS_TIME: Duration = Duration::from_secs(10);

/// The context that the user's own instructions come from.
const USERS: &str = "the user's AGENTS.md";

/// How far an agent run has come.
#[derive(Debug, Default)]
pub(super) enum Startup {
    /// The first worker is on its way.
    #[default]
    Worker,
    /// It looks for the project's instructions, until this moment.
    Instructions(Instant, InstructionsLooking),
    /// The agent was told where it is.
    Done,
}

impl Startup {
    /// Waits until the instructions are late; pends if they are not waited for. Cancel safe.
    pub(super) async fn is_late(&self) {
        match self {
            Self::Instructions(until, _) => sleep_until(*until).await,
            Self::Worker | Self::Done => std::future::pending().await,
        }
    }
}

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
        self.missing.clone_from(&started.not_enforced);
        self.no_full_tier.clone_from(&started.no_full_tier);
        self.sink.record(shared, EventKind::WorkerStarted(started), ObservedBy::Supervisor)?;
        self.feed(shared, Input::WorkerReady(ready))?;
        self.publish(shared, digest);
        self.look_for_instructions();
        Ok(())
    }

    /// There is no first worker.
    pub(super) fn cannot_start(
        &mut self,
        shared: &mut Shared,
        error: &StartError,
    ) -> Result<(), SessionError> {
        self.startup = Startup::Done;
        self.feed(
            shared,
            Input::Broken { reason: EndReason::NoSandbox, message: error.code().mark(&error.to_string()) },
        )
    }

    /// Has the worker look for them by calls of our own, once: the supervisor opens nothing in a project.
    fn look_for_instructions(&mut self) {
        if matches!(self.startup, Startup::Worker) {
            let above = instructions_above(self.agent.host_standing().project.as_path());
            let (looking, calls) = InstructionsLooking::begin(self.sink.agent().is_top_level(), above);
            self.startup = Startup::Instructions(Instant::now() + INSTRUCTIONS_TIME, looking);
            for (at, tool) in calls {
                self.worker.call(CallOrigin::Instructions(at).id(), Work::Run(tool));
            }
        }
    }

    /// Takes the answer to one of those calls.
    pub(super) fn take_instructions(
        &mut self,
        shared: &mut Shared,
        at: u8,
        outcome: &CallOutcome,
    ) -> Result<(), SessionError> {
        if let Startup::Instructions(_, looking) = &mut self.startup
            && looking.take(at, outcome)
        {
            self.tell_where_it_is(shared)?;
        }
        Ok(())
    }

    /// The worker that was to read them is gone. The next one reads them if it was replaced, and not if it died of
    /// them.
    pub(super) fn lost_instructions(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        if !matches!(self.startup, Startup::Instructions(..)) {
            return Ok(());
        }
        if self.worker.is_being_replaced() {
            self.startup = Startup::Worker;
            return Ok(());
        }
        self.tell_where_it_is(shared)
    }

    /// The rights were changed during the start, and no worker came of that: the user knows, and may change them again.
    pub(super) fn goes_on_without_instructions(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        match self.startup {
            Startup::Worker => self.tell_where_it_is(shared),
            Startup::Instructions(..) | Startup::Done => Ok(()),
        }
    }

    /// They do not come in time: a worker that does not answer is replaced.
    pub(super) fn give_up_instructions(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let message = format!("{INSTRUCTIONS} was not read: the worker did not answer");
        self.sink.notice(shared, NoticeCode::NoInstructions, &message)?;
        self.worker.replace(Ok(self.worker.watched().clone()));
        self.tell_where_it_is(shared)
    }

    /// Tells the agent of its place, which is what its worker sees, of the user's instructions and of the project's, as
    /// far as they were found.
    fn tell_where_it_is(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let startup = std::mem::replace(&mut self.startup, Startup::Done);
        let text = environment_context(&self.surroundings, self.agent.standing());
        let mut items = vec![ContextItem { source: "environment".to_owned(), text }];
        let users = self.surroundings.instructions.clone();
        items.extend(users.map(|text| ContextItem { source: USERS.to_owned(), text }));
        if let Startup::Instructions(_, looking) = startup {
            items.extend(looking.items());
            self.tell_what_is_left_out(shared, &looking)?;
        }
        self.feed(shared, Input::Context(items))
    }
}

impl AgentRun {
    /// Says which instructions the agent does not have, once for all agents.
    fn tell_what_is_left_out(
        &mut self,
        shared: &mut Shared,
        looking: &InstructionsLooking,
    ) -> Result<(), SessionError> {
        if !self.sink.agent().is_top_level() {
            return Ok(());
        }
        let dead = dead_link(self.agent.host_standing().project.as_path());
        for remark in looking.remarks().into_iter().chain(dead) {
            self.sink.notice(shared, NoticeCode::NoInstructions, &remark)?;
        }
        Ok(())
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
