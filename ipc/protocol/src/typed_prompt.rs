//! Prompts of MCP servers, as commands `/SERVER:PROMPT` that the user types.

use std::collections::BTreeMap;

use crate::server_prompt::{ServerPrompt, WantedPrompt};

/// The prompts of the session's MCP servers, as commands.
#[derive(Debug, Default)]
pub struct TypedPrompts(Vec<TypedPrompt>);

/// A prompt with its typed form.
#[derive(Debug)]
pub struct TypedPrompt {
    /// The name that the user types, without the slash.
    pub name: String,
    /// The name with its arguments: `docs:greet WHO [HOW]`.
    pub typed: String,
    prompt: ServerPrompt,
}

impl TypedPrompts {
    /// Makes commands of the prompts. Of prompts with equal names, only the first becomes a command.
    pub fn new(prompts: Vec<ServerPrompt>) -> Self {
        let mut commands: Vec<TypedPrompt> = Vec::new();
        for prompt in prompts {
            let name = one_word(&format!("{}:{}", prompt.server, prompt.name));
            if commands.iter().all(|command| command.name != name) {
                commands.push(TypedPrompt::new(name, prompt));
            }
        }
        Self(commands)
    }

    /// Returns the commands in their order.
    pub fn iter(&self) -> impl Iterator<Item = &TypedPrompt> {
        self.0.iter()
    }

    /// Returns the command with this name, if there is one.
    pub fn find(&self, name: &str) -> Option<&TypedPrompt> {
        self.0.iter().find(|command| command.name == name)
    }
}

impl TypedPrompt {
    fn new(name: String, prompt: ServerPrompt) -> Self {
        let arguments = prompt.arguments.iter().map(|argument| {
            let word = one_word(&argument.name).to_uppercase();
            if argument.required { format!(" {word}") } else { format!(" [{word}]") }
        });
        let typed = std::iter::once(name.clone()).chain(arguments).collect();
        Self { name, typed, prompt }
    }

    /// Returns the server's description of the prompt.
    pub fn about(&self) -> &str {
        &self.prompt.description
    }

    /// True if the prompt has a required argument.
    pub fn needs_arguments(&self) -> bool {
        self.prompt.arguments.iter().any(|argument| argument.required)
    }

    /// Returns the prompt with the typed arguments, in order. The last argument gets the rest of the line. An error's
    /// text is the rest of a sentence whose subject is the prompt's name.
    ///
    /// Fails if an argument is missing, or none is allowed.
    pub fn wanted(&self, rest: &str) -> Result<WantedPrompt, String> {
        let ServerPrompt { server, name, arguments, .. } = &self.prompt;
        let values = split(rest, arguments.len());
        if arguments.is_empty() && !rest.trim().is_empty() {
            return Err("takes no arguments".to_owned());
        }
        let missing: Vec<_> = arguments
            .iter()
            .skip(values.len())
            .filter(|argument| argument.required)
            .map(|argument| argument.name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(format!("also needs {}", missing.join(" and ")));
        }
        let arguments: BTreeMap<_, _> =
            arguments.iter().map(|argument| argument.name.clone()).zip(values).collect();
        Ok(WantedPrompt { server: server.clone(), name: name.clone(), arguments })
    }
}

fn split(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && words.len() < most {
        let (word, after) = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((word, after)) if words.len() + 1 < most || after.trim().is_empty() => (word, after),
            _ if words.len() + 1 == most => (rest, ""),
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// Replaces each character that cannot be typed in a word.
fn one_word(name: &str) -> String {
    name.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use crate::server_prompt::ServerPromptArgument;

    use super::*;

    fn prompts() -> TypedPrompts {
        let argument = |name: &str, required| ServerPromptArgument { name: name.to_owned(), required };
        let prompt = |name: &str, arguments| ServerPrompt {
            server: "docs".to_owned(),
            name: name.to_owned(),
            description: String::new(),
            arguments,
        };
        TypedPrompts::new(vec![
            prompt("greet", vec![argument("who", true), argument("how", false)]),
            prompt("two words", vec![]),
            prompt("two\twords", vec![argument("other", true)]),
        ])
    }

    fn said(name: &str, rest: &str) -> String {
        match prompts().find(name).unwrap().wanted(rest) {
            Ok(wanted) => format!("{} {:?}", wanted.name, wanted.arguments),
            Err(why) => why,
        }
    }

    #[test]
    fn arguments_are_words_and_the_last_one_has_the_rest() {
        assert_eq!(said("docs:greet", "Ada"), r#"greet {"who": "Ada"}"#);
        assert_eq!(said("docs:greet", " Ada  very kindly "), r#"greet {"how": "very kindly", "who": "Ada"}"#);
        assert_eq!(said("docs:greet", r#""Ada L" "so" so"#), r#"greet {"how": "\"so\" so", "who": "Ada L"}"#);
        assert_eq!(said("docs:greet", r#""Ada"#), r#"greet {"who": "\"Ada"}"#);
        assert_eq!(said("docs:greet", "  "), "also needs who");
        assert_eq!(said("docs:two_words", ""), "two words {}");
        assert_eq!(said("docs:two_words", "x"), "takes no arguments");
    }

    #[test]
    fn a_name_can_be_typed_and_stands_for_one_prompt() {
        let prompts = prompts();
        let typed: Vec<_> = prompts.iter().map(|command| command.typed.as_str()).collect();
        assert_eq!(typed, ["docs:greet WHO [HOW]", "docs:two_words"]);
    }
}
