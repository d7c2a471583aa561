use crate::commands::{CommandRow, KeyMode, TABLE};
use crate::keymap::Keymap;
use crate::model::{Block, Look, Model, Part};
use crate::text::SafeText;

/// Column at which the descriptions of commands begin.
const ABOUT: usize = 29;

pub(super) fn show(model: &mut Model) {
    let parts =
        sections(&model.start.keymap, model.start.is_plain).into_iter().flat_map(|(heading, lines)| {
            let heading = Part::new(SafeText::line(&heading), Look::Heading);
            let lines = lines.into_iter().map(|line| Part::listed(SafeText::line(&line), ABOUT + 1));
            std::iter::once(heading).chain(lines)
        });
    let block = Block::of(parts.collect());
    model.open_page(block);
}

fn sections(keymap: &Keymap, is_plain: bool) -> Vec<(String, Vec<String>)> {
    let typed = TABLE.iter().filter_map(|row| row.typed.map(|typed| line(&format!(":{typed}"), row)));
    let mut sections =
        vec![("commands".to_owned(), typed.collect()), ("at the prompt".to_owned(), at_the_prompt())];
    for mode in KeyMode::ALL.into_iter().filter(|mode| !is_plain || *mode != KeyMode::Normal) {
        let rows = TABLE.iter().filter_map(|row| {
            let keys = keymap.keys(mode, row.command);
            (!keys.is_empty()).then(|| line(&keys.join(" "), row))
        });
        sections.push((format!("keys in {}", mode.as_str().to_uppercase()), rows.collect()));
    }
    sections
}

fn at_the_prompt() -> Vec<String> {
    let lines = [
        ("/NAME", "the same as :NAME; Tab completes, Enter runs"),
        ("/etc/hosts says ...", "text: a path has a second /"),
        ("@NAME", "a file of the project; Tab or Enter completes"),
        ("!COMMAND", "run a command of your own in the sandbox"),
        ("?", "at an empty prompt: show the keys that are used most"),
        ("a space first, or two lines", "send the line as text"),
    ];
    lines.iter().map(|(typed, about)| told(typed, about)).collect()
}

fn line(typed: &str, row: &CommandRow) -> String {
    told(typed, row.about)
}

/// Returns a row with a command and its description, for a terminal of 80 columns.
fn told(typed: &str, about: &str) -> String {
    format!("{typed:<ABOUT$} {about}")
}
