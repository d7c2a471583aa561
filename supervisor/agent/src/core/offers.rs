//! Commands that were denied something, and that somebody may allow to run again with what they lacked.
//!
//! Such a call has no result yet. It is asked about when no other call is under way; if it is left, the model has the result of the
//! run that there was, and if it is allowed, that of the other run alone.

use gate::approval::{Proposal, Subject};
use gate::{Ask, Offer};
use ipc::denial::{Denial, Grade};
use ipc::id::CallId;
use ipc::path::WirePath;
use ipc::rights::Grant;
use ipc::tool::{CommandExit, ShellExec, ToolCall};
use protocol::approval::AskKind;
use protocol::event::NoticeCode;

use super::approvals::Case;
use super::call::CallResult;
use super::calls::Open;
use super::results::Observation;
use super::{Agent, Effect};

/// The model is told this where the user has left a denial.
const LEFT: &str = "(The user was asked whether to allow this, and left it denied.)";

/// The run that there was of a call that is asked about.
#[derive(Clone, Debug)]
pub(super) struct FirstRun {
    pub(super) result: CallResult,
    pub(super) observed: Observation,
}

impl Agent {
    /// The offer for a command that has just run into these denials, if somebody may be asked about it. One that succeeded all the
    /// same is asked about what is proved alone, and not again about what was left before.
    pub(super) fn offer(
        &self,
        call: CallId,
        command: &ShellExec,
        exit: CommandExit,
        denials: &[Denial],
    ) -> Option<Box<Offer>> {
        let approvals = &self.config.approvals;
        let may_ask = self.asks() && approvals.answerer && approvals.offers && !self.calls.is_part(call);
        // A command that was killed, or ran out of time, may have failed for that alone.
        let may_ask = may_ask && matches!(exit, CommandExit::Code(_));
        let nothing = Grant::default();
        let given = match self.calls.open(call)? {
            Open::Serving(_) => &nothing,
            // Where the standing rights are about to change, the model asks under the new ones.
            Open::Committing(committing) if committing.after.is_none() => &committing.grant,
            _ => return None,
        };
        let is_worth_asking = |denial: &&Denial| {
            exit != CommandExit::Code(0) || denial.grade == Grade::Proved && !self.declined.covers(denial)
        };
        let denials = denials.iter().filter(is_worth_asking);
        let offer = may_ask.then(|| self.seen.offer(command, denials, given)).flatten();
        offer.map(Box::new)
    }

    /// Closes a call with the result of its run, unless that can be offered again.
    pub(super) fn close_or_hold(&mut self, call: CallId, mut result: CallResult, observed: Observation) {
        let Some(offer) = result.offer.take() else { return self.finish_call(call, result, observed) };
        if let Some(path) = offer.place.clone() {
            self.out.push(Effect::Locate { call, path });
        }
        self.calls.hold(call, offer, FirstRun { result, observed });
        self.end_hosts_of(call);
    }

    /// The place was found that a denied path lies in, or there is none that could be granted.
    pub(super) fn on_located(&mut self, call: CallId, found: Option<WirePath>) {
        if let Some(offer) = self.calls.held(call).filter(|offer| offer.place.is_some()).cloned() {
            match self.seen.placed(offer, found) {
                Some(offer) => self.calls.set_offer(call, offer),
                None => self.leave(call, None),
            }
        }
        self.go_on();
    }

    /// Asks about the first call that waits for it, if no other call is under way.
    pub(super) fn ask_again(&mut self) {
        while !self.calls.any_begun()
            && let Some((call, offer)) = self.calls.next_held()
            && offer.place.is_none()
        {
            let Offer { denial, command, grant, .. } = offer;
            match Proposal::of_command(&self.seen, &command) {
                Ok(proposal) => {
                    let (tool, denied) = (ToolCall::ShellExec(command), Some(Box::new(denial)));
                    let ask = Ask { kind: AskKind::Denied, grant };
                    self.ask(Case { call, ask, subject: Subject::Effect { tool, proposal, denied } });
                }
                Err(_) => self.leave(call, None),
            }
        }
    }

    /// Closes a call that the user did not approve: with the result of the run that there was, or else with this one.
    pub(super) fn close_denied(&mut self, call: CallId, message: Option<&str>, otherwise: CallResult) {
        if !self.calls.had_run(call) {
            return self.close_at_once(call, otherwise);
        }
        let words = message.map_or_else(|| LEFT.to_owned(), |message| format!("{LEFT} They say: {message}"));
        self.leave(call, Some(&words));
    }

    /// Remembers a denial that was asked about, and left.
    pub(super) fn decline(&mut self, subject: &Subject, grant: &Grant) {
        if let Some(denial) = subject.denied() {
            self.declined.add(denial, grant);
        }
    }

    /// Closes a call that nobody decided about.
    pub(super) fn close_undecided(&mut self, call: CallId, otherwise: CallResult) {
        if self.calls.had_run(call) {
            self.leave(call, None);
        } else {
            self.close_at_once(call, otherwise);
        }
    }

    /// Closes a call whose other run was allowed, and did not come to be.
    pub(super) fn leave_not_run_again(&mut self, call: CallId, reason: &str, for_session: bool) {
        if for_session {
            let message = "the command was not run again: what was approved for the session was not added";
            self.out.notice(NoticeCode::NotAdded, message);
        }
        let words =
            format!("(The user allowed the command to run again with the access that it lacked: {reason}.)");
        self.leave(call, Some(&words));
        self.go_on();
    }

    /// Closes every call that waits for its question with the result of the run that there was.
    pub(super) fn leave_held(&mut self) {
        let held: Vec<_> = self.calls.all_held().map(|(call, _)| call).collect();
        for call in held {
            self.leave(call, None);
        }
    }

    /// Closes a call with the result of the run that there was, and these words before the explanation of its denials.
    pub(super) fn leave(&mut self, call: CallId, words: Option<&str>) {
        let Some(FirstRun { mut result, observed }) = self.calls.take_first_run(call) else { return };
        if let Some(words) = words {
            let end = result.explanation.clone().unwrap_or_default();
            let said = result.content.strip_suffix(end.as_str()).unwrap_or(&result.content);
            let explanation = format!("\n{words}{end}");
            result.content = format!("{said}{explanation}");
            // The person has answered, and needs neither.
            result.explanation = Some(explanation);
        }
        self.finish_call(call, result, observed);
    }
}
