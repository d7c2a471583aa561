//! Reads the text that Bailiwick adds to a tool result, without any other knowledge.

use serde_json::{Value, json};

/// Text of a tool result without the output of the command.
pub(crate) struct Said<'a>(&'a str);

impl<'a> Said<'a> {
    /// Returns the text after the line about the end of the command. `None` if there is no such line.
    pub(crate) fn of(text: &'a str) -> Self {
        let Some((_, after)) = text.rsplit_once("[exit code") else { return Self(text) };
        Self(after.split_once('\n').map_or("", |(_, said)| said))
    }

    /// Returns the first flags in the text with which the person should repeat the run; `None` if it has none.
    pub(crate) fn flags(&self) -> Option<Vec<String>> {
        let at = self.0.match_indices("--").map(|(at, _)| at).find(|at| is_a_flag(&self.0[*at..]))?;
        let mut words = Words(&self.0[at..]);
        let mut flags = vec![];
        while let Some(name) = words.next().filter(|word| is_a_flag(word)) {
            flags.extend([name, words.next()?]);
        }
        Some(flags)
    }

    /// Returns the refused path, which the text names as `read PATH;` or `write PATH;`, else `None`.
    pub(crate) fn object(&self) -> Option<&'a str> {
        let (_, rest) = self.0.split_once("): ")?;
        let (_, rest) = rest.split_once(' ')?;
        rest.split_once(';').map(|(path, _)| path).filter(|path| path.starts_with('/'))
    }

    /// Returns the first directory in the text that the model may write; `None` if it names none.
    pub(crate) fn writable(&self) -> Option<&'a str> {
        let (_, rights) = self.0.split_once("Your rights: ")?;
        let first = rights.split([',', '·']).next()?.trim_end();
        match first.strip_prefix("writes in ") {
            Some("the project") => Some("."),
            Some(place) => Some(place),
            None => first.strip_prefix("read-only but for "),
        }
    }

    /// True if the text suggests that the person copies a file.
    pub(crate) fn offers_a_copy(&self) -> bool {
        self.0.contains("ask the user to copy the needed file into the project")
    }

    /// Returns the call with the declared access that the text suggests; `None` if it suggests none.
    pub(crate) fn declared_anew(&self, call: &Value) -> Option<Value> {
        let mut call = call.clone();
        if self.0.contains("leave access out") {
            call.as_object_mut()?.remove("access")?;
        } else if self.0.contains("call it again with access \"write\"") {
            call["access"] = json!("write");
        } else {
            return None;
        }
        Some(call)
    }
}

fn is_a_flag(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// Words of a text as a shell would split them, without a full stop at the end.
struct Words<'a>(&'a str);

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text = self.0.trim_start_matches(' ');
        if let Some(quoted) = text.strip_prefix('\'') {
            let (word, rest) = quoted.split_once('\'')?;
            self.0 = rest;
            return Some(word.to_owned());
        }
        let end = text.find([' ', '\n']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let word = word.trim_end_matches(['.', ',', ';', ')']);
        self.0 = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }
}

#[test]
fn a_text_is_read_for_what_it_says_and_no_more() {
    let said = Said::of(
        "touch: try --help\n[exit code 1, 0.0 s]\nblocked by the kernel (Landlock): write /a b/c; missing \
         access: write \
         /a b/c; the user can allow it with --write '/a b'. Your rights: writes in the project, $TMPDIR · network off",
    );
    assert_eq!(said.flags().unwrap(), ["--write", "/a b"]);
    assert_eq!((said.object(), said.writable()), (Some("/a b/c"), Some(".")));
    let reads = Said::of("denied: write /a. Your rights: read-only but for $TMPDIR · network off");
    assert_eq!(reads.writable(), Some("$TMPDIR"));
    let hint = Said::of("[exit code 7, 0.0 s]\n(The user can open those with --net on --reach host.)");
    assert_eq!(hint.flags().unwrap(), ["--net", "on", "--reach", "host"]);
    let nothing = Said::of("touch: --write /x\n[exit code 1, 0.0 s]");
    assert_eq!((nothing.flags(), nothing.object(), nothing.writable()), (None, None, None));
}
