//! Open calls of one agent, at the worker and elsewhere.

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

#[derive(Default)]
pub(in crate::engine::driver) struct OpenCalls {
    /// Output so far of the calls that have begun.
    progress: Progress,
    queue: WriteQueue,
    preparations: Preparations,
    one_shots: OneShots,
    served: ServedCalls,
    /// Approved sub-agents whose approval is not synced to the disk yet, by the calls that start them.
    unspawned: HashMap<CallId, Box<NewAgent>>,
    /// Results that wait for a check by the tripwire, each as the input that the core gets afterwards.
    unchecked: HashMap<CallId, Input>,
    /// Files that open calls of the file tools change.
    changing: HashMap<CallId, WirePath>,
    /// Files that closed calls of the file tools changed.
    changed: BTreeSet<WirePath>,
    /// Maximum number of bytes of output kept for one call.
    output_bytes: u64,
}

pub(in crate::engine::driver) enum CallUpdate {
    Input(Input),
    Show(UiEventKind),
    Record(EventKind),
    OneShot(OneShotUpdate),
}

/// State of a call when it was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::driver) enum CallPlace {
    /// The call is over or unknown: nothing is left to do.
    Elsewhere,
    /// The call waited in the queue, and no worker has it.
    Held,
    /// The worker or a sub-agent may have the call.
    Dispatched,
}

impl OpenCalls {
    /// Creates the state without calls. If `server` is `None`, calls that no worker serves fail.
    pub(in crate::engine::driver) fn new(server: Option<Arc<dyn ToolServer>>) -> Self {
        Self { served: ServedCalls::new(server), ..Self::default() }
    }

    pub(in crate::engine::driver) fn limit_output(&mut self, bytes: u64) {
        self.output_bytes = bytes;
    }

    /// Waits for the next update of a call that no worker serves, or for a server's question. Cancel safe.
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

    /// Returns the call if it may begin now; queues it otherwise. A queued call delays all later calls.
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

    pub(in crate::engine::driver) fn next_admitted(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        standing: &Confinement,
    ) -> Result<Option<(CallId, Held)>, SessionError> {
        self.queue.next(shared, sink, standing)
    }

    /// Records that the worker carries out a call.
    pub(in crate::engine::driver) fn run(&mut self, call: CallId, tool: &ToolCall, project: &WirePath) {
        self.begin(call);
        self.changing.extend(written_by(tool, project).map(|file| (call, file)));
    }

    pub(in crate::engine::driver) fn prepare(&mut self, call: CallId, tool: ToolCall) {
        self.begin(call);
        self.preparations.begin(call, tool);
    }

    pub(in crate::engine::driver) fn carry_out(
        &mut self,
        call: CallId,
        shot: OneShot,
        boundary: Arc<dyn Boundary>,
    ) {
        self.begin(call);
        self.one_shots.start(call, shot, boundary);
    }

    /// Forgets a finished effect. Returns its duration in milliseconds and, for a patch, the approved files.
    pub(in crate::engine::driver) fn finish_one_shot(
        &mut self,
        call: CallId,
    ) -> (u64, Option<Vec<Approved>>) {
        self.one_shots.finish(call)
    }

    /// Returns the journal by which a rewind logs events of this agent.
    pub(in crate::engine::driver) fn rewind_journal(&self) -> impl RewindJournal + use<> {
        self.one_shots.rewind_journal()
    }

    pub(in crate::engine::driver) fn carries_out(&self) -> bool {
        !self.one_shots.is_empty()
    }

    pub(in crate::engine::driver) fn any_one_shot_ends(&self) -> bool {
        self.one_shots.any_ends()
    }

    pub(in crate::engine::driver) fn cancel_one_shots(&mut self) {
        self.one_shots.cancel_all();
    }

    /// Waits for the next update of an approved effect. Cancel safe.
    pub(in crate::engine::driver) async fn next_one_shot(&mut self) -> OneShotUpdate {
        self.one_shots.next().await
    }

    pub(in crate::engine::driver) fn take_part(&mut self, call: CallId, part: Part) {
        self.preparations.take(call, part);
    }

    /// Finds the path that the user can be offered to grant after access to `path` was denied.
    pub(in crate::engine::driver) fn locate(&mut self, call: CallId, path: WirePath) {
        self.preparations.locate(call, path);
    }

    /// Sets how guests fetch pages. Guests get at most the confinement of the agent's worker.
    pub(in crate::engine::driver) fn fetch_by(
        &mut self,
        boundary: Arc<dyn Boundary>,
        worker: Confinement,
        guests: GuestLog,
    ) {
        self.served.fetch_by(boundary, worker, guests);
    }

    /// Hands a call to a server. True if the call was approved and waits until its approval is synced to the disk.
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

    pub(in crate::engine::driver) fn serve_approved(&mut self, agent: &AgentId, call: CallId) {
        if self.served.release(agent, call) {
            self.begin(call);
        }
    }

    pub(in crate::engine::driver) fn answer_form(&mut self, question: u64, answer: McpAnswer) {
        self.served.answer(question, answer);
    }

    /// Asks a server for the text of a prompt that the user named.
    pub(in crate::engine::driver) fn expand(&mut self, wanted: WantedPrompt) {
        self.served.expand(wanted);
    }

    /// Returns a sub-agent that starts now. If it was approved, keeps it until the approval is synced to the disk.
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

    /// Returns the sub-agent whose approval is synced to the disk; `None` if its call has ended.
    pub(in crate::engine::driver) fn spawn_approved(&mut self, call: CallId) -> Option<Box<NewAgent>> {
        self.unspawned.remove(&call)
    }

    /// Withdraws access from executors that have not started.
    pub(in crate::engine::driver) fn take_back(&mut self, change: &Change) {
        self.unspawned.values_mut().for_each(|agent| take_back(agent, change));
    }

    /// Keeps the output of a call, in case the call is cut off. Returns the event to show; `None` if the call is over.
    pub(in crate::engine::driver) fn printed(&mut self, call: CallId, bytes: &[u8]) -> Option<UiEventKind> {
        self.progress.printed(call, bytes).then(|| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            UiEventKind::OutputDelta { call, text }
        })
    }

    /// Cancels a call. After [`CallPlace::Dispatched`], the caller cancels it at the worker or ends the sub-agent.
    pub(in crate::engine::driver) fn cancel(&mut self, call: CallId) -> CallPlace {
        self.preparations.forget(call);
        self.progress.end(call);
        if self.one_shots.cancel(call) || self.served.cancel(call) || self.unspawned.remove(&call).is_some() {
            return CallPlace::Elsewhere;
        }
        if self.queue.cancel(call) { CallPlace::Held } else { CallPlace::Dispatched }
    }

    /// Takes the worker's answer to a call. Returns an input for the core; `None` if the tripwire checks files first.
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
        self.when_checked(shared, agent, call, Input::CallFinished { call, outcome, duration_ms })
    }

    /// Handles a call lost with its worker. Returns an input for the core; `None` if the tripwire checks files first.
    pub(in crate::engine::driver) fn lost(
        &mut self,
        shared: &mut Shared,
        agent: &AgentId,
        call: CallId,
        reason: &str,
    ) -> Option<Input> {
        self.preparations.forget(call);
        let lost = Input::CallLost { call, reason: reason.to_owned() };
        self.when_checked(shared, agent, call, lost)
    }

    pub(in crate::engine::driver) fn checked(&mut self, call: CallId) -> Option<Input> {
        self.unchecked.remove(&call)
    }

    /// Returns the output of the calls that this input may end. The core needs the output before the input.
    pub(in crate::engine::driver) fn before(&mut self, input: &Input) -> Vec<(CallId, CallProgress)> {
        self.progress.before(input)
    }

    /// Closes the call that this input ends: ends the call's part in the write turn, and records the changed file.
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

    pub(in crate::engine::driver) const fn changed(&self) -> &BTreeSet<WirePath> {
        &self.changed
    }

    /// Ends all calls that the worker does not serve. Returns the hosts that open page fetches used.
    pub(in crate::engine::driver) async fn end(&mut self, generation: Generation) -> Vec<HostUse> {
        self.served.end(generation).await
    }

    fn when_checked(
        &mut self,
        shared: &mut Shared,
        agent: &AgentId,
        call: CallId,
        input: Input,
    ) -> Option<Input> {
        if shared.check_after(agent, call) {
            self.unchecked.insert(call, input);
            return None;
        }
        Some(input)
    }
}

pub(in crate::engine::driver) fn take_back(agent: &mut NewAgent, change: &Change) {
    if let Purpose::Executor(execution) = &mut agent.purpose {
        Arc::make_mut(execution).take_back(change);
    }
}
