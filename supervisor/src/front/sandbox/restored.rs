//! Messages about the files that were restored after a command.

use boundary::tripwire::{Report, right_to_change};
use protocol::event::RestoredPlace;
use protocol::shell_word::shell_word;

use crate::process::messages::one_line;

/// Returns one line for each restored file and for each file that could not be checked.
pub(super) fn restored(report: &Report) -> Vec<String> {
    let notes = report.notes.iter().map(|note| one_line(&format!("note: {note}")));
    report.changes.iter().map(|change| one_line(&place(change))).chain(notes).collect()
}

fn place(place: &RestoredPlace) -> String {
    let (path, what) = (place.path.as_path(), place.phrase());
    let right = match right_to_change(place) {
        Some(path) => format!("; hint: --write {} allows this change", shell_word(path)),
        None => String::new(),
    };
    let path = path.display();
    if place.restored {
        format!("changed and restored: {path} ({what}){right}")
    } else {
        format!(
            "changed, and could not be restored: {path} ({what}); check the file before you continue{right}"
        )
    }
}

#[cfg(test)]
mod tests {
    use protocol::event::PlaceChange;

    use super::*;

    #[test]
    fn a_place_is_one_line_whatever_its_name() {
        let change = |path: &str, restored| RestoredPlace {
            path: path.into(),
            what: PlaceChange::Created,
            moved_to: None,
            error: None,
            closed: false,
            restored,
        };
        let report = Report {
            changes: vec![
                change(".envrc", true),
                RestoredPlace { what: PlaceChange::Changed, ..change(".envrc", true) },
                change("a\nbailiwick: all is well\x1b[2J/.git/config", true),
                change(".envrc", false),
            ],
            notes: vec!["x\ny".to_owned()],
        };
        assert_eq!(
            restored(&report),
            [
                "changed and restored: .envrc (created)",
                "changed and restored: .envrc (changed); hint: --write .envrc allows this change",
                "changed and restored: a\\nbailiwick: all is well\\u{1b}[2J/.git/config (created); hint: --write \
                 $'a\\012bailiwick: all is well\\033[2J/.git/config' allows this change",
                "changed, and could not be restored: .envrc (created); check the file before you continue",
                "note: x\\ny",
            ]
        );
    }
}
