//! Commands at the beginning of a message: two of Bailiwick, those from files, and prompts of MCP servers.

use agent_client_protocol_schema::v1::{
    AvailableCommand as Offer, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use protocol::own_command::OwnCommand;
use protocol::server_prompt::{ServerPrompt, WantedPrompt};
use protocol::typed_prompt::TypedPrompts;

use super::draft::Draft;
use super::shown;

#[derive(Default)]
pub(super) struct OfferedCommands {
    own: Vec<OwnCommand>,
    prompts: TypedPrompts,
}

#[derive(Debug, PartialEq)]
pub(super) enum NamedCommand {
    Plan(String),
    Compact,
    /// A command from a file of the person or of the project.
    Own(Draft),
    /// A prompt of an MCP server, with its name as the person typed it.
    Prompt(String, WantedPrompt),
}

impl OfferedCommands {
    pub(super) fn new(own: Vec<OwnCommand>, prompts: Vec<ServerPrompt>) -> Self {
        Self { own, prompts: TypedPrompts::new(prompts) }
    }

    /// Returns the command at the beginning of a message, or an error that says why it cannot be used. `None` without
    /// one.
    pub(super) fn named(&self, text: &str, has_pictures: bool) -> Option<Result<NamedCommand, String>> {
        let text = text.strip_prefix('/')?;
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match (name, rest.trim()) {
            ("compact", "") if !has_pictures => return Some(Ok(NamedCommand::Compact)),
            ("plan", purpose) if !purpose.is_empty() && !has_pictures => {
                return Some(Ok(NamedCommand::Plan(purpose.to_owned())));
            }
            _ => {}
        }
        if let Some(command) = self.own.iter().find(|command| command.name == name) {
            return Some(Draft::of_command(command, rest).map(NamedCommand::Own));
        }
        let prompt = self.prompts.find(name)?;
        let wanted = prompt.wanted(rest).map_err(|why| format!("/{name} {why}: /{}", prompt.typed));
        Some(wanted.map(|wanted| NamedCommand::Prompt(name.to_owned(), wanted)))
    }

    /// Returns the update that lists the commands for the client, except those whose names cannot be shown as a whole.
    pub(super) fn update(&self) -> SessionUpdate {
        let mut commands = vec![
            command("plan", "Makes a plan; nothing changes until you approve it", "PURPOSE"),
            command("compact", "Summarises the conversation and continues with the summary", ""),
        ];
        commands.extend(self.own.iter().map(|own| {
            let of_project = if own.of_project { " (of the project)" } else { "" };
            let about = format!("{}{of_project}", shown::line(&own.description));
            command(&own.name, &about, if own.takes_arguments() { "ARGUMENTS" } else { "[ARGUMENTS]" })
        }));
        commands.extend(self.prompts.iter().filter(|prompt| shown::is_visible(&prompt.typed)).map(
            |prompt| {
                let hint = prompt.typed.strip_prefix(&prompt.name).unwrap_or_default().trim();
                command(&prompt.name, &shown::line(prompt.about()), hint)
            },
        ));
        SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))
    }
}

fn command(name: &str, about: &str, hint: &str) -> Offer {
    let input = (!hint.is_empty())
        .then(|| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_owned())));
    Offer::new(name, about).input(input)
}

#[cfg(test)]
mod tests {
    use protocol::server_prompt::ServerPromptArgument;
    use serde_json::Value;

    use super::*;

    fn commands() -> OfferedCommands {
        let own = |name: &str, text: &str, of_project| OwnCommand {
            name: name.to_owned(),
            description: "About it.".to_owned(),
            text: text.to_owned(),
            reads: false,
            model: None,
            of_project,
        };
        let prompt = |name: &str, argument: &str| ServerPrompt {
            server: "docs".to_owned(),
            name: name.to_owned(),
            description: "Greets.".to_owned(),
            arguments: vec![ServerPromptArgument { name: argument.to_owned(), required: true }],
        };
        OfferedCommands::new(
            vec![own("fix", "Fix $1.", false), own("look", "Look.", true)],
            vec![prompt("greet", "who"), prompt("hid\u{202e}den", "x")],
        )
    }

    fn named(text: &str) -> Option<Result<NamedCommand, String>> {
        commands().named(text, false)
    }

    #[test]
    fn what_is_offered_can_be_typed_and_other_words_are_text() {
        assert_eq!(named("/compact"), Some(Ok(NamedCommand::Compact)));
        assert_eq!(named("/plan  a thing "), Some(Ok(NamedCommand::Plan("a thing".to_owned()))));
        let Some(Ok(NamedCommand::Own(draft))) = named("/fix it") else { panic!() };
        assert_eq!((draft.text.as_str(), draft.asks), ("Fix it.", false));
        let Some(Ok(NamedCommand::Own(draft))) = named("/look\nhere") else { panic!() };
        assert_eq!((draft.text.as_str(), draft.asks), ("Look.\n\nhere", true));
        let Some(Ok(NamedCommand::Prompt(_, wanted))) = named("/docs:greet Ada L") else { panic!() };
        assert_eq!(wanted.arguments["who"], "Ada L");
        let why = "/docs:greet also needs who: /docs:greet WHO".to_owned();
        assert_eq!(named("/docs:greet"), Some(Err(why)));
        for other in ["/plan", "/compact now", "/etc/hosts is a file", "compact", "/docs:other", "fix it"] {
            assert_eq!(named(other), None, "{other}");
        }
        assert_eq!(commands().named("/compact", true), None);
    }

    #[test]
    fn the_list_has_each_command_with_its_arguments_and_no_hidden_name() {
        let update = serde_json::to_value(commands().update()).unwrap();
        let listed = update["availableCommands"].as_array().unwrap().iter();
        let listed: Vec<_> = listed
            .map(|one| [&one["name"], &one["input"]["hint"]].map(|word| word.as_str().unwrap_or_default()))
            .collect();
        let expected = [
            ["plan", "PURPOSE"],
            ["compact", ""],
            ["fix", "ARGUMENTS"],
            ["look", "[ARGUMENTS]"],
            ["docs:greet", "WHO"],
        ];
        assert_eq!(listed, expected);
        let about = |at: usize| update["availableCommands"][at]["description"].clone();
        assert_eq!([about(2), about(3)].map(Value::from), ["About it.", "About it. (of the project)"]);
    }
}
