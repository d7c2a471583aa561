//! Parses the command line, and finds mistakes that clap does not detect.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, Error, FromArgMatches, value_parser};
use protocol::shell_word::shell_word;

use super::before::reordered;
use super::{Cli, Command as Sub, ImportArgs, PruneArgs, ResumeArgs, SessionsArgs, SessionsCommand, TuiArgs};

/// Id of the flag `-C`, which is accepted before and behind a command.
const DIRECTORY: &str = "directory";

/// Commands without a project, which therefore have no `-C`.
const WITHOUT_PROJECT: [&str; 6] = ["acp", "batch", "relay", "serve", "demo", "debug"];

/// Minimum similarity, from 0 to 1, at which a word counts as a misspelt command.
const LIKE: f64 = 0.8;

impl Cli {
    /// Parses a command line, including the program name.
    pub(crate) fn read(line: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, Error> {
        let line: Vec<OsString> = line.into_iter().map(Into::into).collect();
        let mut command = command();
        let line =
            reordered(&command, line).map_err(|text| command.error(ErrorKind::ArgumentConflict, text))?;
        let matches = command.try_get_matches_from_mut(&line).map_err(|error| {
            unquoted(&command, &error, &line)
                .map_or(error, |text| command.error(ErrorKind::ArgumentConflict, text))
        })?;
        let fault = misplaced(&command, &matches).or_else(|| without_project(&matches));
        let mut cli = Self::from_arg_matches(&matches)?;
        if !names_project(&matches) {
            cli.command.as_mut().into_iter().for_each(forget_project);
        }
        let fault = fault.or_else(|| no_command(&command, &cli.tui, &line));
        fault.map_or(Ok(cli), |text| Err(command.error(ErrorKind::ArgumentConflict, text)))
    }
}

/// Returns the clap definition of all commands. Hides `-C` from commands without a project.
pub(super) fn command() -> Command {
    let hidden =
        || Arg::new(DIRECTORY).short('C').value_name("DIR").hide(true).value_parser(value_parser!(PathBuf));
    let hide = |command: Command, name| command.mut_subcommand(name, |sub| sub.arg(hidden()));
    with_negative_values(WITHOUT_PROJECT.into_iter().fold(Cli::command(), hide))
}

/// Makes flags accept negative numbers as values. The parser of each flag then rejects them with its own explanation.
fn with_negative_values(command: Command) -> Command {
    let of_flag = |arg: Arg| {
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(of_flag).mut_subcommands(with_negative_values)
}

/// True if the command line has `-C`, before or behind the command.
fn names_project(matches: &ArgMatches) -> bool {
    is_typed(matches, DIRECTORY) || matches.subcommand().is_some_and(|(_, rest)| is_typed(rest, DIRECTORY))
}

/// Removes the default project from commands without one: a session has its own, and `sessions prune` covers all.
fn forget_project(command: &mut Sub) {
    match command {
        Sub::Resume(ResumeArgs { directory, .. })
        | Sub::Import(ImportArgs { directory, .. })
        | Sub::Sessions(SessionsArgs {
            command: Some(SessionsCommand::Prune(PruneArgs { directory, .. })),
            ..
        }) => *directory = None,
        _ => {}
    }
}

fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    // A group of arguments has no `value_source`, so it is asked for first.
    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the error for a task or flag that stands before a command which does not take it. `None` if all words fit.
fn misplaced(command: &Command, matches: &ArgMatches) -> Option<String> {
    let (name, rest) = matches.subcommand()?;
    let own = command.get_arguments().find(|arg| {
        let id = arg.get_id().as_str();
        id != DIRECTORY && is_typed(matches, id)
    });
    let sub = command.find_subcommand(name)?;
    match own {
        Some(arg) => Some(match arg.get_long() {
            Some(long) => {
                format!("the command {name} has no flag --{long}: leave the flag out")
            }
            None => format!("there is a task before the command {name}: to run a task, use bailiwick exec"),
        }),
        None => misplaced(sub, rest),
    }
}

fn without_project(matches: &ArgMatches) -> Option<String> {
    let (name, rest) = matches.subcommand()?;
    let is_given = is_typed(matches, DIRECTORY) || is_typed(rest, DIRECTORY);
    (is_given && WITHOUT_PROJECT.contains(&name))
        .then(|| format!("the command {name} uses no project: leave out -C"))
}

/// Returns the error for a task of one word without `--`: a misspelt command is likely, and a session costs money.
fn no_command(command: &Command, tui: &TuiArgs, line: &[OsString]) -> Option<String> {
    let word = tui.prompt.as_deref().filter(|task| !task.contains(char::is_whitespace))?;
    if line.iter().any(|argument| argument == "--") {
        return None;
    }
    let meant = meant(command, word);
    Some(format!("no command {word:?}\n  hint: {meant}to send this word as a task: bailiwick -- {word}"))
}

/// Returns the error for words of which the first is no command: a misspelt command, or a task without quotes.
fn unquoted(command: &Command, error: &Error, line: &[OsString]) -> Option<String> {
    let words: Option<Vec<_>> = line.iter().skip(1).map(|word| word.to_str()).collect();
    let words = words.filter(|words| words.iter().all(|word| !word.starts_with('-')))?;
    let word = words.first().filter(|word| command.find_subcommand(word).is_none())?;
    let meant = meant(command, word);
    matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand).then(|| {
        let task = shell_word(words.join(" "));
        format!("no command {word:?}\n  hint: {meant}to send a task, quote the task: bailiwick {task}")
    })
}

/// Returns the beginning of a hint with the command that a word probably means; empty if no command is similar.
fn meant(command: &Command, word: &str) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(name, word);
    let names = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
    let nearest =
        names.filter(|name| likeness(name) >= LIKE).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    nearest.map(|name| format!("bailiwick {name}; ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::ConfigCommand;
    use super::*;

    fn read(line: &str) -> Result<Cli, String> {
        Cli::read(line.split_whitespace()).map_err(|error| error.to_string())
    }

    fn fault(line: &str) -> String {
        let error = read(line).unwrap_err();
        error.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    }

    #[test]
    fn the_project_may_be_named_before_a_command_or_after_it_and_the_last_one_wins() {
        for (line, expected) in [
            ("bailiwick -C /a exec hi", "/a"),
            ("bailiwick exec -C /a hi", "/a"),
            ("bailiwick -C /a exec -C /b hi", "/b"),
            ("bailiwick exec hi", "."),
        ] {
            let Some(Sub::Exec(args)) = read(line).unwrap().command else { unreachable!() };
            assert_eq!(args.directory, Path::new(expected), "{line}");
        }
        for line in
            ["bailiwick -C /a config trust", "bailiwick config -C /a trust", "bailiwick config trust -C /a"]
        {
            let Some(Sub::Config(args)) = read(line).unwrap().command else { unreachable!() };
            let Some(ConfigCommand::Trust(trust)) = args.command else { unreachable!() };
            assert_eq!(trust.directory, Path::new("/a"), "{line}");
        }
        for line in [
            "bailiwick -C /a sandbox -- true",
            "bailiwick -C /a explain x",
            "bailiwick -C /a audit --probe",
            "bailiwick -C /a config",
            "bailiwick -C /a replay r",
            "bailiwick -C /a doctor",
            "bailiwick -C /a",
        ] {
            assert!(read(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_session_keeps_its_project_unless_another_one_is_named() {
        for (line, expected) in [
            ("bailiwick resume x", None),
            ("bailiwick -C /a resume x", Some("/a")),
            ("bailiwick resume -C . x", Some(".")),
            ("bailiwick import f", None),
            ("bailiwick -C . import f", Some(".")),
            ("bailiwick import f -C /b", Some("/b")),
        ] {
            let directory = match read(line).unwrap().command {
                Some(Sub::Resume(args)) => args.directory,
                Some(Sub::Import(args)) => args.directory,
                _ => unreachable!(),
            };
            assert_eq!(directory.as_deref(), expected.map(Path::new), "{line}");
        }
    }

    #[test]
    fn old_sessions_are_those_of_a_project_where_one_is_named() {
        for (line, expected) in [
            ("bailiwick sessions prune --larger-than 0", None),
            ("bailiwick sessions prune --larger-than 0 -C .", Some(".")),
            ("bailiwick sessions -C /a prune --larger-than 0", Some("/a")),
            ("bailiwick -C /a sessions prune --larger-than 0", Some("/a")),
        ] {
            let Some(Sub::Sessions(args)) = read(line).unwrap().command else { unreachable!() };
            let Some(SessionsCommand::Prune(prune)) = args.command else { unreachable!() };
            assert_eq!(prune.directory.as_deref(), expected.map(Path::new), "{line}");
        }
    }

    #[test]
    fn a_command_without_a_project_refuses_one_and_does_not_offer_it() {
        for line in ["bailiwick -C /a serve", "bailiwick serve -C /a", "bailiwick -C /a demo"] {
            assert!(fault(line).ends_with("uses no project: leave out -C"), "{line}");
        }
        assert!(!read("bailiwick serve --help").unwrap_err().contains("-C"));
    }

    #[test]
    fn flags_of_the_ui_before_a_command_are_not_lost_in_silence() {
        let Some(Sub::Exec(args)) = read("bailiwick --mode auto exec hi").unwrap().command else {
            unreachable!()
        };
        assert_eq!(args.mode, super::super::ModeArg::Auto);
        assert_eq!(
            fault("bailiwick --plain exec hi"),
            "the command exec has no flag --plain: leave the flag out"
        );
        assert_eq!(
            fault("bailiwick config --json trust"),
            "the command trust has no flag --json: leave the flag out"
        );
        let error = Cli::read(["bailiwick", "fix it", "exec", "hi"]).unwrap_err().to_string();
        assert!(error.contains("there is a task before the command exec"), "{error}");
    }

    #[test]
    fn a_negative_value_is_refused_for_what_it_is() {
        let said = fault("bailiwick exec --max-usd -1 hi");
        assert!(said.starts_with("invalid value '-1' for '--max-usd <"), "{said}");
        assert!(fault("bailiwick exec --max-steps -1 hi").starts_with("invalid value '-1'"));
    }

    #[test]
    fn a_word_that_is_no_command_is_sent_only_after_two_dashes() {
        assert_eq!(
            fault("bailiwick exce"),
            "no command \"exce\"\n  hint: bailiwick exec; to send this word as a task: bailiwick -- exce"
        );
        assert_eq!(
            fault("bailiwick -C /x greetings"),
            "no command \"greetings\"\n  hint: to send this word as a task: bailiwick -- greetings"
        );
        assert_eq!(
            fault("bailiwick exce the tests"),
            "no command \"exce\"\n  hint: bailiwick exec; to send a task, quote the task: bailiwick 'exce the tests'"
        );
        assert_eq!(
            fault("bailiwick mend the tests"),
            "no command \"mend\"\n  hint: to send a task, quote the task: bailiwick 'mend the tests'"
        );
        assert!(fault("bailiwick exec a b").starts_with("unexpected argument 'b'"));
        assert_eq!(read("bailiwick -- exce").unwrap().tui.prompt.as_deref(), Some("exce"));
    }
}
