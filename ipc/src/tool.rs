//! Calls and results of the six tools. They are typed, since bincode cannot encode JSON values.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::denial::Operation;
pub use crate::ignored::Ignored;
use crate::image::Image;
use crate::named::NamedPlace;
use crate::path::WirePath;
use crate::refusal::Refusal;
use crate::rights::Network;

/// One call of one of the six tools. Paths are relative to the project or absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolCall {
    /// Reads a file, or a range of its lines.
    ReadFile(ReadFile),
    /// Lists a directory.
    ListDirectory(ListDirectory),
    /// Searches file contents by regular expression.
    SearchFiles(SearchFiles),
    /// Writes a whole file.
    WriteFile(WriteFile),
    /// Replaces exact text in a file.
    EditFile(EditFile),
    /// Runs a command with `bash -c`.
    ShellExec(ShellExec),
}

impl ToolCall {
    /// The tool's name, as the model knows it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ReadFile(_) => "read_file",
            Self::ListDirectory(_) => "list_directory",
            Self::SearchFiles(_) => "search_files",
            Self::WriteFile(_) => "write_file",
            Self::EditFile(_) => "edit_file",
            Self::ShellExec(_) => "shell_exec",
        }
    }

    /// True if the tool call may change files. Such calls are executed one after the other, in the model's order.
    pub const fn may_write(&self) -> bool {
        match self {
            Self::ReadFile(_) | Self::ListDirectory(_) | Self::SearchFiles(_) => false,
            Self::WriteFile(_) | Self::EditFile(_) => true,
            Self::ShellExec(call) => !matches!(call.access, Access::Read),
        }
    }
}

/// Arguments of `read_file`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFile {
    /// Path of the file.
    pub path: WirePath,
    /// Number of the first line, from 1; the beginning of the file if absent.
    pub offset: Option<u64>,
    /// Maximum number of lines, if the model gives one.
    pub limit: Option<u64>,
    /// True if links that lead out of the project are not followed, as for files that instruct agents.
    pub inside: bool,
}

/// Arguments of `list_directory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDirectory {
    /// Path of the directory.
    pub path: WirePath,
    /// Number of levels, if not 1, which lists the directory itself.
    pub depth: Option<u32>,
}

/// Arguments of `search_files`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchFiles {
    /// A regular expression in the syntax of the Rust `regex` crate.
    pub pattern: String,
    /// Directory or file to search; the project if absent.
    pub path: Option<WirePath>,
    /// Glob that selects files, such as `*.rs` or `src/**/*.py`; all files if absent.
    pub glob: Option<String>,
    /// True if links that lead out of the project are not followed.
    pub inside: bool,
}

/// Arguments of `write_file`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFile {
    /// Path of the file, which is created if it is missing, with its directories.
    pub path: WirePath,
    /// The whole new content.
    pub content: String,
}

/// Arguments of `edit_file`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditFile {
    /// Path of the file.
    pub path: WirePath,
    /// The replacements, in order. If one fails, none is made.
    pub edits: Vec<Edit>,
}

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The text to be replaced. It must occur exactly once unless `replace_all` is true.
    pub old_string: String,
    /// The replacement.
    pub new_string: String,
    /// True if every occurrence is replaced.
    pub replace_all: bool,
}

/// Arguments of `shell_exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellExec {
    /// The text for `bash -c`.
    pub command: String,
    /// The access that the command declares to need.
    pub access: Access,
    /// The network that the command requests; if absent, that of the standing access.
    pub network: Option<Network>,
    /// The working directory; the project if absent.
    pub cwd: Option<WirePath>,
    /// Time limit in milliseconds, at most that of the standing access, which holds if this is absent.
    pub timeout_ms: Option<u64>,
}

/// The access to files that a command requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Access {
    /// The standing access of the agent.
    #[default]
    Standing,
    /// Reading only: no write access except to a temp directory of the command's own, and no network.
    Read,
    /// Writing. An approval is requested if the standing access does not include write access.
    Write,
}

/// Output of a successful tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolOutput {
    /// Lines of a file.
    File(FileText),
    /// A picture.
    Image(Image),
    /// A directory's entries.
    Listing(Listing),
    /// Matches of a search.
    Matches(Matches),
    /// The files that the call has written.
    Written(Written),
    /// The result of a command that has ended.
    Command(CommandResult),
    /// The state of the project's files (see [`crate::message::Work`]).
    Snapshot(SnapshotSummary),
}

/// Lines of a file, as valid UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileText {
    /// The lines, with their line ends.
    pub text: String,
    /// The number of the first line, from 1.
    pub first_line: u64,
    /// Number of lines in `text`.
    pub lines: u64,
    /// Number of lines in the file, if it was read to its end.
    pub total_lines: Option<u64>,
    /// The encoding that the bytes were read as: `UTF-8`, `UTF-16LE`, `windows-1252` …
    pub encoding: String,
    /// Remarks for the reader, one sentence each, such as about replaced bytes or truncated lines.
    pub notes: Vec<String>,
}

/// A directory's entries, in order of their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The entries, relative to the directory that was listed.
    pub entries: Vec<Entry>,
    /// Number of entries that the listing leaves out.
    pub omitted: u64,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path relative to the listed directory.
    pub path: WirePath,
    /// The kind of entry.
    pub kind: EntryKind,
    /// Size in bytes, if the entry is a file.
    pub size: u64,
}

/// Kind of a directory entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and its target.
    Symlink(WirePath),
    /// A socket, a fifo or a device.
    Other,
}

/// The result of a search, whose lines were also sent as output before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matches {
    /// The matching lines as `path:line:text`, one a line.
    pub text: String,
    /// Number of matching lines.
    pub matches: u64,
    /// Number of matching files.
    pub files: u64,
    /// Number of searched files.
    pub searched: u64,
    /// Reason that the search ended early; absent if it did not.
    pub truncated: Option<String>,
}

/// Result of a change of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The written files, in the order of the call.
    pub files: Vec<WrittenFile>,
}

/// One file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Path of the file.
    pub path: WirePath,
    /// True if the file was created.
    pub created: bool,
    /// Size of the file after the write, in bytes.
    pub bytes: u64,
    /// Number of replacements that an edit made.
    pub replacements: u64,
    /// The changed lines. Absent if they are too many or are not text.
    pub change: Option<Change>,
    /// Remarks, one clause each: about other changes, and about other names (hard links) of the file.
    pub notes: Vec<String>,
}

/// The changed lines of a file with some lines around them; a short file is included as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Number of the first line, before and after the change, from 1.
    pub first_line: u64,
    /// The lines before the change; absent for a new file.
    pub old: Option<String>,
    /// The lines after the change; empty for a removed file.
    pub new: String,
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// End of the command.
    pub exit: CommandExit,
    /// The beginning of the output (standard output and error in their order), as valid UTF-8.
    pub head: String,
    /// Number of bytes left out between `head` and `tail`.
    pub omitted_bytes: u64,
    /// The end of the output; empty if `head` has all of it.
    pub tail: String,
    /// The file with the saved output, if the output is long.
    pub saved: Option<SavedOutput>,
    /// Paths that error messages in the output mention, in their order.
    pub named: Vec<NamedPlace>,
    /// Pid, as the worker sees it, of the command's reaper: the ancestor of all its processes. For attributing denials.
    pub process: u32,
    /// Refusals that the broker reported for the command's processes. No worker sends them, so none can forge them.
    #[serde(skip)]
    pub refused: Vec<Refusal>,
    /// Duration of the command in milliseconds.
    pub duration_ms: u64,
}

/// The output of a command in a file of the agent's private temp directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOutput {
    /// Path of the file.
    pub path: WirePath,
    /// Number of saved bytes, from the beginning of the output.
    pub bytes: u64,
    /// The reason why the file is incomplete, as a phrase; absent if it is complete.
    pub cut: Option<String>,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandExit {
    /// Exit with this code.
    Code(i32),
    /// End by this signal.
    Signal(i32),
    /// The command ran longer than permitted, and was killed with its descendants.
    TimedOut,
}

/// Result of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSummary {
    /// Number of entries that the worker has sent.
    pub entries: u64,
    /// Paths that could not be read, one sentence each.
    pub notes: Vec<String>,
    /// Files and directories that git ignores.
    pub ignored: Ignored,
}

/// The reason why a tool call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// The kind of failure.
    pub kind: ToolErrorKind,
    /// One sentence for the model, with a remedy.
    pub message: String,
    /// The failed system call, if there was one. The supervisor recognises denials by it.
    pub access: Option<FailedAccess>,
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

/// The kind of a tool call's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// The path does not exist.
    NotFound,
    /// The path is of a kind that the tool does not accept.
    WrongKind,
    /// The kernel denied access, by file permissions or by the ruleset.
    Refused,
    /// The file is binary, or too large.
    Unreadable,
    /// The text to be replaced is absent or ambiguous.
    NoUniqueMatch,
    /// An argument is invalid.
    InvalidArgument,
    /// The file changed after the effect was computed.
    Changed,
    /// The tool call was cancelled.
    Interrupted,
    /// The worker does not have the required right.
    NotGranted,
    /// Another system error.
    System,
}

/// A system call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAccess {
    /// The attempted operation.
    pub operation: Operation,
    /// The path, absolute and resolved as far as possible.
    pub path: WirePath,
    /// The errno of the system call.
    pub errno: i32,
    /// True if file permissions would have allowed the operation, by access(2), which Landlock does not restrict.
    pub permitted_by_mode: bool,
    /// Nearest existing parent, if the path does not exist. A right can only be granted for an existing path.
    pub nearest: Option<WirePath>,
}
