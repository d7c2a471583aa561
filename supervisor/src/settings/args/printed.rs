//! Tests that our own parser accepts every command that we print, in messages and in documents.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::{Cli, Command, ModeArg};

const NAME: &str = "bailiwick ";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the text files below a directory with this extension.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// Splits a shell command into words, without expansions. The bool is true if a part of the word is quoted.
fn words(line: &str) -> Vec<(String, bool)> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<(String, bool)>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default().1 = true;
            }
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().0.push(c),
        }
    }
    words.extend(word.filter(|_| quote.is_none()));
    words
}

fn parsed(words: &[(String, bool)]) -> Result<Option<Cli>, ErrorKind> {
    let words = std::iter::once("bailiwick").chain(words.iter().map(|(word, _)| word.as_str()));
    match Cli::try_parse_from(words) {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if !error.use_stderr() => Ok(None),
        Err(error) => Err(error.kind()),
    }
}

/// Returns the commands in a source file's messages, without the word `bailiwick`. Each inserted value becomes `x`.
fn in_messages(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    // A backslash at the end of a line joins it with the next one, without the indentation.
    let code: String = lines
        .map(|line| line.strip_suffix('\\').map_or_else(|| format!("{line}\n"), str::to_owned))
        .collect();
    let begin = |(at, _): (usize, &str)| code[at + NAME.len()..].replace("\\\"", "\u{1}");
    let end = |text: String| text.split(['"', '\n']).next().unwrap_or_default().replace('\u{1}', "\"");
    code.match_indices(NAME).map(begin).map(end).map(|text| filled_in(&text)).collect()
}

fn filled_in(text: &str) -> String {
    let text = text.split("\\n").next().unwrap_or_default();
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        // A value directly after other characters is a flag that may be missing.
        if before.is_empty() || before.ends_with([' ', '\'']) {
            filled.push('x');
        }
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    filled + rest
}

/// Returns the error if a sentence begins with a command that the parser rejects.
fn fault(sentence: &str) -> Option<String> {
    let mut words = words(sentence);
    for (word, _) in &mut words {
        let end = word.trim_end_matches(['`', ',', ';', '.', ':', ')']).len();
        word.truncate(end.max(1));
    }
    let is_command = |word: &str| word.starts_with('-') || Cli::command().find_subcommand(word).is_some();
    if !words.first().is_some_and(|(word, _)| is_command(word)) {
        return None;
    }
    let Some(taken) = (1..=words.len()).rev().find(|count| parsed(&words[..*count]).is_ok()) else {
        return Some(format!("{sentence}: {:?}", parsed(&words)));
    };
    if let Some((next, quoted)) = words.get(taken)
        && (*quoted || next.starts_with('-'))
    {
        return Some(format!("{sentence}: {next:?} is no argument"));
    }
    match parsed(&words[..taken]) {
        Ok(Some(Cli { command: Some(Command::Exec(args)), .. }))
            if args.mode != ModeArg::Auto
                && args.prompt.as_deref().is_some_and(|task| task.contains("fix")) =>
        {
            Some(format!("{sentence}: a run that cannot change the project fixes nothing"))
        }
        _ => None,
    }
}

#[test]
fn the_commands_in_our_messages_are_commands() {
    let roots = ["supervisor/src", "tui/src", "sandbox-exec/src", "worker/src"];
    let sources = roots.iter().flat_map(|root| files(&workspace().join(root), "rs"));
    let (mut faults, mut count) = (Vec::new(), 0);
    for path in sources {
        for sentence in in_messages(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            faults.extend(fault(&sentence).map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    assert!(count > 20, "only {count} were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_commands_in_our_documents_are_commands() {
    let documents = files(&workspace().join("docs"), "md").into_iter().chain([workspace().join("README.md")]);
    let mut count = 0;
    for path in documents {
        let text = fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("$ bailiwick ")) {
            let line = line.split("  #").next().unwrap_or_default();
            let ends = [" | ", " > ", " &"].map(|end| line.find(end).unwrap_or(line.len()));
            let line = line[..ends.into_iter().min().unwrap_or_default()].trim();
            assert!(parsed(&words(line)).is_ok(), "{}: {line}: {:?}", path.display(), parsed(&words(line)));
            count += 1;
        }
    }
    assert!(count > 5, "only {count} were found");
}

#[test]
fn a_wrong_command_is_found() {
    for sentence in [
        "exec \"fix it\" ends with 4",
        "exec --bogus \"fix it\"",
        "audit --prob tries it",
        "sandbox git --version",
    ] {
        assert!(fault(sentence).is_some(), "{sentence}");
    }
    for sentence in ["doctor shows the parts", "demo", "has a bug", "exec --mode auto \"fix it\" runs it"] {
        assert_eq!(fault(sentence), None);
    }
    assert_eq!(
        in_messages("f(\"see\\n  hint: bailiwick explain{} --as path {word} \\\"a b\\\"\")"),
        ["explain --as path x \"a b\""]
    );
}
