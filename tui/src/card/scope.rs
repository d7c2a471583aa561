//! Menu of the actions that an approval for the session can cover, with a preview of each choice.

use std::path::Path;

use ipc::path::WirePath;
use protocol::approval::{ProjectPrefixes, ServerRequest, SessionScope};

use super::content::{bash, fact, named};
use super::sheet::CardPage;
use crate::model::{Block, Editor, Look, Part};
use crate::start::Previews;
use crate::text::SafeText;

#[derive(Debug)]
pub(crate) struct Menu {
    choices: Vec<Choice>,
    chosen: usize,
    command: Option<SafeText>,
    pub sheet: CardPage,
    pub editing: Option<Editor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    ExactCommand,
    ExactFiles,
    ExactCall,
    /// All calls of one tool of an MCP server that runs in the sandbox.
    Tool,
    /// All calls of one tool of an MCP server, also in later sessions of this project.
    ToolInProject,
    Prefix {
        words: Vec<String>,
        count: usize,
    },
    Parts(Vec<Vec<String>>),
    Pattern(String),
    Project,
    GrantRoot(WirePath),
    Network,
    Page,
    Host(String),
}

impl Menu {
    pub(crate) fn new(
        request: &ServerRequest,
        project: &WirePath,
        previews: Previews,
        revision: u64,
    ) -> Self {
        let mut menu = Self {
            choices: choices(request, project),
            chosen: 0,
            command: request.command().map(beginning),
            sheet: CardPage::default(),
            editing: None,
        };
        menu.lay(previews, revision);
        menu
    }

    /// True if an approval of this request can cover later actions.
    pub(crate) const fn is_offered(request: &ServerRequest) -> bool {
        if let ServerRequest::ApplyPatchApproval(params) = request {
            return params.with.is_empty();
        }
        !matches!(
            request,
            ServerRequest::DeniedCommandApproval(_)
                | ServerRequest::HostApproval(_)
                | ServerRequest::ServerForm(_)
                | ServerRequest::AgentRightsApproval(_)
                | ServerRequest::PlanApproval(_)
        )
    }

    pub(crate) fn scope(&self) -> Option<SessionScope> {
        self.choices.get(self.chosen).map(|choice| match choice {
            Choice::ExactCommand | Choice::ExactFiles | Choice::ExactCall | Choice::Page => {
                SessionScope::Exact
            }
            Choice::Prefix { words, count } => {
                SessionScope::CommandPrefix(words.iter().take(*count).cloned().collect())
            }
            Choice::Parts(parts) => SessionScope::CommandPrefixes(parts.clone()),
            Choice::Pattern(pattern) => SessionScope::PathPattern(pattern.clone()),
            Choice::Project | Choice::GrantRoot(_) => SessionScope::GrantRoot,
            Choice::Network => SessionScope::Network,
            Choice::Tool => SessionScope::Tool,
            Choice::ToolInProject => SessionScope::ToolInProject,
            Choice::Host(_) => SessionScope::Host,
        })
    }

    pub(crate) fn choose(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(self.choices.len().saturating_sub(1));
    }

    /// Lengthens the selected prefix of a command by `by` words, or shortens it if `by` is negative.
    pub(crate) fn lengthen(&mut self, by: isize) {
        if let Some(Choice::Prefix { words, count }) = self.choices.get_mut(self.chosen) {
            *count = count.saturating_add_signed(by).clamp(1, words.len());
        }
    }

    pub(crate) fn edit(&mut self) {
        if let Some(Choice::Pattern(pattern)) = self.choices.get(self.chosen) {
            self.editing = Some(Editor::with(pattern.clone()));
        }
    }

    pub(crate) fn finish_editing(&mut self) {
        if let (Some(editor), Some(Choice::Pattern(pattern))) =
            (self.editing.take(), self.choices.get_mut(self.chosen))
            && !editor.is_empty()
        {
            editor.text().clone_into(pattern);
        }
    }

    pub(crate) fn has_prefix_chosen(&self) -> bool {
        matches!(self.choices.get(self.chosen), Some(Choice::Prefix { .. }))
    }

    pub(crate) fn has_pattern_chosen(&self) -> bool {
        matches!(self.choices.get(self.chosen), Some(Choice::Pattern(_)))
    }

    /// Lays out the menu, which must then be read again before an approval counts.
    pub(crate) fn lay(&mut self, previews: Previews, revision: u64) {
        let mut parts: Vec<_> =
            self.command.iter().map(|text| Part::new(text.clone(), Look::Command)).collect();
        for (n, choice) in self.choices.iter().enumerate() {
            let (mark, look) = if n == self.chosen { ("▸ ", Look::Heading) } else { ("", Look::Assistant) };
            let words = format!("{mark}{}", choice.words());
            parts.push(Part::new(SafeText::labelled(&words, &choice.name()), look));
        }
        if let Some(choice) = self.choices.get(self.chosen) {
            parts.push(fact("allows", choice.effect()));
            parts.extend(choice.previews(previews).iter().map(|text| fact("", text)));
        }
        self.sheet = CardPage::new(Block::of(parts), revision);
    }
}

impl Choice {
    const fn words(&self) -> &'static str {
        match self {
            Self::ExactCommand => "exactly this command",
            Self::ExactFiles => "any change to exactly these files",
            Self::ExactCall => "this tool with exactly these arguments",
            Self::Tool => "this tool with any arguments",
            Self::ToolInProject => "this tool with any arguments, always in this project",
            Self::Prefix { .. } => "commands that begin with: ",
            Self::Parts(parts) if parts.len() > 1 => "commands that begin with any of: ",
            Self::Parts(_) => "this command once, and commands that begin with: ",
            Self::Pattern(_) => "changes to files that match: ",
            Self::Project => "any change in this project (like :mode auto)",
            Self::GrantRoot(_) => "any change under ",
            Self::Network => "the network for every command (like :net on)",
            Self::Page => "exactly this page",
            Self::Host(_) => "pages of ",
        }
    }

    fn name(&self) -> Vec<u8> {
        match self {
            Self::Prefix { words, count } => shell_words(words.get(..*count).unwrap_or(words)).into_bytes(),
            Self::Parts(parts) => {
                let parts: Vec<_> = parts.iter().map(|words| shell_words(words)).collect();
                parts.join(" | ").into_bytes()
            }
            Self::Pattern(pattern) => pattern.clone().into_bytes(),
            Self::GrantRoot(path) => path.as_bytes().to_vec(),
            Self::Host(host) => host.clone().into_bytes(),
            Self::ExactCommand
            | Self::ExactFiles
            | Self::ExactCall
            | Self::Tool
            | Self::ToolInProject
            | Self::Project
            | Self::Network
            | Self::Page => Vec::new(),
        }
    }

    const fn effect(&self) -> &'static str {
        match self {
            Self::ExactCommand => "this command runs without asking; nothing else is allowed",
            Self::ExactFiles => "these files change without asking; nothing else is allowed",
            Self::ExactCall => "this call is made without asking; nothing else is allowed",
            Self::Tool => {
                "calls of this tool run without asking, with the server's access; other tools still ask"
            }
            Self::ToolInProject => {
                "your config.toml allows this tool in this project: calls run without asking, in later sessions too, until the tool's definition or the server's access changes"
            }
            Self::Prefix { .. } | Self::Parts(_) => {
                "matching commands run without asking; nothing else is allowed"
            }
            Self::Page => "this page is fetched without asking; nothing else is allowed",
            Self::Host(_) => "pages of this host are fetched without asking; commands cannot reach this host",
            Self::Pattern(_) => "matching files change without asking; nothing else is allowed",
            Self::Project | Self::GrantRoot(_) | Self::Network => {
                "everything that the agent does from now on, without asking"
            }
        }
    }

    fn previews(&self, previews: Previews) -> Vec<String> {
        match self {
            Self::Prefix { words, count } => words.get(..*count).map(previews.prefix).into_iter().collect(),
            Self::Parts(parts) => of_prefixes(parts, previews),
            Self::Pattern(pattern) => vec![(previews.pattern)(pattern)],
            _ => Vec::new(),
        }
    }
}

/// Returns the page about always allowing commands in the project, and about revoking this permission.
pub(crate) fn always_in_project(kept: &ProjectPrefixes, project: &WirePath, previews: Previews) -> Block {
    let heading = "always in this project: no question for commands that begin with";
    let mut parts = vec![Part::new(SafeText::line(heading), Look::Heading)];
    for words in &kept.prefixes {
        parts.push(Part::new(SafeText::exact(&shell_words(words)), Look::Command));
    }
    parts.extend(of_prefixes(&kept.prefixes, previews).iter().map(|text| fact("", text)));
    let table = format!("{}, table [project.\"{project}\"]", kept.file);
    parts.extend([
        fact("allows", "write in this project, once for each command; no network"),
        fact("asks", "before the network, other directories or variables are used"),
        fact("lasts", "in this session, and in all later sessions of this project"),
        named("saved in", table.as_bytes()),
        fact("undo", "delete the prefix from approvals.preapproved in that file; in this session :revoke"),
    ]);
    Block::of(parts)
}

/// Returns a preview for each command prefix; one for all if the previews differ in nothing but the prefix.
fn of_prefixes(prefixes: &[Vec<String>], previews: Previews) -> Vec<String> {
    let each: Vec<_> = prefixes.iter().map(|words| (previews.prefix)(words)).collect();
    let common: Vec<_> = each.iter().filter_map(|text| of_each(text)).collect();
    match common.split_first() {
        Some((first, others))
            if !others.is_empty()
                && common.len() == each.len()
                && others.iter().all(|text| text == first) =>
        {
            vec![first.clone()]
        }
        _ => each,
    }
}

/// Returns a preview with `each of these` instead of the prefix: "Matches `make …`, alone" becomes "Matches each of
/// these, alone". `None` if the preview contains no prefix.
fn of_each(preview: &str) -> Option<String> {
    let (before, named) = preview.split_once('`')?;
    let (_, after) = named.rsplit_once(" …`")?;
    Some(format!("{before}each of these{after}"))
}

fn beginning(command: &[String]) -> SafeText {
    const MOST: usize = 76;
    let text = bash(command).map_or_else(|| command.join(" "), str::to_owned);
    let cut = text.char_indices().nth(MOST).map(|(at, _)| at);
    SafeText::line(&cut.map_or_else(|| text.clone(), |at| format!("{}…", &text[..at])))
}

fn shell_words(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn choices(request: &ServerRequest, project: &WirePath) -> Vec<Choice> {
    let prefix = |words: &Option<Vec<String>>| {
        let words = words.clone().filter(|words| !words.is_empty())?;
        Some(Choice::Prefix { count: words.len(), words })
    };
    let parts = |parts: &[Vec<String>]| {
        let each = parts.iter().map(|part| vec![part.clone()]);
        let all = (parts.len() > 1).then(|| parts.to_vec());
        all.into_iter().chain(each).map(Choice::Parts).collect::<Vec<_>>()
    };
    let root = |root: &Option<WirePath>| {
        let root = root.clone()?;
        Some(if root == *project { Choice::Project } else { Choice::GrantRoot(root) })
    };
    match request {
        ServerRequest::ApplyPatchApproval(params) => {
            let paths = params.file_changes.0.keys();
            let pattern = pattern(paths, project).map(Choice::Pattern);
            [Choice::ExactFiles].into_iter().chain(pattern).chain(root(&params.grant_root)).collect()
        }
        ServerRequest::ExecCommandApproval(params) => {
            let more = prefix(&params.prefix).into_iter().chain(parts(&params.parts));
            let more = more.chain(root(&params.grant_root));
            [Choice::ExactCommand].into_iter().chain(more).collect()
        }
        ServerRequest::NetworkApproval(params) => {
            let more = prefix(&params.prefix).into_iter().chain(parts(&params.parts));
            let more = more.chain([Choice::Network]);
            [Choice::ExactCommand].into_iter().chain(more).collect()
        }
        ServerRequest::FetchApproval(params) => vec![Choice::Host(params.host.clone()), Choice::Page],
        ServerRequest::ExternalToolApproval(params) => {
            let tool = params.access.is_some().then_some(Choice::Tool);
            let always = tool.is_some() && params.definition.is_some();
            let always = always.then_some(Choice::ToolInProject);
            [Choice::ExactCall].into_iter().chain(tool).chain(always).collect()
        }
        // A sub-agent, a plan and a form can only be approved once; a denial and a host offer a single scope.
        ServerRequest::DeniedCommandApproval(_)
        | ServerRequest::HostApproval(_)
        | ServerRequest::ServerForm(_)
        | ServerRequest::AgentRightsApproval(_)
        | ServerRequest::PlanApproval(_) => Vec::new(),
    }
}

/// Returns a suggested pattern: the path of a single file, or a pattern for all files in the common directory. `None`
/// for paths outside of the project and for names that are not UTF-8.
fn pattern<'a>(paths: impl Iterator<Item = &'a WirePath>, project: &WirePath) -> Option<String> {
    let relative: Option<Vec<&Path>> =
        paths.map(|path| path.as_path().strip_prefix(project.as_path()).ok()).collect();
    let relative = relative?;
    let (first, rest) = relative.split_first()?;
    if rest.is_empty() {
        return first.to_str().and_then(escaped);
    }
    let mut shared = first.parent()?;
    while !rest.iter().all(|path| path.starts_with(shared)) {
        shared = shared.parent()?;
    }
    let directory = escaped(shared.to_str()?)?;
    Some(if directory.is_empty() { "**".to_owned() } else { format!("{directory}/**") })
}

/// Escapes a path for a pattern; `None` for a path with a backslash, which patterns cannot contain.
fn escaped(path: &str) -> Option<String> {
    let one = |c: char| match c {
        '\\' => None,
        '*' | '?' | '[' | '{' | '}' => Some(format!("[{c}]")),
        c => Some(c.to_string()),
    };
    path.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(words: &[String]) -> String {
        format!("Matches `{} …`, alone.", words.join(" "))
    }

    const PREVIEWS: Previews = Previews { prefix, pattern: str::to_owned };

    #[test]
    fn previews_of_several_prefixes_are_one() {
        let all = |texts: &[&str]| {
            let words: Vec<_> = texts.iter().map(|text| vec![(*text).to_owned()]).collect();
            of_prefixes(&words, PREVIEWS)
        };
        assert_eq!(all(&["make"]), ["Matches `make …`, alone."]);
        assert_eq!(all(&["make", "cargo test"]), ["Matches each of these, alone."]);
        // Backticks in a prefix cannot add words to the preview.
        assert_eq!(all(&["make", "x …`, anything `y"]), ["Matches each of these, alone."]);
    }
}
