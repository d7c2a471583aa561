//! Checks of the files that git reads when it continues a paused operation, such as a rebase.
//!
//! Each rule allows only the forms that git itself writes. In git 2.47, `sequencer.c`, `builtin/am.c` and
//! `builtin/bisect.c` read these files; before 2.20, shell scripts did, which sourced some of them.

use std::path::Path;

use super::config::{self, GitConfigEntry};
use super::state::TripwireRule;

/// Names of the merge strategies that are built into git. For another name, git runs the program `git-merge-NAME`.
const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Options of merge strategies, as listed in merge-strategies(7).
const STRATEGY_OPTIONS: &[&str] = &[
    "ours",
    "theirs",
    "ignore-space-change",
    "ignore-all-space",
    "ignore-space-at-eol",
    "ignore-cr-at-eol",
    "renormalize",
    "no-renormalize",
    "find-renames",
    "no-renames",
    "rename-threshold",
    "patience",
    "histogram",
    "diff-algorithm",
    "subtree",
];

/// Options that `git am` passes on to `git apply`. None of them names a file outside of the work tree.
const APPLY_OPTIONS: &[&str] = &[
    "--whitespace",
    "--ignore-space-change",
    "--ignore-whitespace",
    "--directory",
    "--exclude",
    "--include",
    "--reject",
    "--3way",
];

/// Commands of a rebase todo list that run no other program, each with its short form (git-rebase(1)).
const COMMANDS: &[&str] = &[
    "pick",
    "p",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "break",
    "b",
    "drop",
    "d",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "update-ref",
    "u",
    "noop",
    "revert",
];

/// Keys of `sequencer/opts` whose value can only be yes, no or a number.
const SEQUENCER_KEYS: &[&str] = &[
    "no-commit",
    "edit",
    "allow-empty",
    "allow-empty-message",
    "drop-redundant-commits",
    "keep-redundant-commits",
    "signoff",
    "record-origin",
    "allow-ff",
    "mainline",
    "allow-rerere-auto",
    "default-msg-cleanup",
];

/// True if `text` does not make git run a program or write to other files. Commands in the content `before` are
/// allowed.
pub(super) fn is_harmless(rule: TripwireRule, text: &[u8], before: Option<&[u8]>) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        // Names of authors and paths may be in any encoding; what is executed may not.
        return matches!(rule, TripwireRule::Author | TripwireRule::QuotedWords) && words(text).is_some();
    };
    match rule {
        TripwireRule::Todo => commands_added(text, before).is_empty(),
        TripwireRule::Strategy => STRATEGIES.contains(&text.trim_end_matches('\n')),
        TripwireRule::StrategyOptions => text.split_ascii_whitespace().all(is_strategy_option),
        TripwireRule::ApplyOptions => are_apply_options(text),
        TripwireRule::Sign => text.trim_end_matches('\n') == "-S",
        TripwireRule::Revision => text.lines().all(is_revision),
        TripwireRule::Author => is_author(text),
        TripwireRule::QuotedWords => words(text.as_bytes()).is_some(),
        TripwireRule::SequencerOptions => is_sequencer_options(text.as_bytes()),
        // These rules need more than the text: the module `judge` has them.
        TripwireRule::ConflictedPaths | TripwireRule::Alternates => false,
    }
}

pub(super) fn commands_added<'a>(text: &'a str, before: Option<&[u8]>) -> Vec<&'a str> {
    let before = before.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    let known: Vec<_> = before.lines().map(str::trim).collect();
    let is_added = |line: &&str| !is_command_of_git(line) && !known.contains(&line.trim());
    text.lines().filter(is_added).collect()
}

/// Splits a todo list into the lines that may stay and the new commands. `None` if the former are not harmless.
pub(super) fn without_commands(text: &[u8], before: Option<&[u8]>) -> Option<(Vec<u8>, Vec<String>)> {
    let text = std::str::from_utf8(text).ok()?;
    let added = commands_added(text, before);
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| !added.contains(&line.trim_end_matches(['\n', '\r'])))
        .collect();
    let commands = added.iter().map(|&line| line.to_owned()).collect();
    is_harmless(TripwireRule::Todo, kept.as_bytes(), before).then(|| (kept.into_bytes(), commands))
}

/// True for a line whose command runs no other program, and for a comment after `#`, git's default comment character.
fn is_command_of_git(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty()
        || line.starts_with('#')
        || line.split_ascii_whitespace().next().is_some_and(|word| COMMANDS.contains(&word))
}

/// True for a known option in any form that git writes: quoted as before or since 2.40, with or without dashes.
fn is_strategy_option(word: &str) -> bool {
    let bare = |quote: char| word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote));
    let word = bare('"').or_else(|| bare('\'')).unwrap_or(word);
    let word = word.strip_prefix("--").unwrap_or(word);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=%./_-".contains(&byte);
    word.bytes().all(is_plain)
        && STRATEGY_OPTIONS.contains(&word.split_once('=').map_or(word, |(name, _)| name))
}

fn are_apply_options(text: &str) -> bool {
    let is_known = |word: &Vec<u8>| {
        let Ok(word) = std::str::from_utf8(word) else { return false };
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        is_apply_option(name) && !(name == "--directory" && leads_up(value))
    };
    words(text.as_bytes()).is_some_and(|words| words.iter().all(is_known))
}

/// True for `-pN`, `-CN`, and the names in [`APPLY_OPTIONS`].
fn is_apply_option(name: &str) -> bool {
    let number = name.strip_prefix("-p").or_else(|| name.strip_prefix("-C"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        || APPLY_OPTIONS.contains(&name)
}

fn leads_up(directory: &str) -> bool {
    directory.starts_with('/') || directory.split('/').any(|step| step == "..")
}

fn is_revision(line: &str) -> bool {
    !line.starts_with('-') && line.bytes().all(|byte| byte.is_ascii_graphic() || byte > 0x7f)
}

/// True if all lines have the form `GIT_AUTHOR_…='…'`. Old versions of git source this file in a shell.
fn is_author(text: &str) -> bool {
    text.lines().all(|line| {
        let Some((name, value)) = line.split_once('=') else { return false };
        ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"].contains(&name)
            && words(value.as_bytes()).is_some_and(|words| words.len() == 1)
    })
}

/// Splits a line into words in single quotes that may contain `'\''` and `'\!'` (`sq_quote_argv` of git); else `None`.
fn words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let mut word = Vec::new();
        loop {
            rest = rest.strip_prefix(b"'")?;
            let end = rest.iter().position(|byte| *byte == b'\'')?;
            word.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            match rest {
                [b'\\', quoted @ (b'\'' | b'!'), ..] => word.push(*quoted),
                _ => break,
            }
            rest = &rest[2..];
        }
        words.push(word);
        if !rest.is_empty() && !rest.starts_with(b" ") {
            return None;
        }
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

fn is_sequencer_options(text: &[u8]) -> bool {
    config::parse(text).is_ok_and(|entries| entries.iter().all(is_sequencer_option))
}

fn is_sequencer_option(entry: &GitConfigEntry) -> bool {
    let value = entry.value.as_deref().and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
    let Ok(key) = std::str::from_utf8(&entry.key) else { return false };
    let is_known = match key {
        "strategy" => STRATEGIES.contains(&value),
        "strategy-option" => {
            STRATEGY_OPTIONS.contains(&value.split_once('=').map_or(value, |(name, _)| name))
        }
        "gpg-sign" => value.is_empty(),
        _ => SEQUENCER_KEYS.contains(&key),
    };
    entry.section == b"options" && entry.subsection.is_none() && is_known
}

/// Returns the paths in `MERGE_RR`, a file of records `ID TAB PATH NUL`. `git rerere` and `git commit` read and write
/// the files at these paths. `None` if a record has another form.
pub(super) fn conflicted_paths(text: &[u8]) -> Option<Vec<&Path>> {
    use std::os::unix::ffi::OsStrExt;
    let records = text.strip_suffix(b"\0").unwrap_or(text);
    if records.is_empty() {
        return Some(Vec::new());
    }
    let path = |record: &'_ [u8]| record.iter().position(|byte| *byte == b'\t').map(|at| at + 1);
    records
        .split(|byte| *byte == 0)
        .map(|record| path(record).map(|at| Path::new(std::ffi::OsStr::from_bytes(&record[at..]))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(rule: TripwireRule, text: &str) -> bool {
        is_harmless(rule, text.as_bytes(), None)
    }

    #[test]
    fn state_that_git_writes_is_harmless() {
        for (rule, text) in [
            (
                TripwireRule::Todo,
                "pick 1234 # one\nfixup -C 5 two\n\n# Rebase\nbreak\nmerge -C a b # c\nupdate-ref refs/heads/x\n",
            ),
            (TripwireRule::Strategy, "ort\n"),
            (TripwireRule::StrategyOptions, " '--ours' '--diff-algorithm=patience'\n"),
            (TripwireRule::StrategyOptions, "\"theirs\" \"subtree=sub/dir\" \"rename-threshold=50%\"\n"),
            (TripwireRule::ApplyOptions, " '-p1' '--whitespace=fix' '--directory=sub/dir'"),
            (TripwireRule::ApplyOptions, ""),
            (TripwireRule::Sign, "-S\n"),
            (TripwireRule::Revision, "refs/heads/main\n"),
            (TripwireRule::Revision, "bad\ngood\n"),
            (
                TripwireRule::Author,
                "GIT_AUTHOR_NAME='O'\\''Neil'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n",
            ),
            (TripwireRule::QuotedWords, " 'a b' 'c'\\''d'\n"),
            (
                TripwireRule::SequencerOptions,
                "[options]\n\tallow-ff = true\n\tstrategy = ort\n\tmainline = 1\n",
            ),
        ] {
            assert!(harmless(rule, text), "{rule:?}: {text}");
        }
    }

    #[test]
    fn state_that_runs_or_leads_elsewhere_is_not() {
        for (rule, text) in [
            (TripwireRule::Todo, "pick 1\nexec ./evil\n"),
            (TripwireRule::Todo, "x ./evil"),
            (TripwireRule::Todo, "\t exec\tevil"),
            (TripwireRule::Todo, ";x evil"),
            (TripwireRule::Strategy, "x/../.git/x"),
            (TripwireRule::Strategy, "ort\nevil"),
            (TripwireRule::StrategyOptions, "'--ours'x"),
            (TripwireRule::StrategyOptions, "'--evil'"),
            (TripwireRule::StrategyOptions, "\"ours;evil\""),
            (TripwireRule::StrategyOptions, "ours $(evil)"),
            (TripwireRule::ApplyOptions, "'--build-fake-ancestor=/home/me/.bashrc'"),
            (TripwireRule::ApplyOptions, "'--directory=../..'"),
            (TripwireRule::ApplyOptions, "'--unsafe-paths'"),
            (TripwireRule::Sign, "-Skey"),
            (TripwireRule::Revision, "--orphan=x"),
            (TripwireRule::Revision, "a b"),
            (TripwireRule::Author, "GIT_AUTHOR_NAME='x'; evil\n"),
            (TripwireRule::Author, "PATH='x'\n"),
            (TripwireRule::Author, "GIT_AUTHOR_NAME=$(evil)\n"),
            (TripwireRule::QuotedWords, "'a' $(evil)"),
            (TripwireRule::QuotedWords, "'a'$(evil)"),
            (TripwireRule::SequencerOptions, "[options]\n\tstrategy = x/../.git/x\n"),
            (TripwireRule::SequencerOptions, "[include]\n\tpath = x\n"),
            (TripwireRule::SequencerOptions, "[options]\n\tgpg-sign = key\n"),
        ] {
            assert!(!harmless(rule, text), "{rule:?}: {text}");
        }
    }

    #[test]
    fn commands_of_the_person_stay_and_added_ones_are_cut_out() {
        let before = b"exec make test\npick 1\nexec make test\n";
        assert!(is_harmless(TripwireRule::Todo, b"pick 1\nexec make test\n", Some(before)));
        let now = b"pick 1\nexec make test\nexec evil\n";
        let (kept, said) = without_commands(now, Some(before)).unwrap();
        assert_eq!(kept, b"pick 1\nexec make test\n");
        assert_eq!(said, ["exec evil"]);
    }

    #[test]
    fn conflicted_paths_are_found() {
        assert_eq!(conflicted_paths(b"1234\ta/b\0" as &[u8]), Some(vec![Path::new("a/b")]));
        assert_eq!(conflicted_paths(b""), Some(vec![]));
        assert_eq!(conflicted_paths(b"1234 a"), None);
    }
}
