//! Arguments of the worker's six tools, as the model writes them. The model reads the comments of the fields.
#![expect(clippy::doc_markdown, reason = "the model reads plain text, where back-ticks are noise")]

use std::path::PathBuf;

use ipc::path::WirePath;
use ipc::rights::Network;
use ipc::tool::{self, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;

use super::meant_path::meant_path;
use super::typed::Arguments;

/// Name of a field with an invalid value, and the reason with what was expected.
pub(super) type BadArgument = (&'static str, String);

pub const READ_FILE: &str = ReadFile::NAME;

pub const SHELL_EXEC: &str = ShellExec::NAME;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Relative to the project, or absolute.
    path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

impl Arguments for ReadFile {
    type Call = ToolCall;

    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Reads a text file and returns its lines, numbered. Without offset and limit \
        it returns the first 2000 lines. Read a file before you edit it.";

    fn into_call(self) -> Result<ToolCall, BadArgument> {
        Ok(ToolCall::ReadFile(tool::ReadFile {
            path: path("path", &self.path)?,
            offset: positive("offset", self.offset)?,
            limit: positive("limit", self.limit)?,
            inside: false,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirectory {
    /// Relative to the project, or absolute; "." is the project.
    path: String,
    /// How many levels deep; 1 (the default) is the directory alone.
    #[schemars(range(min = 1))]
    depth: Option<u32>,
}

impl Arguments for ListDirectory {
    type Call = ToolCall;

    const NAME: &'static str = "list_directory";
    const DESCRIPTION: &'static str = "Lists a directory. What the ignore files exclude is left out.";

    fn into_call(self) -> Result<ToolCall, BadArgument> {
        Ok(ToolCall::ListDirectory(tool::ListDirectory {
            path: path("path", &self.path)?,
            depth: positive("depth", self.depth)?,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFiles {
    /// Regular expression (Rust regex syntax), matched line by line.
    pattern: String,
    /// File or directory to search; the project if absent.
    path: Option<String>,
    /// Which files, such as "*.rs" or "src/**/*.py".
    glob: Option<String>,
}

impl Arguments for SearchFiles {
    type Call = ToolCall;

    const NAME: &'static str = "search_files";
    const DESCRIPTION: &'static str = "Searches file contents by regular expression and returns path:line:text. \
        Fast on whole trees; respects ignore files. Prefer it to grep in shell_exec.";

    fn into_call(self) -> Result<ToolCall, BadArgument> {
        Ok(ToolCall::SearchFiles(tool::SearchFiles {
            pattern: filled("pattern", self.pattern)?,
            path: self.path.map(|text| path("path", &text)).transpose()?,
            glob: self.glob.map(|text| filled("glob", text)).transpose()?,
            inside: false,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// Relative to the project, or absolute. Missing directories are made.
    path: String,
    /// The whole content.
    content: String,
}

impl Arguments for WriteFile {
    type Call = ToolCall;

    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str =
        "Writes a whole file, new or replaced. To change a part of a file, use edit_file.";

    fn into_call(self) -> Result<ToolCall, BadArgument> {
        let path = path("path", &self.path)?;
        Ok(ToolCall::WriteFile(tool::WriteFile { path, content: self.content }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// Relative to the project, or absolute.
    path: String,
    /// Exact text to replace, without the line numbers of read_file.
    old_string: Option<String>,
    /// What takes its place.
    new_string: Option<String>,
    /// Replace every occurrence.
    replace_all: Option<bool>,
    /// Several replacements in order, all or none, instead of old_string and new_string.
    edits: Option<Vec<Edit>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl Arguments for EditFile {
    type Call = ToolCall;

    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str = "Replaces exact text in a file. old_string must match the file exactly, \
        indentation included, and occur once unless replace_all is true: include enough lines around it.";

    fn into_call(self) -> Result<ToolCall, BadArgument> {
        let path = path("path", &self.path)?;
        let edits = edits(self.old_string, self.new_string, self.replace_all, self.edits)?;
        let edits = edits.into_iter().map(Edit::into_wire).collect::<Result<_, _>>()?;
        Ok(ToolCall::EditFile(tool::EditFile { path, edits }))
    }
}

impl Edit {
    fn into_wire(self) -> Result<tool::Edit, BadArgument> {
        let Self { old_string, new_string, replace_all } = self;
        let old_string = filled("old_string", old_string)?;
        if old_string == new_string {
            return Err((
                "new_string",
                "got the same text as old_string, expected a different text".to_owned(),
            ));
        }
        Ok(tool::Edit { old_string, new_string, replace_all: replace_all.unwrap_or(false) })
    }
}

/// Returns the edits, which a call gives in one of two forms: a single one in three fields, or a list.
fn edits(
    old: Option<String>,
    new: Option<String>,
    replace_all: Option<bool>,
    list: Option<Vec<Edit>>,
) -> Result<Vec<Edit>, BadArgument> {
    match (old, new, replace_all, list) {
        (Some(old_string), Some(new_string), replace_all, None) => {
            Ok(vec![Edit { old_string, new_string, replace_all }])
        }
        (None, None, None, Some(list)) if !list.is_empty() => Ok(list),
        (None, None, None, Some(_)) => {
            Err(("edits", "got an empty list, expected at least one {old_string, new_string}".to_owned()))
        }
        (Some(_), None, _, None) => {
            Err(("new_string", "missing, expected together with old_string".to_owned()))
        }
        (None, _, _, None) => {
            Err(("old_string", "missing, expected with new_string, or edits instead".to_owned()))
        }
        (_, _, _, Some(_)) => Err((
            "edits",
            "got edits together with old_string, new_string or replace_all, expected only one form"
                .to_owned(),
        )),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellExec {
    /// Text for bash -c.
    command: String,
    /// "read" for a command that only reads: it may write nothing but its own TMPDIR and has no network. "write" for
    /// one that has to change files. Absent means what the rights allow.
    access: Option<DeclaredAccess>,
    /// Whether it needs the network.
    network: Option<bool>,
    /// Working directory; the project if absent.
    cwd: Option<String>,
    /// Seconds after which it is ended.
    #[schemars(range(min = 1))]
    timeout_s: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DeclaredAccess {
    Standing,
    Read,
    Write,
}

impl Arguments for ShellExec {
    type Call = ToolCall;

    const NAME: &'static str = "shell_exec";
    const DESCRIPTION: &'static str = "Runs a command with bash, confined by the kernel to the rights, and returns its \
        output and exit code. No terminal, no input. When it returns, all its processes are ended: start a server and \
        its client in one command.";

    fn into_call(self) -> Result<ToolCall, BadArgument> {
        let access = match self.access {
            None | Some(DeclaredAccess::Standing) => tool::Access::Standing,
            Some(DeclaredAccess::Read) => tool::Access::Read,
            Some(DeclaredAccess::Write) => tool::Access::Write,
        };
        Ok(ToolCall::ShellExec(tool::ShellExec {
            command: without_nul("command", filled("command", self.command)?)?,
            access,
            network: self.network.map(|on| if on { Network::On } else { Network::Off }),
            cwd: self.cwd.map(|text| path("cwd", &text)).transpose()?,
            timeout_ms: positive("timeout_s", self.timeout_s)?.map(|seconds| seconds.saturating_mul(1000)),
        }))
    }
}

pub(super) fn path(field: &'static str, text: &str) -> Result<WirePath, BadArgument> {
    let text = without_nul(field, filled(field, text.to_owned())?)?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let text = meant_path(&text, home.as_deref()).map_err(|why| (field, why))?;
    Ok(WirePath::from(&text))
}

pub(super) fn filled(field: &'static str, text: String) -> Result<String, BadArgument> {
    if text.is_empty() {
        Err((field, "got an empty text, expected at least one character".to_owned()))
    } else {
        Ok(text)
    }
}

fn without_nul(field: &'static str, text: String) -> Result<String, BadArgument> {
    if text.contains('\0') {
        Err((field, "got a NUL character, expected text without".to_owned()))
    } else {
        Ok(text)
    }
}

pub(super) fn positive<N: PartialEq + Default>(
    field: &'static str,
    number: Option<N>,
) -> Result<Option<N>, BadArgument> {
    match number {
        Some(zero) if zero == N::default() => Err((field, "got 0, expected 1 or more".to_owned())),
        other => Ok(other),
    }
}
