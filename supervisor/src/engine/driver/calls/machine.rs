//! The open calls of one agent.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use agent::core::{CallProgress, Input, NewAgent, Purpose};
use boundary::monitor::GuestLog;
use boundary::tripwire::Approved;
use gate::Change;
use gate::tools::ServedCall;
use ipc::confinement::Confinement;
use ipc::effect::Part;
use ipc::id::{AgentId, CallId, Generation};
use ipc::mcp::McpAnswer;
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::tool::ToolCall;
use protocol::event::{EventKind, HostUse};
use protocol::frontend::UiEventKind;
use protocol::server_prompt::WantedPrompt;
use tracing::info_span;

use super::super::boundary::Boundary;
use super::super::event_sink::EventSink;
use super::super::one_shot::OneShot;
use super::super::one_shots::{OneShotUpdate, OneShots};
use super::super::rewinder::RewindJournal;
use super::super::{SessionError, Shared};
use super::preparations::Preparations;
use super::progress::Progress;
use super::served::{ServedCalls, ServedUpdate, ToolServer};
use super::write_queue::{Held, WriteQueue, written_by};

/// Calls of one agent, until each is closed.
#[derive(Default)]
pub(in crate::engine::driver) struct OpenCalls {
    /// Output so far of calls that were begun.
    progress: Progress,
    queue: WriteQueue,
    /// Effects that a worker works out.
    preparations: Preparations,
    /// Approved effects that are carried out.
    one_shots: OneShots,
    /// Calls that are served outside the worker.
    served: ServedCalls,
    /// Sub-agents whose approval is not on the disk yet.
    unspawned: HashMap<CallId, Box<NewAgent>>,
    /// Results that wait for a look at the tripwire.
    unlooked: HashMap<CallId, Input>,
    /// Files that open calls of the file tools change.
    changing: HashMap<CallId, WirePath>,
    /// Files that closed calls of the file tools changed.
    changed: BTreeSet<WirePath>,
    /// Bound on the output of one call that is kept.
    output_bytes: u64,
}

/// News of a call beside the standing worker.
pub(in crate::engine::driver) enum CallUpdate {
    Input(Input),
    Show(UiEventKind),
    Record(EventKind),
    OneShot(OneShotUpdate),
}

/// The place of a call that is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::driver) enum CallPlace {
    /// It was at none of those below; nothing is left to do.
    Elsewhere,
    /// It was held, and no worker has heard of it.
    Held,
    /// The worker or a sub-agent may have it.
    Dispatched,
}

impl OpenCalls {
    /// Takes the server of calls that no worker serves. Without one they fail.
    pub(in crate::engine::driver) fn new(server: Option<Arc<dyn ToolServer>>) -> Self {
        Self { served: ServedCalls::new(server), ..Self::default() }
    }

    /// Sets how many bytes of output a call may have.
    pub(in crate::engine::driver) fn limit_output(&mut self, bytes: u64) {
        self.output_bytes = bytes;
    }

    /// Waits for the next news. Cancel safe.
    pub(in crate::engine::driver) async fn next(&mut self, generation: Generation) -> CallUpdate {
        tokio::select! {
            biased;
            told = self.one_shots.next() => CallUpdate::OneShot(told),
            prepared = self.preparations.next() => CallUpdate::Input(prepared),
            update = self.served.next() => match update {
                ServedUpdate::Used(used) => {
                    let sum = self.served.sum(generation, used);
                    CallUpdate::Record(EventKind::HostsUsed { generation, uses: vec![sum] })
                }
                ServedUpdate::Over(input) => CallUpdate::Input(input),
                ServedUpdate::Question(question) => CallUpdate::Input(self.served.open(question)),
                ServedUpdate::Progress(call, words) => {
                    CallUpdate::Show(UiEventKind::OutputDelta { call, text: format!("{words}\n") })
                }
                ServedUpdate::Prompt(expanded) => CallUpdate::Show(UiEventKind::PromptExpanded(Box::new(expanded))),
            },
        }
    }

    fn begin(&mut self, call: CallId) {
        self.progress.begin(call, self.output_bytes);
    }

    /// Takes a call; gives it back if it begins now. A call that may write waits, and so do those that follow it.
    pub(in crate::engine::driver) fn admit(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        standing: &Confinement,
        call: CallId,
        held: Held,
    ) -> Result<Option<Held>, SessionError> {
        self.queue.admit(shared, sink, standing, call, held)
    }

    /// Returns the first call that waits, if it begins now.
    pub(in crate::engine::driver) fn next_admitted(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        standing: &Confinement,
    ) -> Result<Option<(CallId, Held)>, SessionError> {
        self.queue.next(shared, sink, standing)
    }

    /// Notes that the worker carries a call out in this project.
    pub(in crate::engine::driver) fn run(&mut self, call: CallId, tool: &ToolCall, project: &WirePath) {
        self.begin(call);
        self.changing.extend(written_by(tool, project).map(|file| (call, file)));
    }

    /// Notes that the worker works out the effect of a call.
    pub(in crate::engine::driver) fn prepare(&mut self, call: CallId, tool: ToolCall) {
        self.begin(call);
        self.preparations.begin(call, tool);
    }

    /// Starts to carry an approved effect out.
    pub(in crate::engine::driver) fn carry_out(
        &mut self,
        call: CallId,
        shot: OneShot,
        boundary: Arc<dyn Boundary>,
    ) {
        self.begin(call);
        self.one_shots.start(call, shot, boundary);
    }

    /// Forgets an effect that is over. Returns its milliseconds, and its files.
    pub(in crate::engine::driver) fn finish_one_shot(
        &mut self,
        call: CallId,
    ) -> (u64, Option<Vec<Approved>>) {
        self.one_shots.finish(call)
    }

    /// The journal by which a rewind writes to the agent's part of the log.
    pub(in crate::engine::driver) fn rewind_journal(&self) -> impl RewindJournal + use<> {
        self.one_shots.rewind_journal()
    }

    /// True while an approved effect is carried out.
    pub(in crate::engine::driver) fn carries_out(&self) -> bool {
        !self.one_shots.is_empty()
    }

    /// True if an effect was asked to end, and has not.
    pub(in crate::engine::driver) fn any_one_shot_ends(&self) -> bool {
        self.one_shots.any_ends()
    }

    pub(in crate::engine::driver) fn cancel_one_shots(&mut self) {
        self.one_shots.cancel_all();
    }

    /// Waits for the next news of an effect that is carried out. Cancel safe.
    pub(in crate::engine::driver) async fn next_one_shot(&mut self) -> OneShotUpdate {
        self.one_shots.next().await
    }

    /// Takes a part of an effect that the worker works out.
    pub(in crate::engine::driver) fn take_part(&mut self, call: CallId, part: Part) {
        self.preparations.take(call, part);
    }

    /// Looks for the place to grant for a denied path.
    pub(in crate::engine::driver) fn locate(&mut self, call: CallId, path: WirePath) {
        self.preparations.locate(call, path);
    }

    /// Sets the origin of the guests that fetch pages: they are confined within the agent's worker.
    pub(in crate::engine::driver) fn fetch_by(
        &mut self,
        boundary: Arc<dyn Boundary>,
        worker: Confinement,
        guests: GuestLog,
    ) {
        self.served.fetch_by(boundary, worker, guests);
    }

    /// Has a call served; true if it was approved and waits for the disk.
    pub(in crate::engine::driver) fn serve(
        &mut self,
        agent: &AgentId,
        call: CallId,
        wanted: ServedCall,
        longest: Duration,
    ) -> bool {
        let waits = self.served.take(agent, call, wanted, longest);
        if !waits {
            self.begin(call);
        }
        waits
    }

    /// Begins an approved call whose approval is on the disk.
    pub(in crate::engine::driver) fn serve_approved(&mut self, agent: &AgentId, call: CallId) {
        if self.served.release(agent, call) {
            self.begin(call);
        }
    }

    /// Answers the question of a server.
    pub(in crate::engine::driver) fn answer_form(&mut self, question: u64, answer: McpAnswer) {
        self.served.answer(question, answer);
    }

    /// Has a server expand a prompt for a person.
    pub(in crate::engine::driver) fn expand(&mut self, wanted: WantedPrompt) {
        self.served.expand(wanted);
    }

    /// Takes a sub-agent; gives it back if it starts now, and keeps one that was approved until that is on the disk.
    pub(in crate::engine::driver) fn spawn(
        &mut self,
        call: CallId,
        agent: Box<NewAgent>,
    ) -> Option<Box<NewAgent>> {
        self.begin(call);
        if agent.grant.is_empty() {
            return Some(agent);
        }
        self.unspawned.insert(call, agent);
        None
    }

    /// Returns the sub-agent whose approval is on the disk, unless its call was ended meanwhile.
    pub(in crate::engine::driver) fn spawn_approved(&mut self, call: CallId) -> Option<Box<NewAgent>> {
        self.unspawned.remove(&call)
    }

    /// Takes back from executors that have not begun what the user takes back.
    pub(in crate::engine::driver) fn take_back(&mut self, change: &Change) {
        self.unspawned.values_mut().for_each(|agent| take_back(agent, change));
    }

    /// Keeps the output of a call for the case that the call is ended. Returns it to be shown, unless the call is over.
    pub(in crate::engine::driver) fn printed(&mut self, call: CallId, bytes: &[u8]) -> Option<UiEventKind> {
        self.progress.printed(call, bytes).then(|| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            UiEventKind::OutputDelta { call, text }
        })
    }

    /// Cancels a call wherever it is, but at the worker and in the tree.
    pub(in crate::engine::driver) fn cancel(&mut self, call: CallId) -> CallPlace {
        self.preparations.forget(call);
        self.progress.end(call);
        if self.one_shots.cancel(call) || self.served.cancel(call) || self.unspawned.remove(&call).is_some() {
            return CallPlace::Elsewhere;
        }
        if self.queue.cancel(call) { CallPlace::Held } else { CallPlace::Dispatched }
    }

    /// Takes the worker's answer to a call. Returns the core's input, unless something has to be looked at first.
    pub(in crate::engine::driver) fn answered(
        &mut self,
        shared: &mut Shared,
        agent: &AgentId,
        call: CallId,
        outcome: CallOutcome,
    ) -> Option<Input> {
        let outcome = self.preparations.finish(call, outcome)?;
        let _span = info_span!("call", id = %call).entered();
        tracing::debug!("answered");
        let duration_ms = self.progress.duration_ms(call);
        self.when_looked(shared, agent, call, Input::CallFinished { call, outcome, duration_ms })
    }

    /// Takes the loss of a call with its worker. Returns the core's input, unless something has to be looked at first.
    pub(in crate::engine::driver) fn lost(
        &mut self,
        shared: &mut Shared,
        agent: &AgentId,
        call: CallId,
        reason: &str,
    ) -> Option<Input> {
        self.preparations.forget(call);
        let lost = Input::CallLost { call, reason: reason.to_owned() };
        self.when_looked(shared, agent, call, lost)
    }

    /// Returns the result that waited for a look at the tripwire.
    pub(in crate::engine::driver) fn looked(&mut self, call: CallId) -> Option<Input> {
        self.unlooked.remove(&call)
    }

    /// The progress that the core has to know before it takes this input.
    pub(in crate::engine::driver) fn before(&mut self, input: &Input) -> Vec<(CallId, CallProgress)> {
        self.progress.before(input)
    }

    /// Closes the call that this input ends: its part of the agent's turn at writing, and the file that it changed.
    pub(in crate::engine::driver) fn close(&mut self, shared: &mut Shared, agent: &AgentId, input: &Input) {
        let (call, done) = match input {
            Input::CallFinished { call, outcome, .. } => (*call, matches!(outcome, CallOutcome::Done(_))),
            Input::OneShotFinished { call, outcome, .. } => {
                (*call, matches!(outcome, Ok(CallOutcome::Done(_))))
            }
            Input::CallLost { call, .. } => (*call, false),
            _ => return,
        };
        shared.turns.end(agent, call);
        let changed = self.changing.remove(&call);
        self.changed.extend(changed.filter(|_| done));
    }

    /// Files that the file tools changed.
    pub(in crate::engine::driver) const fn changed(&self) -> &BTreeSet<WirePath> {
        &self.changed
    }

    /// Ends everything that is served outside the worker, and waits for that. Returns the hosts that were used by then.
    pub(in crate::engine::driver) async fn end(&mut self, generation: Generation) -> Vec<HostUse> {
        self.served.end(generation).await
    }

    /// Keeps the result of a call that may have written until somebody has looked.
    fn when_looked(
        &mut self,
        shared: &mut Shared,
        agent: &AgentId,
        call: CallId,
        input: Input,
    ) -> Option<Input> {
        if shared.look_after(agent, call) {
            self.unlooked.insert(call, input);
            return None;
        }
        Some(input)
    }
}

/// Takes back from an executor that has not begun what the user takes back.
pub(in crate::engine::driver) fn take_back(agent: &mut NewAgent, change: &Change) {
    if let Purpose::Executor(execution) = &mut agent.purpose {
        Arc::make_mut(execution).take_back(change);
    }
}
