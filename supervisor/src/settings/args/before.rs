//! Moves flags that are written before a command behind the command, as in `bailiwick --base-url URL exec TASK`.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// Flags of every command. Clap itself accepts them before and behind the command.
const EVERYWHERE: [&str; 1] = ["directory"];

/// A flag that is written before the command, with the words that belong to the flag.
struct EarlyFlag {
    name: String,
    /// Indexes of these words in the command line.
    words: std::ops::Range<usize>,
}

/// Moves the flags that are written before a command behind it. Fails for a flag that takes a value in one command and
/// none in another: the words that belong to it are unclear.
pub(super) fn reordered(root: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let (mut command, mut end, mut at) = (root, None, 1);
    let mut flags: Vec<EarlyFlag> = Vec::new();
    let mut unclear: Option<String> = None;
    while let Some(word) = line.get(at) {
        if let Some(name) = flag_name(word) {
            let Some(takes_value) = takes_value(command, &name) else { break };
            let has_value = is_whole(word, &name);
            if takes_value == FlagWords::Unclear && !has_value {
                unclear.get_or_insert_with(|| name.clone());
            }
            let length = if takes_value == FlagWords::Value && !has_value { 2 } else { 1 };
            flags.push(EarlyFlag { name, words: at..at + length });
            at += length;
        } else if let Some(sub) = word.to_str().and_then(|word| command.find_subcommand(word)) {
            (command, end) = (sub, Some(at));
            at += 1;
        } else {
            break;
        }
    }
    let Some(end) = end else { return Ok(line) };
    if let Some(name) = unclear {
        let command = command.get_name();
        return Err(format!(
            "{name} comes before the command {command}, so it is unclear whether the flag takes a value\n  hint: write {name} after {command}"
        ));
    }
    let is_moved =
        |flag: &&EarlyFlag| flag.words.end <= end && argument(command, &flag.name).is_some_and(is_own);
    let moved: Vec<usize> = flags.iter().filter(is_moved).flat_map(|flag| flag.words.clone()).collect();
    let early = moved.iter().filter_map(|at| line.get(*at));
    let stays = |from: usize| {
        line.iter().enumerate().skip(from).filter(|(at, _)| !moved.contains(at)).map(|(_, word)| word)
    };
    let before = stays(0).take(end + 1 - moved.len());
    Ok(before.chain(early).chain(stays(end + 1)).cloned().collect())
}

/// Returns the name of a flag: `--name` for `--name=VALUE`, `-n` for `-nVALUE`. `None` for another word.
fn flag_name(word: &OsStr) -> Option<String> {
    let text = word.to_string_lossy();
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        return (!name.is_empty()).then(|| format!("--{name}"));
    }
    text.strip_prefix('-')?.chars().next().map(|short| format!("-{short}"))
}

/// True if the word contains the flag's value too.
fn is_whole(word: &OsStr, name: &str) -> bool {
    word.len() > name.len()
}

/// The words behind a flag that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlagWords {
    Nothing,
    Value,
    /// The flag takes a value in one command, and none in another.
    Unclear,
}

/// Returns what belongs to a flag in a command and its subcommands; `None` if none of them has the flag.
fn takes_value(command: &Command, name: &str) -> Option<FlagWords> {
    let own = argument(command, name)
        .map(|arg| if arg.get_action().takes_values() { FlagWords::Value } else { FlagWords::Nothing });
    let below = command.get_subcommands().filter_map(|sub| takes_value(sub, name));
    own.into_iter().chain(below).reduce(|one, other| if one == other { one } else { FlagWords::Unclear })
}

fn argument<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        let long = arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        long || arg
            .get_short()
            .is_some_and(|short| name.strip_prefix('-').is_some_and(|name| name.chars().eq([short])))
    })
}

fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !EVERYWHERE.contains(&arg.get_id().as_str())
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::super::parse::command;
    use super::*;

    /// Adds every command to `found`, with the words that lead to it.
    fn commands<'a>(command: &'a Command, path: &[&'a str], found: &mut Vec<(Vec<&'a str>, &'a Command)>) {
        for sub in command.get_subcommands() {
            let path = [path, &[sub.get_name()]].concat();
            commands(sub, &path, found);
            found.push((path, sub));
        }
    }

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    /// Tests that each flag of each command, in every notation, means the same before the command as behind it, or
    /// causes an error that names the right position.
    #[test]
    fn every_flag_of_every_command_may_stand_before_it() {
        let root = command();
        let (mut all, mut tried, mut refused) = (Vec::new(), 0, Vec::new());
        commands(&root, &[], &mut all);
        for (path, sub) in &all {
            for arg in sub.get_arguments().filter(|arg| !arg.is_positional() && is_own(arg)) {
                let names = arg.get_long().map(|long| format!("--{long}"));
                for name in names.into_iter().chain(arg.get_short().map(|short| format!("-{short}"))) {
                    let takes_value = arg.get_action().takes_values();
                    let together =
                        if name.starts_with("--") { format!("{name}=exec") } else { format!("{name}exec") };
                    let apart: Vec<&str> = if takes_value { vec![&name, "exec"] } else { vec![&name] };
                    let whole: Vec<&str> = if takes_value { vec![&together] } else { apart.clone() };
                    for flag in [apart, whole] {
                        let before = [&["bailiwick"], &flag[..], path, &["rest"]].concat();
                        let after = [&["bailiwick"], &path[..], &flag, &["rest"]].concat();
                        match reordered(&root, words(&before)) {
                            Ok(line) => assert_eq!(line, words(&after), "{before:?}"),
                            Err(why) => {
                                assert!(why.contains(&format!("after {}", sub.get_name())), "{why}");
                                refused.push(format!("{name} {}", path.join(" ")));
                            }
                        }
                        tried += 1;
                    }
                }
            }
        }
        refused.dedup();
        assert!(tried > 200, "{tried}");
        insta::assert_snapshot!(refused.join("\n"), @"");
    }

    #[test]
    fn only_what_stands_before_a_command_and_is_its_own_moves() {
        for (line, read) in [
            ("bailiwick --base-url exec exec hi", "bailiwick exec --base-url exec hi"),
            ("bailiwick --mode=auto -C /a exec --net on hi", "bailiwick -C /a exec --mode=auto --net on hi"),
            ("bailiwick plan --model m execute p", "bailiwick plan execute --model m p"),
            ("bailiwick --model m plan execute p", "bailiwick plan execute --model m p"),
            // A flag but no command, a word of another kind first, a flag that no command has, and `--`.
            ("bailiwick --model exec", "bailiwick --model exec"),
            ("bailiwick fix exec --model m", "bailiwick fix exec --model m"),
            ("bailiwick --bogus exec", "bailiwick --bogus exec"),
            ("bailiwick --plain exec hi", "bailiwick --plain exec hi"),
            ("bailiwick --model m -- exec", "bailiwick --model m -- exec"),
            ("bailiwick exec --mode auto sessions", "bailiwick exec --mode auto sessions"),
            ("bailiwick", "bailiwick"),
            ("", ""),
        ] {
            let line: Vec<_> = line.split_whitespace().collect();
            let read: Vec<_> = read.split_whitespace().collect();
            assert_eq!(reordered(&command(), words(&line)), Ok(words(&read)), "{line:?}");
        }
    }

    #[test]
    fn a_flag_that_takes_a_value_in_one_command_alone_is_refused_with_its_place() {
        let flag = |takes_value: bool| {
            let action = if takes_value { ArgAction::Set } else { ArgAction::SetTrue };
            Arg::new("json").long("json").action(action)
        };
        let sub = |name: &'static str, takes_value| Command::new(name).arg(flag(takes_value));
        let root = Command::new("bailiwick").subcommands([sub("list", false), sub("write", true)]);
        for line in [["bailiwick", "--json", "list"], ["bailiwick", "--json", "write"]] {
            let why = reordered(&root, words(&line)).unwrap_err();
            assert!(why.contains(&format!("after {}", line[2])), "{why}");
        }
        let line = words(&["bailiwick", "--json=x", "write"]);
        assert_eq!(reordered(&root, line), Ok(words(&["bailiwick", "write", "--json=x"])));
    }
}
