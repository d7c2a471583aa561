//! Tests that text for users is plain: sentences in string literals, and the help of flags, avoid terms of the code.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Sources with text for users.
const OF_USERS: [&str; 7] = [
    "ipc/src/denial.rs",
    "ipc/src/missing_right.rs",
    "supervisor/gate/src",
    "supervisor/src",
    "tui/src",
    "ipc/protocol/src/error_code.rs",
    "ipc/protocol/src/approval",
];

/// Sources among these that are exempt: those with text for the model, and the scripts of the demo.
const NOT_OF_USERS: [&str; 4] = [
    "supervisor/gate/src/tools/",
    "supervisor/src/engine/driver/calls/pages.rs",
    "supervisor/src/front/demo/",
    "supervisor/src/front/exec/review/task.rs",
];

/// Terms of the code, and phrases that hide the acting component, each with a plain replacement.
const AVOIDED: [(&str, &str); 26] = [
    ("rights", "access"),
    ("a right", "access"),
    ("granted", "allowed"),
    ("grants", "allows"),
    ("standing", "access"),
    ("write root", "writable directory"),
    ("one-shot", "for one call"),
    ("the effect", "the change"),
    ("confined", "in the sandbox"),
    ("confinement", "sandbox"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("not begun", "not started"),
    ("at rest", "idle"),
    ("as it was", "unchanged"),
    ("put back", "restored"),
    ("taken back", "restored, or withdrawn"),
    ("asked for again", "needs a new approval"),
    ("anew", "again"),
    ("whoever", "the program or person that …"),
    ("becomes of", "how … is handled"),
    ("broke the protocol", "sent an invalid message"),
    ("counts for nothing", "is ignored"),
    ("does not hold", "has no effect"),
    ("it lies", "it is"),
    ("and the turn ends", "turn stopped"),
];

/// Sources and sentences that may contain an avoided term, because it is a name that people type or is quoted.
const KEPT: [(&str, &str); 9] = [
    ("supervisor/gate/src/judgement/guest.rs", "`## Rights`"),
    ("supervisor/gate/src/plan/", "the rights"),
    ("supervisor/gate/src/plan/", "## Rights"),
    ("supervisor/src/engine/opening/plan_files.rs", "Rights: {fault}"),
    ("supervisor/src/settings/args/mod.rs", "whose actions the kernel confines"),
    ("supervisor/src/engine/mcp/", "broke the protocol"),
    ("tui/src/card/rule.rs", "rights.net in the settings"),
    ("tui/src/card/rule.rs", "rights.sockets in the settings"),
    ("tui/src/card/rule.rs", "rights.write in the settings"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn paths() -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "--"]).args(OF_USERS).current_dir(root()).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let is_read = |path: &&str| {
        let is_source = Path::new(path).extension().is_some_and(|kind| kind == "rs");
        let is_test = path.contains("/tests/") || path.contains("tests.rs");
        is_source && !is_test && !NOT_OF_USERS.iter().any(|other| path.starts_with(other))
    };
    listed.lines().filter(is_read).map(str::to_owned).collect()
}

/// Returns the string literals of a source, up to its tests. Continued lines are joined, and comments skipped.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut literals = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, from) = rest.split_at(at);
        rest = if let Some(comment) = from.strip_prefix("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if from.starts_with('"') {
            let hashes = before.len() - before.trim_end_matches('#').len();
            let is_raw = before.trim_end_matches('#').ends_with('r');
            let (literal, after) = if is_raw { raw(from, hashes) } else { escaped(from) };
            literals.push(literal);
            after
        } else {
            // A quotation mark as a character is no beginning of a literal.
            from.strip_prefix("'\"'").or_else(|| from.strip_prefix("'\\\"'")).unwrap_or(&from[1..])
        };
    }
    literals
}

fn raw(from: &str, hashes: usize) -> (String, &str) {
    let end = format!("\"{}", "#".repeat(hashes));
    let (literal, after) = from[1..].split_once(&end).unwrap_or((&from[1..], ""));
    (literal.to_owned(), after)
}

fn escaped(from: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut rest = from[1..].chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => rest = rest.as_str().trim_start().chars(),
                Some('n') => literal.push('\n'),
                Some(escaped) => literal.push(escaped),
                None => break,
            },
            character => literal.push(character),
        }
    }
    (literal, rest.as_str())
}

/// Returns the help of the command line. It is written as doc comments.
fn help(source: &str) -> Vec<String> {
    let lines = source.lines().map(str::trim_start);
    lines.filter_map(|line| line.strip_prefix("/// ")).map(str::to_owned).collect()
}

/// Returns a sentence without the parts in braces.
fn without_names(literal: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for character in literal.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            character if depth == 0 => text.push(character),
            _ => {}
        }
    }
    text
}

/// Returns the avoided terms in a text, with replacements. A text without spaces may be a JSON key, and is no sentence.
fn avoided(literal: &str) -> Vec<(&'static str, &'static str)> {
    let text = without_names(literal).to_lowercase();
    if !text.trim().contains(' ') {
        return Vec::new();
    }
    let is_letter = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let has = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
        })
    };
    AVOIDED.into_iter().filter(|(word, _)| has(word)).collect()
}

#[test]
fn text_for_users_avoids_the_words_of_the_code() {
    let paths = paths();
    let mut sentences = 0;
    let mut found = Vec::new();
    for path in &paths {
        let source = std::fs::read_to_string(root().join(path)).unwrap();
        let mut texts = literals(&source);
        if path.contains("/settings/args/") {
            texts.extend(help(&source));
        }
        sentences += texts.iter().filter(|text| text.contains(' ')).count();
        for text in texts {
            let is_kept = KEPT.iter().any(|(place, kept)| path.starts_with(place) && text.contains(kept));
            for (word, better) in avoided(&text).into_iter().filter(|_| !is_kept) {
                found.push(format!("{path}: `{word}` → `{better}` in {text:?}"));
            }
        }
    }
    assert!(sentences > 2500, "only {sentences} sentences in {} files", paths.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_exception_is_needed() {
    for (place, kept) in KEPT {
        let is_there = paths().iter().filter(|path| path.starts_with(place)).any(|path| {
            let source = std::fs::read_to_string(root().join(path)).unwrap();
            literals(&source).iter().chain(&help(&source)).any(|text| text.contains(kept))
        });
        assert!(is_there, "{place}: {kept}");
    }
}

#[test]
fn literals_are_found_and_comments_are_not() {
    let source = "// \"no rights\"\nlet a = \"the \\\n    rights\"; // it's\nlet c = '\"'; let b = r#\"a \"b\" c\"#;\n\
                  /// \"x\"\n#[cfg(test)]\nmod tests { \"y\" }";
    assert_eq!(literals(source), ["the rights", "a \"b\" c"]);
    assert_eq!(avoided("the rights of it").len(), 1);
    assert_eq!(avoided("the {rights} of it, and its copyrights"), []);
    assert_eq!(avoided("rights"), [], "a key");
}
