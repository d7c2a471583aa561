//! The words of a project to agents: its instructions, those of its directories, and its skills. The worker finds them by calls of our own, sent
//! together; nobody but it opens anything in a project.

use std::collections::{BTreeMap, BTreeSet};

use ipc::id::CallId;
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::tool::{Matches, ReadFile, SearchFiles, ToolCall, ToolOutput};
use tui::text::SafeText;

use crate::core::ContextItem;

/// The project's own instructions.
pub(super) const INSTRUCTIONS: &str = "AGENTS.md";

/// The file that counts where there are none.
const FALLBACK: &str = "CLAUDE.md";

/// The directory of a project's skills, with one directory for each.
const SKILLS: &str = ".agents/skills";

/// The most lines of instructions that the model is given.
const LINES: u64 = 400;

/// The most skills, and the most directories with instructions of their own, that the model is told of.
const MOST: usize = 50;

/// The most characters of a skill's name, and of its description.
const LONGEST: (usize, usize) = (64, 300);

/// The first of the calls; the core numbers its own from 1.
const FIRST: u64 = (1 << 63) + 1;

/// The calls that look for them, by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InstructionsLook {
    Instructions,
    Fallback,
    Nested,
    Skills,
}

const LOOKS: [InstructionsLook; 4] = [
    InstructionsLook::Instructions,
    InstructionsLook::Fallback,
    InstructionsLook::Nested,
    InstructionsLook::Skills,
];

impl InstructionsLook {
    const fn id(self) -> CallId {
        CallId(FIRST + self as u64)
    }

    fn call(self) -> ToolCall {
        let read =
            |path: &str| ReadFile { path: path.into(), offset: None, limit: Some(LINES), inside: true };
        match self {
            Self::Instructions => ToolCall::ReadFile(read(INSTRUCTIONS)),
            Self::Fallback => ToolCall::ReadFile(read(FALLBACK)),
            Self::Nested => {
                // A file without a line says nothing.
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
}

/// The search for what a project says, while it goes on.
#[derive(Debug, Default)]
pub(super) struct InstructionsLooking {
    open: BTreeSet<InstructionsLook>,
    found: BTreeMap<InstructionsLook, String>,
}

impl InstructionsLooking {
    /// A search, and the calls to make. Only an agent of the top level looks through the whole project.
    pub(super) fn begin(whole: bool) -> (Self, Vec<(CallId, ToolCall)>) {
        let looks = LOOKS.into_iter().filter(|look| whole || *look <= InstructionsLook::Fallback);
        let open: BTreeSet<_> = looks.collect();
        let calls = open.iter().map(|look| (look.id(), look.call())).collect();
        (Self { open, found: BTreeMap::new() }, calls)
    }

    /// True of a call of such a search.
    pub(super) fn is_one(call: CallId) -> bool {
        LOOKS.into_iter().any(|look| look.id() == call)
    }

    /// Takes an answer in; true if it was the last.
    pub(super) fn take(&mut self, call: CallId, outcome: &CallOutcome) -> bool {
        let Some(look) = LOOKS.into_iter().find(|look| look.id() == call) else { return false };
        let text = match outcome {
            CallOutcome::Done(ToolOutput::File(file)) => Some(&file.text),
            CallOutcome::Done(ToolOutput::Matches(Matches { text, .. })) => Some(text),
            _ => None,
        };
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.found.insert(look, text.clone());
        }
        self.open.remove(&look) && self.open.is_empty()
    }

    /// The findings, as the model is told of them.
    pub(super) fn items(&self) -> Vec<ContextItem> {
        let item = |source: &str, text: String| ContextItem { source: source.to_owned(), text };
        let found = |look| self.found.get(&look);
        let own = found(InstructionsLook::Instructions).map(|text| item(INSTRUCTIONS, text.clone()));
        let own = own.or_else(|| found(InstructionsLook::Fallback).map(|text| item(FALLBACK, text.clone())));
        let nested = found(InstructionsLook::Nested).and_then(|text| nested(text));
        let skills = found(InstructionsLook::Skills).and_then(|text| skills(text));
        let listed = [("nested instructions", nested), ("skills", skills)];
        let listed = listed.into_iter().filter_map(|(source, text)| Some(item(source, text?)));
        own.into_iter().chain(listed).collect()
    }
}

/// The directories that have instructions of their own: where they are, and no word of them.
fn nested(matches: &str) -> Option<String> {
    // The worker's word: a line that names no such file is no directory's.
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

/// The skills: name, description and path of each, by the lines of their heads.
fn skills(matches: &str) -> Option<String> {
    let mut skills: BTreeMap<&str, (Option<&str>, Option<&str>)> = BTreeMap::new();
    for (path, text) in matches.lines().filter_map(split) {
        let skill = skills.entry(path).or_default();
        // The head of a file comes first: what stands further down is the skill's own text.
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

/// A name of the project's in a line of ours: nothing in it begins another one, or commands a terminal.
fn named(text: &str) -> String {
    SafeText::line(text).as_str().to_owned()
}

fn more(all: usize) -> String {
    let more = all.saturating_sub(MOST);
    if more == 0 { String::new() } else { format!("\n(and {more} more)") }
}

/// A line of a search, `path:line:text`.
fn split(line: &str) -> Option<(&str, &str)> {
    // A path may have colons: the number is the first part between two that is one.
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
    use ipc::tool::{FileText, ToolError, ToolErrorKind};

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
        let (mut looking, calls) = InstructionsLooking::begin(true);
        let mut last = false;
        for ((call, _), outcome) in calls.iter().zip(&outcomes) {
            assert!(!last, "it goes on until the last answer");
            last = looking.take(*call, outcome);
        }
        assert!(last);
        looking.items()
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
    fn a_sub_agent_looks_for_the_projects_own_file_alone() {
        let (_, calls) = InstructionsLooking::begin(false);
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|(call, _)| InstructionsLooking::is_one(*call)));
        assert!(!InstructionsLooking::is_one(CallId(1)));
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
