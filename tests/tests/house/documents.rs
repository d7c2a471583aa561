//! Tests that links in the documents lead to files and headings, and that the table of contents has every page.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn documents() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "--", "*.md"]).current_dir(root()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let not_ours = |path: &&str| !path.starts_with("fixtures/");
    listed.lines().filter(not_ours).map(PathBuf::from).collect()
}

/// Returns a document's text without its fenced code blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    };
    text.lines().filter(|line| is_prose(line)).fold(String::new(), |text, line| text + line + "\n")
}

fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    ends.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.to_owned()).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let name = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    headings.map(name).collect()
}

#[test]
fn links_lead_somewhere() {
    let (mut broken, mut checked) = (Vec::new(), 0);
    for document in documents() {
        let path = root().join(&document);
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let leads = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !leads {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
    assert!(checked > 80, "{checked}");
}

#[test]
fn the_contents_list_every_page() {
    let contents = links(&fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap());
    let documents = documents();
    let names =
        documents.iter().filter_map(|path| path.strip_prefix("docs").ok()?.to_str().map(str::to_owned));
    let missing: Vec<_> = names.filter(|name| name != "SUMMARY.md" && !contents.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn headings_and_links_are_found() {
    let text = "# A `b` c!\n```\n# no [x](y)\n```\n[one](a.md#b) and [two](#a-b-c)\n## Exit codes\n";
    assert_eq!(links(text), ["a.md#b", "#a-b-c"]);
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["a-b-c", "exit-codes"]);
}
