//! The one table of commands: what can be typed after `:`, which keys do what in which mode, and what `:help` says of it.
//!
//! The configuration names commands and modes by the words in here; see [`Keymap`](crate::keymap::Keymap).

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyMode {
    /// Reading: every key is a command.
    Normal,
    /// Writing a message.
    Insert,
    /// Writing a command.
    Command,
    /// Deciding on a request.
    Approval,
    /// Deciding on a command that was denied something.
    Denied,
    /// Choosing how far an approval reaches.
    Scope,
    /// Walking through the list of agents.
    Agents,
    /// Commenting on the steps of a plan that waits for its approval.
    Comments,
    /// Reading a plan and how far its steps have come.
    Plan,
}

impl KeyMode {
    /// Every mode.
    pub const ALL: [Self; 9] = [
        Self::Normal,
        Self::Insert,
        Self::Command,
        Self::Approval,
        Self::Denied,
        Self::Scope,
        Self::Agents,
        Self::Comments,
        Self::Plan,
    ];

    /// The word for it in the configuration and in `:help`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Insert => "insert",
            Self::Command => "command",
            Self::Approval => "approval",
            Self::Denied => "denied",
            Self::Scope => "scope",
            Self::Agents => "agents",
            Self::Comments => "comments",
            Self::Plan => "plan",
        }
    }

    /// Whether keys without Ctrl or Alt write text in it.
    pub const fn is_for_text(self) -> bool {
        matches!(self, Self::Insert | Self::Command)
    }

    /// Whether keys in it decide on a request: Enter and Space cannot be among them.
    pub const fn decides(self) -> bool {
        matches!(self, Self::Approval | Self::Denied | Self::Scope)
    }
}

/// Something that the user can tell the terminal UI to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the table says what each does")]
pub enum Command {
    Net,
    Mode,
    Allow,
    Rights,
    Grants,
    Revoke,
    Image,
    Compact,
    Diff,
    Plan,
    EditPlan,
    Agents,
    Agent,
    PreviousAgent,
    NextAgent,
    OpenAgent,
    MessageAgent,
    StopAgent,
    CloseAgents,
    Help,
    Quit,
    Insert,
    CommandLine,
    Leave,
    Interrupt,
    Cancel,
    Suspend,
    Repaint,
    Submit,
    Newline,
    HistoryBack,
    HistoryForward,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    DeleteBack,
    DeleteForward,
    DeleteWord,
    DeleteToStart,
    DeleteToEnd,
    LineUp,
    LineDown,
    PageUp,
    PageDown,
    Top,
    Bottom,
    FoldThinking,
    FoldOutput,
    ApproveOnce,
    ApproveSession,
    Deny,
    DenyWithWord,
    Whole,
    Together,
    AskAgain,
    Rule,
    Abort,
    Confirm,
    Edit,
    Shorter,
    Longer,
    Back,
    Comment,
    WriteComment,
    SendComments,
    ClosePlan,
}

/// One command: its name, how it is typed, its keys, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which it is.
    pub command: Command,
    /// Its name in the configuration.
    pub name: &'static str,
    /// How it is typed after `:`, where it can be.
    pub typed: Option<&'static str>,
    /// The keys that do it unless the configuration says otherwise.
    pub keys: &'static [(KeyMode, &'static [&'static str])],
    /// What it does, for `:help`.
    pub about: &'static str,
}

const fn typed(command: Command, name: &'static str, typed: &'static str, about: &'static str) -> Row {
    Row { command, name, typed: Some(typed), keys: &[], about }
}

const fn keyed(
    command: Command,
    name: &'static str,
    keys: &'static [(KeyMode, &'static [&'static str])],
    about: &'static str,
) -> Row {
    Row { command, name, typed: None, keys, about }
}

use KeyMode::{Agents, Approval, Command as Line, Comments, Denied, Insert, Normal, Plan, Scope};

/// Every command.
pub const TABLE: &[Row] = &[
    typed(Command::Net, "net", "net on|off", "allow or block network access"),
    typed(Command::Mode, "mode", "mode ask|auto|deny", "ask first, allow changes in the project, or deny"),
    typed(Command::Allow, "allow", "allow write PATH|net", "allow this for the rest of the session"),
    typed(Command::Rights, "rights", "rights", "show the access of the agent"),
    typed(Command::Grants, "grants", "grants", "list the grants of this session"),
    typed(Command::Revoke, "revoke", "revoke N", "take back a grant of this session"),
    typed(Command::Image, "image", "image PATH", "attach a picture; without PATH: detach it"),
    typed(Command::Compact, "compact", "compact", "replace the conversation by a summary"),
    typed(Command::Diff, "diff", "diff files|steps", "show the changes of the session; alone: by file"),
    typed(Command::Plan, "plan", "plan TEXT", "make a plan; without TEXT: show the plan"),
    Row {
        command: Command::EditPlan,
        name: "edit_plan",
        typed: Some("edit-plan"),
        keys: &[(Approval, &["v"])],
        about: "edit the plan that waits, in $EDITOR",
    },
    Row {
        command: Command::Agents,
        name: "agents",
        typed: Some("agents"),
        keys: &[(Normal, &["A"]), (Insert, &["alt-a"])],
        about: "list the agents: open, message or stop one",
    },
    typed(Command::Agent, "agent", "agent ID", "show an agent; what you type is for it"),
    keyed(Command::PreviousAgent, "previous_agent", &[(Normal, &["["])], "show the agent above in the list"),
    keyed(Command::NextAgent, "next_agent", &[(Normal, &["]"])], "show the agent below in the list"),
    keyed(
        Command::OpenAgent,
        "open_agent",
        &[(Agents, &["enter", "l", "right"])],
        "show what it says and does, live",
    ),
    keyed(Command::MessageAgent, "message_agent", &[(Agents, &["m", "i"])], "write a message to it"),
    keyed(Command::StopAgent, "stop_agent", &[(Agents, &["x"])], "stop it, with everything below it"),
    keyed(Command::CloseAgents, "close_agents", &[(Agents, &["esc", "q", "h", "left"])], "close the list"),
    Row {
        command: Command::Help,
        name: "help",
        typed: Some("help"),
        keys: &[(Normal, &["?", "f1"]), (Insert, &["f1"])],
        about: "show this table",
    },
    Row {
        command: Command::Quit,
        name: "quit",
        typed: Some("q"),
        keys: &[(Insert, &["ctrl-d"]), (Normal, &["ctrl-d"])],
        about: "end the session (by key: at an empty prompt)",
    },
    keyed(Command::Insert, "insert", &[(Normal, &["i", "a", "enter"])], "write a message"),
    keyed(Command::CommandLine, "command_line", &[(Normal, &[":"])], "type a command"),
    keyed(
        Command::Leave,
        "leave",
        &[(Insert, &["esc"]), (Line, &["esc"])],
        "to NORMAL; at an empty prompt: stop the turn",
    ),
    keyed(
        Command::Interrupt,
        "interrupt",
        &[(Normal, &["esc"])],
        "stop the turn; the model loses the partial text",
    ),
    keyed(
        Command::Cancel,
        "cancel",
        &[(Normal, &["ctrl-c"]), (Insert, &["ctrl-c"]), (Line, &["ctrl-c"])],
        "empty the prompt; if it is empty: stop the turn",
    ),
    keyed(
        Command::Suspend,
        "suspend",
        &[(Normal, &["ctrl-z"]), (Insert, &["ctrl-z"]), (Approval, &["ctrl-z"]), (Denied, &["ctrl-z"])],
        "suspend; fg continues",
    ),
    keyed(
        Command::Repaint,
        "repaint",
        &[
            (Normal, &["ctrl-l"]),
            (Insert, &["ctrl-l"]),
            (Approval, &["ctrl-l"]),
            (Denied, &["ctrl-l"]),
            (Agents, &["ctrl-l"]),
        ],
        "redraw the screen",
    ),
    keyed(Command::Submit, "submit", &[(Insert, &["enter"]), (Line, &["enter"])], "send"),
    keyed(Command::Newline, "newline", &[(Insert, &["alt-enter", "shift-enter", "ctrl-j"])], "another line"),
    keyed(
        Command::HistoryBack,
        "history_back",
        &[(Insert, &["up", "ctrl-p"]), (Line, &["up", "ctrl-p"])],
        "a line up; before the first: the message before",
    ),
    keyed(
        Command::HistoryForward,
        "history_forward",
        &[(Insert, &["down", "ctrl-n"]), (Line, &["down", "ctrl-n"])],
        "a line down; after the last: the message after",
    ),
    keyed(
        Command::Left,
        "left",
        &[(Insert, &["left", "ctrl-b"]), (Line, &["left", "ctrl-b"])],
        "a character to the left",
    ),
    keyed(
        Command::Right,
        "right",
        &[(Insert, &["right", "ctrl-f"]), (Line, &["right", "ctrl-f"])],
        "a character to the right",
    ),
    keyed(
        Command::WordLeft,
        "word_left",
        &[(Insert, &["alt-b", "ctrl-left"]), (Line, &["alt-b", "ctrl-left"])],
        "a word to the left",
    ),
    keyed(
        Command::WordRight,
        "word_right",
        &[(Insert, &["alt-f", "ctrl-right"]), (Line, &["alt-f", "ctrl-right"])],
        "a word to the right",
    ),
    keyed(
        Command::LineStart,
        "line_start",
        &[(Insert, &["home", "ctrl-a"]), (Line, &["home", "ctrl-a"])],
        "to the start of the line",
    ),
    keyed(
        Command::LineEnd,
        "line_end",
        &[(Insert, &["end", "ctrl-e"]), (Line, &["end", "ctrl-e"])],
        "to the line's end; if there: to the last answer",
    ),
    keyed(
        Command::DeleteBack,
        "delete_back",
        &[(Insert, &["backspace", "ctrl-h"]), (Line, &["backspace", "ctrl-h"])],
        "delete to the left",
    ),
    keyed(
        Command::DeleteForward,
        "delete_forward",
        &[(Insert, &["delete"]), (Line, &["delete"])],
        "delete to the right",
    ),
    keyed(
        Command::DeleteWord,
        "delete_word",
        &[(Insert, &["ctrl-w", "alt-backspace"]), (Line, &["ctrl-w", "alt-backspace"])],
        "delete the word to the left",
    ),
    keyed(
        Command::DeleteToStart,
        "delete_to_start",
        &[(Insert, &["ctrl-u"]), (Line, &["ctrl-u"])],
        "delete to the start of the line",
    ),
    keyed(
        Command::DeleteToEnd,
        "delete_to_end",
        &[(Insert, &["ctrl-k"]), (Line, &["ctrl-k"])],
        "delete to the end of the line",
    ),
    keyed(
        Command::LineUp,
        "line_up",
        &[
            (Normal, &["k", "up"]),
            (Approval, &["k", "up"]),
            (Denied, &["k", "up"]),
            (Scope, &["k", "up"]),
            (Agents, &["k", "up"]),
            (Comments, &["k", "up"]),
            (Plan, &["k", "up"]),
        ],
        "up",
    ),
    keyed(
        Command::LineDown,
        "line_down",
        &[
            (Normal, &["j", "down"]),
            (Approval, &["j", "down"]),
            (Denied, &["j", "down"]),
            (Scope, &["j", "down"]),
            (Agents, &["j", "down"]),
            (Comments, &["j", "down"]),
            (Plan, &["j", "down"]),
        ],
        "down",
    ),
    keyed(
        Command::PageUp,
        "page_up",
        &[
            (Normal, &["pageup", "ctrl-u"]),
            (Insert, &["pageup"]),
            (Approval, &["pageup", "ctrl-u"]),
            (Denied, &["pageup", "ctrl-u"]),
            (Scope, &["pageup"]),
            (Comments, &["pageup"]),
            (Plan, &["pageup", "ctrl-u"]),
        ],
        "a page up",
    ),
    keyed(
        Command::PageDown,
        "page_down",
        &[
            (Normal, &["pagedown", "ctrl-f"]),
            (Insert, &["pagedown"]),
            (Approval, &["pagedown", "ctrl-f"]),
            (Denied, &["pagedown", "ctrl-f"]),
            (Scope, &["pagedown"]),
            (Comments, &["pagedown"]),
            (Plan, &["pagedown", "ctrl-f"]),
        ],
        "a page down",
    ),
    keyed(
        Command::Top,
        "top",
        &[
            (Normal, &["g", "home"]),
            (Approval, &["g", "home"]),
            (Denied, &["g", "home"]),
            (Agents, &["g", "home"]),
            (Comments, &["g", "home"]),
            (Plan, &["g", "home"]),
        ],
        "to the beginning",
    ),
    keyed(
        Command::Bottom,
        "bottom",
        &[
            (Normal, &["G", "end"]),
            (Approval, &["G", "end"]),
            (Denied, &["G", "end"]),
            (Agents, &["G", "end"]),
            (Comments, &["G", "end"]),
            (Plan, &["G", "end"]),
        ],
        "to the end, and follow it",
    ),
    keyed(Command::FoldThinking, "fold_thinking", &[(Normal, &["t"])], "show or fold the model's thinking"),
    keyed(
        Command::FoldOutput,
        "fold_output",
        &[(Normal, &["o", "ctrl-o"]), (Insert, &["ctrl-o"])],
        "show or fold the output of tools",
    ),
    keyed(Command::ApproveOnce, "approve_once", &[(Approval, &["y"]), (Denied, &["o"])], "yes, once"),
    keyed(
        Command::ApproveSession,
        "approve_session",
        &[(Approval, &["s"]), (Denied, &["s"])],
        "yes, for this session: choose the scope",
    ),
    keyed(Command::Deny, "deny", &[(Approval, &["n"]), (Denied, &["n"])], "no"),
    keyed(
        Command::DenyWithWord,
        "deny_with_word",
        &[(Approval, &["e"]), (Denied, &["e"])],
        "no, with a reason for the model",
    ),
    keyed(Command::Whole, "whole", &[(Approval, &["d"]), (Denied, &["d"])], "full screen, and back"),
    keyed(
        Command::AskAgain,
        "ask_again",
        &[(Normal, &["R"]), (Insert, &["alt-r"])],
        "have a request made again that nobody answered",
    ),
    keyed(Command::Together, "together", &[(Approval, &["a"])], "show all changes of the reply as one"),
    keyed(
        Command::Rule,
        "rule",
        &[(Approval, &["?"]), (Denied, &["?"])],
        "the rule that asks, and where it comes from",
    ),
    keyed(
        Command::Abort,
        "abort",
        &[(Approval, &["esc", "ctrl-c"]), (Denied, &["esc", "ctrl-c"])],
        "no, and stop the turn",
    ),
    keyed(Command::Confirm, "confirm", &[(Scope, &["y"])], "yes, as chosen"),
    keyed(Command::Edit, "edit", &[(Scope, &["e"])], "edit the pattern"),
    keyed(Command::Shorter, "shorter", &[(Scope, &["left", "h"])], "remove a word from the prefix"),
    keyed(Command::Longer, "longer", &[(Scope, &["right", "l"])], "add a word to the prefix"),
    keyed(
        Command::Back,
        "back",
        &[(Scope, &["esc", "n", "ctrl-c"]), (Comments, &["esc", "q", "ctrl-c"])],
        "back to the request",
    ),
    keyed(Command::Comment, "comment", &[(Approval, &["c"])], "comment on the steps of a plan"),
    keyed(
        Command::WriteComment,
        "write_comment",
        &[(Comments, &["enter", "c", "i"])],
        "write a comment on it",
    ),
    keyed(Command::SendComments, "send_comments", &[(Comments, &["s"])], "no, with these comments"),
    keyed(Command::ClosePlan, "close_plan", &[(Plan, &["q", "esc", "ctrl-c"])], "close the plan"),
];

/// The row of a command.
pub fn row(command: Command) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.command == command)
}

/// The command of a name.
pub fn named(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}
