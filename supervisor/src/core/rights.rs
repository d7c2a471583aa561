//! A change of rights while the agent lives: rights never change in place, so the worker is replaced.
//!
//! What ran is interrupted at once; the reply that comes in is untouched. Results are held back until the next worker is
//! ready, so that the model reads them together with its new rights; calls that it makes meanwhile wait for that worker.

use std::collections::VecDeque;

use ipc::event::{EventKind, RightsChanged};
use ipc::rights::{Rights, RightsChange};

use super::agent::State;
use super::calls::Calls;
use super::{Agent, ContextItem, Effect, ReadyWorker};
use crate::gate::Unchanged;
use crate::prompt::rights_context;

/// What a call is told that ran when the rights changed.
const INTERRUPTED: &str =
    "interrupted: policy changed; the call was ended with everything that it had started";

/// What goes on with the worker.
#[derive(Debug, Default)]
pub(super) struct Replacement {
    /// A worker with new rights is on its way.
    awaited: bool,
    /// The last one did not come to be: there is no worker.
    failed: bool,
    /// Changes that came meanwhile, in order.
    next: VecDeque<RightsChange>,
}

impl Replacement {
    pub(super) const fn is_awaited(&self) -> bool {
        self.awaited
    }
}

impl Agent {
    pub(super) fn on_set_rights(&mut self, change: RightsChange) {
        if matches!(self.state, State::Closed) {
            return;
        }
        if self.replacement.awaited {
            self.replacement.next.push_back(change);
            return;
        }
        match self.decide(&change) {
            Ok(rights) => self.replace_worker(rights),
            // The rights are those already, but nobody has them.
            Err(Unchanged::Same(_)) if self.replacement.failed => {
                self.replace_worker(self.config.standing.rights.clone());
            }
            Err(unchanged) => self.notice(unchanged.code(), &unchanged.to_string()),
        }
    }

    fn decide(&self, change: &RightsChange) -> Result<Rights, Unchanged> {
        if !self.config.id.is_root() {
            return Err(Unchanged::Refused("those of a sub-agent are fixed for its life".to_owned()));
        }
        self.config.standing.change(change, self.config.activity)
    }

    /// From here on calls are judged by the new rights: they will run on the new worker.
    fn replace_worker(&mut self, rights: Rights) {
        self.config.standing.rights.clone_from(&rights);
        self.seen = self.config.standing.seen_in(self.seen.tier);
        self.replacement.awaited = true;
        if let Some(mut calls) = self.take_calls() {
            self.close_open(&mut calls, INTERRUPTED);
            self.state = State::Working(calls);
        }
        self.effects.push(Effect::ReplaceWorker { rights });
    }

    pub(super) fn on_worker_ready(&mut self, worker: ReadyWorker) {
        self.seen = self.config.standing.seen_in(worker.tier);
        if !std::mem::take(&mut self.replacement.awaited) {
            return;
        }
        self.replacement.failed = false;
        self.log(EventKind::RightsChanged(RightsChanged {
            generation: worker.generation,
            pid: worker.pid,
            rights: self.seen.line(),
            rights_digest: worker.rights_digest,
            ruleset_digest: worker.ruleset_digest,
        }));
        self.tell_of_rights(rights_context(&self.seen));
    }

    pub(super) fn on_not_replaced(&mut self, reason: &str) {
        if !std::mem::take(&mut self.replacement.awaited) {
            return;
        }
        self.replacement.failed = true;
        let message = format!(
            "the rights were changed, but no worker could be started under them: {reason}; calls fail until they are \
             changed again"
        );
        self.notice("no_worker", &message);
        self.tell_of_rights(format!("<rights>\nThe user changed your rights, and {message}.\n</rights>"));
    }

    /// The model learns of its rights with the next message, which may be the results that were held back.
    fn tell_of_rights(&mut self, text: String) {
        self.context.push(ContextItem { source: "rights".to_owned(), text });
        while let Some(change) = self.replacement.next.pop_front() {
            self.on_set_rights(change);
            if self.replacement.awaited {
                return;
            }
        }
        if let Some(calls) = self.take_calls() {
            self.wait_for(calls);
        }
    }

    /// The calls of the turn, where the agent waits for them; they are to be given back.
    fn take_calls(&mut self) -> Option<Calls> {
        match &mut self.state {
            State::Working(calls) => Some(std::mem::take(calls)),
            _ => None,
        }
    }
}
