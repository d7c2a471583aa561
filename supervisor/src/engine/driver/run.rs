//! An agent run: one agent with its worker, its open stream, its timers, and everything else that is its own.
//!
//! [`AgentRun::next`] waits for what happens next and may be dropped at any moment; [`AgentRun::on`] takes it in. Effects are
//! executed in order, so that what the core logs before a dispatch is in the log before the worker hears of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use agent::core::{Agent, Effect, HostQuestionId, Input, RunEnd, TimerId};
use agent::prompt::PromptEnvironment;
use boundary::monitor::{GuestNews, HostAnswers};
use ipc::id::{AgentId, CallId};
use model::provider::ModelProvider;
use protocol::cost::Usd;
use protocol::event::{EventKind, ObservedBy, TokenUsage};
use protocol::frontend::UiEventKind;
use tokio::sync::watch;
use tokio::time::Instant;

use super::approvals::Approvals;
use super::calls::{CallUpdate, OpenCalls, ToolServer};
use super::event_sink::EventSink;
use super::flushes::{After, Flushes};
use super::guests::Guests;
use super::model_stream::ModelStream;
use super::one_shots::{OneShotUpdate, OneShots};
use super::own_calls::OwnCalls;
use super::timers::Timers;
use super::worker::{LiveEntry, WorkerUpdate};
use super::{Lives, ModePlaces, Models, SessionError, SessionWorker, Shared, Turns};
use crate::journal::session::LogError;

/// What an agent run is made of.
pub struct AgentParts {
    pub agent: Agent,
    pub provider: Arc<dyn ModelProvider>,
    pub worker: SessionWorker,
    /// Where it is told which workers serve.
    pub live: watch::Sender<Lives>,
    /// What is ready for a change of mode or rights.
    pub modes: ModePlaces,
    /// Where the agent is.
    pub surroundings: PromptEnvironment,
    /// Number of turns: one, or as many as the user takes.
    pub turns: Turns,
}

/// One agent of a session.
pub struct AgentRun {
    pub(super) sink: EventSink,
    pub(super) agent: Agent,
    pub(super) worker: SessionWorker,
    pub(super) live: LiveEntry,
    pub(super) modes: ModePlaces,
    pub(super) surroundings: PromptEnvironment,
    /// The models that it may change to; none if absent.
    pub(super) models: Option<Arc<dyn Models>>,
    pub(super) turns: Turns,
    pub(super) own_calls: OwnCalls,
    pub(super) stream: ModelStream,
    pub(super) timers: Timers,
    /// Requests that are waited for.
    pub(super) approvals: Approvals,
    /// Ways for the answers to questions about hosts.
    pub(super) host_answers: HashMap<HostQuestionId, HostAnswers>,
    /// Effects that are carried out.
    pub(super) one_shots: OneShots,
    /// Confined processes of the agent that are no workers.
    pub(super) guests: Guests,
    pub(super) calls: OpenCalls,
    /// Work that waits until the log is on the disk.
    pub(super) flushes: Flushes,
    /// When the present turn began, of several.
    pub(super) turn_began: Option<Instant>,
    /// Totals of the turns before the present one.
    pub(super) totals: Totals,
    pub(super) end: Option<RunEnd>,
    /// The rest of an input that the pause of the log cut short.
    suspended: Suspended,
    /// The agent's own directories, which go with it.
    place: Option<Box<dyn Send>>,
}

/// Effects that are not carried out yet, and the inputs behind them.
#[derive(Default)]
struct Suspended {
    effects: VecDeque<Effect>,
    inputs: VecDeque<Input>,
}

/// Totals of turns.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) steps: u32,
    pub(super) usage: TokenUsage,
    pub(super) cost: Usd,
    /// The model's last words.
    pub(super) text: String,
}

/// An event of an agent run.
pub(super) enum Occurrence {
    /// A timer of the core's fired.
    Timer(TimerId),
    /// The project's instructions are not waited for any longer.
    NoInstructions,
    /// The log is on the disk, or cannot be.
    Flushed(Result<(), LogError>, After),
    /// A request for an approval is over.
    Input(Input),
    /// A guest started or ended.
    Guest(GuestNews),
    /// A call that no worker serves is over, or goes on.
    Call(CallUpdate),
    /// An approved effect's task said something.
    OneShot(OneShotUpdate),
    /// The worker came to be, said something, or ended.
    Worker(WorkerUpdate),
    /// The model's reply goes on; nothing where its stream ended.
    Model(Option<Input>),
}

impl AgentRun {
    /// A run that has not begun.
    pub fn new(parts: AgentParts) -> Self {
        let AgentParts { agent, provider, mut worker, live, modes, surroundings, turns } = parts;
        let guests = Guests::default();
        worker.log_guests(guests.log().clone());
        Self {
            sink: EventSink::new(agent.id().clone()),
            live: LiveEntry::new(agent.id().clone(), live),
            agent,
            worker,
            modes,
            surroundings,
            models: None,
            turns,
            own_calls: OwnCalls::default(),
            stream: ModelStream::new(provider),
            timers: Timers::default(),
            approvals: Approvals::default(),
            host_answers: HashMap::new(),
            one_shots: OneShots::default(),
            guests,
            calls: OpenCalls::default(),
            flushes: Flushes::default(),
            turn_began: None,
            totals: Totals::default(),
            end: None,
            suspended: Suspended::default(),
            place: None,
        }
    }

    /// The same run, which owns directories that are removed when it is over.
    #[must_use]
    pub fn in_place(mut self, place: Box<dyn Send>) -> Self {
        self.place = Some(place);
        self
    }

    /// Removes the agent's directories, beside the main loop: there may be much in them.
    pub(super) fn give_up_place(&mut self) {
        if let Some(place) = self.place.take() {
            drop(tokio::task::spawn_blocking(move || drop(place)));
        }
    }

    /// The same run, which may change its model to one of these.
    #[must_use]
    pub fn choosing_from(self, models: Arc<dyn Models>) -> Self {
        Self { models: Some(models), ..self }
    }

    /// The same run, whose calls that are no worker's this server carries out. Without one they fail.
    #[must_use]
    pub fn served_by(mut self, server: Arc<dyn ToolServer>) -> Self {
        server.log_guests(self.guests.log().clone());
        self.calls.serve_by(server);
        self
    }

    pub const fn id(&self) -> &AgentId {
        self.sink.agent()
    }

    /// What its agent is and may do.
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Has its first worker started.
    pub(super) fn begin(&mut self, shared: &Shared) {
        self.sink.begin(shared);
        self.worker.ask_hosts(self.agent.asks_hosts());
        self.worker.start();
    }

    /// Logs the system prompt and the tools of its requests.
    pub(super) fn log_prompt(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let prompt = shared.prompt(self.agent.prompt());
        self.sink.record(shared, EventKind::PromptFixed(prompt), ObservedBy::Supervisor)
    }

    /// Waits for whatever happens first. Cancel safe.
    pub(super) async fn next(&mut self) -> Occurrence {
        // The next worker is not there before what ran beside the old one is gone.
        let worker_may_change = !self.worker.is_held_back(self.one_shots.any_ends());
        let generation = self.worker.generation();
        tokio::select! {
            // A stream never starves the rest: it is polled last.
            biased;
            timer = self.timers.next() => Occurrence::Timer(timer),
            () = self.own_calls.is_late() => Occurrence::NoInstructions,
            (flushed, after) = self.flushes.next() => Occurrence::Flushed(flushed, after),
            news = self.guests.next() => Occurrence::Guest(news),
            over = self.approvals.next() => Occurrence::Input(over),
            told = self.one_shots.next() => Occurrence::OneShot(told),
            update = self.calls.next(generation) => Occurrence::Call(update),
            happening = self.worker.next(), if worker_may_change => Occurrence::Worker(happening),
            input = self.stream.next() => Occurrence::Model(input),
        }
    }

    /// Takes in what happened.
    pub(super) fn on(&mut self, shared: &mut Shared, happened: Occurrence) -> Result<(), SessionError> {
        let happened = match happened {
            Occurrence::Guest(news) => return self.log_guest(shared, news),
            other => other,
        };
        self.log_guests(shared)?;
        let input = match happened {
            Occurrence::Timer(timer) => Some(Input::Timer(timer)),
            Occurrence::NoInstructions => return self.give_up_instructions(shared),
            Occurrence::Flushed(flushed, after) => {
                self.on_flushed(shared, flushed, after)?;
                None
            }
            // Taken above.
            Occurrence::Guest(_) => None,
            Occurrence::Call(CallUpdate::Show(kind)) => {
                self.sink.show(shared, kind);
                None
            }
            Occurrence::Call(CallUpdate::Record(kind)) => {
                return self.sink.record(shared, kind, ObservedBy::Supervisor);
            }
            Occurrence::Call(CallUpdate::Input(input)) => Some(input),
            Occurrence::Input(input) => Some(input),
            Occurrence::OneShot(told) => self.on_told(shared, told)?,
            Occurrence::Worker(happening) => self.on_happening(shared, happening)?,
            Occurrence::Model(input) => input,
        };
        input.map_or(Ok(()), |input| self.feed(shared, input))
    }

    /// Gives the core an input and carries out its answer.
    pub(super) fn feed(&mut self, shared: &mut Shared, input: Input) -> Result<(), SessionError> {
        self.carry_on(shared, Suspended { inputs: VecDeque::from([input]), ..Suspended::default() })
    }

    /// Goes on where the pause of the log cut it short.
    pub(super) fn go_on(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
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
        }
    }

    /// Shows what a command printed, and keeps it for the case that the command is ended.
    pub(super) fn on_output(&mut self, shared: &Shared, call: CallId, bytes: &[u8]) {
        if self.calls.printed(call, bytes) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.sink.show(shared, UiEventKind::OutputDelta { call, text });
        }
    }

    pub(super) fn record(
        &mut self,
        shared: &mut Shared,
        kind: EventKind,
        observed_by: ObservedBy,
    ) -> Result<(), SessionError> {
        self.sink.record(shared, kind, observed_by)
    }
}
