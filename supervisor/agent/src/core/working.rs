use gate::{Change, Unchanged};
use ipc::id::CallId;
use protocol::event::{NoticeCode, TurnAllowanceEnd};

use super::calls::{After, Begun, Bounds, CallEnd, Calls, Pictures};
use super::conversation::UserSaid;
use super::end::Ending;
use super::outbox::Outbox;
use super::phase::Phase;
use super::rights::{Changed, Due};
use super::turn::Course;
use super::{Agent, Effect, EndReason};

/// The reason for the end of a turn that the user ended with an answer.
const ABORTED: &str = "stopped by you";

impl Agent {
    pub(super) fn on_call_end(&mut self, call: CallId, end: CallEnd, duration_ms: u64) {
        let images = self.calls.pictures(call, &end);
        let (shown, left_out) = self.conversation.admit(images);
        let pictures = Pictures { shown, left_out };
        self.ask_calls(|calls, bounds, out| calls.on_end(call, end, duration_ms, pictures, bounds, out));
    }

    /// Calls a method of [`Calls`], and takes the step that follows.
    pub(super) fn ask_calls(&mut self, ask: impl FnOnce(&mut Calls, Bounds<'_>, &mut Outbox) -> After) {
        match self.tell_calls(ask) {
            After::Rest => return,
            After::GoOn => {}
            After::Abort => return self.stop(Ending::because(EndReason::Aborted, ABORTED)),
            After::Approved(case, scope) => {
                let grant = &case.ask.grant;
                let change = scope.and_then(|scope| self.rights.remember(scope, grant, &mut self.out));
                self.tell_calls(|calls, bounds, out| calls.carry_out(*case, change, bounds, out));
            }
            After::AllowTurn(call, access) => {
                if let Some((told, changed)) = self.rights.begin_allowed(call, access, &mut self.out) {
                    self.conversation.tell_of_rights(told.to_owned());
                    self.take_access(changed);
                }
            }
            After::Change(change) => self.on_change(Change::Rights(change)),
            After::Executed(unexecuted) => self.turn.note_plan(unexecuted),
        }
        self.go_on();
    }

    /// Begins waiting calls. If all calls are closed and no worker is being replaced, the model gets the results.
    pub(super) fn go_on(&mut self) {
        if self.turn.phase() != Phase::Working {
            return;
        }
        self.tell_calls(Calls::ask_next);
        if let Some(change) = self.calls.take_allowed_hosts() {
            self.on_change(change);
        }
        while let Begun::Listed(call, tasks) = self.tell_calls(Calls::begin) {
            self.conversation.update_tasks(call, tasks.clone(), &mut self.out);
            self.tell_calls(|calls, bounds, out| calls.close_listed(call, &tasks, bounds, out));
        }
        self.calls.conclude_step(&mut self.out);
        if !self.calls.are_closed() || self.rights.is_awaited() {
            return;
        }
        let is_user = self.calls.are_of_user();
        if is_user && let Some(result) = self.calls.first_result() {
            self.turn.conclude_plan(result);
        }
        let results = self.turn.take_results(self.calls.take_results());
        self.conversation.answer_calls(results);
        if is_user {
            // No model is asked after a call of the user, unless there is a plan to revise.
            return if self.calls.must_keep_steps() { self.begin_step() } else { self.end_turn() };
        }
        match self.turn.end_step() {
            Course::GoesOn => {}
            Course::Told(text) => self.conversation.note(text),
            Course::Ends(message) => return self.finish(Ending::because(EndReason::GaveUp, message)),
        }
        self.begin_step();
    }

    /// Runs a command that the user typed, if no turn is running. The model is not asked.
    pub(super) fn on_own_command(&mut self, command: String) {
        let said = UserSaid { text: format!("!{command}"), images: Vec::new() };
        if !self.turn.takes_command(&command, &mut self.out) {
            return;
        }
        if let Some(why) = self.conversation.too_long(&said, self.rights.seen()) {
            return self.finish(Ending::context_full(&why));
        }
        self.conversation.hear(said);
        self.turn.command_ahead(command);
        if self.turn.begin() {
            self.begin_step();
        }
    }

    pub(super) fn on_change(&mut self, change: Change) {
        if self.turn.phase() == Phase::Closed {
            return;
        }
        let Some((change, due)) = self.rights.due(change, &mut self.out) else { return };
        let decided = self.rights.decide(&change);
        let is_refused = due == Due::Now && matches!(decided, Err(Unchanged::Refused(_)));
        let taken = if is_refused { None } else { self.rights.withdraw(&change, &mut self.out) };
        // Calls with approved access that the user withdraws end first.
        let withdrawn = taken.is_some_and(|taken| {
            self.tell_calls(|calls, bounds, out| calls.withdraw_approved(&taken, bounds, out))
                || taken.revoked
        });
        let changed = match due {
            Due::Now => self.rights.make(&change, decided, withdrawn, &mut self.out),
            Due::EndsAllowance => self.rights.end_turn(TurnAllowanceEnd::ModeChanged, &mut self.out),
            Due::AfterTurn => Changed::Nothing,
        };
        let is_mode_alone = matches!(changed, Changed::ModeAlone(_));
        self.take_access(changed);
        if is_mode_alone {
            self.tell_calls(Calls::interrupt_for_mode);
            self.go_on();
        }
        if (withdrawn || due == Due::EndsAllowance) && !self.rights.is_awaited() {
            self.go_on();
        }
    }

    /// Tells the model of its access with the next message, then makes the changes that waited for the new worker.
    pub(super) fn tell_of_rights(&mut self, told: Option<String>) {
        let Some(told) = told else { return };
        self.conversation.tell_of_rights(told);
        while let Some(change) = self.rights.take_deferred() {
            self.on_change(change);
            if self.rights.is_awaited() {
                return;
            }
        }
        self.go_on();
    }

    /// Begins a turn that only reads; `offline` turns the network off in it.
    pub(super) fn on_reading_turn(&mut self, said: UserSaid, offline: bool) {
        // The running turn would lose its access in the middle.
        if !matches!(self.turn.phase(), Phase::Resting | Phase::Closed) {
            let why = "the message was not sent: a turn is running, and this message needs a turn of its own that only reads";
            return self.out.notice(NoticeCode::CommandNotRun, why);
        }
        // A sub-agent's access is fixed. An empty message or one that is too long starts no turn.
        let starts = self.rights.is_top_level()
            && self.conversation.too_long(&said, self.rights.seen()).is_none()
            && !said.is_empty();
        if starts && self.turn.phase() == Phase::Resting {
            let (told, changed) = self.rights.begin_reading(offline, &mut self.out);
            self.conversation.tell_of_rights(told.to_owned());
            self.take_access(changed);
        }
        self.on_user_turn(said);
    }

    /// Sets the access for new calls, and replaces the worker if that is needed.
    pub(super) fn take_access(&mut self, changed: Changed) {
        match changed {
            Changed::Nothing => {}
            Changed::ModeAlone(told) => self.conversation.tell_of_rights(told),
            Changed::Worker(rights) => {
                self.rights.replace(rights.clone());
                self.tell_calls(Calls::interrupt_for_rights);
                self.out.push(Effect::ReplaceWorker { rights });
            }
        }
    }
}
