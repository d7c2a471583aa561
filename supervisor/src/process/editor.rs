//! The person's editor for a plan or a message. The editor gets a copy between two guard comments, because editors obey
//! certain lines at the beginning and end of a file.
//!
//! Vim obeys modelines in the first and last five lines. Emacs obeys a `-*-` line in the first two lines, and a `Local
//! Variables:` list after the last form feed or in the last 3000 characters. A model wrote the plan, so its copy begins
//! and ends with a longer comment of ours, and the second comment begins with a form feed. The new text of a file, and
//! a message with pasted text, have the comments only if they contain a word that editors obey.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// Guard comment before the text.
const TOP: &str =
    "<!-- The text begins below this comment. Leave both comments as they are.\n\n\n\n\n\n\n\n\n\n-->\n";

/// Guard comment after the text.
const BOTTOM: &str = "\n\u{c}\n<!-- The text ends above this comment.\n\n\n\n\n\n\n\n\n\n-->\n";

/// Words of which a line must contain one, so that an editor obeys it.
const OBEYED: &[&str] = &["vi:", "vim", "ex:", "-*-", "local variables:"];

const USUAL: &str = "vi";

/// The kind of the edited text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edits {
    Plan,
    Change,
    Message,
}

impl fmt::Display for Edits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Change => "text",
            Self::Message => "message",
        })
    }
}

impl Edits {
    /// Returns the file name of the copy. The extension is that of Markdown, except for the text of a file.
    fn copy(self) -> String {
        let ending = if self == Self::Change { "txt" } else { "md" };
        format!("{self}.{ending}")
    }

    fn guards(self, text: &str) -> bool {
        let text = text.to_lowercase();
        self == Self::Plan || OBEYED.iter().any(|word| text.contains(word))
    }
}

/// Runs the editor on a copy of a text. Returns the new text; `None` if it is unchanged. Fails if the editor fails
/// or changed the guard comments.
pub(crate) fn edit(edits: Edits, text: &str) -> Result<Option<String>, String> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| USUAL.to_owned());
    run(&editor, edits, text)
}

fn run(editor: &str, edits: Edits, before: &str) -> Result<Option<String>, String> {
    let failed = |what: &str, error: io::Error| format!("cannot edit the {edits}: {what}: {error}");
    // Everybody may read the temp directory, so the new directory gets mode 0700.
    let mut private = tempfile::Builder::new();
    private.permissions(fs::Permissions::from_mode(0o700));
    let place = private.prefix(&format!("bailiwick-{edits}-")).tempdir();
    let place = place.map_err(|error| failed("cannot make a private directory", error))?;
    let copy = place.path().join(edits.copy());
    let guards = edits.guards(before);
    let written = if guards { guarded(before) } else { before.to_owned() };
    fs::write(&copy, written).map_err(|error| failed("cannot write a copy", error))?;
    // As in git, the shell interprets the variable. The path is a separate word.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(&copy);
    let status = command.stdin(Stdio::inherit()).status().map_err(|error| failed("/bin/sh", error))?;
    if !status.success() {
        return Err(format!("{editor} ended with {status}: the {edits} is unchanged"));
    }
    let text = fs::read_to_string(&copy).map_err(|error| failed("cannot read the edited copy", error))?;
    let Some(text) = (if guards { unguarded(&text) } else { Some(&*text) }) else {
        // The person's text is not lost: the file stays.
        let kept = place.keep().join(edits.copy());
        return Err(format!(
            "the comments at the start and end of the copy were changed: the {edits} is unchanged, and your text is in {}",
            kept.display()
        ));
    };
    Ok(Some(text.to_owned()).filter(|text| text != before))
}

fn guarded(markdown: &str) -> String {
    format!("{TOP}{markdown}{BOTTOM}")
}

/// Returns the text between the guard comments; `None` if they were changed. The copy's last line end may be missing.
fn unguarded(text: &str) -> Option<&str> {
    let text = text.strip_prefix(TOP)?;
    text.strip_suffix(BOTTOM).or_else(|| text.strip_suffix(BOTTOM.trim_end()))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;

    /// Returns the directory of the file with the person's text, which an error message names at its end.
    fn kept(error: &str) -> PathBuf {
        Path::new(error.rsplit_once(' ').unwrap().1).parent().unwrap().to_owned()
    }

    /// Returns the lines at the beginning and end that an editor may obey.
    fn obeyed(text: &str) -> String {
        let lines: Vec<_> = text.split('\n').collect();
        let first = lines.iter().take(5);
        let last = lines.iter().rev().take(6);
        let page = text.rsplit_once("\n\u{c}").map_or(text, |(_, page)| page);
        first.chain(last).copied().chain([page]).collect::<Vec<_>>().join("\n")
    }

    proptest! {
        #[test]
        fn a_guarded_text_comes_back_and_no_line_of_it_is_obeyed(
            lines in proptest::collection::vec("(vim: set x:|-\\*- eval: x -\\*-|Local Variables:|\u{c}|plain|)", 0..12)
        ) {
            let text = lines.join("\n");
            let copy = guarded(&text);
            prop_assert_eq!(unguarded(&copy), Some(text.as_str()));
            for word in ["vim:", "-*-", "Local Variables:"] {
                prop_assert!(!obeyed(&copy).contains(word), "{copy}");
            }
        }
    }

    #[test]
    fn an_editor_changes_the_plan_leaves_it_or_fails() {
        let changes = run("sed -i s/one/two/", Edits::Plan, "# one\n");
        assert_eq!(changes, Ok(Some("# two\n".to_owned())));
        assert_eq!(run("true", Edits::Plan, "# one\n"), Ok(None));
        for editor in ["false", "no-such-editor 2>/dev/null"] {
            assert!(run(editor, Edits::Plan, "# one\n").is_err(), "{editor}");
        }
        let error = run("sed -i '1d; s/one/two/'", Edits::Plan, "# one\n").unwrap_err();
        let kept = kept(&error);
        assert!(fs::read_to_string(kept.join("plan.md")).unwrap().contains("# two\n"), "{error}");
        fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn a_copy_is_read_by_its_owner_alone() {
        let modes = r#"stat -c %a "$(dirname "$1")" > "$1"; true"#;
        assert_eq!(run(modes, Edits::Message, "one"), Ok(Some("700\n".to_owned())));
    }

    #[test]
    fn a_message_is_guarded_where_an_editor_might_obey_it() {
        assert_eq!(run("sed -i 1s/one/two/", Edits::Message, "one"), Ok(Some("two".to_owned())));
        for obeyed in ["one\n# vim: set x:", "-*- eval: x -*-", "\u{c}\nLocal Variables:\neval: x\nEnd:"] {
            let error = run("sed -i 1s/^/x/", Edits::Message, obeyed).unwrap_err();
            assert_eq!(error.lines().count(), 1);
            fs::remove_dir_all(kept(&error)).unwrap();
            assert_eq!(run("true", Edits::Message, obeyed), Ok(None));
        }
    }
}
