//! What goes in and what comes out.

use std::path::PathBuf;

use crossterm::event::KeyEvent;
use ipc::id::{AgentId, ApprovalId};
use ipc::image::Image;
use protocol::frontend::{UiEvent, UserActionKind};

use crate::highlight::{CodeRead, CodeToRead};
use crate::model::LogRows;
use crate::start::ThemeName;
use crate::view::Shown;

#[derive(Clone, Debug)]
pub enum Msg {
    /// A key, with the moment at which it was read.
    Key(KeyEvent),
    /// A key that was read together with others, as in a paste of a terminal that does not mark pastes: it
    /// decides on no request.
    KeyOfMany(KeyEvent),
    Paste(String),
    /// A message to the agent from elsewhere than the prompt: the command line.
    Submit(String),
    /// The terminal got the focus, or lost it.
    Focus(bool),
    /// The wheel turned by so many notches; negative is up.
    Wheel(i16),
    /// The terminal has so many columns and rows.
    Resize(u16, u16),
    Core(UiEvent),
    /// Time passed: what [`next_tick`](crate::next_tick) asked for.
    Tick,
    /// The frame that [`view`](crate::view()) made is on the terminal, flushed.
    Drawn(Shown),
    /// The terminal's background goes with this choice of colours.
    Theme(ThemeName),
    /// The process was stopped and continues: everything on the screen counts as unseen.
    Resumed,
    /// Result of [`Action::Attach`]: the picture, or the reason for its absence.
    Attached(Result<Image, String>),
    /// The outcome of [`Action::EditPlan`].
    PlanEdited {
        /// The agent that asks for the approval.
        agent: AgentId,
        id: ApprovalId,
        /// The other text; none if the person left the text as it was; the reason why there is no text.
        edited: Result<Option<String>, String>,
    },
    /// Result of [`Action::EditPrompt`]: the new text; `None` if it is unchanged; the reason for a failure.
    PromptEdited(Result<Option<String>, String>),
    CodeRead(CodeRead),
    /// The outcome of [`Action::ReadLog`].
    LogRead(Result<LogRows, String>),
    /// The outcome of [`Action::ReadEvent`]: the event in JSON.
    EventRead(Result<String, String>),
    /// The answer of the wiring to a command.
    Answer(String),
    /// A sentence of the wiring's own, shown as a notice.
    Note(String),
    /// The core is gone: nothing will be answered any more.
    CoreGone,
}

/// The reason for which the person is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Approval,
    /// A denied command may run again, if the person allows it.
    Denial,
    /// The session waits for space on the disk.
    Paused,
    TurnOver,
}

impl Reason {
    /// The words for it: nothing in them comes from a model.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "Bailiwick: an approval waits for you",
            Self::Denial => "Bailiwick: a denied command waits for you",
            Self::Paused => "Bailiwick: the disk is full, and the session waits",
            Self::TurnOver => "Bailiwick: the turn is over",
        }
    }
}

/// The part of the transcript that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    Answer,
    Code,
    Line,
}

impl Copied {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "the last answer",
            Self::Code => "the last code",
            Self::Line => "the line",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    User(AgentId, UserActionKind),
    /// Read this picture of the user's; [`Msg::Attached`] brings it.
    Attach(PathBuf),
    /// Hand the terminal to an editor with this plan; [`Msg::PlanEdited`] brings the text, after [`Msg::Resumed`].
    EditPlan {
        /// The agent that asks for the approval.
        agent: AgentId,
        id: ApprovalId,
        markdown: String,
    },
    /// Hand the terminal to an editor with the message that is being written; [`Msg::PromptEdited`] brings the text, after
    /// [`Msg::Resumed`].
    EditPrompt(String),
    /// Keep what was sent, or typed as a command, for the history of later sessions.
    Remember(String),
    /// Offer this text to the terminal's clipboard, and write it to a file; [`Msg::Note`] reports the result.
    Copy {
        /// The part of the transcript that it is.
        what: Copied,
        /// The text, without hidden characters.
        text: String,
    },
    /// Read the session's log somewhere where nobody waits for it; [`Msg::LogRead`] brings its rows.
    ReadLog,
    /// Read one event of the log; [`Msg::EventRead`] brings it.
    ReadEvent {
        /// The place of its line.
        at: u64,
    },
    /// Read these lines of code somewhere where nobody waits for it; [`Msg::CodeRead`] brings the kinds of their text.
    Read(Box<CodeToRead>),
    /// Notify a person who may look elsewhere, by a bell, a notification and the title of the terminal.
    Call(Reason),
    /// The person is there again: the title of the terminal is what it was.
    EndCall,
    /// The content has changed: draw when convenient, at most 60 times a second.
    Redraw,
    /// Draw everything anew, as if nothing were on the screen.
    Repaint,
    /// The user leaves: end the session and restore the terminal.
    Quit,
    /// End this session, and continue another: the one of this name, or one that the person chooses.
    Resume(Option<String>),
    /// Restore the terminal and stop the process; [`Msg::Resumed`] when it continues.
    Suspend,
}
