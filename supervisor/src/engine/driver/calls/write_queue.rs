//! Queue of calls that may write but cannot begin yet, and of all later calls.

use std::collections::VecDeque;
use std::sync::Arc;

use ipc::confinement::Confinement;
use ipc::effect::Effect;
use ipc::id::{AgentCall, AgentId, CallId};
use ipc::path::WirePath;
use ipc::rights::Grant;
use ipc::tool::{EditFile, ToolCall, WriteFile};
use protocol::event::{EventKind, ObservedBy, WriteTurnAwaited, WriteTurnTaken};
use tokio::time::Instant;

use super::super::event_sink::EventSink;
use super::super::snapshots::Snapshots;
use super::super::{SessionError, Shared, TripwireWatch, millis};

/// A call that waits until the base snapshot is taken, the tripwire is set and no other agent writes to the same paths.
pub(in crate::engine::driver) enum Held {
    Run(ToolCall),
    CarryOut(Arc<Effect>, Grant),
}

impl Held {
    const fn may_write(&self) -> bool {
        match self {
            Self::Run(tool) => tool.may_write(),
            Self::CarryOut(..) => true,
        }
    }

    /// Returns the directories that the call may write, without the agent's own temp directory.
    fn roots(&self, standing: &Confinement) -> Vec<WirePath> {
        let Confinement { rights, temp, .. } = standing;
        let granted = match self {
            Self::Run(_) => [].as_slice(),
            Self::CarryOut(_, grant) => grant.write.as_slice(),
        };
        let roots = rights.write.iter().chain(granted);
        roots.filter(|root| Some(*root) != temp.as_ref()).cloned().collect()
    }

    /// Returns the files that a file tool or a patch writes; `None` for a command.
    fn files(&self, project: &WirePath) -> Option<Vec<WirePath>> {
        match self {
            Self::Run(tool) => written_by(tool, project).map(|file| vec![file]),
            Self::CarryOut(effect, _) => match &**effect {
                Effect::Patch(patch) => Some(patch.files.iter().map(|file| file.path.clone()).collect()),
                Effect::Exec(_) => None,
            },
        }
    }
}

pub(super) fn written_by(tool: &ToolCall, project: &WirePath) -> Option<WirePath> {
    match tool {
        ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }) => {
            Some(project.as_path().join(path.as_path()).into())
        }
        _ => None,
    }
}

#[derive(Default)]
pub(super) struct WriteQueue {
    held: VecDeque<(CallId, Held)>,
    /// Call that waits for the agent's write turn, and the start of the wait; `None` until the wait is logged.
    awaits_turn: Option<(CallId, Instant)>,
}

impl WriteQueue {
    /// Returns the call if it may begin now; queues it otherwise.
    pub(super) fn admit(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        standing: &Confinement,
        call: CallId,
        held: Held,
    ) -> Result<Option<Held>, SessionError> {
        if self.held.is_empty() && self.may_begin(shared, sink, standing, call, &held)? {
            begin(shared, sink.agent(), standing, call, &held);
            return Ok(Some(held));
        }
        self.held.push_back((call, held));
        Ok(None)
    }

    pub(super) fn next(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        standing: &Confinement,
    ) -> Result<Option<(CallId, Held)>, SessionError> {
        let Some((call, held)) = self.held.pop_front() else { return Ok(None) };
        if !self.may_begin(shared, sink, standing, call, &held)? {
            self.held.push_front((call, held));
            return Ok(None);
        }
        begin(shared, sink.agent(), standing, call, &held);
        Ok(Some((call, held)))
    }

    pub(super) fn cancel(&mut self, call: CallId) -> bool {
        let before = self.held.len();
        self.held.retain(|(waiting, _)| *waiting != call);
        self.held.len() < before
    }

    fn may_begin(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        standing: &Confinement,
        call: CallId,
        held: &Held,
    ) -> Result<bool, SessionError> {
        if !held.may_write() {
            return Ok(true);
        }
        if shared.is_preparing() || shared.log.is_full() {
            return Ok(false);
        }
        let roots = held.roots(standing);
        if roots.is_empty() {
            return Ok(true);
        }
        if shared.snapshots.as_mut().is_some_and(Snapshots::before_a_write) {
            return Ok(false);
        }
        if let Err(holders) = shared.turns.take(sink.agent(), roots.clone()) {
            self.log_wait(shared, sink, call, holders)?;
            return Ok(false);
        }
        if let Some((_, since)) = self.awaits_turn.take_if(|(waiting, _)| *waiting == call) {
            let taken = WriteTurnTaken { call, waited_ms: millis(since.elapsed()) };
            sink.record(shared, EventKind::WriteTurnTaken(taken), ObservedBy::Supervisor)?;
        }
        let waits = shared.written.as_mut().is_some_and(|files| files.before_a_write(sink.agent(), &roots));
        let is_watched = match held {
            Held::Run(_) => shared.tripwire.as_mut().is_none_or(TripwireWatch::may_begin),
            // A one-shot worker has a tripwire of its own.
            Held::CarryOut(..) => true,
        };
        Ok(!waits && is_watched && !shared.log.is_full())
    }

    /// Logs once that a call waits for the agent's write turn.
    fn log_wait(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        call: CallId,
        holders: Vec<AgentId>,
    ) -> Result<(), SessionError> {
        if self.awaits_turn.is_some_and(|(waiting, _)| waiting == call) {
            return Ok(());
        }
        self.awaits_turn = Some((call, Instant::now()));
        let waits = EventKind::WriteTurnAwaited(WriteTurnAwaited { call, holders });
        sink.record(shared, waits, ObservedBy::Supervisor)
    }
}

fn begin(shared: &mut Shared, agent: &AgentId, standing: &Confinement, call: CallId, held: &Held) {
    if !held.may_write() {
        return;
    }
    shared.turns.begin(agent, call);
    let (roots, only) = (held.roots(standing), held.files(&standing.project));
    if let Some(snapshots) = shared.snapshots.as_mut().filter(|_| !roots.is_empty()) {
        snapshots.call_begins(AgentCall { agent: agent.clone(), call }, roots, only);
    }
}
