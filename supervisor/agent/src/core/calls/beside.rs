//! Denials of processes that belong to no open call: their call ended before them, or they were ended together with it.
//!
//! They are logged as events of the agent. The model reads them at the end of the next result.

use gate::StandingRights;
use gate::judgement::denied;
use ipc::denial::Denial;
use ipc::refusal::Refusal;
use protocol::event::{EventKind, NoticeCode, ObservedBy};

use crate::core::call::CallResult;
use crate::core::outbox::Outbox;

/// Maximum number of logged denials of processes that belong to no open call, for each worker.
const MOST: usize = 32;
/// Maximum number of denials that one result quotes. Further denials are only counted there.
const MOST_SENTENCES: usize = 3;

/// The reported denials, and those that the model has not read yet.
#[derive(Debug, Default)]
pub(super) struct OrphanDenials {
    told: Vec<Denial>,
    /// True once a notice has said that there are more denials than the limit.
    overflowed: bool,
    waiting: Vec<String>,
    /// Number of denials that the next result counts and does not quote.
    more: usize,
}

impl OrphanDenials {
    pub(super) fn begin(&mut self) {
        self.told.clear();
        self.overflowed = false;
    }

    /// Records a denial. Returns true if the denial is new and the limit is not reached.
    fn is_news(&mut self, denial: &Denial) -> bool {
        let is_news = self.told.len() < MOST && !self.told.iter().any(|known| denied::is_same(known, denial));
        if is_news {
            self.told.push(denial.clone());
            if self.waiting.len() < MOST_SENTENCES {
                self.waiting.push(denial.to_string());
            } else {
                self.more += 1;
            }
        }
        is_news
    }

    /// Returns true once: for the first denial beyond the limit.
    fn overflows(&mut self, denial: &Denial) -> bool {
        let is_unknown = !self.told.iter().any(|known| denied::is_same(known, denial));
        is_unknown && !std::mem::replace(&mut self.overflowed, true)
    }

    /// Removes and returns the text for the end of the next result; `None` if no denial waits for the model.
    fn take_sentence(&mut self) -> Option<String> {
        if self.waiting.is_empty() {
            return None;
        }
        let (told, more) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.more));
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        Some(format!(
            "(Not caused by this call, but by a process that an earlier call left behind, or that ran outside of calls: {}{more}.)",
            told.join("; and ")
        ))
    }

    /// Logs the broker's denials of processes that belong to no open call.
    pub(super) fn on_refused(&mut self, refused: &[Refusal], seen: &StandingRights, out: &mut Outbox) {
        for refusal in refused {
            let Some(denial) = denied::refused_by_rules(seen, refusal) else { continue };
            if self.is_news(&denial) {
                let rights = seen.summary().into();
                out.log_seen_by(ObservedBy::Supervisor, EventKind::Denied { call: None, denial, rights });
            } else if self.overflows(&denial) {
                out.notice(
                    NoticeCode::MoreDenied,
                    &format!(
                        "more than {MOST} denials outside the calls: further denials of this worker are not reported"
                    ),
                );
            }
        }
    }

    /// Returns the result with the denials that the model has not read yet at its end.
    pub(super) fn joined(&mut self, mut result: CallResult) -> CallResult {
        if let Some(sentence) = self.take_sentence() {
            result.content.push('\n');
            result.content.push_str(&sentence);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use ipc::denial::{Grade, Layer, Object, Operation};
    use ipc::missing_right::MissingRight;

    use super::*;

    fn denial(object: usize) -> Denial {
        Denial {
            layer: Layer::Mediation,
            operation: Operation::Share,
            object: Object::Shared(format!("thing {object}")),
            program: Some("daemon".to_owned()),
            missing_right: MissingRight::OfAnotherProgram { operation: Operation::Share }.into(),
            grant: None,
            grade: Grade::Proved,
            errno: Some(13),
        }
    }

    #[test]
    fn what_is_the_same_is_news_once_until_another_worker_serves() {
        let mut beside = OrphanDenials::default();
        assert!(beside.is_news(&denial(1)));
        assert!(!beside.is_news(&denial(1)));
        assert!(!beside.overflows(&denial(1)));
        beside.begin();
        assert!(beside.is_news(&denial(1)));
    }

    #[test]
    fn a_flood_is_told_in_so_many_events_and_one_notice() {
        let mut beside = OrphanDenials::default();
        let news = (0..1000).filter(|object| beside.is_news(&denial(*object))).count();
        assert_eq!(news, MOST);
        let notices = (0..1000).filter(|object| beside.overflows(&denial(*object))).count();
        assert_eq!(notices, 1);
    }

    #[test]
    fn the_model_is_told_once_and_in_so_many_sentences() {
        let mut beside = OrphanDenials::default();
        assert_eq!(beside.take_sentence(), None);
        assert!((0..5).all(|object| beside.is_news(&denial(object))));
        let sentence = beside.take_sentence().unwrap();
        insta::assert_snapshot!(sentence.replace("; and ", ";\nand "), @r"
        (Not caused by this call, but by a process that an earlier call left behind, or that ran outside of calls: blocked by the sandbox (mediation): use thing 0 (tried by daemon); missing access: use something outside the sandbox; it cannot be allowed here;
        and blocked by the sandbox (mediation): use thing 1 (tried by daemon); missing access: use something outside the sandbox; it cannot be allowed here;
        and blocked by the sandbox (mediation): use thing 2 (tried by daemon); missing access: use something outside the sandbox; it cannot be allowed here (and 2 more).)
        ");
        assert_eq!(beside.take_sentence(), None);
    }
}
