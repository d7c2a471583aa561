//! End of a tool call, such as an exit code. The result states it for the language model, at its beginning or end; the
//! screen shows it in words in the first row of the call.

use protocol::event::ToolCallStatus;

/// Result of a command, split into the output and words about its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandEnd<'a> {
    pub output: &'a str,
    /// Words such as `exit code 1`; `None` for exit code 0, or if it is unknown.
    pub words: Option<String>,
}

impl<'a> CommandEnd<'a> {
    pub(super) fn of(status: ToolCallStatus, content: &'a str) -> Self {
        let whole = Self { output: content, words: None };
        match status {
            ToolCallStatus::Completed | ToolCallStatus::Failed => exited(content).unwrap_or(whole),
            ToolCallStatus::Interrupted => Self { output: until_then(content), words: None },
            ToolCallStatus::Denied => whole,
        }
    }
}

/// Splits off a last line such as `[exit code 1, 0.3 s]`; `None` if the result has no such line.
fn exited(content: &str) -> Option<CommandEnd<'_>> {
    let (output, last) = content.rsplit_once('\n').unwrap_or(("", content));
    let (end, _time) = last.strip_prefix('[')?.strip_suffix(']')?.split_once(", ")?;
    let number = end.strip_prefix("exit code ").or_else(|| end.strip_prefix("ended by signal "))?;
    number.parse::<i32>().ok()?;
    Some(CommandEnd { output, words: (end != "exit code 0").then(|| end.to_owned()) })
}

/// Returns the output before the user interrupted the call. If the result has another form, returns it unchanged.
fn until_then(content: &str) -> &str {
    let (first, rest) = content.split_once('\n').unwrap_or((content, ""));
    if !first.starts_with("interrupted by the user") || !first.ends_with("; the call was ended") {
        return content;
    }
    match rest {
        "(no output until then)" => "",
        _ => rest.strip_prefix("The output until then:\n").unwrap_or(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_about_the_end_are_no_output() {
        use ToolCallStatus::{Completed, Denied, Failed, Interrupted};
        let ended = "interrupted by the user after 5.1 s; the call was ended";
        let in_part = "interrupted by the user; the call was ended; it may have been carried out in part";
        let whole = None;
        for (status, content, expected) in [
            (Completed, "a\nb\n[exit code 0, 0.3 s]", Some(("a\nb", None))),
            (Completed, "[exit code 0, 0.3 s]", Some(("", None))),
            (Failed, "a\n[exit code 2, 0.3 s]", Some(("a", Some("exit code 2")))),
            (Failed, "[ended by signal 9, 4.0 s]", Some(("", Some("ended by signal 9")))),
            // These lines say more than the first row does, or are output of the command.
            (Failed, "a\n[ended after 9 s: it ran longer than it may. Run less at once]", whole),
            (Completed, "a\n[exit code 0, 0.3 s]\nhint: more", whole),
            (Completed, "a\n[exit code x, 0.3 s]", whole),
            (Completed, "a\n[1, 2]", whole),
            (Denied, "[exit code 0, 0.3 s]", whole),
            (Interrupted, &format!("{ended}\n(no output until then)"), Some(("", None))),
            (Interrupted, &format!("{ended}\nThe output until then:\na\nb"), Some(("a\nb", None))),
            (Interrupted, in_part, whole),
            (Interrupted, "a\n[exit code 0, 0.3 s]", whole),
        ] {
            let (output, words) = expected.unwrap_or((content, None));
            let expected = CommandEnd { output, words: words.map(str::to_owned) };
            assert_eq!(CommandEnd::of(status, content), expected, "{content}");
        }
    }
}
