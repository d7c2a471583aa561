//! Decides if approved command prefixes cover a command, so that it runs without a prompt.
//!
//! A command is covered only if its meaning to bash is certain: a list of simple commands of plain words, each of which
//! begins with the words of some prefix. Three allowlists define this: the allowed characters (`lexical`), the one form
//! that is parsed (`parse`), and the programs that are not part of the shell itself (`shell`).
//!
//! An approval of `make` covers whatever the Makefile does within the access of the process that runs it.

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

/// Returns the names of the programs in a command, each once. `None` if it is not certain what bash would run.
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

/// True for a reserved word or a builtin of bash.
pub fn is_of_the_shell(program: &str) -> bool {
    shell::is_done_by_it(program)
}

/// True if every simple command in `command` begins with the words of a prefix. An empty prefix covers nothing.
pub fn covers(prefixes: &[Vec<String>], command: &str) -> bool {
    let Some(commands) = parse::simple_commands(command) else { return false };
    !commands.is_empty() && stay_in_place(&commands) && commands.iter().all(|part| is_covered(prefixes, part))
}

fn is_covered(prefixes: &[Vec<String>], command: &SimpleCommand) -> bool {
    let begins = |prefix: &Vec<String>| !prefix.is_empty() && command.words.starts_with(prefix);
    !shell::is_part_of_it(command.program()) && prefixes.iter().any(begins)
}

/// True if each `cd` leads to a directory further down, and no program is run by a relative path afterwards. In another
/// directory, which the agent may be able to write, the same words could run another program.
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
