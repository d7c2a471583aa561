//! The course of a turn: the order in which the machines decide, and the values that each gets from the others.

use protocol::event::{CompactionCause, NoticeCode, TurnAllowanceEnd};

use super::conversation::{AfterSummary, INTERRUPTED_HERE, Mended, Next, Then, UserSaid};
use super::end::Ending;
use super::phase::Phase;
use super::turn::{Failed, Replied, Stopped, TurnEnd, lost};
use super::{Agent, EndReason, Execution, RequestId};
use crate::conversation::{ProviderError, StreamEvent};

impl Agent {
    /// Begins a turn with the user's message, or adds the message to the running turn.
    pub(super) fn on_user_turn(&mut self, said: UserSaid) {
        if said.is_empty() {
            return self.out.notice(NoticeCode::EmptyMessage, "an empty message was not sent");
        }
        let too_long = self.conversation.too_long(&said, self.rights.seen());
        match (self.turn.phase(), too_long) {
            (Phase::Closed, _) => {}
            (Phase::Resting | Phase::Waiting, Some(why)) => self.finish(Ending::context_full(&why)),
            (_, Some(why)) => self.out.notice(NoticeCode::MessageTooLong, &why),
            (Phase::Resting | Phase::Waiting, None) => {
                self.conversation.hear(said);
                self.conversation.demand_answer();
                if self.turn.begin() {
                    self.begin_step();
                }
            }
            (_, None) => self.conversation.hear(said),
        }
    }

    /// Begins the next step, or first a command that the user typed. Does nothing without budget or space.
    pub(super) fn begin_step(&mut self) {
        if let Some(command) = self.turn.take_command() {
            self.conversation.say_what_waits(&mut self.out);
            self.turn.work_for_user();
            return self.ask_calls(|calls, bounds, out| calls.begin_own(command, bounds, out));
        }
        if let Some(ending) = self.turn.spent() {
            return self.finish(ending);
        }
        match self.conversation.next(&mut self.out) {
            Next::Full(message) => self.finish(Ending::context_full(&message)),
            Next::Compact(cause) => self.compact(cause, Then::Step),
            Next::Step => {
                self.conversation.say_what_waits(&mut self.out);
                if let Some(markdown) = self.turn.take_plan() {
                    if !self.calls.add_plan(&markdown) {
                        return self.end_turn();
                    }
                    self.turn.begin_plan();
                    return self.go_on();
                }
                self.turn.begin_step();
                self.ask_model();
            }
        }
    }

    pub(super) fn ask_model(&mut self) {
        let asked = self.conversation.asked(&mut self.out);
        self.turn.ask(asked, self.conversation.tokens(), &mut self.out);
    }

    pub(super) fn compact(&mut self, cause: CompactionCause, then: Then) {
        self.conversation.compact(cause, then, &mut self.out);
        self.after_summary(AfterSummary::Ask);
    }

    fn after_summary(&mut self, after: AfterSummary) {
        match after {
            AfterSummary::Ask => {
                if let Some(ending) = self.turn.spent() {
                    return self.finish(ending);
                }
                self.turn.begin_step();
                self.ask_model();
            }
            AfterSummary::Begun(Then::Step) => self.begin_step(),
            AfterSummary::Begun(Then::End) => self.end_turn(),
        }
    }

    pub(super) fn on_stream(&mut self, id: RequestId, event: StreamEvent) {
        let is_summary = self.conversation.is_compacting();
        let Some(whole) = self.turn.on_stream(id, event, is_summary, &mut self.out) else { return };
        let usage = whole.usage;
        if is_summary {
            self.turn.count_summary(usage);
            let (words, tariff) = (whole.reply.text(), self.turn.tariff());
            let after = self.conversation.on_summary(
                &words,
                &whole.stop,
                usage,
                tariff,
                self.rights.seen(),
                &mut self.out,
            );
            return self.after_summary(after);
        }
        if let Some(fault) = whole.fault() {
            return self.on_failure(&fault, true);
        }
        let (unread, limit) = (self.conversation.has_unread_words(), self.conversation.reply_limit());
        let has_executed = self.calls.execution().is_some_and(Execution::is_finished);
        let kept = self.turn.on_reply(whole, has_executed, unread, limit, &mut self.out);
        if let Some(echo) = kept.echo {
            self.conversation.reply(echo, usage);
        }
        match kept.then {
            Replied::Step(note) => {
                if let Some(note) = note {
                    self.conversation.note(note);
                }
                self.begin_step();
            }
            Replied::Calls(calls) => {
                self.turn.work();
                self.calls.add(calls);
                self.go_on();
            }
            Replied::TurnEnds => self.end_turn(),
            Replied::Ends(ending) => self.finish(ending),
            Replied::TooLong => {
                self.conversation.overflow(usage);
                if self.conversation.can_shorten() && self.turn.takes_overflow() {
                    return self.compact(CompactionCause::Overflow, Then::Step);
                }
                self.finish(Ending::context_full(&self.conversation.full(usage.total())));
            }
        }
    }

    pub(super) fn on_failure(&mut self, error: &ProviderError, has_begun: bool) {
        let retry = self.turn.retry(error);
        let blamed = self.turn.blamed(error).filter(|_| retry.is_err());
        let left_out = blamed.filter(|part| self.conversation.leave_out(*part));
        match self.turn.fail(error, has_begun, retry, left_out, &mut self.out) {
            Failed::BacksOff => {}
            Failed::AsksAgain => self.ask_model(),
            Failed::GivenUp(why) => {
                match self.conversation.mend(error, self.turn.tariff(), self.rights.seen(), &mut self.out) {
                    Mended::Summary(after) => self.after_summary(after),
                    Mended::WithoutInterrupted => self.ask_model(),
                    Mended::Shortened if self.turn.takes_overflow() => {
                        self.compact(CompactionCause::Overflow, Then::Step);
                    }
                    Mended::Shortened | Mended::Nothing => self.finish(lost(error, &why)),
                }
            }
        }
    }

    /// Handles the end of the model's turn: the run ends, or continues with new words of the user.
    pub(super) fn end_turn(&mut self) {
        if self.conversation.has_unread_words() {
            return self.begin_step();
        }
        if self.conversation.takes_wish(&mut self.out) {
            return self.compact(CompactionCause::Request, Then::End);
        }
        let unexecuted = self.calls.execution().and_then(Execution::unexecuted);
        match self.turn.end(unexecuted, &mut self.out) {
            TurnEnd::Ends(ending) => self.finish(ending),
            TurnEnd::AsksAgain(note) => {
                self.conversation.note(note);
                self.begin_step();
            }
        }
    }

    /// Ends the turn. Complete blocks of the reply and results of calls are kept. Does nothing between turns.
    pub(super) fn stop(&mut self, ending: Ending) {
        let ends_here = match self.turn.stop(&ending, &mut self.out) {
            Stopped::Nothing => return,
            Stopped::Ends(ending) => return self.finish(ending),
            Stopped::Asking(reply) if self.conversation.is_compacting() => {
                let usage = self.turn.cut_summary_off(&reply, self.conversation.tokens());
                self.conversation.count_summary(usage);
                false
            }
            Stopped::Asking(reply) => {
                let echo = self.turn.cut_off(&reply, self.conversation.tokens(), &mut self.out);
                self.conversation.reply_in_part(echo);
                true
            }
            Stopped::Working => {
                self.tell_calls(|calls, bounds, out| calls.interrupt(ending.reason, bounds, out));
                // Only the results are added: new words of the user wait for a turn that answers them.
                let results = self.turn.take_results(self.calls.take_results());
                self.conversation.answer_calls(results);
                !self.turn.is_own_command()
            }
        };
        // Without a note the model would believe that it had finished.
        if ends_here && ending.reason == EndReason::Interrupted {
            self.conversation.note(INTERRUPTED_HERE.to_owned());
        }
        self.finish(ending);
    }

    /// Ends the agent for good. Sends an end even without a turn, so that tasks which wait for the agent learn of it.
    pub(super) fn close(&mut self, ending: Ending) {
        // No new worker starts for a session that ends.
        self.rights.end_session();
        match self.turn.phase() {
            Phase::Resting | Phase::Waiting => self.finish(ending),
            Phase::Asking | Phase::Working | Phase::Closed => self.stop(ending),
        }
        self.turn.close();
    }

    pub(super) fn finish(&mut self, ending: Ending) {
        self.conversation.give_summary_up(self.turn.tariff(), &mut self.out);
        self.turn.finish(ending, &mut self.out);
        self.calls.end_run();
        let changed = self.rights.end_turn(TurnAllowanceEnd::TurnEnded, &mut self.out);
        self.take_access(changed);
    }
}
