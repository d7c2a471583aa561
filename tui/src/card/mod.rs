mod comments;
mod content;
mod denied;
mod form;
mod guard;
pub(crate) mod hints;
mod part;
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
pub(crate) use content::{in_project, whole_turn};
pub(crate) use denied::{because, for_session};

pub(crate) use form::FormDraft;
use guard::{Guard, QUIET};
pub(crate) use part::PartPage;
pub(crate) use rule::{InForce, explain};
pub(crate) use scope::{Menu, always_in_project};
pub(crate) use sheet::CardPage;
pub(crate) use steps::Steps;
use title::Title;

use crate::commands::KeyMode;
use crate::keymap::{Key, Keymap};
use crate::model::{Editor, Look, Part, Written};
use crate::moment::UiTime;
use crate::plan::Compared;
use crate::text::SafeText;

/// Remaining time below which a request shows a countdown.
pub(crate) const LAST_MINUTE: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub agent: AgentId,
    pub id: ApprovalId,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub(crate) struct Card {
    pub asked: Asked,
    pub request: Box<ServerRequest>,
    pub title: Title,
    pub body: CardPage,
    pub stage: Stage,
    /// Comments on the steps of a plan; kept when the person leaves the page of comments.
    pub comments: Option<Comments>,
    /// Steps of the plan with the person's edits; kept when the person leaves the step editor.
    pub steps: Option<Steps>,
    pub form: Option<FormDraft>,
    /// Selected parts of a change; kept when the person leaves the page of parts.
    pub part: Option<PartPage>,
    pub versions: usize,
    /// Markdown of the plan as the person edited it; `None` without an edit.
    pub edited: Option<String>,
    /// Label of the answer that allows the denied access for the rest of the session.
    for_session: String,
    pub whole: bool,
    deadline: UiTime,
    /// Decides if a denial counts: only after the title of the request was on the screen.
    deny: Guard,
    /// Decides if an approval counts: only after the text of the request was on the screen.
    approve: Guard,
    /// Time at which the current page of the request was opened.
    opened: UiTime,
    /// True if the last frame showed the text of the request, not only the title.
    in_sight: bool,
    /// True if several keys arrived at once, and one of them would have answered the request.
    in_burst: bool,
    /// Last key that was ignored; `None` after a key that counts.
    dropped: Option<DroppedKey>,
    /// True once it was checked if the agent's reason is visible above the request.
    is_placed: bool,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Deciding,
    Scope(Menu),
    Word(Editor),
    Comments,
    Steps,
    Form,
    /// Page on which parts of a change are selected: hunks, or the edited text of a file.
    Part,
    Versions(Compared),
    Rule(CardPage),
    /// Page about allowing all requests of the turn.
    Turn(CardPage),
    /// Page about always allowing some commands in the project, with the file that stores this permission.
    Project(CardPage),
}

/// Ignored key, with the reason why it was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DroppedKey {
    TooEarly(Key),
    WithoutMeaning(Key),
}

/// Reason why an approval does not count yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotYet {
    /// The request was not on the screen for long enough.
    Unseen,
    Unread,
    /// The plan has edits that are not saved.
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
            // A plan is too long for a small area.
            whole: matches!(*request, ServerRequest::PlanApproval(_)),
            comments: Comments::of(&request),
            steps: Steps::of(&request),
            form: FormDraft::of(&request),
            part: None,
            versions: 0,
            for_session: match &*request {
                ServerRequest::DeniedCommandApproval(params) => denied::words_for_session(params, project),
                ServerRequest::HostApproval(params) => format!("allow {}, this session", params.host),
                _ => String::new(),
            },
            edited: None,
            deadline: at.plus(Duration::from_millis(request.timeout_ms())),
            deny: Guard::default(),
            approve: Guard::default(),
            opened: UiTime::default(),
            in_sight: false,
            in_burst: false,
            dropped: None,
            is_placed: false,
            request,
        }
    }

    pub(crate) const fn key_mode(&self) -> KeyMode {
        if self.is_about_denial() { KeyMode::Denied } else { KeyMode::Approval }
    }

    pub(crate) const fn others(&self) -> usize {
        match &*self.request {
            ServerRequest::ApplyPatchApproval(params) => params.more,
            _ => 0,
        }
    }

    /// True if the request is about an access that the sandbox denied, or would deny.
    pub(crate) const fn is_about_denial(&self) -> bool {
        matches!(*self.request, ServerRequest::DeniedCommandApproval(_) | ServerRequest::HostApproval(_))
    }

    /// Shows a sentence at the top of the request, which counts as unread again.
    pub(crate) fn remark(&mut self, sentence: &str, project: &WirePath, revision: u64) {
        let mut block = content::body(&self.request, project);
        block.parts.insert(0, Part::new(SafeText::line(sentence), Look::Error));
        self.body = CardPage::new(block, revision);
    }

    /// Returns true at the first call for this request, then false.
    pub(crate) const fn is_new(&mut self) -> bool {
        !std::mem::replace(&mut self.is_placed, true)
    }

    /// Removes the agent's reason from the text of the request, before the request is first drawn.
    pub(crate) fn leave_out_reason(&mut self) {
        content::remove_reason(&mut self.body.block);
    }

    pub(crate) fn lay_form(&mut self, revision: u64, size: (u16, u16)) {
        let ServerRequest::ServerForm(params) = &*self.request else { return };
        let Some(form) = &self.form else { return };
        let is_editing = matches!(self.stage, Stage::Form);
        let (block, at) = form.block(params, is_editing);
        self.body.renew(block, revision);
        if is_editing {
            self.body.reveal(at, 2, size);
        }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.body.revision()
    }

    pub(crate) fn editor_rows(&self, (width, height): (u16, u16)) -> u16 {
        let Some(editor) = self.editor() else { return 0 };
        let Some(steps) = self.steps.as_ref().filter(|_| matches!(self.stage, Stage::Steps)) else {
            return 1;
        };
        let mark = u16::try_from(steps.mark().chars().count()).unwrap_or_default();
        let rows = Written::new(editor, width.saturating_sub(mark), (height / 3).max(1)).rows.len();
        u16::try_from(rows).unwrap_or(1).max(1)
    }

    /// True if the person has edited the plan, so that another approval request will follow.
    pub(crate) fn is_revised(&self) -> bool {
        self.edited.is_some() || self.unsaved() > 0
    }

    pub(crate) fn unsaved(&self) -> usize {
        self.steps.as_ref().map_or(0, |steps| steps.draft.changes())
    }

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
            Stage::Form => self.form.as_ref()?.editor(),
            Stage::Deciding
            | Stage::Part
            | Stage::Versions(_)
            | Stage::Rule(_)
            | Stage::Turn(_)
            | Stage::Project(_) => None,
        }
    }

    pub(crate) fn editor_mut(&mut self) -> Option<&mut Editor> {
        match &mut self.stage {
            Stage::Word(editor) => Some(editor),
            Stage::Scope(menu) => menu.editing.as_mut(),
            Stage::Comments => self.comments.as_mut()?.editor_mut(),
            Stage::Steps => self.steps.as_mut()?.editor_mut(),
            Stage::Form => self.form.as_mut()?.editor_mut(),
            Stage::Deciding
            | Stage::Part
            | Stage::Versions(_)
            | Stage::Rule(_)
            | Stage::Turn(_)
            | Stage::Project(_) => None,
        }
    }

    pub(crate) const fn remaining(&self, now: UiTime) -> Duration {
        self.deadline.since(now)
    }

    pub(crate) fn sheet(&self) -> &CardPage {
        match &self.stage {
            Stage::Scope(menu) => &menu.sheet,
            Stage::Rule(sheet) | Stage::Turn(sheet) | Stage::Project(sheet) => sheet,
            Stage::Comments => self.comments.as_ref().map_or(&self.body, |comments| &comments.sheet),
            Stage::Steps => self.steps.as_ref().map_or(&self.body, |steps| &steps.sheet),
            Stage::Part => self.part.as_ref().map_or(&self.body, |part| &part.sheet),
            Stage::Versions(compared) => &compared.sheet,
            Stage::Deciding | Stage::Word(_) | Stage::Form => &self.body,
        }
    }

    pub(crate) fn sheet_mut(&mut self) -> &mut CardPage {
        match &mut self.stage {
            Stage::Scope(menu) => &mut menu.sheet,
            Stage::Rule(sheet) | Stage::Turn(sheet) | Stage::Project(sheet) => sheet,
            Stage::Comments => self.comments.as_mut().map_or(&mut self.body, |comments| &mut comments.sheet),
            Stage::Steps => self.steps.as_mut().map_or(&mut self.body, |steps| &mut steps.sheet),
            Stage::Part => self.part.as_mut().map_or(&mut self.body, |part| &mut part.sheet),
            Stage::Versions(compared) => &mut compared.sheet,
            Stage::Deciding | Stage::Word(_) | Stage::Form => &mut self.body,
        }
    }

    /// Records that a frame with the request is on the screen. `whole` is true if the frame shows the text; `to_end` is
    /// the revision of the page whose last row is visible. True if an approval has become possible.
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

    /// Records a key. True if the key may answer the request.
    pub(crate) fn takes_key(&mut self, at: UiTime) -> bool {
        self.approve.key(at);
        let counts = self.deny.key(at);
        if counts {
            self.dropped = None;
        }
        counts
    }

    /// Records an ignored key, about which a hint is shown. Returns false if the request was not on the screen yet.
    pub(crate) fn drops(&mut self, key: DroppedKey) -> bool {
        let is_drawn = self.deny.opens_at().is_some();
        if is_drawn {
            self.dropped = Some(key);
        }
        is_drawn
    }

    pub(crate) const fn dropped(&self) -> Option<DroppedKey> {
        self.dropped
    }

    pub(crate) fn rearm(&mut self, at: UiTime) {
        self.approve.wait_again(at);
        self.deny.wait_again(at);
    }

    pub(crate) fn open_page(&mut self, at: UiTime, page: Stage) {
        self.stage = page;
        self.opened = at;
    }

    /// True shortly after a page was opened: a key may then be the next letter of a message that the person is typing.
    pub(crate) fn has_just_opened(&self, at: UiTime) -> bool {
        at < self.opened.plus(QUIET)
    }

    /// True if the person has enlarged the request to the whole screen; false for a plan, which always fills it.
    pub(crate) const fn is_enlarged(&self) -> bool {
        self.whole && !matches!(*self.request, ServerRequest::PlanApproval(_))
    }

    pub(crate) fn is_open(&self, now: UiTime) -> bool {
        self.deny.is_open(now)
    }

    pub(crate) fn wait_again(&mut self, at: UiTime) {
        self.in_burst = true;
        self.rearm(at);
    }

    pub(crate) fn is_in_burst(&self, now: UiTime) -> bool {
        self.in_burst && !self.is_open(now)
    }

    /// Returns the time from which keys count as answers; `None` if they count already or the request is not drawn yet.
    pub(crate) fn opens_at(&self, now: UiTime) -> Option<UiTime> {
        self.deny.opens_at().filter(|opens| *opens > now && !self.deny.is_open(now))
    }

    pub(crate) fn forget_screen(&mut self) {
        self.deny = Guard::default();
        self.approve = Guard::default();
        self.in_sight = false;
    }

    /// Checks if an approval counts now. Except on the page of parts, the text must be read to its end.
    pub(crate) fn approvable(&self, now: UiTime) -> Result<(), NotYet> {
        if self.remaining(now).is_zero() {
            Err(NotYet::Late)
        } else if self.unsaved() > 0 {
            Err(NotYet::Unsaved)
        } else if !self.in_sight
            || !self.approve.is_open(now)
            || matches!(self.stage, Stage::Rule(_) | Stage::Steps | Stage::Form | Stage::Versions(_))
        {
            Err(NotYet::Unseen)
        } else if !self.sheet().is_read() || !(self.body.is_read() || matches!(self.stage, Stage::Part)) {
            Err(NotYet::Unread)
        } else {
            Ok(())
        }
    }

    pub(crate) fn answer(&self, decision: ReviewDecision) -> ApprovalAnswer {
        self.request.answer(decision)
    }
}
