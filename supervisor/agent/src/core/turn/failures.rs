//! Failed requests: sent again, sent without the rejected part, or given up.

use std::time::Duration;

use protocol::event::{EventKind, FailureKind, LeftOut, NoticeCode};

use super::machine::Turn;
use crate::conversation::{GiveUp, ProviderError, Tried};
use crate::core::conversation::is_too_long;
use crate::core::end::Ending;
use crate::core::outbox::Outbox;
use crate::core::{Effect, EndReason};

#[derive(Debug)]
pub(in crate::core) enum Failed {
    /// The request is sent again after a delay.
    BacksOff,
    /// The request is sent again now, without the part that the provider rejects.
    AsksAgain,
    GivenUp(GiveUp),
}

impl Turn {
    /// Returns the delay before a failed request is sent again, or the reason why it is not sent again.
    pub(in crate::core) fn retry(&self, error: &ProviderError) -> Result<Duration, GiveUp> {
        let tried = Tried { attempt: self.run.attempt, waited: self.run.waited };
        self.settings.backoff.delay(tried, error)
    }

    /// Returns the part of the conversation that an error names. `None` also if a part was left out already.
    pub(in crate::core) fn blamed(&self, error: &ProviderError) -> Option<LeftOut> {
        error.blames.filter(|_| self.run.left_out.is_none())
    }

    /// Drops the incomplete reply of a failed request. Decides on another attempt: later, now without a part, or none.
    pub(in crate::core) fn fail(
        &mut self,
        error: &ProviderError,
        has_begun: bool,
        retry: Result<Duration, GiveUp>,
        left_out: Option<LeftOut>,
        out: &mut Outbox,
    ) -> Failed {
        out.log(EventKind::ModelFailed {
            kind: FailureKind::from(error.kind.as_str()),
            message: error.message.clone(),
            discarded: has_begun,
            retry_in_ms: retry.as_ref().ok().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            left_out,
        });
        if let Some(part) = left_out {
            self.run.left_out = left_out;
            out.notice(NoticeCode::PartLeftOut, without(part));
            return Failed::AsksAgain;
        }
        match retry {
            Ok(after) => {
                self.run.waited = self.run.waited.saturating_add(after);
                let id = self.back_off(error.message.clone(), error.error_code());
                out.push(Effect::StartTimer { id, after });
                Failed::BacksOff
            }
            Err(why) => Failed::GivenUp(why),
        }
    }

    /// Returns true once after each complete reply: only one new context is tried for a full window.
    pub(in crate::core) const fn takes_overflow(&mut self) -> bool {
        !std::mem::replace(&mut self.run.overflowed, true)
    }
}

pub(in crate::core) fn lost(error: &ProviderError, why: &GiveUp) -> Ending {
    let message = match why {
        GiveUp::Pointless | GiveUp::Attempts(1) => error.message.clone(),
        why => format!("{}; {why}", error.message),
    };
    if is_too_long(error) {
        let remedy = "give a smaller task, or choose a model with a larger window";
        return Ending::context_full(&hinted(message, Some(remedy)));
    }
    let message = error.error_code().mark_anew(&message);
    Ending::because(EndReason::Provider, hinted(message, error.hint.as_deref()))
}

/// Returns one line about the part that was left out.
const fn without(part: LeftOut) -> &'static str {
    match part {
        LeftOut::Thinking => {
            "the provider rejects the model's earlier thinking: the conversation continues without it"
        }
        LeftOut::Message(_) => {
            "the provider rejects a part of the conversation: it continues without that part"
        }
    }
}

/// Returns a message for the user: the cause in one line, and in the next line a step that helps.
fn hinted(message: String, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{message}\n  hint: {hint}"),
        None => message,
    }
}
