//! The values that an agent run is made of, and the loop between them and the core.
//!
//! [`AgentRun::next`] waits for the next occurrence and may be dropped at any moment; [`AgentRun::on`] takes it in. Effects are executed in
//! order, so that an event which the core logs before a dispatch is in the log before the worker hears of the call.

use std::collections::VecDeque;
use std::sync::Arc;

use agent::core::{Agent, Effect, Input, TimerId};
use agent::prompt::PromptEnvironment;
use boundary::monitor::GuestNews;
use ipc::id::AgentId;
use model::provider::ModelProvider;
use protocol::event::{EventKind, ObservedBy};
use tokio::sync::watch;

use super::super::account::RunAccount;
use super::super::approvals::Approvals;
use super::super::calls::{CallUpdate, OpenCalls, ToolServer};
use super::super::event_sink::EventSink;
use super::super::flushes::{After, Flushes};
use super::super::guests::Guests;
use super::super::model_stream::ModelStream;
use super::super::own_calls::OwnCalls;
use super::super::timers::Timers;
use super::super::worker::{LiveEntry, WorkerUpdate};
use super::super::{Lives, ModePlaces, Models, SessionError, SessionWorker, Shared, Turns};
use crate::journal::session::LogError;

/// Parts of an agent run.
pub struct AgentParts {
    pub agent: Agent,
    pub provider: Arc<dyn ModelProvider>,
    pub worker: SessionWorker,
    /// The workers that serve, for others to find them.
    pub live: watch::Sender<Lives>,
    /// Places that are ready for a change of mode or access.
    pub modes: ModePlaces,
    /// Surroundings that the agent is told of.
    pub surroundings: PromptEnvironment,
    /// Number of turns: one, or as many as the user takes.
    pub turns: Turns,
    /// The models that the agent may change to; `None` where it has one.
    pub models: Option<Arc<dyn Models>>,
    /// The server of calls that no worker serves. Without one they fail.
    pub server: Option<Arc<dyn ToolServer>>,
    /// Directories of the agent's own, which are removed when it is over.
    pub place: Option<Box<dyn Send>>,
}

/// One agent of a session.
pub struct AgentRun {
    pub(super) agent: Agent,
    pub(super) models: Option<Arc<dyn Models>>,
    pub(super) surroundings: PromptEnvironment,
    pub(super) sink: EventSink,
    pub(super) account: RunAccount,
    pub(super) worker: SessionWorker,
    pub(super) live: LiveEntry,
    pub(super) modes: ModePlaces,
    pub(super) stream: ModelStream,
    pub(super) timers: Timers,
    pub(super) calls: OpenCalls,
    pub(super) own_calls: OwnCalls,
    pub(super) approvals: Approvals,
    /// Confined processes of the agent that are no workers.
    pub(super) guests: Guests,
    /// Work that waits until the log is on the disk.
    pub(super) flushes: Flushes,
    /// The rest of an input that the pause of the log cut short.
    suspended: Suspended,
    pub(super) place: Option<Box<dyn Send>>,
}

/// Effects that are not carried out yet, and the inputs behind them.
#[derive(Default)]
struct Suspended {
    effects: VecDeque<Effect>,
    inputs: VecDeque<Input>,
}

/// An event of an agent run.
pub(in crate::engine::driver) enum Occurrence {
    /// A timer of the core's fired.
    Timer(TimerId),
    /// The project's instructions are late.
    NoInstructions,
    /// The log is on the disk, or cannot be.
    Flushed(Result<(), LogError>, After),
    /// A request for an approval is over.
    Approval(Input),
    /// A guest started or ended.
    Guest(GuestNews),
    /// A call beside the standing worker is over, or goes on.
    Call(CallUpdate),
    /// The worker started, said something, or ended.
    Worker(WorkerUpdate),
    /// The model's reply goes on; `None` where its stream ended.
    Model(Option<Input>),
}

impl AgentRun {
    /// Makes a run that has not begun.
    pub fn new(parts: AgentParts) -> Self {
        let AgentParts {
            agent,
            provider,
            mut worker,
            live,
            modes,
            surroundings,
            turns,
            models,
            server,
            place,
        } = parts;
        let guests = Guests::default();
        worker.log_guests(guests.log().clone());
        if let Some(server) = &server {
            server.log_guests(guests.log().clone());
        }
        Self {
            sink: EventSink::new(agent.id().clone()),
            live: LiveEntry::new(agent.id().clone(), live),
            calls: OpenCalls::new(server),
            agent,
            models,
            surroundings,
            account: RunAccount::new(turns),
            worker,
            modes,
            stream: ModelStream::new(provider),
            timers: Timers::default(),
            own_calls: OwnCalls::default(),
            approvals: Approvals::default(),
            guests,
            flushes: Flushes::default(),
            suspended: Suspended::default(),
            place,
        }
    }

    pub const fn id(&self) -> &AgentId {
        self.sink.agent()
    }

    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(in crate::engine::driver) const fn worker(&self) -> &SessionWorker {
        &self.worker
    }

    pub(in crate::engine::driver) const fn worker_mut(&mut self) -> &mut SessionWorker {
        &mut self.worker
    }

    /// Has its first worker started.
    pub(in crate::engine::driver) fn begin(&mut self, shared: &Shared) {
        self.sink.begin(shared);
        self.worker.ask_hosts(self.agent.asks_hosts());
        self.calls.limit_output(self.agent.standing().rights.limits.output_bytes);
        self.worker.start();
    }

    /// Logs the system prompt and the tools of its requests, and has its first worker started while others are at work.
    pub(in crate::engine::driver) fn begin_below(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let prompt = shared.prompt(self.agent.prompt());
        self.record(shared, EventKind::PromptFixed(prompt))?;
        self.modes.watch(shared, &self.worker.confinement().rights)?;
        self.begin(shared);
        Ok(())
    }

    /// Waits for the next occurrence. Cancel safe.
    pub(in crate::engine::driver) async fn next(&mut self) -> Occurrence {
        // The next worker is not there before what ran beside the old one is gone.
        let worker_may_change = !self.worker.is_held_back(self.calls.any_one_shot_ends());
        let generation = self.worker.generation();
        tokio::select! {
            // A stream never starves the rest: it is polled last.
            biased;
            timer = self.timers.next() => Occurrence::Timer(timer),
            () = self.own_calls.is_late() => Occurrence::NoInstructions,
            (flushed, after) = self.flushes.next() => Occurrence::Flushed(flushed, after),
            news = self.guests.next() => Occurrence::Guest(news),
            over = self.approvals.next() => Occurrence::Approval(over),
            update = self.calls.next(generation) => Occurrence::Call(update),
            happening = self.worker.next(), if worker_may_change => Occurrence::Worker(happening),
            input = self.stream.next() => Occurrence::Model(input),
        }
    }

    /// Takes an occurrence in. News of guests are logged before the news that they belong to.
    pub(in crate::engine::driver) fn on(
        &mut self,
        shared: &mut Shared,
        happened: Occurrence,
    ) -> Result<(), SessionError> {
        if let Occurrence::Guest(news) = happened {
            return self.guests.record(shared, &mut self.sink, &self.worker, news);
        }
        self.guests.record_all(shared, &mut self.sink, &self.worker)?;
        let input = match happened {
            // Taken above.
            Occurrence::Guest(_) => None,
            Occurrence::Timer(timer) => Some(Input::Timer(timer)),
            Occurrence::NoInstructions => {
                let orders = self.own_calls.give_up();
                return self.do_own(shared, orders);
            }
            Occurrence::Flushed(flushed, after) => return self.on_flushed(shared, flushed, after),
            Occurrence::Call(update) => self.on_call(shared, update)?,
            Occurrence::Worker(update) => self.on_worker(shared, update)?,
            Occurrence::Approval(input) => Some(input),
            Occurrence::Model(input) => input,
        };
        input.map_or(Ok(()), |input| self.feed(shared, input))
    }

    /// Gives the core an input and carries out its answer.
    pub(in crate::engine::driver) fn feed(
        &mut self,
        shared: &mut Shared,
        input: Input,
    ) -> Result<(), SessionError> {
        self.carry_on(shared, Suspended { inputs: VecDeque::from([input]), ..Suspended::default() })
    }

    /// Goes on where the pause of the log cut it short.
    pub(in crate::engine::driver) fn go_on(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let rest = std::mem::take(&mut self.suspended);
        for after in self.flushes.take_back() {
            self.flushes.push(shared.flush(), after);
        }
        self.carry_on(shared, rest)
    }

    /// Carries out effects, then takes in inputs. Nothing is done that follows on an event which the log does not have.
    fn carry_on(&mut self, shared: &mut Shared, mut rest: Suspended) -> Result<(), SessionError> {
        loop {
            if shared.log.is_full() {
                self.suspended.effects.append(&mut rest.effects);
                self.suspended.inputs.append(&mut rest.inputs);
                return Ok(());
            }
            if let Some(effect) = rest.effects.pop_front() {
                self.execute(shared, effect, &mut rest.inputs)?;
                continue;
            }
            let Some(input) = rest.inputs.pop_front() else { return Ok(()) };
            for (call, progress) in self.calls.before(&input) {
                self.agent.handle(Input::Progress { call, progress });
            }
            self.calls.close(shared, self.sink.agent(), &input);
            rest.effects = self.agent.handle(input).into();
            self.worker.ask_hosts(self.agent.asks_hosts());
            self.calls.limit_output(self.agent.standing().rights.limits.output_bytes);
        }
    }

    /// Logs an event of the agent that the supervisor saw.
    pub(in crate::engine::driver) fn record(
        &mut self,
        shared: &mut Shared,
        kind: EventKind,
    ) -> Result<(), SessionError> {
        self.sink.record(shared, kind, ObservedBy::Supervisor)
    }
}
