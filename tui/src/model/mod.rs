pub(crate) mod access;
pub(crate) mod agent_row;
mod agents;
mod answer;
mod attention;
mod block;
mod call_end;
mod calls;
mod changes;
mod code;
mod context;
mod copied;
mod dropped;
mod editor;
mod farewell;
pub(crate) mod files;
mod findings;
mod greeting;
mod guests;
mod history;
mod lines;
mod log;
mod look;
mod model_list;
mod net;
mod outgoing;
mod own;
mod palette;
mod part;
mod reads;
mod recall;
mod rewind;
mod rows;
mod run;
mod screen;
mod search;
mod selection;
mod session;
pub(crate) mod short_help;
mod tasks;
mod transcript;
pub(crate) mod tree;
mod turn;
mod turn_access;
mod walk;
mod written;

use std::collections::VecDeque;
use std::ops::Range;

use ipc::id::AgentId;
use ipc::image::Image;
use protocol::event::Activity;
use protocol::typed_prompt::TypedPrompts;

pub(crate) use agent_row::AgentRow;
pub(crate) use agents::{AgentView, Agents};
pub(crate) use answer::Answer;
pub(crate) use attention::Attention;
pub(crate) use block::{Block, BlockRow};
pub(crate) use calls::{Call, Ending};
pub(crate) use changes::Changes;
pub(crate) use context::{Context, ContextPiece};
pub(crate) use dropped::{Dropped, path_in};
pub(crate) use editor::{Editor, Motion};
pub(crate) use files::Files;
pub(crate) use findings::{Findings, findings_in};
pub(crate) use guests::Guests;
pub(crate) use history::History;
pub(crate) use lines::Lines;
pub(crate) use log::Log;
pub use log::{LogRow, LogRows};
pub(crate) use look::Look;
pub(crate) use model_list::{ModelList, tokens as tokens_in_short};
pub(crate) use outgoing::{Outgoing, Pasted};
pub(crate) use own::{OwnTurn, REVIEW};
pub(crate) use palette::{OfferedCommands, Palette};
pub(crate) use part::{Fold, MEASURE, Part, Unfolded};
pub(crate) use reads::Reads;
pub(crate) use recall::{Recall, Recalled, is_recalling};
pub(crate) use rewind::{Rewind, SaidBefore};
pub(crate) use run::{GAP, Run};
pub use screen::is_tiny;
pub(crate) use screen::{Areas, log_rows, plan_rows};
pub(crate) use search::Found;
pub(crate) use selection::{CursorMove, Shape};
pub(crate) use session::{Pending, Session};
pub(crate) use tasks::{counted_tasks, open_tasks, task_line, tasks_beside};
pub(crate) use transcript::Transcript;
pub(crate) use tree::{Ended, TreeLine};
pub(crate) use turn::{Turn, TurnActivity, account, summary, tells_apart};
pub(crate) use turn_access::TurnAccess;
pub(crate) use walk::Stop;
pub(crate) use written::{PLANNER, Written};

use crate::card::{Card, CardPage, Comments};
use crate::markdown::Source;
use crate::moment::UiTime;
use crate::plan::{Compared, Plans};
use crate::start::Start;

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub struct Model {
    pub(crate) start: Start,
    pub(crate) now: UiTime,
    pub(crate) size: (u16, u16),
    pub(crate) mode: Mode,
    /// Mode, Normal or Insert, to which the UI returns from a view or a command.
    pub(crate) came_from: Mode,
    pub(crate) prompt: Editor,
    pub(crate) line: Editor,
    pub(crate) history: History,
    pub(crate) palette: Palette,
    pub(crate) files: Files,
    pub(crate) prompts: TypedPrompts,
    /// Custom command (`/name`) of the person whose text is at the prompt; `None` for other text.
    pub(crate) own: Option<OwnTurn>,
    pub(crate) branch: Option<String>,
    /// Search through the sent messages, which is shown instead of the prompt; `None` while there is no search.
    pub(crate) recall: Option<Recall>,
    pub(crate) line_for: LineFor,
    pub(crate) log: Log,
    pub(crate) sought: String,
    pub(crate) remark: Option<String>,
    /// Time of the last Ctrl+C that found no turn to stop. Another Ctrl+C within seconds ends the session.
    pub(crate) leaves: Option<UiTime>,
    pub(crate) answer: Option<Answer>,
    /// Page shown in [`Mode::Page`], such as a long answer to a command.
    pub(crate) page: CardPage,
    pub(crate) known_list: Option<ModelList>,
    pub(crate) run: Option<Run>,
    pub(crate) wrote_at: Option<UiTime>,
    /// True if the person typed a command while an approval request was open: the command's view covers the request.
    pub(crate) aside: bool,
    pub(crate) attached: Vec<Image>,
    pub(crate) dropped: Option<Dropped>,
    pub(crate) agents: Agents,
    pub(crate) plans: Plans,
    pub(crate) changes: Changes,
    pub(crate) rewind: Rewind,
    /// Sent messages that contain long pastes, until the session log has the messages.
    pub(crate) pasted: VecDeque<Pasted>,
    /// True if the user has hidden the pane of agents and steps.
    pub(crate) is_pane_folded: bool,
    pub(crate) reads_code: bool,
    pub(crate) plan_sheet: CardPage,
    /// Comparison of two versions of a plan; `None` while the plan itself is shown.
    pub(crate) versions: Option<Compared>,
    /// True while the session is paused because the disk with its log is full.
    pub(crate) paused: bool,
    pub(crate) over: bool,
    pub(crate) cards: VecDeque<Card>,
    /// Planning agent that revises a plan, and the comments on the plan, which move to its next approval request.
    pub(crate) comments: Option<(AgentId, Comments)>,
    pub(crate) lapsed: Option<String>,
    pub(crate) attention: Attention,
    pub(crate) answered: usize,
    /// Number of the last page that was laid out; each page gets the next number.
    pub(crate) revision: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Normal,
    #[default]
    Insert,
    Command,
    Agents,
    Plan,
    Log,
    Rewind,
    Page,
    Findings,
    Select,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineFor {
    #[default]
    Command,
    Search,
    Filter,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub text: Option<usize>,
    pub source: Source,
    /// True if some of the streamed text is not parsed as Markdown yet.
    pub waits: bool,
    pub read_at: Option<UiTime>,
    pub thinking: Option<usize>,
    pub blocks: Vec<usize>,
    /// True if the reply's text was streamed, so that the complete message must not be shown again.
    pub streamed: bool,
}

/// Text of an agent's reply, and the indices of its blocks in the transcript.
#[derive(Clone, Debug)]
pub(crate) struct SaidLast {
    pub text: String,
    pub blocks: Range<usize>,
}

impl Model {
    /// Returns the state of a new UI: Insert mode, an empty prompt, and a greeting.
    pub fn new(mut start: Start) -> Self {
        let history = History::of(std::mem::take(&mut start.history));
        let mut model = Self {
            now: UiTime::default(),
            size: start.capabilities.size,
            mode: Mode::default(),
            came_from: Mode::default(),
            prompt: Editor::default(),
            line: Editor::default(),
            history,
            palette: Palette::default(),
            files: Files::default(),
            prompts: TypedPrompts::default(),
            own: None,
            branch: None,
            recall: None,
            line_for: LineFor::default(),
            log: Log::default(),
            sought: String::new(),
            remark: None,
            leaves: None,
            answer: None,
            page: CardPage::default(),
            known_list: None,
            run: None,
            wrote_at: None,
            aside: false,
            attached: Vec::new(),
            dropped: None,
            agents: Agents::new(Session::new(&start)),
            plans: Plans::default(),
            changes: Changes::default(),
            rewind: Rewind::default(),
            pasted: VecDeque::new(),
            is_pane_folded: false,
            reads_code: false,
            plan_sheet: CardPage::default(),
            versions: None,
            paused: false,
            over: false,
            cards: VecDeque::new(),
            comments: None,
            lapsed: None,
            attention: Attention::default(),
            answered: 0,
            revision: 0,
            start,
        };
        let greeting = greeting::block(&model);
        model.agents.shown_mut().transcript.push(greeting);
        model
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    pub fn has_messages(&self) -> bool {
        !self.rewind.said.is_empty()
    }

    pub fn farewell(&self) -> String {
        farewell::text(self)
    }

    /// Returns the main agent's last answer in Markdown; empty if there is none.
    pub fn last_answer(&self) -> &str {
        &self.agents.first().answer
    }

    pub fn select(&mut self, agent: &AgentId) -> bool {
        self.agents.select(agent)
    }

    pub(crate) fn card(&self) -> Option<&Card> {
        let is_hidden = self.aside && self.mode != Mode::Command;
        self.cards.front().filter(|_| !is_hidden)
    }

    pub(crate) fn asking(&mut self) -> Option<&mut Card> {
        let is_aside = self.aside || self.mode == Mode::Command;
        self.cards.front_mut().filter(|_| !is_aside)
    }

    pub(crate) fn shows_log(&self) -> bool {
        self.mode == Mode::Log || self.mode == Mode::Command && self.line_for == LineFor::Filter
    }

    pub(crate) fn walks_tree(&self) -> bool {
        self.mode == Mode::Agents
    }

    pub(crate) fn plans_now(&self) -> bool {
        self.agents.shown().session.activity == Activity::Plan
    }

    pub(crate) fn say(&mut self, look: Look, text: &str) {
        self.agents.shown_mut().say(look, text);
    }

    /// Shows an answer to a command: above the prompt, or on a page if the answer has too many rows.
    pub(crate) fn answer(&mut self, look: Look, text: &str) {
        let answer = Answer::new(look, text, self.now);
        if answer.fits(self.size.0) {
            self.answer = Some(answer);
        } else {
            self.open_page(answer.into_block());
        }
    }

    /// Shows an answer above the prompt, never as a page, which would take the keys of a person who is typing.
    pub(crate) fn note(&mut self, look: Look, text: &str) {
        self.answer = Some(Answer::new(look, text, self.now));
    }

    pub(crate) fn open_page(&mut self, block: Block) {
        let revision = self.next_revision();
        self.page = CardPage::new(block, revision);
        self.known_list = None;
        self.mode = Mode::Page;
    }

    pub(crate) fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}
