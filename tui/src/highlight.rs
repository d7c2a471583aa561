//! Syntax highlighting: comments, strings, keywords and other kinds of text in code.
//!
//! The regular expressions of a grammar take tens of milliseconds to compile, so code is first drawn without colours.
//! [`CodeToRead`] holds some lines, which the caller highlights outside of the drawing loop.

use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};

use ipc::id::AgentId;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::text::Ink;

pub(crate) const TOGETHER: usize = 60;

/// Maximum length of a highlighted line in bytes. Some grammars are slow on longer lines.
const LONGEST: usize = 300;

const NAME: usize = 32;

/// Maximum number of grammars in use. Each takes 5 to 20 MiB after its regular expressions are compiled.
const GRAMMARS_USED: usize = 4;

static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

static USED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Replacements of grammars, by name. Grammars of 50 MiB get smaller ones; slow ones, for logs, get none.
const INSTEAD: [(&str, &str); 5] = [
    ("TypeScript", "JavaScript"),
    ("TypeScriptReact", "JavaScript"),
    ("SystemVerilog", "Verilog"),
    ("log", "Plain Text"),
    ("syslog", "Plain Text"),
];

/// Kinds of text by prefixes of syntax scopes; a later entry takes precedence.
static KINDS: LazyLock<Vec<(Scope, Ink)>> = LazyLock::new(|| {
    let kinds = [
        ("comment", Ink::Comment),
        ("string", Ink::Literal),
        ("constant", Ink::Constant),
        ("keyword", Ink::Keyword),
        ("storage", Ink::Keyword),
        ("keyword.operator", Ink::Plain),
        ("entity.name", Ink::Name),
        ("support.function", Ink::Name),
        ("support.type", Ink::Name),
        ("variable.function", Ink::Name),
    ];
    kinds.into_iter().filter_map(|(scope, ink)| Some((Scope::new(scope).ok()?, ink))).collect()
});

/// Byte ranges of a line with their kinds of text; plain text is omitted.
pub(crate) type Kinds = Vec<(Range<usize>, Ink)>;

/// Lines of code to highlight. [`read`](Self::read) is slow and must not be called in the drawing loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeToRead {
    pub(crate) place: Place,
    pub(crate) number: u64,
    pub(crate) unread: Unread,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRead {
    pub(crate) place: Place,
    pub(crate) number: u64,
    pub(crate) kinds: Vec<Kinds>,
    /// Parser state with which the following lines are highlighted; `None` if they cannot be highlighted.
    pub(crate) readers: Option<Readers>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Transcript(AgentId, usize, usize),
    /// Code in an approval request: number of the request and index of the part.
    Card(u64, usize),
    /// Code on a page: revision of the page and index of the part.
    Page(u64, usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub language: String,
    pub readers: Option<Readers>,
    pub lines: Vec<(Side, String)>,
}

pub(crate) type Readers = Box<[Reader; 2]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
    Both,
    /// Lines of the file that are left out between two hunks.
    Gap,
    None,
}

impl CodeToRead {
    pub fn read(self) -> CodeRead {
        let Self { place, number, unread } = self;
        let Unread { language, readers, lines } = unread;
        let mut readers = readers.or_else(|| readers_of(&language));
        let mut kinds = Vec::with_capacity(lines.len());
        for (side, line) in lines {
            if side == Side::Gap {
                readers = readers_of(&language);
            }
            let read = readers.as_mut().and_then(|readers| readers_read(readers, side, &line));
            if read.is_none() {
                readers = None;
            }
            kinds.push(read.unwrap_or_default());
        }
        CodeRead { place, number, kinds, readers }
    }
}

fn readers_of(language: &str) -> Option<Readers> {
    let reader = Reader::new(language)?;
    Some(Box::new([reader.clone(), reader]))
}

fn readers_read([before, after]: &mut [Reader; 2], side: Side, line: &str) -> Option<Kinds> {
    match side {
        Side::Before => before.line(line),
        Side::After => after.line(line),
        Side::Both => before.line(line).and_then(|_| after.line(line)),
        Side::Gap | Side::None => Some(Kinds::new()),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    state: ParseState,
    scopes: ScopeStack,
}

impl Reader {
    fn new(language: &str) -> Option<Self> {
        let is_name = !language.is_empty() && language.len() <= NAME;
        let grammar = is_name.then(|| GRAMMARS.find_syntax_by_token(language)).flatten()?;
        let instead = INSTEAD.iter().find(|(name, _)| *name == grammar.name);
        let grammar = instead.map_or(Some(grammar), |(_, instead)| GRAMMARS.find_syntax_by_name(instead))?;
        is_used(grammar).then(|| Self { state: ParseState::new(grammar), scopes: ScopeStack::new() })
    }

    fn line(&mut self, line: &str) -> Option<Kinds> {
        if line.len() > LONGEST {
            return None;
        }
        let ops = self.state.parse_line(line, &GRAMMARS).ok()?;
        let mut kinds = Vec::new();
        let mut from = 0;
        for (at, op) in ops {
            if at > from {
                kinds.push((from..at, self.ink()));
                from = at;
            }
            self.scopes.apply(&op).ok()?;
        }
        kinds.push((from..line.trim_end_matches('\n').len(), self.ink()));
        kinds.retain(|(range, ink)| {
            *ink != Ink::Plain && range.start < range.end && line.get(range.clone()).is_some()
        });
        Some(kinds)
    }

    /// Returns the kind of text at the current position. The innermost scope for which a kind is known decides.
    fn ink(&self) -> Ink {
        let kind = |scope: &Scope| {
            KINDS.iter().rev().find(|(kind, _)| kind.is_prefix_of(*scope)).map(|(_, ink)| *ink)
        };
        self.scopes.scopes.iter().rev().find_map(kind).unwrap_or_default()
    }
}

/// True if the grammar is in use already, or if fewer than [`GRAMMARS_USED`] grammars are in use.
fn is_used(grammar: &SyntaxReference) -> bool {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = used.contains(&grammar.name);
    if !is_known && used.len() < GRAMMARS_USED {
        used.push(grammar.name.clone());
        return true;
    }
    is_known
}

/// Returns the extension of a file's name; the whole name if there is no extension.
pub(crate) fn language_of(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let end = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    String::from_utf8_lossy(end).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(language: &str, lines: &[(Side, &str)]) -> CodeRead {
        let lines = lines.iter().map(|(side, line)| (*side, (*line).to_owned())).collect();
        let unread = Unread { language: language.to_owned(), readers: None, lines };
        CodeToRead { place: Place::Card(0, 0), number: 0, unread }.read()
    }

    fn kinds<'a>(line: &'a str, kinds: &Kinds) -> Vec<(&'a str, Ink)> {
        kinds.iter().map(|(range, ink)| (&line[range.clone()], *ink)).collect()
    }

    #[test]
    fn code_has_kinds_that_go_on_over_lines_and_apart_for_both_sides() {
        let lines = [
            (Side::Both, "fn add() {\n"),
            (Side::Before, "/* old\n"),
            (Side::After, "    let x = 12; // \"\u{6f22}\"\n"),
            (Side::Before, "let */ 1\n"),
            (Side::Gap, "⋮\n"),
            (Side::Before, "\"text\"\n"),
        ];
        let read = read("rs", &lines);
        let of = |n: usize| kinds(lines[n].1, &read.kinds[n]);
        assert_eq!(of(0)[..2], [("fn", Ink::Keyword), ("add", Ink::Name)]);
        assert!(of(1).iter().all(|(_, ink)| *ink == Ink::Comment) && !of(1).is_empty());
        assert!(
            of(2).contains(&("let", Ink::Keyword)) && of(2).contains(&("12", Ink::Constant)),
            "{:?}",
            of(2)
        );
        assert!(
            of(3).contains(&("1", Ink::Constant)) && !of(3).contains(&("let", Ink::Keyword)),
            "{:?}",
            of(3)
        );
        assert!(of(5).iter().all(|(_, ink)| *ink == Ink::Literal), "a gap begins anew: {:?}", of(5));
        assert!(read.readers.is_some());
    }

    #[test]
    fn what_cannot_be_read_stays_plain() {
        let long = ["x = \"", &"(".repeat(LONGEST), "\"\n"].concat();
        let too_long = read("rs", &[(Side::After, &long), (Side::After, "let x;\n")]);
        assert_eq!(too_long.kinds, [vec![], vec![]]);
        assert!(too_long.readers.is_none());
        for language in ["", "no language", "../../etc/passwd", &"x".repeat(1 << 20)] {
            assert!(read(language, &[(Side::After, "let x;\n")]).readers.is_none());
        }
    }

    #[test]
    fn few_grammars_are_used_and_none_that_takes_much() {
        let names = INSTEAD.iter().flat_map(|(name, instead)| [name, instead]);
        let known = names.filter(|name| GRAMMARS.find_syntax_by_name(name).is_some()).count();
        assert_eq!(known, 2 * INSTEAD.len());
        for language in ["rs", "ts", "json", "toml", "ini", "diff", "go"] {
            drop(Reader::new(language));
        }
        let used = USED.lock().unwrap().clone();
        assert!(used.len() == GRAMMARS_USED && !used.contains(&"TypeScript".to_owned()), "{used:?}");
        assert_eq!(language_of(b"/p/src/a.tar.rs"), "rs");
        assert_eq!(language_of(b"/p/Makefile"), "Makefile");
    }
}
