//! An agent run, which passes inputs to the core and carries out the core's effects in order. So an event that the core
//! logs before a dispatch is in the log before the worker gets the call.

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

pub struct AgentParts {
    pub agent: Agent,
    pub provider: Arc<dyn ModelProvider>,
    pub worker: SessionWorker,
    /// Channel that publishes the serving workers of this process.
    pub live: watch::Sender<Lives>,
    /// Environments for workers, from which one is chosen after a change of mode or access.
    pub modes: ModePlaces,
    /// Environment that the agent's prompt describes.
    pub surroundings: PromptEnvironment,
    pub turns: Turns,
    /// Models that the agent may change to; `None` if the agent cannot change its model.
    pub models: Option<Arc<dyn Models>>,
    /// Server of calls that no worker serves; `None` if such calls fail.
    pub server: Option<Arc<dyn ToolServer>>,
    /// Owner of the agent's directories. Dropping it removes them.
    pub place: Option<Box<dyn Send>>,
}

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
    pub(super) guests: Guests,
    pub(super) flushes: Flushes,
    /// Effects and inputs that wait because the disk is full.
    suspended: Suspended,
    pub(super) place: Option<Box<dyn Send>>,
}

#[derive(Default)]
struct Suspended {
    effects: VecDeque<Effect>,
    inputs: VecDeque<Input>,
}

pub(in crate::engine::driver) enum Occurrence {
    Timer(TimerId),
    /// The search for the project's instructions exceeded its time limit.
    NoInstructions,
    /// A sync of the log is over, and the work that waited for it can begin.
    Flushed(Result<(), LogError>, After),
    Approval(Input),
    Guest(GuestNews),
    Call(CallUpdate),
    Worker(WorkerUpdate),
    /// Next part of the model's reply; `None` if the stream of the reply ended.
    Model(Option<Input>),
}

impl AgentRun {
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

    pub(in crate::engine::driver) fn begin(&mut self, shared: &Shared) {
        self.sink.begin(shared);
        self.worker.ask_hosts(self.agent.asks_hosts());
        self.calls.limit_output(self.agent.standing().rights().limits.output_bytes);
        self.worker.start();
    }

    /// Logs a sub-agent's system prompt and tools, and starts its first worker.
    pub(in crate::engine::driver) fn begin_below(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let prompt = shared.prompt(self.agent.prompt());
        self.record(shared, EventKind::PromptFixed(prompt))?;
        self.modes.watch(shared, &self.worker.confinement().rights)?;
        self.begin(shared);
        Ok(())
    }

    /// Waits for the next occurrence. Cancel safe.
    pub(in crate::engine::driver) async fn next(&mut self) -> Occurrence {
        // The next worker starts after all processes beside the old one have ended.
        let worker_may_change = !self.worker.is_held_back(self.calls.any_one_shot_ends());
        let generation = self.worker.generation();
        tokio::select! {
            // The model's stream is polled last, so that it does not starve the others.
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

    /// Handles an occurrence. Logs waiting starts and ends of guests before it.
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
            // Handled above.
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

    /// Gives the core an input, and carries out the resulting effects.
    pub(in crate::engine::driver) fn feed(
        &mut self,
        shared: &mut Shared,
        input: Input,
    ) -> Result<(), SessionError> {
        self.carry_on(shared, Suspended { inputs: VecDeque::from([input]), ..Suspended::default() })
    }

    /// Continues with the suspended effects and inputs, once the disk is no longer full.
    pub(in crate::engine::driver) fn go_on(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let rest = std::mem::take(&mut self.suspended);
        for after in self.flushes.take_back() {
            self.flushes.push(shared.flush(), after);
        }
        self.carry_on(shared, rest)
    }

    /// Carries out effects, then handles inputs. Stops if the disk is full, so that nothing follows an unlogged event.
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
            self.calls.limit_output(self.agent.standing().rights().limits.output_bytes);
        }
    }

    pub(in crate::engine::driver) fn record(
        &mut self,
        shared: &mut Shared,
        kind: EventKind,
    ) -> Result<(), SessionError> {
        self.sink.record(shared, kind, ObservedBy::Supervisor)
    }
}
