//! The person's editor on a plan: it gets a copy whose ends are guarded, since editors obey lines that stand there.
//!
//! Vim obeys modelines in the first and the last five lines of a file; Emacs a `-*-` line in the first two and a `Local Variables:`
//! list behind the last form feed or in the last 3000 characters. A plan is the work of a model: the copy begins and ends with a
//! comment of ours, longer than that, and the lower one begins with a form feed.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

/// The lines before the plan.
const TOP: &str = "<!-- The plan begins below this comment, which is no part of it. Leave both comments as they are.\n\n\n\n\n\n\n\n\n\n-->\n";

/// The lines behind it.
const BOTTOM: &str =
    "\n\u{c}\n<!-- The plan ends above this comment, which is no part of it.\n\n\n\n\n\n\n\n\n\n-->\n";

/// The editor where the environment names none.
const USUAL: &str = "vi";

/// Runs the editor on a copy of a text; none if it left the text as it was.
pub(crate) fn edit(markdown: &str) -> Result<Option<String>, String> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| USUAL.to_owned());
    run(&editor, markdown)
}

fn run(editor: &str, markdown: &str) -> Result<Option<String>, String> {
    let failed = |what: &str, error: io::Error| format!("cannot edit the plan: {what}: {error}");
    let place = tempfile::Builder::new().prefix("bailiwick-plan-").tempdir();
    let place = place.map_err(|error| failed("no private directory", error))?;
    let copy = place.path().join("plan.md");
    fs::write(&copy, guarded(markdown)).map_err(|error| failed("no copy", error))?;
    // The shell reads what the variable says, as git and others have it; the path is a word of its own.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(&copy);
    let status = command.stdin(Stdio::inherit()).status().map_err(|error| failed("/bin/sh", error))?;
    if !status.success() {
        return Err(format!("{editor} ended with {status}: the plan is as it was"));
    }
    let text = fs::read_to_string(&copy).map_err(|error| failed("the edited copy", error))?;
    let Some(text) = unguarded(&text) else {
        // The person's work is not thrown away.
        let kept = place.keep().join("plan.md");
        return Err(format!(
            "the comments at the ends of the copy were changed: the plan is as it was, and your text is in {}",
            kept.display()
        ));
    };
    Ok(Some(text.to_owned()).filter(|text| text != markdown))
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
    use proptest::prelude::*;

    use super::*;

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
        let changes = run("sed -i s/one/two/", "# one\n");
        assert_eq!(changes, Ok(Some("# two\n".to_owned())));
        assert_eq!(run("true", "# one\n"), Ok(None));
        for editor in ["false", "no-such-editor 2>/dev/null"] {
            assert!(run(editor, "# one\n").is_err(), "{editor}");
        }
        let error = run("sed -i '1d; s/one/two/'", "# one\n").unwrap_err();
        let kept = std::path::Path::new(error.rsplit_once(' ').unwrap().1);
        assert!(fs::read_to_string(kept).unwrap().contains("# two\n"), "{error}");
        fs::remove_dir_all(kept.parent().unwrap()).unwrap();
    }
}
