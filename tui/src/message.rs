//! Input messages and output actions of the terminal UI.

use std::path::PathBuf;

use crossterm::event::KeyEvent;
use ipc::id::{AgentId, ApprovalId};
use ipc::image::Image;
use ipc::path::WirePath;
use protocol::frontend::{UiEvent, UserActionKind};

use crate::highlight::{CodeRead, CodeToRead};
use crate::model::LogRows;
use crate::start::ThemeName;
use crate::view::Shown;

#[derive(Clone, Debug)]
pub enum Msg {
    Key(KeyEvent),
    /// Key that was read together with others, as when a terminal sends a paste as keys. It never answers a request.
    KeyOfMany(KeyEvent),
    Paste(String),
    Submit(String),
    /// True if the terminal got the focus, false if it lost it.
    Focus(bool),
    Wheel(i16),
    /// New number of columns and rows of the terminal.
    Resize(u16, u16),
    Core(UiEvent),
    /// Some time has passed: the time that [`next_tick`](crate::next_tick) returned.
    Tick,
    /// The frame of [`view`](crate::view()) was written to the terminal and flushed.
    Drawn(Shown),
    Theme(ThemeName),
    /// The process was suspended and now continues. Everything on the screen counts as unseen.
    Resumed,
    /// Result of [`Action::Attach`] and [`Action::AttachClipboard`]: the picture, or an error message.
    Attached(Result<Image, String>),
    /// Result of [`Action::FindPicture`] if the file at the path is a picture.
    PictureFound {
        text: String,
        image: Image,
    },
    PlanEdited {
        /// Agent that requests the approval.
        agent: AgentId,
        id: ApprovalId,
        /// New text of the plan; `None` if unchanged; `Err` with a message if the editor failed.
        edited: Result<Option<String>, String>,
    },
    /// Result of [`Action::EditText`].
    TextEdited {
        /// Agent that requests the approval.
        agent: AgentId,
        id: ApprovalId,
        path: WirePath,
        /// New text of the file; `None` if unchanged; `Err` with a message if the editor failed.
        edited: Result<Option<String>, String>,
    },
    /// Result of [`Action::EditPrompt`]: new text; `None` if unchanged; `Err` with a message if the editor failed.
    PromptEdited(Result<Option<String>, String>),
    CodeRead(CodeRead),
    /// Result of [`Action::ReadLog`].
    LogRead(Result<LogRows, String>),
    EventRead(Result<String, String>),
    /// Answer to a command that the caller executed, to be shown to the person.
    Answer(String),
    Note(String),
    /// The session's engine has ended, so actions sent to it have no effect.
    CoreGone,
}

/// Reason to notify the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Approval,
    /// A command was denied an access, and can run again if the person allows the access.
    Denial,
    /// The session is paused until the disk has free space.
    Paused,
    TurnOver,
}

impl Reason {
    /// Returns the text of the notification. It never contains text of the language model.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "Bailiwick: an approval waits for you",
            Self::Denial => "Bailiwick: a denied command waits for you",
            Self::Paused => "Bailiwick: the disk is full, and the session waits",
            Self::TurnOver => "Bailiwick: the turn is over",
        }
    }
}

/// Piece of the transcript that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    Answer,
    Code,
    Line,
    Selection,
}

impl Copied {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "the last answer",
            Self::Code => "the last code",
            Self::Line => "the line",
            Self::Selection => "the selection",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    User(AgentId, UserActionKind),
    /// Read this picture; [`Msg::Attached`] returns it.
    Attach(PathBuf),
    /// Read the picture in the clipboard; [`Msg::Attached`] returns it.
    AttachClipboard,
    /// Check if there is a picture at this pasted path; if so, [`Msg::PictureFound`] returns it.
    FindPicture {
        text: String,
        path: PathBuf,
    },
    /// Open this plan in an editor. After [`Msg::Resumed`], [`Msg::PlanEdited`] returns the text.
    EditPlan {
        /// Agent that requests the approval.
        agent: AgentId,
        id: ApprovalId,
        markdown: String,
    },
    /// Open the new text of a file in an editor. After [`Msg::Resumed`], [`Msg::TextEdited`] returns the text.
    EditText {
        /// Agent that requests the approval.
        agent: AgentId,
        id: ApprovalId,
        path: WirePath,
        text: String,
    },
    /// Open the unsent message in an editor. After [`Msg::Resumed`], [`Msg::PromptEdited`] returns the text.
    EditPrompt(String),
    /// Add this message or command to the history for later sessions.
    Remember(String),
    /// Copy this text to the terminal's clipboard and to a file; [`Msg::Note`] reports success or failure.
    Copy {
        what: Copied,
        /// Text with hidden characters made visible.
        text: String,
    },
    /// Read the session's log in the background; [`Msg::LogRead`] returns its rows.
    ReadLog,
    /// Read one event of the log; [`Msg::EventRead`] returns it.
    ReadEvent {
        /// Byte offset of the event's line in the log file.
        at: u64,
    },
    /// Highlight this code in the background; [`Msg::CodeRead`] returns the result.
    Read(Box<CodeToRead>),
    /// Notify the person with the terminal's bell, a desktop notification, and a change of the terminal's title.
    Call(Reason),
    /// Restore the terminal's title, which a notification changed.
    EndCall,
    /// Draw the screen soon, at most 60 times a second.
    Redraw,
    /// Draw the whole screen again.
    Repaint,
    Quit,
    /// End this session and continue another one: the one with this name; with `None`, one that the person chooses.
    Resume(Option<String>),
    /// Restore the terminal and suspend the process. [`Msg::Resumed`] follows when the process continues.
    Suspend,
}
