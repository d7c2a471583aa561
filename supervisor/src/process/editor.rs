//! The person's editor on a plan or a message: it gets a copy whose ends are guarded, since editors obey lines that stand there.
//!
//! Vim obeys modelines in the first and the last five lines of a file; Emacs a `-*-` line in the first two and a `Local Variables:`
//! list behind the last form feed or in the last 3000 characters. A plan is the work of a model: the copy begins and ends with a
//! comment of ours, longer than that, and the lower one begins with a form feed. A message is the person's own, but may hold what was
//! pasted: its copy has the comments only where it names something that editors obey.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// The lines before the text.
const TOP: &str = "<!-- The text begins below this comment, which is no part of it. Leave both comments as they are.\n\n\n\n\n\n\n\n\n\n-->\n";

/// The lines behind it.
const BOTTOM: &str =
    "\n\u{c}\n<!-- The text ends above this comment, which is no part of it.\n\n\n\n\n\n\n\n\n\n-->\n";

/// Words of the lines that editors obey.
const OBEYED: &[&str] = &["vi:", "vim", "ex:", "-*-", "local variables:"];

/// The editor where the environment names none.
const USUAL: &str = "vi";

/// The kind of text that is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edits {
    /// The plan that waits for its approval.
    Plan,
    /// The message at the prompt.
    Message,
}

impl fmt::Display for Edits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Message => "message",
        })
    }
}

impl Edits {
    fn guards(self, text: &str) -> bool {
        let text = text.to_lowercase();
        self == Self::Plan || OBEYED.iter().any(|word| text.contains(word))
    }
}

/// Runs the editor on a copy of a text; none if it left the text as it was.
pub(crate) fn edit(edits: Edits, text: &str) -> Result<Option<String>, String> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| USUAL.to_owned());
    run(&editor, edits, text)
}

fn run(editor: &str, edits: Edits, before: &str) -> Result<Option<String>, String> {
    let failed = |what: &str, error: io::Error| format!("cannot edit the {edits}: {what}: {error}");
    // A directory for temporary files may be read by everybody, and without a mode what is made there, too.
    let mut private = tempfile::Builder::new();
    private.permissions(fs::Permissions::from_mode(0o700));
    let place = private.prefix(&format!("bailiwick-{edits}-")).tempdir();
    let place = place.map_err(|error| failed("no private directory", error))?;
    let copy = place.path().join(format!("{edits}.md"));
    let guards = edits.guards(before);
    let written = if guards { guarded(before) } else { before.to_owned() };
    fs::write(&copy, written).map_err(|error| failed("no copy", error))?;
    // The shell reads what the variable says, as git and others have it; the path is a word of its own.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(&copy);
    let status = command.stdin(Stdio::inherit()).status().map_err(|error| failed("/bin/sh", error))?;
    if !status.success() {
        return Err(format!("{editor} ended with {status}: the {edits} is as it was"));
    }
    let text = fs::read_to_string(&copy).map_err(|error| failed("the edited copy", error))?;
    let Some(text) = (if guards { unguarded(&text) } else { Some(&*text) }) else {
        // The person's work is not thrown away.
        let kept = place.keep().join(format!("{edits}.md"));
        return Err(format!(
            "the comments at the ends of the copy were changed: the {edits} is as it was, and your text is in {}",
            kept.display()
        ));
    };
    Ok(Some(text.to_owned()).filter(|text| text != before))
}

fn guarded(markdown: &str) -> String {
    format!("{TOP}{markdown}{BOTTOM}")
}

/// The text between the guards. An editor may have left out the last line end.
fn unguarded(text: &str) -> Option<&str> {
    let text = text.strip_prefix(TOP)?;
    text.strip_suffix(BOTTOM).or_else(|| text.strip_suffix(BOTTOM.trim_end()))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;

    /// The directory that an error names, where the person's text is kept.
    fn kept(error: &str) -> PathBuf {
        Path::new(error.rsplit_once(' ').unwrap().1).parent().unwrap().to_owned()
    }

    /// The lines that an editor may obey.
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
