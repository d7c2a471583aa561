//! A request for an approval, as it stands before a person.

mod comments;
mod content;
mod denied;
mod guard;
pub(crate) mod hints;
pub mod plan;
mod rule;
mod scope;
mod sheet;
mod steps;
mod title;

use std::time::Duration;

use ipc::id::{AgentId, ApprovalId};
use ipc::path::WirePath;
use protocol::approval::{ApprovalAnswer, ReviewDecision, ServerRequest};

pub(crate) use comments::Comments;
pub(crate) use content::in_project;
pub(crate) use denied::for_session;
use guard::Guard;
pub(crate) use rule::{InForce, explain};
pub(crate) use scope::Menu;
pub(crate) use sheet::CardPage;
pub(crate) use steps::Steps;
use title::Title;

use crate::commands::KeyMode;
use crate::keymap::{Key, Keymap};
use crate::model::{Editor, Look, Part, Written};
use crate::moment::UiTime;
use crate::plan::Compared;
use crate::text::SafeText;

/// From here on a request shows the time that is left.
pub(crate) const LAST_MINUTE: Duration = Duration::from_mins(1);

/// Id of an approval; the agent belongs to it, since two agents may have the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub agent: AgentId,
    pub id: ApprovalId,
}

#[derive(Debug)]
pub(crate) struct Card {
    pub asked: Asked,
    pub request: Box<ServerRequest>,
    pub title: Title,
    pub body: CardPage,
    pub stage: Stage,
    /// Comments on the steps of a plan, kept while the person reads on.
    pub comments: Option<Comments>,
    /// The steps of its plan as the person edits them, kept while the person reads on.
    pub steps: Option<Steps>,
    pub versions: usize,
    /// The person's text of its plan, while it has not taken the place of the one that is asked about.
    pub edited: Option<String>,
    /// The words for the answer for the session, after a denial.
    for_session: String,
    /// True if it has the whole screen.
    pub whole: bool,
    deadline: UiTime,
    /// Guard of a denial: any frame that names the request is enough.
    deny: Guard,
    /// Guard of an approval: the frame must show the request.
    approve: Guard,
    /// True if the last frame showed it, and not only that it exists.
    in_sight: bool,
    /// True if keys arrived together that would have decided.
    in_burst: bool,
    /// The key that was pressed too early to count, until one counts.
    dropped: Option<Key>,
}

/// Progress of the person through a request.
#[derive(Debug)]
pub(crate) enum Stage {
    Deciding,
    /// Choosing how far an approval reaches.
    Scope(Menu),
    Word(Editor),
    Comments,
    Steps,
    Versions(Compared),
    Rule(CardPage),
}

/// Reason that an approval does not count yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotYet {
    /// It was not on the screen for long enough.
    Unseen,
    Unread,
    /// The person has changed its plan, and has not saved that.
    Unsaved,
    Late,
}

impl Card {
    pub(crate) fn new(
        asked: Asked,
        request: Box<ServerRequest>,
        project: &WirePath,
        at: UiTime,
        revision: u64,
    ) -> Self {
        Self {
            asked,
            title: Title::new(&request, project),
            body: CardPage::new(content::body(&request, project), revision),
            stage: Stage::Deciding,
            // A plan is more than a few lines.
            whole: matches!(*request, ServerRequest::PlanApproval(_)),
            comments: Comments::of(&request),
            steps: Steps::of(&request),
            versions: 0,
            for_session: match &*request {
                ServerRequest::DeniedCommandApproval(params) => denied::words_for_session(params, project),
                _ => String::new(),
            },
            edited: None,
            deadline: at.plus(Duration::from_millis(request.timeout_ms())),
            deny: Guard::default(),
            approve: Guard::default(),
            in_sight: false,
            in_burst: false,
            dropped: None,
            request,
        }
    }

    /// The mode of the keys that decide on it.
    pub(crate) const fn key_mode(&self) -> KeyMode {
        if self.is_after_denial() { KeyMode::Denied } else { KeyMode::Approval }
    }

    /// The number of other changes that could be shown with this one.
    pub(crate) const fn others(&self) -> usize {
        match &*self.request {
            ServerRequest::ApplyPatchApproval(params) => params.more,
            _ => 0,
        }
    }

    /// True if its command was denied something.
    pub(crate) const fn is_after_denial(&self) -> bool {
        matches!(*self.request, ServerRequest::DeniedCommandApproval(_))
    }

    /// Begins anew with this sentence above everything else.
    pub(crate) fn remark(&mut self, sentence: &str, project: &WirePath, revision: u64) {
        let mut block = content::body(&self.request, project);
        block.parts.insert(0, Part::new(SafeText::line(sentence), Look::Error));
        self.body = CardPage::new(block, revision);
    }

    /// A unique number.
    pub(crate) const fn number(&self) -> u64 {
        self.body.revision()
    }

    /// The rows of the editor, where there is one, on a card of this size.
    pub(crate) fn editor_rows(&self, (width, height): (u16, u16)) -> u16 {
        let Some(editor) = self.editor() else { return 0 };
        let Some(steps) = self.steps.as_ref().filter(|_| matches!(self.stage, Stage::Steps)) else {
            return 1;
        };
        let mark = u16::try_from(steps.mark().chars().count()).unwrap_or_default();
        let rows = Written::new(editor, width.saturating_sub(mark), (height / 3).max(1)).rows.len();
        u16::try_from(rows).unwrap_or(1).max(1)
    }

    /// True if the person has changed its plan: another request follows.
    pub(crate) fn is_revised(&self) -> bool {
        self.edited.is_some() || self.unsaved() > 0
    }

    /// The number of changes of its plan that are not saved.
    pub(crate) fn unsaved(&self) -> usize {
        self.steps.as_ref().map_or(0, |steps| steps.draft.changes())
    }

    /// The rows of the title, the editor and the keys on a card of this size; the text has the others, and at least one.
    pub(crate) fn frame_rows(&self, keymap: &Keymap, (width, height): (u16, u16)) -> u16 {
        let rows = 1 + self.editor_rows((width, height)) + hints::rows(self, keymap, (width, height));
        rows.min(height.saturating_sub(1))
    }

    pub(crate) fn editor(&self) -> Option<&Editor> {
        match &self.stage {
            Stage::Word(editor) => Some(editor),
            Stage::Scope(menu) => menu.editing.as_ref(),
            Stage::Comments => self.comments.as_ref()?.editor(),
            Stage::Steps => self.steps.as_ref()?.editor(),
            Stage::Deciding | Stage::Versions(_) | Stage::Rule(_) => None,
        }
    }

    pub(crate) fn editor_mut(&mut self) -> Option<&mut Editor> {
        match &mut self.stage {
            Stage::Word(editor) => Some(editor),
            Stage::Scope(menu) => menu.editing.as_mut(),
            Stage::Comments => self.comments.as_mut()?.editor_mut(),
            Stage::Steps => self.steps.as_mut()?.editor_mut(),
            Stage::Deciding | Stage::Versions(_) | Stage::Rule(_) => None,
        }
    }

    /// Returns the time for which an answer still counts.
    pub(crate) const fn remaining(&self, now: UiTime) -> Duration {
        self.deadline.since(now)
    }

    pub(crate) fn sheet(&self) -> &CardPage {
        match &self.stage {
            Stage::Scope(menu) => &menu.sheet,
            Stage::Rule(sheet) => sheet,
            Stage::Comments => self.comments.as_ref().map_or(&self.body, |comments| &comments.sheet),
            Stage::Steps => self.steps.as_ref().map_or(&self.body, |steps| &steps.sheet),
            Stage::Versions(compared) => &compared.sheet,
            Stage::Deciding | Stage::Word(_) => &self.body,
        }
    }

    pub(crate) fn sheet_mut(&mut self) -> &mut CardPage {
        match &mut self.stage {
            Stage::Scope(menu) => &mut menu.sheet,
            Stage::Rule(sheet) => sheet,
            Stage::Comments => self.comments.as_mut().map_or(&mut self.body, |comments| &mut comments.sheet),
            Stage::Steps => self.steps.as_mut().map_or(&mut self.body, |steps| &mut steps.sheet),
            Stage::Versions(compared) => &mut compared.sheet,
            Stage::Deciding | Stage::Word(_) => &mut self.body,
        }
    }

    /// A frame that names it is on the terminal; `whole` if it shows it, `to_end` if it includes the last row
    /// of that revision of the sheet. Returns true if that changes the possible answers.
    pub(crate) fn drawn(&mut self, at: UiTime, whole: bool, to_end: Option<u64>) -> bool {
        self.deny.drawn(at);
        self.in_sight = whole;
        if whole {
            self.approve.drawn(at);
        }
        let sheet = self.sheet_mut();
        let news = whole && !sheet.is_read() && to_end == Some(sheet.revision());
        if news {
            sheet.set_read();
        }
        news
    }

    /// A key was read: whether it is for this request at all.
    pub(crate) fn takes_key(&mut self, at: UiTime) -> bool {
        self.approve.key(at);
        let counts = self.deny.key(at);
        if counts {
            self.dropped = None;
        }
        counts
    }

    /// Drops a key that came too early, and shows that; false where the request is not on the screen, which no key can be meant for.
    pub(crate) fn drops(&mut self, key: Key) -> bool {
        let is_drawn = self.deny.opens_at().is_some();
        if is_drawn {
            self.dropped = Some(key);
        }
        is_drawn
    }

    /// Returns the key that was ignored.
    pub(crate) const fn dropped(&self) -> Option<Key> {
        self.dropped
    }

    /// Keys count again when nothing was pressed for a while.
    pub(crate) fn rearm(&mut self, at: UiTime) {
        self.approve.wait_again(at);
        self.deny.wait_again(at);
    }

    /// True if the person made it larger: the full screen is a page, but of a plan.
    pub(crate) const fn is_enlarged(&self) -> bool {
        self.whole && !matches!(*self.request, ServerRequest::PlanApproval(_))
    }

    pub(crate) fn is_open(&self, now: UiTime) -> bool {
        self.deny.is_open(now)
    }

    /// Ignores keys until none was pressed for a while: the input was more than a single key.
    pub(crate) fn wait_again(&mut self, at: UiTime) {
        self.in_burst = true;
        self.rearm(at);
    }

    /// True if a burst of keys that began for this request continues.
    pub(crate) fn is_in_burst(&self, now: UiTime) -> bool {
        self.in_burst && !self.is_open(now)
    }

    /// When keys begin to count, where that is still to come.
    pub(crate) fn opens_at(&self, now: UiTime) -> Option<UiTime> {
        self.deny.opens_at().filter(|opens| *opens > now && !self.deny.is_open(now))
    }

    /// Resets everything that was seen.
    pub(crate) fn forget_screen(&mut self) {
        self.deny = Guard::default();
        self.approve = Guard::default();
        self.in_sight = false;
    }

    pub(crate) fn approvable(&self, now: UiTime) -> Result<(), NotYet> {
        if self.remaining(now).is_zero() {
            Err(NotYet::Late)
        } else if self.unsaved() > 0 {
            Err(NotYet::Unsaved)
        } else if !self.in_sight
            || !self.approve.is_open(now)
            || matches!(self.stage, Stage::Rule(_) | Stage::Steps | Stage::Versions(_))
        {
            Err(NotYet::Unseen)
        } else if !self.body.is_read() || !self.sheet().is_read() {
            Err(NotYet::Unread)
        } else {
            Ok(())
        }
    }

    /// The answer that carries a decision, bound to what was shown.
    pub(crate) fn answer(&self, decision: ReviewDecision) -> ApprovalAnswer {
        self.request.answer(decision)
    }
}
