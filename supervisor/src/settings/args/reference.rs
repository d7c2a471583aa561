//! Reference page of all commands and flags, generated from the parser. `BLESS=1 cargo test -p supervisor --lib
//! reference` rewrites it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::Cli;

const PAGE: &str = "../docs/commands.md";

const HEAD: &str = "# Commands and flags\n\n\
    Made from the program's own help, and compared with it by a test. [Usage](usage.md) says what they are for.\n";

/// Maximum number of words in a flag's help.
const WORDS: usize = 12;

/// Returns the commands that `--help` lists and their subcommands, each with its full name.
fn commands() -> Vec<(String, Command)> {
    let mut whole = Cli::command();
    whole.build();
    let mut found = Vec::new();
    collect(&whole, &mut found);
    found
}

fn collect(command: &Command, found: &mut Vec<(String, Command)>) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    found.push((name, command.clone()));
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    below.for_each(|below| collect(below, found));
}

/// Returns the arguments that a command's help lists.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let listed = |argument: &&Arg| {
        !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
    };
    command.get_arguments().filter(listed)
}

/// Returns the spellings of an argument, as in a usage line.
fn forms(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes_value).unwrap_or_default().join(" ");
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flags: Vec<_> = short.into_iter().chain(long).collect();
    match (flags.is_empty(), value.is_empty()) {
        (true, _) => value,
        (false, true) => flags.join(", "),
        (false, false) => format!("{} {value}", flags.join(", ")),
    }
}

/// Returns the help of an argument, with its possible values and its default.
fn help(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<_> =
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if argument.get_action().takes_values() && !words.is_empty() && !argument.is_hide_possible_values_set() {
        let _ = write!(text, ": `{}`", words.join("`, `"));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = write!(text, " (default `{}`)", defaults.join(" "));
    }
    text.replace('\n', " ").replace('|', "\\|")
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(page, "\n## {name}\n\n{about}.\n");
        let mut rows = arguments(&command).peekable();
        if rows.peek().is_some() {
            page += "\n| | |\n| --- | --- |\n";
        }
        for argument in rows {
            let _ = writeln!(page, "| `{}` | {} |", forms(argument).replace('|', "\\|"), help(argument));
        }
    }
    page
}

#[test]
fn the_page_of_commands_is_what_the_program_says() {
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        fs::write(PAGE, &page).unwrap();
    }
    let stands = fs::read_to_string(Path::new(PAGE)).unwrap();
    assert!(stands == page, "docs/commands.md differs: run this test with BLESS=1");
}

#[test]
fn the_help_of_a_flag_is_short_and_says_what_it_does() {
    let mut wrong = Vec::new();
    for (name, command) in commands() {
        for argument in arguments(&command) {
            let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let asks = ["What", "Who", "Which", "Whether", "Where", "How"];
            let begins = text.split_whitespace().next().unwrap_or_default();
            if text.split_whitespace().count() > WORDS || asks.contains(&begins) || text.is_empty() {
                wrong.push(format!("{name} {}: {text}", forms(argument)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
