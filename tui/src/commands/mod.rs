//! Table of commands: names after `:`, keys in each mode, and texts for `:help`.
//!
//! The configuration file uses the names of commands and modes in this table; see [`Keymap`](crate::keymap::Keymap).

mod table;

pub use table::TABLE;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyMode {
    /// Reading the transcript; every key is a command.
    Normal,
    Insert,
    Command,
    Approval,
    /// Deciding if a denied command may run again.
    Denied,
    Scope,
    Agents,
    Comments,
    Steps,
    /// Approving a part of a change.
    Part,
    Form,
    Versions,
    Plan,
    Log,
    Rewind,
    Page,
    Findings,
    Select,
}

impl KeyMode {
    pub const ALL: [Self; 18] = [
        Self::Normal,
        Self::Insert,
        Self::Command,
        Self::Approval,
        Self::Denied,
        Self::Scope,
        Self::Agents,
        Self::Comments,
        Self::Steps,
        Self::Part,
        Self::Form,
        Self::Versions,
        Self::Plan,
        Self::Log,
        Self::Rewind,
        Self::Findings,
        Self::Select,
        Self::Page,
    ];

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
            Self::Steps => "steps",
            Self::Part => "part",
            Self::Form => "form",
            Self::Versions => "versions",
            Self::Plan => "plan",
            Self::Log => "log",
            Self::Rewind => "rewind",
            Self::Page => "page",
            Self::Findings => "findings",
            Self::Select => "select",
        }
    }

    /// True if keys without Ctrl or Alt type text in this mode.
    pub const fn is_for_text(self) -> bool {
        matches!(self, Self::Insert | Self::Command | Self::Form)
    }

    /// True if keys of this mode answer an approval request. Enter and Space may then select, but not answer.
    pub const fn decides(self) -> bool {
        matches!(self, Self::Approval | Self::Denied | Self::Scope | Self::Part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the table says what each does")]
pub enum Command {
    Net,
    Mode,
    Allow,
    Disallow,
    Access,
    Revoke,
    Image,
    Compact,
    Clear,
    Model,
    Cost,
    Tasks,
    Review,
    Findings,
    OpenFinding,
    FixFinding,
    CloseFindings,
    Copy,
    CopyCode,
    Context,
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
    Resume,
    Insert,
    PreviousMessage,
    NextMessage,
    PreviousOutput,
    NextOutput,
    OpenRow,
    CommandLine,
    Search,
    SearchNext,
    SearchPrevious,
    Complete,
    CycleMode,
    EditPrompt,
    PastePicture,
    Leave,
    Interrupt,
    Cancel,
    Suspend,
    Repaint,
    Submit,
    Newline,
    HistoryBack,
    HistoryForward,
    SearchHistory,
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
    FoldPane,
    ApproveOnce,
    ApproveSession,
    ApproveProject,
    ApprovePart,
    Toggle,
    EditText,
    ApproveTurn,
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
    EditSteps,
    EditField,
    NextStep,
    PreviousStep,
    ShiftUp,
    ShiftDown,
    AddStep,
    AddCondition,
    ChangeKind,
    DeleteField,
    Undo,
    SaveSteps,
    NextField,
    PreviousField,
    NextChoice,
    PreviousChoice,
    Versions,
    OlderVersion,
    NewerVersion,
    OlderBase,
    NewerBase,
    ClosePlan,
    Log,
    OpenEvent,
    FilterLog,
    OnlyKind,
    CloseLog,
    Rewind,
    Revert,
    RewindTo,
    RewindBoth,
    RewindFiles,
    RewindConversation,
    UndoRewind,
    ConfirmRewind,
    CloseRewind,
    ChooseRow,
    ClosePage,
    SelectCharacters,
    SelectLines,
    SelectColumns,
    SelectAround,
    OtherEnd,
    CopySelection,
    CloseSelection,
}

#[derive(Clone, Copy, Debug)]
pub struct CommandRow {
    pub command: Command,
    pub name: &'static str,
    pub typed: Option<&'static str>,
    pub keys: &'static [(KeyMode, &'static [&'static str])],
    pub about: &'static str,
}

pub fn row(command: Command) -> Option<&'static CommandRow> {
    TABLE.iter().find(|row| row.command == command)
}

pub fn of_word(word: &str) -> Option<&'static CommandRow> {
    let word = match word {
        "rights" | "grants" => "access",
        word if is_quit(word) => "q",
        word => word,
    };
    TABLE.iter().find(|row| row.typed.is_some_and(|typed| typed.split(' ').next() == Some(word)))
}

pub fn is_taken(word: &str) -> bool {
    of_word(word).is_some()
}

pub fn is_quit(word: &str) -> bool {
    matches!(word, "q" | "quit" | "exit")
}

pub fn named(name: &str) -> Option<&'static CommandRow> {
    TABLE.iter().find(|row| row.name == name)
}
