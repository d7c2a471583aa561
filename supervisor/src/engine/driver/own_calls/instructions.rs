//! Search for instructions (AGENTS.md) in a project and above it, and for its skills, by calls to the worker.

use std::collections::{BTreeMap, BTreeSet};

use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::tool::{FileText, Matches, ReadFile, SearchFiles, ToolCall, ToolErrorKind, ToolOutput};
use tui::text::SafeText;

use agent::core::ContextItem;

/// File with the project's own instructions.
pub(super) const INSTRUCTIONS: &str = "AGENTS.md";

/// File used if [`INSTRUCTIONS`] does not exist.
const FALLBACK: &str = "CLAUDE.md";

/// Directory of a project's skills, each in a directory of its own.
const SKILLS: &str = ".agents/skills";

/// Maximum number of lines of one file of instructions that the model gets.
const LINES: u64 = 400;

/// Maximum number of skills that the model gets, and of directories with instructions of their own.
const MOST: usize = 50;

/// Maximum numbers of characters of a skill's name and of its description.
const LONGEST: (usize, usize) = (64, 300);

/// Maximum number of directories above the project whose instructions count.
const MOST_ABOVE: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
enum InstructionsFile {
    Above(WirePath),
    Instructions,
    Fallback,
    Nested,
    Skills,
}

/// Files and directories to read within the project, in the order of the calls. Files above the project follow.
const WITHIN: [InstructionsFile; 4] = [
    InstructionsFile::Instructions,
    InstructionsFile::Fallback,
    InstructionsFile::Nested,
    InstructionsFile::Skills,
];

impl InstructionsFile {
    fn call(&self) -> ToolCall {
        let read = |path: WirePath| {
            let inside = !matches!(self, Self::Above(_));
            ToolCall::ReadFile(ReadFile { path, offset: None, limit: Some(LINES), inside })
        };
        match self {
            Self::Above(path) => read(path.clone()),
            Self::Instructions => read(INSTRUCTIONS.into()),
            Self::Fallback => read(FALLBACK.into()),
            Self::Nested => {
                // Only files with a non-blank line match.
                let glob = Some(format!("**/*/{INSTRUCTIONS}"));
                ToolCall::SearchFiles(SearchFiles {
                    pattern: r"\S".to_owned(),
                    path: None,
                    glob,
                    inside: true,
                })
            }
            Self::Skills => ToolCall::SearchFiles(SearchFiles {
                pattern: "^(name|description):".to_owned(),
                path: Some(WirePath::from(SKILLS)),
                glob: Some("*/SKILL.md".to_owned()),
                inside: true,
            }),
        }
    }

    /// Returns the name of the file or directory, for the user and for the model.
    fn source(&self) -> String {
        match self {
            Self::Above(path) => path.to_string(),
            Self::Instructions => INSTRUCTIONS.to_owned(),
            Self::Fallback => FALLBACK.to_owned(),
            Self::Nested => "nested instructions".to_owned(),
            Self::Skills => "skills".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct InstructionsSearch {
    files: Vec<InstructionsFile>,
    open: BTreeSet<u8>,
    found: BTreeMap<u8, String>,
    /// Lines for the user about files that were not read completely, by the indices of the calls.
    remarks: BTreeMap<u8, String>,
}

impl InstructionsSearch {
    /// Begins a search. Returns it with its calls and their indices. `above` are files above the project, from the
    /// repository's root down. `whole` is true for a top-level agent: only then directories and skills are searched.
    pub(super) fn begin(whole: bool, above: Vec<WirePath>) -> (Self, Vec<(u8, ToolCall)>) {
        let above = above.into_iter().take(MOST_ABOVE).map(InstructionsFile::Above);
        let files: Vec<_> = WITHIN.into_iter().chain(above).collect();
        let is_wanted = |sought: &InstructionsFile| {
            whole || !matches!(sought, InstructionsFile::Nested | InstructionsFile::Skills)
        };
        let wanted: Vec<_> = (0..).zip(&files).filter(|(_, sought)| is_wanted(sought)).collect();
        let open = wanted.iter().map(|(at, _)| *at).collect();
        let calls = wanted.iter().map(|(at, sought)| (*at, sought.call())).collect();
        (Self { files, open, ..Self::default() }, calls)
    }

    /// Takes the result of the call at this index. True if no other call is open.
    pub(super) fn take(&mut self, at: u8, outcome: &CallOutcome) -> bool {
        if !self.open.contains(&at) {
            return false;
        }
        let sought = &self.files[usize::from(at)];
        let source = sought.source();
        // A file above the project exists, even if the sandbox hides it and the worker does not find it.
        let is_there = matches!(sought, InstructionsFile::Above(_));
        let text = match outcome {
            CallOutcome::Done(ToolOutput::File(file)) => {
                self.remarks.extend(cut_short(&source, file).map(|remark| (at, remark)));
                Some(&file.text)
            }
            CallOutcome::Done(ToolOutput::Matches(Matches { text, .. })) => Some(text),
            CallOutcome::Failed(error) if is_there || error.kind != ToolErrorKind::NotFound => {
                self.remarks.insert(at, format!("{source} was not read: {}", error.message));
                None
            }
            _ => None,
        };
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.found.insert(at, text.clone());
        }
        self.open.remove(&at) && self.open.is_empty()
    }

    fn found(&self, sought: &InstructionsFile) -> Option<&String> {
        let (at, _) = (0..).zip(&self.files).find(|(_, other)| *other == sought)?;
        self.found.get(&at)
    }

    /// Returns the texts found, for the model, the most general first.
    pub(super) fn items(&self) -> Vec<ContextItem> {
        let item = |sought: &InstructionsFile, text: String| ContextItem { source: sought.source(), text };
        let is_above = |sought: &&InstructionsFile| matches!(sought, InstructionsFile::Above(_));
        let above = self.files.iter().filter(is_above);
        let above =
            above.filter_map(|sought| Some(item(sought, told_from_above(sought, self.found(sought)?))));
        let own = [InstructionsFile::Instructions, InstructionsFile::Fallback];
        let own = own.iter().find_map(|sought| Some(item(sought, self.found(sought)?.clone())));
        let nested = self.found(&InstructionsFile::Nested).and_then(|text| nested(text));
        let skills = self.found(&InstructionsFile::Skills).and_then(|text| skills(text));
        let listed = [(InstructionsFile::Nested, nested), (InstructionsFile::Skills, skills)];
        let listed = listed.into_iter().filter_map(|(sought, text)| Some(item(&sought, text?)));
        above.chain(own).chain(listed).collect()
    }

    /// Returns one line for the user about each file that was not read completely and whose text counts.
    pub(super) fn remarks(&self) -> Vec<String> {
        let own = self.found(&InstructionsFile::Instructions).is_some();
        let counts = |at: &u8| !own || self.files[usize::from(*at)] != InstructionsFile::Fallback;
        self.remarks.iter().filter(|(at, _)| counts(at)).map(|(_, remark)| remark.clone()).collect()
    }
}

/// Returns a line about a file of which the model gets only the beginning; `None` if it gets everything.
fn cut_short(source: &str, file: &FileText) -> Option<String> {
    let given = file.lines;
    match file.total_lines {
        Some(all) if all <= given => None,
        Some(all) => {
            Some(format!("{source} is too long: the agent gets only the first {given} of its {all} lines"))
        }
        None => Some(format!("{source} is too long: the agent gets only its first {given} lines")),
    }
}

fn told_from_above(sought: &InstructionsFile, text: &str) -> String {
    format!("Instructions of the repository, from {}:\n{text}", sought.source())
}

fn nested(matches: &str) -> Option<String> {
    // The worker may send anything: only lines about such a file count.
    let is_one = |path: &&str| path.ends_with("/AGENTS.md");
    let paths: BTreeSet<_> = matches.lines().filter_map(|line| Some(split(line)?.0)).filter(is_one).collect();
    if paths.is_empty() {
        return None;
    }
    let listed: Vec<_> = paths.iter().take(MOST).map(|path| format!("- {}", named(path))).collect();
    Some(format!(
        "Directories with instructions of their own: read the file before you change anything below its directory.\n{}{}",
        listed.join("\n"),
        more(paths.len())
    ))
}

/// Returns a list of the skills with name, description and path, from lines of their files; `None` if it is empty.
fn skills(matches: &str) -> Option<String> {
    let mut skills: BTreeMap<&str, (Option<&str>, Option<&str>)> = BTreeMap::new();
    for (path, text) in matches.lines().filter_map(split) {
        let skill = skills.entry(path).or_default();
        // The first match is in the head of the file; later ones are in its text.
        match text.split_once(':').map(|(field, value)| (field, value.trim())) {
            Some(("name", name)) if skill.0.is_none() => skill.0 = Some(name),
            Some(("description", description)) if skill.1.is_none() => skill.1 = Some(description),
            _ => {}
        }
    }
    let complete: Vec<_> = skills
        .iter()
        .filter_map(|(path, (name, description))| Some((path, (*name)?, (*description)?)))
        .collect();
    if complete.is_empty() {
        return None;
    }
    let line = |(path, name, description): &(&&str, &str, &str)| {
        let (name, description) = (cut(name, LONGEST.0), cut(description, LONGEST.1));
        format!("- {}: {} ({})", named(&name), named(&description), named(path))
    };
    let listed: Vec<_> = complete.iter().take(MOST).map(line).collect();
    Some(format!(
        "Skills of this project: read the file before you do such work.\n{}{}",
        listed.join("\n"),
        more(complete.len())
    ))
}

/// Replaces line breaks and control characters in text of the project, which is then safe within a line.
fn named(text: &str) -> String {
    SafeText::line(text).as_str().to_owned()
}

fn more(all: usize) -> String {
    let more = all.saturating_sub(MOST);
    if more == 0 { String::new() } else { format!("\n(and {more} more)") }
}

/// Splits a search result `path:line:text` into path and text.
fn split(line: &str) -> Option<(&str, &str)> {
    // As a path may have colons, the line number is the first part that is a number.
    let mut from = 0;
    while let Some(at) = line.get(from..)?.find(':').map(|at| from + at) {
        let rest = line.get(at + 1..)?;
        if let Some((number, text)) = rest.split_once(':')
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Some((line.get(..at)?, text));
        }
        from = at + 1;
    }
    None
}

fn cut(text: &str, most: usize) -> String {
    let text = text.trim_matches(['"', '\'']);
    let kept: String = text.chars().take(most).collect();
    if kept.len() < text.len() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use ipc::tool::ToolError;

    use super::*;

    fn file(text: &str) -> CallOutcome {
        CallOutcome::Done(ToolOutput::File(FileText {
            text: text.to_owned(),
            first_line: 1,
            lines: 1,
            total_lines: Some(1),
            encoding: "UTF-8".to_owned(),
            notes: vec![],
        }))
    }

    fn matches(text: &str) -> CallOutcome {
        let (matches, files, searched) = (1, 1, 1);
        let text = text.to_owned();
        CallOutcome::Done(ToolOutput::Matches(Matches { text, matches, files, searched, truncated: None }))
    }

    fn missing() -> CallOutcome {
        let message = "no such file".to_owned();
        CallOutcome::Failed(ToolError { kind: ToolErrorKind::NotFound, message, access: None })
    }

    fn found(outcomes: [CallOutcome; 4]) -> Vec<ContextItem> {
        let (mut search, calls) = InstructionsSearch::begin(true, Vec::new());
        let mut last = false;
        for ((at, _), outcome) in calls.iter().zip(&outcomes) {
            assert!(!last, "it goes on until the last answer");
            last = search.take(*at, outcome);
        }
        assert!(last);
        search.items()
    }

    #[test]
    fn the_projects_own_file_counts_and_another_one_only_without_it() {
        let sources = |own: CallOutcome, other: CallOutcome| -> Vec<_> {
            let items = found([own, other, missing(), missing()]);
            items.into_iter().map(|item| (item.source, item.text)).collect()
        };
        let item = |source: &str, text: &str| vec![(source.to_owned(), text.to_owned())];
        assert_eq!(sources(file("a"), file("b")), item("AGENTS.md", "a"));
        assert_eq!(sources(missing(), file("b")), item("CLAUDE.md", "b"));
        assert_eq!(sources(file(" \n"), file("b")), item("CLAUDE.md", "b"));
        assert_eq!(sources(missing(), missing()), []);
    }

    #[test]
    fn directories_and_skills_are_listed_without_their_texts() {
        let nested = "src/a/AGENTS.md:1:# Tabs\nsrc/a/AGENTS.md:2:more\nb/AGENTS.md:3:x\nDo as I say:4:x\n\
            c\u{1b}[2J\u{202e}/AGENTS.md:1:x\n";
        let skills = ".agents/skills/pdf/SKILL.md:2:name: pdf\n.agents/skills/pdf/SKILL.md:3:description: \"Reads PDFs.\"\n\
            .agents/skills/pdf/SKILL.md:9:name: a line of its text\n.agents/skills/half/SKILL.md:2:name: half\n";
        let items = found([missing(), missing(), matches(nested), matches(skills)]);
        let told: Vec<_> = items.iter().map(|item| item.text.as_str()).collect();
        insta::assert_snapshot!(told.join("\n\n"), @r"
        Directories with instructions of their own: read the file before you change anything below its directory.
        - b/AGENTS.md
        - c\u{1b}[2J\u{202e}/AGENTS.md
        - src/a/AGENTS.md

        Skills of this project: read the file before you do such work.
        - pdf: Reads PDFs. (.agents/skills/pdf/SKILL.md)
        ");
    }

    #[test]
    fn a_sub_agent_searches_for_the_projects_own_file_alone() {
        let (_, calls) = InstructionsSearch::begin(false, Vec::new());
        assert_eq!(calls.len(), 2);
    }

    #[test]
    fn what_is_above_comes_first_and_the_projects_own_last() {
        let above = ["/r/AGENTS.md", "/r/a/AGENTS.md", "/r/a/b/AGENTS.md"].map(WirePath::from).to_vec();
        let (mut search, calls) = InstructionsSearch::begin(false, above);
        let answers = [file("own"), missing(), file("root"), missing(), file("nearer")];
        for ((at, _), answer) in calls.iter().zip(&answers) {
            search.take(*at, answer);
        }
        let told: Vec<_> = search.items().into_iter().map(|item| (item.source, item.text)).collect();
        let sources: Vec<_> = told.iter().map(|(source, _)| source.as_str()).collect();
        assert_eq!(sources, ["/r/AGENTS.md", "/r/a/b/AGENTS.md", "AGENTS.md"]);
        assert_eq!(told[0].1, "Instructions of the repository, from /r/AGENTS.md:\nroot");
        assert_eq!(search.remarks(), ["/r/a/AGENTS.md was not read: no such file"]);
    }

    #[test]
    fn what_is_there_and_not_given_is_told() {
        let refused = || {
            let message = "it is a directory".to_owned();
            CallOutcome::Failed(ToolError { kind: ToolErrorKind::WrongKind, message, access: None })
        };
        let long = |total_lines| {
            let CallOutcome::Done(ToolOutput::File(text)) = file("a") else { unreachable!() };
            CallOutcome::Done(ToolOutput::File(FileText { lines: 400, total_lines, ..text }))
        };
        for (own, other, expected) in [
            (refused(), missing(), vec!["AGENTS.md was not read: it is a directory"]),
            (missing(), refused(), vec!["CLAUDE.md was not read: it is a directory"]),
            (file("a"), refused(), vec![]),
            (missing(), missing(), vec![]),
            (
                long(Some(401)),
                missing(),
                vec!["AGENTS.md is too long: the agent gets only the first 400 of its 401 lines"],
            ),
            (long(None), missing(), vec!["AGENTS.md is too long: the agent gets only its first 400 lines"]),
            (long(Some(400)), missing(), vec![]),
        ] {
            let (mut search, calls) = InstructionsSearch::begin(true, Vec::new());
            for ((at, _), answer) in calls.iter().zip([own, other, missing(), missing()]) {
                search.take(*at, &answer);
            }
            assert_eq!(search.remarks(), expected);
        }
    }

    #[test]
    fn no_more_are_told_than_a_model_has_use_for() {
        let lines: Vec<_> = (0..80).map(|n| format!("d{n}/AGENTS.md:1:x")).collect();
        let text = nested(&lines.join("\n")).unwrap();
        assert!(text.lines().count() == MOST + 2 && text.ends_with("(and 30 more)"), "{text}");
        let long = format!("s/SKILL.md:1:name: {0}\ns/SKILL.md:2:description: {0}\n", "ü".repeat(1000));
        assert!(skills(&long).unwrap().chars().count() < 500);
    }
}
