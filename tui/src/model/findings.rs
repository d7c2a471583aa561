use std::fmt;

use super::Block;
use crate::card::CardPage;
use crate::markdown::{Source, render};
use crate::model::{Look, Part};
use crate::text::SafeText;

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub all: Vec<Finding>,
    pub chosen: usize,
    pub is_open: bool,
    pub sheet: CardPage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub severity: Seriousness,
    pub place: String,
    pub sentence: String,
    /// Lines after the first one, in Markdown.
    rest: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seriousness {
    Critical,
    High,
    Medium,
    Low,
}

impl Seriousness {
    const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

impl Finding {
    /// Returns a page about the finding: file and line, sentence, and the reviewer's reasons.
    pub(crate) fn page(&self, number: usize) -> Block {
        let Self { severity, place, sentence, rest } = self;
        let head = format!("{number} · {} · {place}", severity.as_str());
        let mut parts = vec![Part::new(SafeText::line(&head), Look::Heading)];
        let mut source = Source::default();
        source.push(&format!("{sentence}\n\n{rest}"));
        let mut pieces = source.finished();
        pieces.extend(source.open());
        for piece in &pieces {
            parts.push(Part::new(SafeText::prose("\n"), Look::Assistant));
            parts.extend(render(piece, Look::Assistant).parts);
        }
        Block::of(parts)
    }

    pub(crate) fn request(&self, number: usize) -> String {
        let [place, sentence] = [&self.place, &self.sentence].map(|text| SafeText::line(text));
        format!("Fix finding {number} ({}): {}", place.as_str(), sentence.as_str())
    }
}

/// Writes the number of findings by severity, such as `3 findings: 1 high, 2 low`.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.all.len() == 1 { "finding" } else { "findings" };
        write!(f, "{} {unit}", self.all.len())?;
        let mut between = ": ";
        for severity in Seriousness::ALL {
            let count = self.all.iter().filter(|finding| finding.severity == severity).count();
            if count > 0 {
                write!(f, "{between}{count} {}", severity.as_str())?;
                between = ", ";
            }
        }
        Ok(())
    }
}

/// Returns the findings in a reviewer's answer. Each begins with a line like `high src/a.rs:12: …`.
pub(crate) fn findings_in(answer: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut is_code = false;
    for line in answer.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let head = if is_code { None } else { head(line) };
        match (head, findings.last_mut()) {
            (Some(head), _) => findings.push(head),
            // A section after the list does not belong to the last finding.
            (None, Some(last)) if line.starts_with('#') => last.rest.push_str("\n\n"),
            (None, Some(last)) => {
                // The lines of a list item are indented below its mark.
                let line = if is_code { line } else { line.strip_prefix("  ").unwrap_or(line) };
                last.rest.push_str(line);
                last.rest.push('\n');
            }
            (None, None) => {}
        }
    }
    for finding in &mut findings {
        finding.settle();
    }
    findings
}

/// Characters that may surround a word in Markdown lists, headings, tables and emphasis.
const SIGNS: [char; 14] = ['-', '*', '+', '#', '|', '_', '[', ']', '(', ')', ':', ',', '.', ' '];

fn head(line: &str) -> Option<Finding> {
    let begins = |c: char| SIGNS.contains(&c) || c.is_ascii_digit() || matches!(c, '–' | '—' | '\t');
    let words = line.trim_start_matches(begins);
    let severity = Seriousness::ALL.into_iter().find(|severity| {
        let word = words.get(..severity.as_str().len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(severity.as_str()))
    })?;
    let rest = words.get(severity.as_str().len()..)?;
    if rest.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let (place, rest) = placed(rest)?;
    let around = |c: char| SIGNS.contains(&c) && !matches!(c, '[' | '(') || matches!(c, '–' | '—');
    let sentence = rest.trim_start_matches(around).trim_end_matches(['|', '*', ' ']);
    let sentence = sentence.trim_end_matches(" |").to_owned();
    Some(Finding { severity, place: place.to_owned(), sentence, rest: String::new() })
}

/// Returns the first `FILE:LINE` in a text and the text after it; `None` if the text names no file and line.
fn placed(text: &str) -> Option<(&str, &str)> {
    if let Some((_, after)) = text.split_once('`')
        && let Some((place, rest)) = after.split_once('`')
        && is_place(place)
    {
        return Some((place, rest));
    }
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let place = word.trim().trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '_'));
        let place = place.trim_end_matches('.');
        if is_place(place) {
            let end = at + word.find(place)? + place.len();
            return Some((place, text.get(end..)?));
        }
        at += word.len();
    }
    None
}

/// True for a file name with one or two line numbers: `src/a.rs:12`, `src/a.rs:12-14`.
fn is_place(text: &str) -> bool {
    let Some((file, line)) = text.rsplit_once(':') else { return false };
    let is_line = line.starts_with(|c: char| c.is_ascii_digit())
        && line.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '–' | ','));
    !file.is_empty() && is_line
}

impl Finding {
    /// Completes a finding after its last line. If its first line had no sentence, the next line becomes the sentence.
    fn settle(&mut self) {
        self.rest = self.rest.trim_matches('\n').to_owned();
        if self.sentence.is_empty() {
            let (first, rest) = self.rest.split_once('\n').unwrap_or((&self.rest, ""));
            let (first, rest) = (first.trim().to_owned(), rest.to_owned());
            (self.sentence, self.rest) = (first, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_however_the_list_is_written() {
        for head in [
            "- **high** `src/cache.rs:41`: A key overwrites another.",
            "1. High, `src/cache.rs:41`, A key overwrites another.",
            "### [high] src/cache.rs:41 — A key overwrites another.",
            "| high | `src/cache.rs:41` | A key overwrites another. |",
            "**high** (src/cache.rs:41) A key overwrites another.",
            "- high: **`src/cache.rs:41`** A key overwrites another.",
            "- **high** `src/cache.rs:41`\n\n  A key overwrites another.",
        ] {
            let found = findings_in(&format!("I looked.\n\n{head}\n  Because.\n"));
            let [Finding { severity, place, sentence, rest }] = &found[..] else {
                panic!("{head}: {found:?}")
            };
            assert_eq!(*severity, Seriousness::High, "{head}");
            assert_eq!(
                (place.as_str(), sentence.as_str()),
                ("src/cache.rs:41", "A key overwrites another."),
                "{head}"
            );
            assert_eq!(rest.trim(), "Because.", "{head}");
        }
    }

    #[test]
    fn what_only_looks_like_a_finding_is_none() {
        for line in [
            "The risk is high in `src/a.rs:3`.",
            "highly `a.rs:3`",
            "- high hopes",
            "high: see http://a.example/",
            "```\nhigh `a.rs:3`: in code\n```",
            "No defect was found.",
            "",
        ] {
            assert!(findings_in(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn they_are_counted_by_severity() {
        let all = findings_in("- low `a:1` x\n- high `b:2` y\n- low `c:3-4` z\n");
        assert_eq!(Findings { all, ..Findings::default() }.to_string(), "3 findings: 1 high, 2 low");
        assert_eq!(Findings::default().to_string(), "0 findings");
    }
}
