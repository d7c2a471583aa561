//! A turn: its steps, and its end.

use protocol::event::CompactionCause;

use super::agent::{AgentState, TurnRun};
use super::conversation::{INTERRUPTED_HERE, Next, Then};
use super::{Agent, Effect, EndReason, RunEnd};

impl Agent {
    /// Asks the model for the next reply, if the budget allows one and the context has room for it.
    pub(super) fn begin_step(&mut self) {
        if self.is_out_of_budget() {
            return;
        }
        match self.conversation.next(&mut self.out) {
            Next::Full(message) => self.finish_full(message),
            Next::Compact(cause) => self.compact(cause, Then::Step),
            Next::Step => {
                self.conversation.say_what_waits(&mut self.out);
                if let Some(markdown) = self.earlier_plan.take() {
                    return self.begin_earlier_plan(&markdown);
                }
                self.run.attempt = 0;
                self.begin_attempt();
            }
        }
    }

    /// The model's turn is over: the run ends, or goes on with what the user said meanwhile.
    pub(super) fn end_turn(&mut self) {
        if self.conversation.has_unread_words() {
            return self.begin_step();
        }
        if self.conversation.takes_wish(&mut self.out) {
            return self.compact(CompactionCause::Request, Then::End);
        }
        if let Some((reason, message)) = self.unexecuted() {
            return self.finish(reason, Some(message));
        }
        if self.asks_for_another_answer() {
            return;
        }
        match self.run.denial.take() {
            // Whoever typed a command knows what was denied.
            Some(denial) if self.config.fails_when_denied && !self.run.is_own_command => {
                self.finish(EndReason::DeniedAtEnd, Some(denial));
            }
            _ => self.finish(EndReason::Done, None),
        }
    }

    /// Ends what goes on, keeps what is complete, and rests. Does nothing at rest.
    pub(super) fn stop(&mut self, reason: EndReason, message: Option<&str>) {
        match std::mem::replace(&mut self.state, AgentState::Resting) {
            // A turn that waits for the start is one that can be stopped, and so is a start that takes too long.
            AgentState::Resting if self.turn_waits || self.starting && reason == EndReason::TimeLimit => {
                self.finish(reason, message.map(str::to_owned));
            }
            AgentState::Resting => {}
            AgentState::Closed => self.state = AgentState::Closed,
            // What the time was spent on was the provider's failure: that is the reason.
            AgentState::BackingOff { failure, code, .. } if reason == EndReason::TimeLimit => {
                let message = format!("{failure}; the time of this run is spent before another attempt");
                self.finish(EndReason::Provider, Some(code.mark_anew(&message)));
            }
            AgentState::BackingOff { .. } => self.finish(reason, message.map(str::to_owned)),
            AgentState::Streaming { request, reply } => {
                self.out.push(Effect::CancelStream(request));
                if self.conversation.is_compacting() {
                    if reply.has_begun() {
                        let usage = self.estimated(&reply);
                        self.conversation.count_summary(usage);
                    }
                } else {
                    self.keep_interrupted(&reply);
                    self.mark_interrupted(reason);
                }
                self.finish(reason, message.map(str::to_owned));
            }
            AgentState::Working => {
                self.interrupt_calls(reason);
                if !self.run.is_own_command {
                    self.mark_interrupted(reason);
                }
                self.finish(reason, message.map(str::to_owned));
            }
        }
    }

    /// The next message of the user begins with that: the model would take what it did not finish for finished.
    fn mark_interrupted(&mut self, reason: EndReason) {
        if reason == EndReason::Interrupted {
            self.conversation.note(INTERRUPTED_HERE.to_owned());
        }
    }

    /// Ends for good. An agent at rest ends too, so that whoever waits for its end hears of it.
    pub(super) fn close(&mut self, reason: EndReason, message: Option<&str>) {
        // No worker is started for a session that ends.
        self.access_after = None;
        if matches!(self.state, AgentState::Resting) {
            self.finish(reason, message.map(str::to_owned));
        } else {
            self.stop(reason, message);
        }
        self.state = AgentState::Closed;
    }

    pub(super) fn finish(&mut self, reason: EndReason, message: Option<String>) {
        self.state = AgentState::Resting;
        self.conversation.give_summary_up(self.tariff(), &mut self.out);
        self.turn_waits = false;
        self.earlier_plan = None;
        self.own_command = None;
        let TurnRun { steps, usage, cost, text, output, .. } = std::mem::take(&mut self.run);
        let cost = self.config.prices.map(|_| cost);
        self.out.push(Effect::Finish(RunEnd { reason, message, text, output, steps, usage, cost }));
        self.end_reading();
    }
}
