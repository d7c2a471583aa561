//! Which commands a command prefix covers.
//!
//! A prefix that was approved for the session decides what runs without a prompt, so a command is covered only where it is
//! certain what bash makes of it: a list of simple commands, each of plain words, each of which begins with the words of
//! some prefix. Everything else is not covered, and asked for. Three allow-lists say what is: the characters that may stand
//! where (`lexical`), the one form that is read (`parse`), and the programs that are no part of the shell itself (`shell`).
//!
//! The words are those that the program gets; what the program does with them is not looked at. Who approves `make`
//! approves whatever the Makefile says, as far as the one-shot worker's rights go.

mod lexical;
mod offer;
mod parse;
mod prefix;
mod programs;
mod shell;

pub use offer::{begins_a_part, offered_parts, offered_prefix};
pub use prefix::{PrefixError, check_prefix, parse_prefix, preview};

use std::path::{Component, Path};

use parse::SimpleCommand;

/// The words in the place of a program, each once, where it is certain what bash makes of the text.
pub fn programs_of(command: &str) -> Option<Vec<String>> {
    let commands = parse::simple_commands(command)?;
    let mut names: Vec<String> = Vec::new();
    for part in &commands {
        if !names.iter().any(|name| name == part.program()) {
            names.push(part.program().to_owned());
        }
    }
    Some(names)
}

/// Whether bash does itself what this word says, where it stands in the place of a program.
pub fn is_of_the_shell(program: &str) -> bool {
    shell::is_done_by_it(program)
}

/// Whether every part of a `bash -c` text begins with the words of some prefix. An empty prefix covers nothing.
pub fn covers(prefixes: &[Vec<String>], command: &str) -> bool {
    let Some(commands) = parse::simple_commands(command) else { return false };
    !commands.is_empty() && stay_in_place(&commands) && commands.iter().all(|part| is_covered(prefixes, part))
}

fn is_covered(prefixes: &[Vec<String>], command: &SimpleCommand) -> bool {
    let begins = |prefix: &Vec<String>| !prefix.is_empty() && command.words.starts_with(prefix);
    !shell::is_part_of_it(command.program()) && prefixes.iter().any(begins)
}

/// Directories are only entered, never left: elsewhere, and be it where the agent may write without asking, the same words
/// run something else. A program that is named relative to the directory is another one in the next.
fn stay_in_place(commands: &[SimpleCommand]) -> bool {
    let is_relative = |command: &SimpleCommand| {
        let program = command.program();
        program.contains('/') && !program.starts_with('/')
    };
    let is_move = |command: &&SimpleCommand| command.program() == "cd";
    let enters = |command: &SimpleCommand| match command.words.as_slice() {
        [_, directory] => !directory.starts_with('-') && is_beneath(directory),
        _ => false,
    };
    commands.iter().filter(is_move).all(enters)
        && !commands.iter().skip_while(|command| !is_move(command)).any(is_relative)
}

fn is_beneath(directory: &str) -> bool {
    !directory.is_empty()
        && Path::new(directory).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests;
