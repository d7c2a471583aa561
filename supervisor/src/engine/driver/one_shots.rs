//! Approved effects while they are carried out: each in a task of its own, which writes nothing down itself.

use std::collections::HashMap;
use std::sync::Arc;

use agent::core::Input;
use boundary::monitor::HostQuestion;
use boundary::policy::levels::is_empty;
use boundary::tripwire::{Approved, digest, tell_others};
use ipc::confinement::Confinement;
use ipc::effect::{Effect, FileEffect};
use ipc::id::{CallId, Generation};
use ipc::message::CallOutcome;
use ipc::rights::Grant;
use protocol::event::{EventKind, ObservedBy};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::flushes::After;
use super::one_shot::{Journal, OneShot, OneShotError, Unlogged};
use super::rewinder::RewindJournal;
use super::run::Occurrence;
use super::tripwire::aside;
use super::{AgentRun, SessionError, Shared, millis};
use crate::journal::session::LogError;

/// How much may wait for the main loop: a command that prints waits as well.
const INBOX: usize = 8;

/// The effects that are carried out.
pub(super) struct OneShots {
    running: HashMap<CallId, Shot>,
    tasks: JoinSet<()>,
    told: mpsc::Sender<OneShotUpdate>,
    inbox: mpsc::Receiver<OneShotUpdate>,
}

struct Shot {
    began: Instant,
    /// The files of a patch: what becomes of them was shown byte by byte.
    files: Vec<Approved>,
    /// Until it is asked to end.
    cancel: Option<oneshot::Sender<()>>,
}

/// What a task tells the main loop.
pub(super) enum OneShotUpdate {
    /// An event to be logged; nothing goes on before it is.
    Log { kind: EventKind, logged: oneshot::Sender<()> },
    /// A command printed something.
    Output { call: CallId, bytes: Vec<u8> },
    /// A command connects to a host beyond the list.
    HostAsked { call: CallId, generation: Generation, question: HostQuestion },
    /// Something that the model is told.
    Remark { call: CallId, text: String },
    /// A number is wanted for a worker beside the standing one.
    Number(oneshot::Sender<Generation>),
    /// It is over; its worker is gone.
    Finished {
        call: CallId,
        outcome: Result<CallOutcome, String>,
        /// True if its caches hold something that other workers may read.
        brought: bool,
    },
}

impl Default for OneShots {
    fn default() -> Self {
        let (told, inbox) = mpsc::channel(INBOX);
        Self { running: HashMap::new(), tasks: JoinSet::new(), told, inbox }
    }
}

impl OneShots {
    /// Asks one to end; whether it is one.
    pub(super) fn cancel(&mut self, call: CallId) -> bool {
        let Some(shot) = self.running.get_mut(&call) else { return false };
        // One that is over at this moment needs no asking.
        let _ = shot.cancel.take().map(|cancel| cancel.send(()));
        true
    }

    pub(super) fn cancel_all(&mut self) {
        let calls: Vec<_> = self.running.keys().copied().collect();
        for call in calls {
            self.cancel(call);
        }
    }

    /// Whether one was asked to end, and has not.
    pub(super) fn any_ends(&self) -> bool {
        self.running.values().any(|shot| shot.cancel.is_none())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// What one of them tells; pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> OneShotUpdate {
        loop {
            tokio::select! {
                // What was told before a task ended comes before its end.
                biased;
                Some(told) = self.inbox.recv() => return told,
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "an approved change lost its task");
                        if let Some(call) = self.unattended() {
                            let outcome = Err(format!("the task that carried it out failed: {error}"));
                            return OneShotUpdate::Finished { call, outcome, brought: true };
                        }
                    }
                }
                else => return std::future::pending().await,
            }
        }
    }

    /// With no task left nobody tells of what is still listed.
    fn unattended(&self) -> Option<CallId> {
        self.running.keys().copied().next().filter(|_| self.tasks.is_empty())
    }
}

/// Tells the main loop, which alone writes the log.
struct Teller {
    /// `None` for a rewind, which prints nothing and of which the model hears nothing.
    call: Option<CallId>,
    told: mpsc::Sender<OneShotUpdate>,
}

impl Journal for Teller {
    async fn log(&mut self, kind: EventKind) -> Result<(), Unlogged> {
        let (logged, done) = oneshot::channel();
        self.told.send(OneShotUpdate::Log { kind, logged }).await.map_err(|_| Unlogged)?;
        done.await.map_err(|_| Unlogged)
    }

    async fn output(&mut self, bytes: Vec<u8>) {
        if let Some(call) = self.call {
            // A main loop that is gone shows nothing.
            let _ = self.told.send(OneShotUpdate::Output { call, bytes }).await;
        }
    }

    async fn ask_host(&mut self, generation: Generation, question: HostQuestion) {
        if let Some(call) = self.call {
            let _ = self.told.send(OneShotUpdate::HostAsked { call, generation, question }).await;
        }
    }

    async fn remark(&mut self, text: String) {
        if let Some(call) = self.call {
            let _ = self.told.send(OneShotUpdate::Remark { call, text }).await;
        }
    }
}

impl RewindJournal for Teller {
    async fn number(&mut self) -> Result<Generation, Unlogged> {
        let (number, reserved) = oneshot::channel();
        self.told.send(OneShotUpdate::Number(number)).await.map_err(|_| Unlogged)?;
        reserved.await.map_err(|_| Unlogged)
    }
}

impl AgentRun {
    /// Has a rewind written down in the agent's part of the log.
    pub(super) fn rewind_journal(&self) -> impl RewindJournal + use<> {
        Teller { call: None, told: self.one_shots.told.clone() }
    }

    /// Starts to carry an approved effect out, under what the standing worker has and this grant.
    pub(super) fn carry_out(&mut self, call: CallId, effect: Arc<Effect>, grant: Grant) {
        let standing = self.worker.confinement();
        let standing = match &*effect {
            Effect::Exec(_) => self.modes.approved(standing, &grant),
            Effect::Patch(_) => standing.clone(),
        };
        let standing = Confinement { asks_hosts: self.agent.asks_hosts(), ..standing };
        let shot = OneShot {
            agent: self.sink.agent().clone(),
            generation: self.worker.reserve_generation(),
            standing,
            watch: self.modes.watched().cloned(),
            asked: grant.clone(),
            granted: grant,
            call: Some(call),
            effect,
            guests: self.guests.log().of_call(call),
        };
        self.calls.begin(call, self.output_bytes());
        let boundary = self.worker.boundary();
        let caches = shot.caches().cloned();
        let files = files(&shot.effect);
        let shots = &mut self.one_shots;
        let (cancel, cancelled) = oneshot::channel();
        shots.running.insert(call, Shot { began: Instant::now(), files, cancel: Some(cancel) });
        let mut teller = Teller { call: Some(call), told: shots.told.clone() };
        shots.tasks.spawn(async move {
            let done = shot.carry_out(&*boundary, &mut teller, cancelled).await;
            let outcome = done.map_err(|error: OneShotError| error.to_string());
            let brought = caches.is_some_and(|caches| !is_empty(caches.as_path()));
            let _ = teller.told.send(OneShotUpdate::Finished { call, outcome, brought }).await;
        });
    }

    /// Does what an effect's task tells; the core's input, if it is one.
    pub(super) fn on_told(
        &mut self,
        shared: &mut Shared,
        told: OneShotUpdate,
    ) -> Result<Option<Input>, SessionError> {
        match told {
            OneShotUpdate::Log { kind, logged } => {
                let starts = matches!(kind, EventKind::WorkerStarted(_));
                self.sink.record(shared, kind, ObservedBy::Supervisor)?;
                if starts {
                    // The next thing is the effect: that it was approved survives whatever it does.
                    self.flushes.push(shared.flush(), After::GoOn(logged));
                } else {
                    let _ = logged.send(());
                }
                Ok(None)
            }
            OneShotUpdate::Output { call, bytes } => {
                self.on_output(shared, call, &bytes);
                Ok(None)
            }
            OneShotUpdate::Number(number) => {
                let _ = number.send(self.worker.reserve_generation());
                Ok(None)
            }
            OneShotUpdate::HostAsked { call, generation, question } => {
                Ok(Some(self.on_host_asked(generation, Some(call), question)))
            }
            OneShotUpdate::Remark { call, text } => Ok(Some(Input::Remark { call, text })),
            OneShotUpdate::Finished { call, outcome, brought } => {
                if brought {
                    self.worker.renew();
                }
                let shot = self.one_shots.running.remove(&call);
                let duration_ms = shot.as_ref().map_or(0, |shot| millis(shot.began.elapsed()));
                if let (Some(shot), Ok(CallOutcome::Done(_))) = (shot, &outcome) {
                    self.accept(shared, shot.files);
                }
                Ok(Some(Input::OneShotFinished { call, outcome, duration_ms }))
            }
        }
    }

    /// Has what was approved stay, in this session and in others that work here.
    fn accept(&self, shared: &Shared, files: Vec<Approved>) {
        if let Some(guard) = &shared.tripwire {
            return guard.accept(files);
        }
        let Some(watch) = self.modes.watched().filter(|_| !files.is_empty()).cloned() else { return };
        let told = aside("tripwire", move || {
            if let Err(error) = tell_others(&watch, &files) {
                tracing::warn!(%error, "other sessions do not hear of an approved change");
            }
        });
        // Nobody waits for it.
        drop(told);
    }

    /// Does what waited for the disk. Where that was full, it waits until the log's lines were written once more.
    pub(super) fn on_flushed(
        &mut self,
        shared: &mut Shared,
        flushed: Result<(), LogError>,
        after: After,
    ) -> Result<(), SessionError> {
        // Another run may have found out first.
        if let Err(error) = flushed
            && !shared.log.is_full()
            && !shared.log.take_back(&error)?
        {
            return Err(error.into());
        }
        if shared.log.is_full() {
            self.flushes.put_back(after);
            return Ok(());
        }
        match after {
            After::Ask(id) => self.ask(shared, id),
            After::Serve(call) => {
                self.calls.serve_approved(self.sink.agent(), call, self.output_bytes());
            }
            After::Spawn(call) => {
                if let Some(agent) = self.calls.spawn_approved(call) {
                    self.order_start(shared, call, agent);
                }
            }
            // An effect whose task is gone needs no leave.
            After::GoOn(logged) => drop(logged.send(())),
        }
        Ok(())
    }

    /// True while something is carried out for it beside its worker.
    pub(super) fn carries_out(&self) -> bool {
        !self.one_shots.is_empty()
    }

    /// The next thing that happens to a run that is over while that ends. Cancel safe.
    pub(super) async fn next_left(&mut self) -> Occurrence {
        self.one_shots.cancel_all();
        tokio::select! {
            biased;
            (flushed, after) = self.flushes.next() => Occurrence::Flushed(flushed, after),
            told = self.one_shots.next() => Occurrence::OneShot(told),
        }
    }

    /// Ends what is still carried out, and waits for that.
    pub(super) async fn end_one_shots(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        while self.carries_out() {
            let happened = self.next_left().await;
            self.on(shared, happened)?;
            if shared.log.is_full() {
                // Nobody waits for space any more.
                shared.log.write_held()?;
                shared.log.sync()?;
                self.go_on(shared)?;
            }
        }
        Ok(())
    }
}

fn files(effect: &Effect) -> Vec<Approved> {
    let Effect::Patch(patch) = effect else { return Vec::new() };
    let approved = |file: &FileEffect| Approved {
        path: file.path.as_path().to_owned(),
        digest: file.new.as_ref().map(|new| digest(&new.bytes)),
    };
    patch.files.iter().map(approved).collect()
}
