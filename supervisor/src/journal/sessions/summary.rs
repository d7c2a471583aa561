//! The summary of a log for listings.

use std::io;
use std::path::Path;

use ipc::path::WirePath;
use protocol::cost::Usd;
use protocol::event::{Account, Activity, EventKind, NoticeCode, SessionEvent, TokenUsage};
use serde::{Deserialize, Serialize};

use super::bounded::{BoundedLines, event};

/// The most characters of the first message that are kept.
const LONGEST_MESSAGE: usize = 300;

/// The types of events from which a summary is computed.
const TYPES: &[&str] =
    &["session_started", "user_message", "assistant_message", "context_compacted", "notice"];

/// The main values of a session, from its log, whose digest chain is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub project: WirePath,
    pub model: String,
    pub activity: Activity,
    /// The time of the first event in milliseconds since the epoch.
    pub began_ms: u64,
    /// The person's first message, shortened.
    pub message: String,
    /// The tokens of the session, without those of the session that it was copied from.
    pub usage: TokenUsage,
    /// The price of the tokens, if it is completely known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// The known part of the price.
    #[serde(default)]
    pub known_usd: Usd,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

impl Summary {
    /// Reads a log. Returns nothing if it is no log of a session.
    pub(super) fn of(log: &Path) -> io::Result<Option<Self>> {
        let mut lines = BoundedLines::open(log)?;
        let mut summary = None;
        while let Some(line) = lines.next()? {
            let Some(event) = event(line, TYPES) else { continue };
            match &mut summary {
                None => summary = Self::begun(event),
                Some(summary) => summary.add(event.kind),
            }
        }
        Ok(summary)
    }

    pub(crate) const fn account(&self) -> Account {
        Account { usage: self.usage, cost: self.cost_usd, known: self.known_usd }
    }

    fn begun(event: SessionEvent) -> Option<Self> {
        let EventKind::SessionStarted(started) = event.kind else { return None };
        Some(Self {
            project: started.project,
            model: started.model,
            activity: started.activity,
            began_ms: event.time_ms,
            message: String::new(),
            usage: TokenUsage::default(),
            cost_usd: None,
            known_usd: Usd::ZERO,
            imported: false,
        })
    }

    fn add(&mut self, kind: EventKind) {
        match kind {
            EventKind::UserMessage { text, .. } if self.message.is_empty() => {
                self.message = text.trim().chars().take(LONGEST_MESSAGE).collect();
            }
            EventKind::AssistantMessage(message) => {
                self.spend(Account::of(message.usage, message.cost_usd));
                self.model = message.model;
            }
            EventKind::ContextCompacted(compacted) => {
                self.spend(Account::of(compacted.usage, compacted.cost_usd));
            }
            EventKind::Notice { code: NoticeCode::Imported, .. } => self.imported = true,
            // The original session counts the tokens so far.
            EventKind::Notice { code: NoticeCode::Copied, .. } => {
                (self.usage, self.cost_usd, self.known_usd) = (TokenUsage::default(), None, Usd::ZERO);
            }
            _ => {}
        }
    }

    fn spend(&mut self, spent: Account) {
        let mut account = self.account();
        account += spent;
        (self.usage, self.cost_usd, self.known_usd) = (account.usage, account.cost, account.known);
    }
}
