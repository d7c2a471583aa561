//! Names and descriptions of MCP tools for the model.

use std::collections::BTreeSet;

use ipc::text::hexadecimal;
use sha2::{Digest, Sha256};

/// Maximum length of a tool's name that all providers accept.
const NAME: usize = 64;

/// Number of hexadecimal digits of the digest at the end of a name.
const SUFFIX: usize = 8;

/// Maximum number of characters of a tool's description.
const DESCRIPTION: usize = 4096;

/// Returns `SERVER__TOOL`. If that is too long, contains other characters or is in `taken`, the name ends in a digest.
/// No built-in tool has `__` in its name.
pub(super) fn tool_name(server: &str, tool: &str, taken: &mut BTreeSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let whole = format!("{server}__{tool}");
    let is_fit = whole.len() <= NAME && whole.chars().all(is_plain) && !tool.is_empty();
    if is_fit && taken.insert(whole.clone()) {
        return whole;
    }
    let plain: String =
        whole.chars().map(|c| if is_plain(c) { c } else { '_' }).take(NAME - SUFFIX - 1).collect();
    let digest = Sha256::new().chain_update(server).chain_update([0]).chain_update(tool).finalize();
    let suffix: String = hexadecimal(&digest).chars().take(SUFFIX).collect();
    let name = format!("{plain}_{suffix}");
    taken.insert(name.clone());
    name
}

/// Replaces invisible characters by their escapes.
pub(super) fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// True for characters that are invisible or change the order of text, except joiners of scripts and emoji.
fn is_hidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

pub(super) fn description(server: &str, text: &str) -> String {
    let text = visible(text);
    let cut: String = text.chars().take(DESCRIPTION).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("Tool of the user's MCP server `{server}`. {cut}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_valid_and_names_one_tool() {
        let mut taken = BTreeSet::new();
        let tools = [
            "search",
            "search",
            "s/x",
            "s_x",
            "s x",
            "é",
            "",
            &"t".repeat(70),
            &format!("{}x", "t".repeat(70)),
        ];
        let names: Vec<_> = tools.iter().map(|tool| tool_name("docs", tool, &mut taken)).collect();
        assert_eq!(names[0], "docs__search");
        assert_eq!(names[3], "docs__s_x");
        for name in &names {
            assert!(name.len() <= 64 && name.is_ascii() && !name.contains([' ', '/']), "{name}");
        }
        // Only a tool that is listed twice has two names.
        assert_eq!(taken.len(), tools.len());
    }

    #[test]
    fn characters_that_nobody_sees_are_shown_to_the_model() {
        assert_eq!(visible("a\tb\nc é 👩‍💻"), "a\tb\nc é 👩‍💻");
        assert_eq!(visible("x\u{1b}[2J\u{202e}y\u{e0041}"), r"x\u{1b}[2J\u{202e}y\u{e0041}");
        let long = description("docs", &"x".repeat(5000));
        assert!(long.ends_with("x…") && long.chars().count() < 4200);
    }
}
