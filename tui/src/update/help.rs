//! `:help`: the one table, with the keys that are in force.

use crate::commands::{KeyMode, Row, TABLE};
use crate::keymap::Keymap;
use crate::model::{Areas, Block, Look, Model, Part};
use crate::text::SafeText;

/// Shows the table.
pub(super) fn show(model: &mut Model) {
    let parts = sections(&model.start.keymap).into_iter().flat_map(|(heading, lines)| {
        let heading = Part::new(SafeText::line(&heading), Look::Heading);
        [heading, Part::new(SafeText::exact(&lines), Look::Output)]
    });
    let block = Block::of(parts.collect()).apart();
    let block = model.transcript.push(block);
    // It is longer than most screens, and is read from its beginning.
    let area = Areas::now(model).transcript;
    model.transcript.show_from(block, (area.width, area.height));
}

fn sections(keymap: &Keymap) -> Vec<(String, String)> {
    let typed = TABLE.iter().filter_map(|row| row.typed.map(|typed| line(&format!(":{typed}"), row)));
    let mut sections = vec![("commands".to_owned(), typed.collect())];
    for mode in KeyMode::ALL {
        let rows = TABLE.iter().filter_map(|row| {
            let keys = keymap.keys(mode, row.command);
            (!keys.is_empty()).then(|| line(&keys.join(" "), row))
        });
        sections.push((format!("keys in the mode {}", mode.as_str()), rows.collect()));
    }
    sections
}

fn line(what: &str, row: &Row) -> String {
    format!("{what:<29} {}\n", row.about)
}
