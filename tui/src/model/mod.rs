//! Everything that the terminal UI knows.

pub(crate) mod access;
mod agents;
mod answer;
mod attention;
mod block;
mod calls;
mod changes;
mod code;
mod editor;
mod files;
mod history;
mod lines;
mod log;
mod look;
mod net;
mod outgoing;
mod palette;
mod part;
mod recall;
mod rewind;
mod run;
mod screen;
mod search;
mod session;
mod short_help;
mod transcript;
mod tree;
mod turn;
mod written;

use std::collections::VecDeque;

use ipc::id::AgentId;
use ipc::image::Image;
use protocol::event::Activity;

pub(crate) use agents::{AgentView, Agents};
pub(crate) use answer::Answer;
pub(crate) use attention::Attention;
pub(crate) use block::{Block, BlockRow};
pub(crate) use calls::{Call, Ending};
pub(crate) use changes::{Changes, ListedFile};
pub(crate) use editor::{Editor, Motion};
pub(crate) use files::Files;
pub(crate) use history::History;
pub(crate) use lines::Lines;
pub(crate) use log::Log;
pub use log::{LogRow, LogRows};
pub(crate) use look::Look;
pub(crate) use outgoing::Outgoing;
pub(crate) use palette::Palette;
pub(crate) use part::{Fold, Part, Unfolded};
pub(crate) use recall::Recall;
pub(crate) use rewind::{Rewind, SaidBefore};
pub(crate) use run::{GAP, Run};
pub use screen::is_tiny;
pub(crate) use screen::{Areas, log_rows, plan_rows};
pub(crate) use search::Found;
pub(crate) use session::{Pending, Session};
pub(crate) use transcript::Transcript;
pub(crate) use tree::{Ended, TreeLine};
pub(crate) use turn::{Turn, TurnActivity, account, summary, tells_apart};
pub(crate) use written::{PLANNER, Written};

use crate::card::{Card, CardPage, Comments};
use crate::commands::{Command, KeyMode};
use crate::markdown::Source;
use crate::moment::UiTime;
use crate::plan::{Compared, Plans};
use crate::start::Start;
use crate::text::SafeText;

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub struct Model {
    pub(crate) start: Start,
    pub(crate) now: UiTime,
    pub(crate) size: (u16, u16),
    pub(crate) mode: Mode,
    /// The mode for reading or writing that a view or a command leads back to.
    pub(crate) came_from: Mode,
    pub(crate) prompt: Editor,
    /// Text typed after `:`.
    pub(crate) line: Editor,
    pub(crate) history: History,
    pub(crate) palette: Palette,
    /// The files of the project, for messages that name one.
    pub(crate) files: Files,
    /// The branch of the project, as a worker read it.
    pub(crate) branch: Option<String>,
    /// The search through the history, while it has the prompt.
    pub(crate) recall: Option<Recall>,
    /// The purpose of the line that is typed in the mode for commands.
    pub(crate) line_for: LineFor,
    pub(crate) log: Log,
    /// The text of the last search.
    pub(crate) sought: String,
    /// A remark on the last key, until the next one.
    pub(crate) remark: Option<String>,
    /// The moment of a Ctrl+C that had nothing to end: another one soon after it ends the session.
    pub(crate) leaves: Option<UiTime>,
    /// The answer to the last command, while it is above the prompt.
    pub(crate) answer: Option<Answer>,
    /// The answer that is read as a page.
    pub(crate) page: CardPage,
    /// The letters that came in quick succession where each would be a command.
    pub(crate) run: Option<Run>,
    /// The moment of the last key that wrote at the prompt.
    pub(crate) wrote_at: Option<UiTime>,
    /// True if a command was typed while a request waited: its view covers the request until it is closed.
    pub(crate) aside: bool,
    /// The pictures that go with the next message.
    pub(crate) attached: Vec<Image>,
    pub(crate) agents: Agents,
    pub(crate) plans: Plans,
    pub(crate) changes: Changes,
    pub(crate) rewind: Rewind,
    /// True while lines of code are being read.
    pub(crate) reads_code: bool,
    pub(crate) plan_sheet: CardPage,
    /// Two versions of it, in the place of the plan.
    pub(crate) versions: Option<Compared>,
    /// True while the session waits for space on the disk of its log.
    pub(crate) paused: bool,
    pub(crate) over: bool,
    /// The requests that wait, the first of them before the person.
    pub(crate) cards: VecDeque<Card>,
    /// The comments on a plan that the person has edited, and its planner: they go on with the request that follows.
    pub(crate) comments: Option<(AgentId, Comments)>,
    /// The call of the last request that nobody answered in time, in one line.
    pub(crate) lapsed: Option<String>,
    pub(crate) attention: Attention,
    /// The requests that were answered while others waited.
    pub(crate) answered: usize,
    /// One more with each sheet that is laid, so that none is taken for another.
    pub(crate) revision: u64,
}

/// Meaning of keys while no request is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Normal,
    #[default]
    Insert,
    Command,
    Agents,
    Plan,
    Log,
    /// The messages that the session can be taken back to.
    Rewind,
    Page,
}

/// The purpose of a line that is typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineFor {
    #[default]
    Command,
    /// A text to be searched for in the transcript.
    Search,
    /// The words of the events that the log's view lists.
    Filter,
}

/// Blocks of the reply that is being received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    /// The block of the text that is not finished.
    pub text: Option<usize>,
    /// The text that is not finished.
    pub source: Source,
    /// True if some of it has not been read.
    pub waits: bool,
    /// The moment at which it was read last.
    pub read_at: Option<UiTime>,
    pub thinking: Option<usize>,
    /// All of its blocks so far.
    pub blocks: Vec<usize>,
    /// True if some of its text was streamed: then its end adds none.
    pub streamed: bool,
}

impl Model {
    /// The model before the first event: Insert mode, an empty prompt, and the line of what is allowed here.
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
            branch: None,
            recall: None,
            line_for: LineFor::default(),
            log: Log::default(),
            sought: String::new(),
            remark: None,
            leaves: None,
            answer: None,
            page: CardPage::default(),
            run: None,
            wrote_at: None,
            aside: false,
            attached: Vec::new(),
            agents: Agents::new(Session::new(&start)),
            plans: Plans::default(),
            changes: Changes::default(),
            rewind: Rewind::default(),
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
        model.greet();
        model
    }

    /// True if the session is over, and nothing will be answered.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The last answer of the first agent, as the model wrote it; empty before there is one.
    pub fn last_answer(&self) -> &str {
        &self.agents.first().answer
    }

    /// Shows another agent: its transcript, and its turn. The next input is for it. Returns true if that
    /// agent has written anything yet.
    pub fn select(&mut self, agent: &AgentId) -> bool {
        self.agents.select(agent)
    }

    /// The request on the screen, unless the view of a command covers it.
    pub(crate) fn card(&self) -> Option<&Card> {
        let is_hidden = self.aside && self.mode != Mode::Command;
        self.cards.front().filter(|_| !is_hidden)
    }

    pub(crate) fn asking(&mut self) -> Option<&mut Card> {
        let is_aside = self.aside || self.mode == Mode::Command;
        self.cards.front_mut().filter(|_| !is_aside)
    }

    /// True while the log replaces the transcript.
    pub(crate) fn shows_log(&self) -> bool {
        self.mode == Mode::Log || self.mode == Mode::Command && self.line_for == LineFor::Filter
    }

    /// True if the agent that is shown makes a plan.
    pub(crate) fn plans_now(&self) -> bool {
        self.agents.shown().session.activity == Activity::Plan
    }

    /// A sentence in the transcript that is shown.
    pub(crate) fn say(&mut self, look: Look, text: &str) {
        self.agents.shown_mut().say(look, text);
    }

    /// Another revision of something to be read.
    pub(crate) fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// No logo: what is allowed here, and the keys that work now.
    fn greet(&mut self) {
        let place = SafeText::labelled("", self.start.project.as_bytes());
        let session = &self.agents.shown().session;
        let plans = if self.plans_now() { "makes a plan and changes nothing · " } else { "" };
        let allowed = format!("{plans}{} · {}", session.mode, access::plain(&session.rights));
        let hint = |command| self.start.keymap.hint(KeyMode::Insert, command);
        let [send, line, leave] = [Command::Submit, Command::Newline, Command::Leave].map(hint);
        let normal = if self.start.is_plain { String::new() } else { format!("{leave} NORMAL · ") };
        let keys = format!("{send} sends · {line} new line · {normal}:help · :q");
        self.agents.shown_mut().transcript.push(Block::of(vec![
            Part::new(place, Look::Heading),
            Part::new(SafeText::prose(&allowed), Look::Notice),
            Part::new(SafeText::prose(&keys), Look::Notice),
        ]));
    }
}
