//! The course of calls and of rights: what they return goes to the other machines.

use gate::Change;
use gate::Unchanged;
use ipc::id::CallId;
use ipc::rights::Rights;
use protocol::event::NoticeCode;

use super::calls::{After, Begun, CallEnd, Calls, Pictures};
use super::conversation::{UserSaid, quoted};
use super::end::Ending;
use super::rights::Changed;
use super::turn::{Course, NOT_EXECUTED, Phase};
use super::{Agent, Effect, EndReason};

/// The reason for the end of a turn that the user ended with an answer.
const ABORTED: &str = "the user answered a request by ending the turn";

impl Agent {
    /// Takes in the end of a call.
    pub(super) fn on_call_end(&mut self, call: CallId, end: CallEnd, duration_ms: u64) {
        let images = self.calls.pictures(call, &end);
        let (shown, left_out) = self.conversation.admit(images);
        let pictures = Pictures { shown, left_out };
        self.ask_calls(|calls, bounds, out| calls.on_end(call, end, duration_ms, pictures, bounds, out));
    }

    /// Takes the step that follows what the calls have taken in.
    pub(super) fn after_calls(&mut self, after: After) {
        match after {
            After::Rest => return,
            After::GoOn => {}
            After::Abort => return self.stop(Ending::because(EndReason::Aborted, ABORTED)),
            After::Approved(case, scope) => {
                let grant = &case.ask.grant;
                let change = scope.and_then(|scope| self.rights.remember(scope, grant, &mut self.out));
                self.tell_calls(|calls, bounds, out| calls.carry_out(*case, change, bounds, out));
            }
            After::Change(change) => self.on_change(Change::Rights(change)),
            After::Executed(unexecuted) => self.turn.note_plan(unexecuted),
        }
        self.go_on();
    }

    /// Begins the calls that may begin, where the turn waits for calls; when all are closed and no worker is on its way that
    /// replaces theirs, their results go to the model.
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
        if self.calls.are_closed() && !self.rights.is_awaited() {
            self.conclude();
        }
    }

    /// Gives the results to the model, unless the run or its turn ends with them.
    fn conclude(&mut self) {
        let is_user = self.calls.are_of_user();
        if is_user
            && !self.turn.is_own_command()
            && let Some(result) = self.calls.first_result()
        {
            self.turn.conclude_plan(result);
        }
        self.take_results();
        if is_user {
            // The model is asked nothing about a call of the user's, unless it has a plan to revise.
            return if self.calls.must_keep_steps() { self.begin_step() } else { self.end_turn() };
        }
        match self.turn.end_step() {
            Course::GoesOn => {}
            Course::Told(text) => self.conversation.note(text),
            Course::Ends(message) => return self.finish(Ending::because(EndReason::GaveUp, message)),
        }
        self.begin_step();
    }

    /// Joins all results to the conversation, in the order of the calls, for one message (WIRE R4).
    pub(super) fn take_results(&mut self) {
        let mut blocks = Vec::new();
        for (tool_use, result) in self.calls.take_results() {
            self.turn.note_result(&result);
            let is_own = tool_use.is_none() && self.turn.is_own_command();
            blocks.push(if is_own { quoted(&result.content) } else { result.into_block(tool_use) });
        }
        self.conversation.answer_calls(blocks);
    }

    /// Takes in a command of the user's own: it runs now, where the agent rests. The model is asked nothing.
    pub(super) fn on_own_command(&mut self, command: String) {
        let said = UserSaid { text: format!("!{command}"), images: Vec::new() };
        let why = match self.turn.phase() {
            Phase::Closed => return,
            _ if command.trim().is_empty() => Some("it is empty"),
            Phase::Resting => None,
            Phase::Waiting | Phase::Asking | Phase::Working => Some("a turn is running"),
        };
        if let Some(why) = why {
            return self.out.notice(NoticeCode::CommandNotRun, &format!("the command was not run: {why}"));
        }
        if let Some(why) = self.conversation.too_long(&said, self.rights.seen()) {
            return self.finish(Ending::context_full(&why));
        }
        self.conversation.hear(said);
        self.turn.command_ahead(command);
        if self.turn.begin() {
            self.begin_run();
        }
    }

    /// Begins the run with the command that waits, or with a step of the model's.
    pub(super) fn begin_run(&mut self) {
        let Some(command) = self.turn.take_command() else { return self.begin_step() };
        self.conversation.say_what_waits(&mut self.out);
        self.turn.work_for_user();
        self.ask_calls(|calls, bounds, out| calls.begin_own(command, bounds, out));
    }

    /// Takes in a plan that was made before the session: the planner is asked only where it has to be revised.
    pub(super) fn on_execute_plan(&mut self, markdown: String) {
        let why = match self.turn.phase() {
            _ if self.calls.planning().is_none() => Some("this agent makes no plans"),
            Phase::Resting => None,
            Phase::Waiting | Phase::Asking | Phase::Working | Phase::Closed => Some("the agent is at work"),
        };
        if let Some(why) = why {
            return self.out.notice(NoticeCode::PlanRefused, &format!("{NOT_EXECUTED}: {why}"));
        }
        let text = format!(
            "I have this plan from before. Another agent executes it now, and its account follows:\n\n{markdown}"
        );
        self.turn.plan_ahead(markdown);
        self.on_user_turn(UserSaid { text, images: Vec::new() });
    }

    /// Takes in a change of the rights, or of the mode and with it the rights.
    pub(super) fn on_change(&mut self, change: Change) {
        if self.turn.phase() == Phase::Closed {
            return;
        }
        let Some(change) = self.rights.during_reading(change, &mut self.out) else { return };
        let Some(change) = self.rights.defer(change) else { return };
        let decided = self.rights.decide(&change);
        let withdrawn = !matches!(decided, Err(Unchanged::Refused(_))) && self.withdraw_approved(&change);
        match self.rights.make(&change, decided, withdrawn, &mut self.out) {
            Changed::Nothing => {}
            Changed::ModeAlone(told) => {
                self.conversation.tell_of_rights(told);
                self.tell_calls(Calls::interrupt_for_mode);
                self.go_on();
            }
            Changed::Worker(rights) => self.replace_worker(rights),
        }
        if withdrawn && !self.rights.is_awaited() {
            self.go_on();
        }
    }

    /// Ends what was approved beyond the standing rights and the user takes back. True if there was anything.
    fn withdraw_approved(&mut self, change: &Change) -> bool {
        let Some(taken) = self.rights.withdraw(change, &mut self.out) else { return false };
        let ended = self.tell_calls(|calls, bounds, out| calls.withdraw_approved(&taken, bounds, out));
        taken.revoked || ended
    }

    /// Replaces the worker. From here on calls are judged by the new rights: they will run on the new worker.
    fn replace_worker(&mut self, rights: Rights) {
        self.rights.replace(rights.clone());
        self.tell_calls(Calls::interrupt_for_rights);
        self.out.push(Effect::ReplaceWorker { rights });
    }

    /// Takes in that the rights of an agent above this one became less: whatever ran is ended, since it had more.
    pub(super) fn on_narrowed(&mut self, rights: Rights) {
        if self.turn.phase() != Phase::Closed && rights != self.rights.standing().rights {
            self.replace_worker(rights);
        }
    }

    /// Takes in that the user took rights back, of whatever agent.
    pub(super) fn on_taken_back(&mut self, change: &Change) {
        self.ask_calls(|calls, bounds, out| calls.take_back_servers(change, bounds, out));
        self.ask_calls(|calls, bounds, out| calls.on_taken_back(change, bounds, out));
    }

    /// Tells the model of its rights with the next message, which may be the results that were held back, and makes the changes that
    /// came while the worker was on its way.
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

    /// Starts a turn that only reads, and has no network if it is `offline`.
    pub(super) fn on_reading_turn(&mut self, said: UserSaid, offline: bool) {
        // A turn that runs already would have to lose its access halfway.
        if !matches!(self.turn.phase(), Phase::Resting | Phase::Closed) {
            let why = "the message was not sent: a turn is running, and this one is to read only";
            return self.out.notice(NoticeCode::CommandNotRun, why);
        }
        // A sub-agent's access is fixed. The other two start no turn.
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

    /// Has the access of a turn, or that of before it, in force.
    pub(super) fn take_access(&mut self, changed: Changed) {
        match changed {
            Changed::Nothing => {}
            Changed::ModeAlone(told) => self.conversation.tell_of_rights(told),
            Changed::Worker(rights) => self.replace_worker(rights),
        }
    }
}
