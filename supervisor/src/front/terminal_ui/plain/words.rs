//! The parser for typed lines: answers, commands and messages.

use std::fmt::Write;

use ipc::rights::RightsChange;
use protocol::frontend::{AgentAction, UserActionKind};
use protocol::network_words;

use gate::modes::ApprovalMode;
use tui::review_task;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedAnswer {
    Yes,
    /// Allow this and everything else in the turn.
    YesToTurn,
    /// Allow this, and in this project always allow commands with the same beginning.
    YesAlways,
    /// Allow only the hunks with these numbers, counted across all files.
    Part(Vec<usize>),
    /// Deny this, with an optional reason for the model.
    No(Option<String>),
    /// Deny this and end the turn.
    Stop,
    /// No valid answer.
    Unclear,
}

impl TypedAnswer {
    /// Parses an answer. Only whole words count, because single letters are easily typed by mistake.
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim();
        let (word, rest) = text.split_once([' ', ',', ':']).unwrap_or((text, ""));
        let rest = rest.trim_start_matches([' ', ',', ':']);
        match (word.to_lowercase().as_str(), rest) {
            ("yes", "") => Self::Yes,
            ("turn", "") => Self::YesToTurn,
            ("always", "") => Self::YesAlways,
            ("part", numbers) => numbers_of(numbers).map_or(Self::Unclear, Self::Part),
            ("no", "") => Self::No(None),
            ("no", reason) => Self::No(Some(reason.to_owned())),
            ("stop", "") => Self::Stop,
            _ => Self::Unclear,
        }
    }
}

/// Parses numbers between spaces or commas, and sorts them. `None` if there is no number, or if one occurs twice.
fn numbers_of(text: &str) -> Option<Vec<usize>> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let mut numbers = words.map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>()?;
    numbers.sort_unstable();
    let is_set = numbers.is_sorted_by(|one, next| one < next);
    (is_set && !numbers.is_empty()).then_some(numbers)
}

/// A typed line that is not an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlainCommand {
    Nothing,
    Help,
    /// A request for the list of the session's access.
    Allowed,
    /// An action for the session.
    Act(UserActionKind),
    /// A request to use this model.
    Model(String),
    Wrong(String),
}

const COMMANDS: &[(&str, &str)] = &[
    (":net on|off|HOSTS", "set network access, +HOST adds a host"),
    (":mode ask|auto|deny", "ask first, allow changes in the project, or deny"),
    (":allow write PATH|socket PATH|net", "allow this access in the session, or list all access"),
    (":disallow write PATH|socket PATH|net", "withdraw access that you allowed"),
    (":model NAME", "choose the model; :model! accepts any name"),
    (":plan TEXT", "make a plan"),
    (":review BRANCH|COMMIT", "review a change, read-only; default: uncommitted changes"),
    (":compact", "replace the conversation by a summary"),
    (":clear", "start an empty conversation in this session"),
    (":stop", "end the turn, as Ctrl+C does"),
    (":quit", "end the session, as Ctrl+D does"),
    ("!COMMAND", "run a command of your own in the sandbox"),
];

pub(super) fn help() -> String {
    COMMANDS.iter().fold(String::new(), |mut text, (command, about)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{command}: {about}");
        text
    })
}

impl PlainCommand {
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        if let Some(command) = text.strip_prefix('!') {
            return Self::Act(UserActionKind::Agent(AgentAction::RunCommand {
                command: command.trim().to_owned(),
            }));
        }
        let Some(command) = text.strip_prefix(':') else {
            return Self::Act(UserActionKind::Agent(AgentAction::Prompt {
                text: text.to_owned(),
                images: Vec::new(),
            }));
        };
        let (name, argument) = command.split_once(' ').unwrap_or((command, ""));
        Self::named(name, argument.trim())
    }

    fn named(name: &str, argument: &str) -> Self {
        if name == "mode"
            && let Some(mode) = ApprovalMode::named(argument)
        {
            return Self::Act(UserActionKind::Agent(AgentAction::SetMode { mode }));
        }
        let net = |words| match network_words::change(words) {
            Ok(change) => Self::Act(UserActionKind::Agent(AgentAction::SetRights { change })),
            Err(error) => Self::Wrong(error.to_string()),
        };
        match (name, argument) {
            ("help", _) => Self::Help,
            ("allow", "") => Self::Allowed,
            ("net", words) if !words.is_empty() => net(words),
            ("allow", "net") => net("on"),
            ("disallow", "net") => net("off"),
            ("allow" | "disallow", access) => match access.split_once(' ') {
                Some((kind @ ("write" | "socket"), path)) => {
                    let path = path.trim().into();
                    let change = match (name, kind) {
                        ("allow", "write") => RightsChange::AddWrite { path },
                        ("allow", _) => RightsChange::AddSocket { path },
                        (_, "write") => RightsChange::RemoveWrite { path },
                        _ => RightsChange::RemoveSocket { path },
                    };
                    Self::Act(UserActionKind::Agent(AgentAction::SetRights { change }))
                }
                _ => Self::wrong(name),
            },
            ("model", model) if !model.is_empty() => Self::Model(model.to_owned()),
            ("model!", model) if !model.is_empty() => {
                Self::Act(UserActionKind::SetModel { model: model.to_owned() })
            }
            ("review", target) => match review_task(Some(target).filter(|target| !target.is_empty())) {
                Ok(text) => Self::Act(UserActionKind::Agent(AgentAction::PromptReading {
                    text,
                    images: Vec::new(),
                    offline: true,
                })),
                Err(why) => Self::Wrong(why.to_owned()),
            },
            ("plan", text) if !text.is_empty() => Self::Act(UserActionKind::Plan { text: text.to_owned() }),
            ("compact", "") => Self::Act(UserActionKind::Agent(AgentAction::Compact)),
            ("clear", "") => Self::Act(UserActionKind::Agent(AgentAction::Clear)),
            ("stop", "") => Self::Act(UserActionKind::Agent(AgentAction::Interrupt)),
            ("q" | "quit", "") => Self::Act(UserActionKind::Agent(AgentAction::Quit)),
            _ => Self::wrong(name),
        }
    }

    fn wrong(name: &str) -> Self {
        let form = COMMANDS
            .iter()
            .map(|(form, _)| form)
            .find(|form| form.strip_prefix(':').is_some_and(|form| form.split(' ').next() == Some(name)));
        Self::Wrong(form.map_or_else(
            || format!("there is no command :{name}; :help lists the commands"),
            |form| format!("this command has the form {form}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_answer() {
        for text in ["", " ", "y", "n", "ok", "yes please", "yesterday", "now", "stop it", "yes no"] {
            assert_eq!(TypedAnswer::of(text), TypedAnswer::Unclear, "{text:?}");
        }
        assert_eq!(TypedAnswer::of(" YES "), TypedAnswer::Yes);
        assert_eq!(TypedAnswer::of("no"), TypedAnswer::No(None));
        assert_eq!(TypedAnswer::of("no, use tabs: two"), TypedAnswer::No(Some("use tabs: two".to_owned())));
        assert_eq!(TypedAnswer::of("stop"), TypedAnswer::Stop);
        assert_eq!(TypedAnswer::of("turn"), TypedAnswer::YesToTurn);
        assert_eq!(TypedAnswer::of("Always"), TypedAnswer::YesAlways);
        assert_eq!(TypedAnswer::of("always ask"), TypedAnswer::Unclear);
        assert_eq!(TypedAnswer::of("turn it off"), TypedAnswer::Unclear);
        assert_eq!(TypedAnswer::of("part 3, 1"), TypedAnswer::Part(vec![1, 3]));
        for text in ["part", "part 1 1", "part -1", "part one", "part 1 of it", "partly"] {
            assert_eq!(TypedAnswer::of(text), TypedAnswer::Unclear, "{text:?}");
        }
    }

    #[test]
    fn lines_are_commands_or_messages() {
        let prompt = |text: &str| {
            PlainCommand::Act(UserActionKind::Agent(AgentAction::Prompt {
                text: text.to_owned(),
                images: Vec::new(),
            }))
        };
        assert_eq!(PlainCommand::of(" fix it "), prompt("fix it"));
        assert_eq!(PlainCommand::of(""), PlainCommand::Nothing);
        assert_eq!(
            PlainCommand::of(":net maybe"),
            PlainCommand::Wrong(
                "\"maybe\" is neither off nor on, and a host without a dot needs a port".to_owned()
            )
        );
        assert!(
            matches!(PlainCommand::of(":diff"), PlainCommand::Wrong(why) if why.contains("no command :diff"))
        );
        assert_eq!(
            PlainCommand::of("!make test"),
            PlainCommand::Act(UserActionKind::Agent(AgentAction::RunCommand {
                command: "make test".to_owned()
            }))
        );
        let PlainCommand::Act(UserActionKind::Agent(AgentAction::PromptReading { text, offline, .. })) =
            PlainCommand::of(":review main")
        else {
            panic!("a review is a turn that only reads");
        };
        assert!(offline && text.contains("git merge-base main HEAD"), "{text}");
        assert!(matches!(PlainCommand::of(":review -x"), PlainCommand::Wrong(_)));
        assert_eq!(PlainCommand::of(":allow"), PlainCommand::Allowed);
        assert!(help().contains(":allow write PATH|socket PATH|net: "), "{}", help());
        let net = RightsChange::Network { net: ipc::rights::Network::On, reach: None };
        for (line, change) in [
            (":allow socket /run/s", RightsChange::AddSocket { path: "/run/s".into() }),
            (":disallow socket /run/s", RightsChange::RemoveSocket { path: "/run/s".into() }),
        ] {
            let act = UserActionKind::Agent(AgentAction::SetRights { change });
            assert_eq!(PlainCommand::of(line), PlainCommand::Act(act));
        }
        assert_eq!(
            PlainCommand::of(":allow net"),
            PlainCommand::Act(UserActionKind::Agent(AgentAction::SetRights { change: net }))
        );
        for (form, _) in COMMANDS.iter().filter(|(form, _)| form.starts_with(':')) {
            let line =
                form.replace("on|off|HOSTS", "on").replace("ask|auto|deny", "auto").replace("TEXT", "x");
            let line = line.replace("NAME", "x").replace("PATH", "x");
            let read = PlainCommand::of(&line);
            assert!(matches!(read, PlainCommand::Act(_) | PlainCommand::Model(_)), "{form}");
        }
    }
}
