use std::cmp::Reverse;
use std::time::Duration;

use ipc::path::WirePath;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::{Mode, Model, OfferedCommands};
use crate::moment::UiTime;

const OFFERED: usize = 100;

const ROWS: usize = 10;

/// Maximum length in bytes of the typed part of a file name.
const LONGEST: usize = 256;

/// Age from which the list of files is requested again.
const OLD: Duration = Duration::from_secs(10);

/// Characters that represent long pastes in the text of the prompt.
const MARKS: std::ops::RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

#[derive(Debug, Default)]
pub(crate) struct Files {
    names: Vec<String>,
    /// True if `names` does not contain all files of the project.
    cut: bool,
    failed: Option<String>,
    asked: Option<UiTime>,
    awaited: bool,
    word: Option<(usize, String)>,
    found: Vec<usize>,
    chosen: usize,
    /// True if the person closed the list of files for the current word.
    closed: bool,
}

impl Files {
    pub(crate) fn listed(&mut self, names: Vec<WirePath>, cut: bool, failed: Option<String>) {
        self.awaited = false;
        self.failed = failed;
        if self.failed.is_none() {
            // A name that is not UTF-8 cannot be written in a message.
            let texts = names.into_iter().filter_map(|name| String::from_utf8(name.as_bytes().to_vec()).ok());
            self.names = texts.collect();
            self.names
                .sort_by_cached_key(|name| (name.matches('/').count(), name.starts_with('.'), name.clone()));
            self.cut = cut;
        }
        self.look_up();
    }

    /// Records the word at the caret, with its position; `None` if the word does not start with `@`. Returns true if
    /// the caller should request the file names: a new word has begun, and the last request is too long ago.
    pub(crate) fn follow(&mut self, word: Option<(usize, String)>, now: UiTime) -> bool {
        if word == self.word {
            return false;
        }
        let place = |word: &Option<(usize, String)>| word.as_ref().map(|(start, _)| *start);
        let begins = word.is_some() && place(&word) != place(&self.word);
        self.closed &= place(&word) == place(&self.word);
        self.word = word;
        self.look_up();
        let asks = begins && self.asked.is_none_or(|asked| now.since(asked) >= OLD);
        if asks {
            (self.asked, self.awaited) = (Some(now), true);
        }
        asks
    }

    const fn is_open(&self) -> bool {
        self.word.is_some() && !self.closed
    }

    pub(crate) const fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn offered(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|at| self.names.get(*at)).map(String::as_str)
    }

    /// Index of the selected file name among the offered ones; `None` if no name is offered.
    pub(crate) fn chosen(&self) -> Option<usize> {
        self.found.len().checked_sub(1).map(|last| self.chosen.min(last))
    }

    /// Returns the selected file name as it is written in a message: `@src/main.rs `.
    pub(crate) fn chosen_mention(&self) -> Option<String> {
        self.chosen().and_then(|at| self.offered().nth(at)).map(mentioned)
    }

    pub(crate) fn choose(&mut self, down: bool) {
        let (at, all) = (self.chosen().unwrap_or(0), self.found.len().max(1));
        self.chosen = if down { (at + 1) % all } else { at.checked_sub(1).unwrap_or(all - 1) };
    }

    /// Returns a sentence about the list of files, such as `no file matches`; `None` if there is nothing to say.
    pub(crate) fn note(&self) -> Option<String> {
        let Self { names, cut, failed, awaited, found, .. } = self;
        match failed {
            Some(why) => Some(format!("the files cannot be listed: {why}")),
            None if names.is_empty() && *awaited => Some("listing the files of the project".to_owned()),
            None if names.is_empty() => Some("the project has only ignored files".to_owned()),
            None if found.is_empty() && *cut => {
                Some(format!("none of the first {} files matches", names.len()))
            }
            None if found.is_empty() => Some("no file matches".to_owned()),
            None if *cut => Some(format!("the project has more files than these {}", names.len())),
            None => None,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.found.len().min(ROWS) + usize::from(self.note().is_some())
    }

    fn look_up(&mut self) {
        self.chosen = 0;
        let word = self.word.as_ref().map(|(_, word)| word.as_str());
        self.found = word.map(|word| matching(&self.names, word)).unwrap_or_default();
    }
}

/// Returns the indices of the names that contain all letters of `word` in the same order, best match first.
fn matching(names: &[String], word: &str) -> Vec<usize> {
    if word.is_empty() {
        return (0..names.len().min(OFFERED)).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(word, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
    let mut buffer = Vec::new();
    let scored = names.iter().enumerate().filter_map(|(at, name)| {
        let score = pattern.score(Utf32Str::new(name, &mut buffer), &mut matcher)?;
        Some((Reverse(score), name.len(), at))
    });
    let mut scored: Vec<_> = scored.collect();
    scored.sort_unstable();
    scored.into_iter().take(OFFERED).map(|(.., at)| at).collect()
}

/// Returns the position of the last `@` before the caret and the text between `@` and caret; `None` if there is no `@`.
pub(crate) fn mention(model: &Model) -> Option<(usize, &str)> {
    let writes = model.mode == Mode::Insert && model.recall.is_none() && model.cards.is_empty();
    let before = model.prompt.text().get(..model.prompt.caret()).filter(|_| writes)?;
    // The prompt may be long, but the name of a file is short.
    let mut near = before.char_indices().rev().take(LONGEST + 2);
    let start = match near.find(|(_, c)| c.is_whitespace()) {
        Some((at, c)) => at + c.len_utf8(),
        None if before.len() > LONGEST + 2 => return None,
        None => 0,
    };
    let word = before.get(start..)?.strip_prefix('@')?;
    let is_short = word.len() <= LONGEST && !word.starts_with('"');
    let has_commands = || OfferedCommands::of(model).is_some_and(|offered| !offered.rows().is_empty());
    (is_short && !has_commands()).then_some((start, word))
}

pub(crate) fn are_offered(model: &Model) -> bool {
    mention(model).is_some() && model.files.is_open()
}

/// Returns a file name after an `@`, as a JSON string if the name contains spaces or control characters.
fn mentioned(name: &str) -> String {
    let is_odd = |c: char| c.is_control() || MARKS.contains(&c);
    if !name.contains(|c: char| is_odd(c) || c.is_whitespace() || c == '"') {
        return format!("@{name} ");
    }
    let quoted = serde_json::Value::from(name).to_string();
    let written =
        quoted.chars().map(|c| if is_odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() });
    format!("@{} ", written.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str], word: &str) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        matching(&names, word).into_iter().map(|at| names[at].clone()).collect()
    }

    #[test]
    fn letters_in_their_order_find_a_name_and_whole_words_come_first() {
        let names = ["src/driver/main.rs", "src/domain.rs", "Makefile", "src/main.rs"];
        assert_eq!(found(&names, "main.rs")[0], "src/main.rs");
        assert_eq!(found(&names, "drma"), ["src/driver/main.rs"]);
        assert_eq!(found(&names, "Mak"), ["Makefile"], "a capital letter counts");
        assert_eq!(found(&names, ""), names);
        assert_eq!(found(&names, "xyz"), [""; 0]);
    }

    #[test]
    fn a_model_is_told_the_true_name_of_any_file() {
        assert_eq!(mentioned("src/ä.rs"), "@src/ä.rs ");
        for odd in ["a b", "a\nb", "\u{1b}[2Jx", "a\"b", "\u{9b}31m", "\u{fdd0}", "@ \\"] {
            let written = mentioned(odd);
            let json = written.strip_prefix('@').unwrap().trim_end();
            assert!(!json.contains(|c: char| c.is_control() || MARKS.contains(&c)), "{written:?}");
            assert_eq!(serde_json::from_str::<String>(json).unwrap(), odd);
        }
    }
}
