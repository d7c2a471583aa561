use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use ipc::id::AgentId;
use ipc::path::WirePath;
use protocol::cost::Usd;
use protocol::event::{Account, Activity, EventKind, NoticeCode, SessionEvent, TokenUsage};
use serde::{Deserialize, Serialize};

use super::bounded::{BoundedLines, event};

/// Maximum number of characters that are kept of a message or answer.
const LONGEST_MESSAGE: usize = 300;

/// Files that a session has changed up to an event in its log.
#[derive(Debug, Default)]
struct FilesSoFar {
    paths: BTreeSet<WirePath>,
    /// Number of changed files whose paths the log does not list.
    more: u64,
}

impl FilesSoFar {
    fn follow(&mut self, kind: &EventKind) {
        match kind {
            EventKind::FilesChanged(changed) => {
                self.paths.extend(
                    changed.files.iter().filter(|file| !file.by.is_empty()).map(|file| file.path.clone()),
                );
                self.more = self.more.saturating_add(changed.more);
            }
            EventKind::Rewound(done) if done.target.to.is_some() => {
                done.files.iter().for_each(|file| _ = self.paths.remove(&file.path));
            }
            EventKind::Rewound(done) => self.paths.extend(done.files.iter().map(|file| file.path.clone())),
            _ => {}
        }
    }

    fn count(&self) -> u64 {
        u64::try_from(self.paths.len()).unwrap_or(u64::MAX).saturating_add(self.more)
    }
}

/// Returns the text in a block of a reply, given as JSON; `None` if the block is no text or an empty one.
fn text_of(block: &str) -> Option<String> {
    let block: serde_json::Value = serde_json::from_str(block).ok()?;
    let is_text = block.get("type")?.as_str()? == "text";
    let text = block.get("text")?.as_str()?.trim();
    (is_text && !text.is_empty()).then(|| text.to_owned())
}

/// Types of the events from which a summary is computed.
const TYPES: &[&str] = &[
    "session_started",
    "user_message",
    "assistant_message",
    "context_compacted",
    "notice",
    "files_changed",
    "rewound",
];

/// The main facts about a session from its log. The log's digest chain is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub project: WirePath,
    pub model: String,
    pub activity: Activity,
    /// The time of the first event in milliseconds since the epoch.
    pub began_ms: u64,
    /// The person's first message, shortened.
    pub message: String,
    /// The last answer of the first agent, shortened.
    #[serde(default)]
    pub answer: String,
    /// Number of files that the session changed, without those that were restored since.
    #[serde(default)]
    pub changed_files: u64,
    /// Tokens that the session used. For a copied session, only those after the copy was made.
    pub usage: TokenUsage,
    /// Price of the tokens in US dollars; `None` if a part of it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Known part of the price in US dollars.
    #[serde(default)]
    pub known_usd: Usd,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

impl Summary {
    pub(super) fn of(log: &Path) -> io::Result<Option<Self>> {
        let mut lines = BoundedLines::open(log)?;
        let (mut summary, mut files) = (None, FilesSoFar::default());
        while let Some(line) = lines.next()? {
            let Some(event) = event(line, TYPES) else { continue };
            match &mut summary {
                None => summary = Self::begun(event),
                Some(summary) => {
                    files.follow(&event.kind);
                    summary.answered(&event);
                    summary.add(event.kind);
                }
            }
        }
        if let Some(summary) = &mut summary {
            summary.changed_files = files.count();
        }
        Ok(summary)
    }

    /// Returns the number of changed files in words; `None` if no files changed.
    pub(crate) fn changes(&self) -> Option<String> {
        match self.changed_files {
            0 => None,
            1 => Some("1 file changed".to_owned()),
            files => Some(format!("{files} files changed")),
        }
    }

    /// Returns the first line of the last answer; `None` without an answer.
    pub(crate) fn last_words(&self) -> Option<&str> {
        self.answer.lines().find(|line| !line.trim().is_empty())
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
            answer: String::new(),
            changed_files: 0,
            usage: TokenUsage::default(),
            cost_usd: None,
            known_usd: Usd::ZERO,
            imported: false,
        })
    }

    fn answered(&mut self, event: &SessionEvent) {
        let EventKind::AssistantMessage(message) = &event.kind else { return };
        if event.agent == AgentId::root()
            && let Some(text) = message.content.iter().rev().find_map(|block| text_of(block.get()))
        {
            self.answer = text.trim().chars().take(LONGEST_MESSAGE).collect();
        }
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
            // The tokens before this event are counted in the original session.
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
