use std::fmt::Write;
use std::io::{self, Write as _};

use serde_json::json;
use tui::text::printable;

use super::super::output::visible;
use super::difference::Difference;
use super::finding::Severity;
use super::placed::PlacedFinding;
use super::sarif;
use crate::settings::args::ReviewFormat;

pub(super) fn print(
    format: ReviewFormat,
    difference: &Difference,
    summary: &str,
    findings: &[PlacedFinding],
) -> io::Result<()> {
    let text = match format {
        ReviewFormat::Text => printable(&text(difference, summary, findings)),
        ReviewFormat::Json => {
            let change =
                json!({ "about": difference.about, "old": difference.old, "files": difference.files.len() });
            let review = json!({ "change": change, "summary": summary, "findings": findings });
            visible(&review.to_string()) + "\n"
        }
        ReviewFormat::Sarif => {
            let log = format!("{:#}", sarif::log(findings, &difference.prefix));
            log.lines().map(|line| visible(line) + "\n").collect()
        }
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn text(difference: &Difference, summary: &str, findings: &[PlacedFinding]) -> String {
    let mut text = String::new();
    for PlacedFinding { finding, placed, .. } in findings {
        let lines = if finding.first_line == finding.last_line {
            finding.first_line.to_string()
        } else {
            format!("{}-{}", finding.first_line, finding.last_line)
        };
        let lost = if *placed { "" } else { " (no such line)" };
        let file = finding.file.escape_debug();
        let (severity, category) = (finding.severity.as_str(), finding.category.as_str());
        // A `String` takes every text.
        let _ = writeln!(text, "{file}:{lines}: {severity}: {} [{category}]{lost}", one_line(&finding.title));
        indent(&mut text, "    ", &finding.explanation);
        if let Some(suggestion) = &finding.suggestion {
            indent(&mut text, "    → ", suggestion);
        }
        text.push('\n');
    }
    if !summary.trim().is_empty() {
        indent(&mut text, "", summary);
    }
    let _ = writeln!(text, "{} · {}", count(findings), scope(difference));
    text
}

fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn indent(text: &mut String, first: &str, words: &str) {
    let rest = " ".repeat(first.chars().count());
    for (at, line) in words.trim().lines().enumerate() {
        let _ = writeln!(text, "{}{}", if at == 0 { first } else { &rest }, line.trim_end());
    }
}

fn scope(difference: &Difference) -> String {
    match difference.files.len() {
        1 => format!("1 file in {}", difference.about),
        n => format!("{n} files in {}", difference.about),
    }
}

fn count(findings: &[PlacedFinding]) -> String {
    let of = |severity: Severity| {
        let count = findings.iter().filter(|placed| placed.finding.severity == severity).count();
        (count > 0).then(|| format!("{count} {}", severity.as_str()))
    };
    let counts: Vec<_> = Severity::ALL.into_iter().filter_map(of).collect();
    match findings.len() {
        0 => "no finding".to_owned(),
        1 => format!("1 finding: {}", counts.join(", ")),
        n => format!("{n} findings: {}", counts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::difference::NewSide;
    use super::super::finding::{Category, ReviewFinding};
    use super::*;

    #[test]
    fn each_finding_is_a_place_that_an_editor_opens_and_a_paragraph() {
        let difference = Difference {
            about: "the changes since this branch left main".to_owned(),
            old: "abc".to_owned(),
            new: NewSide::WorkingTree,
            prefix: String::new(),
            hidden: Vec::new(),
            files: Vec::new(),
            is_cut: false,
        };
        let finding = ReviewFinding {
            file: "a.rs".to_owned(),
            first_line: 3,
            last_line: 3,
            severity: Severity::High,
            category: Category::Correctness,
            title: "Off\nby one".to_owned(),
            explanation: "It reads\nbeyond the end.".to_owned(),
            suggestion: Some("Use `..`.".to_owned()),
        };
        let lost = ReviewFinding { first_line: 7, last_line: 9, suggestion: None, ..finding.clone() };
        let placed = |finding, placed| PlacedFinding { finding, placed, line: None };
        let findings = [placed(finding, true), placed(lost, false)];
        insta::assert_snapshot!(text(&difference, "Adds a loop.", &findings), @r"
        a.rs:3: high: Off by one [correctness]
            It reads
            beyond the end.
            → Use `..`.

        a.rs:7-9: high: Off by one [correctness] (no such line)
            It reads
            beyond the end.

        Adds a loop.
        2 findings: 2 high · 0 files in the changes since this branch left main
        ");
    }
}
