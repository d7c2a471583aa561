use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("space", KeyCode::Char(' ')),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

const MODIFIERS: &[(&str, KeyModifiers)] =
    &[("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT), ("shift-", KeyModifiers::SHIFT)];

/// Labels of keys that are not just the capitalised name of the key in the configuration.
const LABELS: &[(KeyCode, &str)] = &[
    (KeyCode::Up, "↑"),
    (KeyCode::Down, "↓"),
    (KeyCode::Left, "←"),
    (KeyCode::Right, "→"),
    (KeyCode::PageUp, "PageUp"),
    (KeyCode::PageDown, "PageDown"),
];

impl Key {
    /// Returns the label of the key: `y`, `Esc`, `Ctrl+O`.
    pub(crate) fn label(self) -> String {
        let mut label = String::new();
        for (name, _) in MODIFIERS.iter().filter(|(_, modifier)| self.modifiers.contains(*modifier)) {
            label.push_str(&capital(name.trim_end_matches('-')));
            label.push('+');
        }
        let name = Self { modifiers: KeyModifiers::NONE, ..self }.to_string();
        match LABELS.iter().find(|(code, _)| *code == self.code) {
            Some((_, name)) => label.push_str(name),
            None if label.is_empty() && self.is_text() && self.text() != Some(' ') => label = name,
            None => label.push_str(&capital(&name)),
        }
        label
    }

    pub(crate) fn is(self, code: KeyCode) -> bool {
        self.code == code
    }

    pub fn is_text(self) -> bool {
        self.text().is_some()
    }

    pub(crate) fn is_letter(self) -> bool {
        self.text().is_some_and(char::is_alphabetic)
    }

    pub fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if self.modifiers.is_empty() => Some(c),
            _ => None,
        }
    }

    /// True for Enter, Space, and Ctrl+J and Ctrl+M, which terminals send as Enter. Fingers often rest on these keys.
    pub fn is_enter_or_space(self) -> bool {
        let sent_as_enter = |c| self.modifiers.contains(KeyModifiers::CONTROL) && matches!(c, 'j' | 'm');
        match self.code {
            KeyCode::Enter | KeyCode::Char(' ') => true,
            KeyCode::Char(c) => sent_as_enter(c),
            _ => false,
        }
    }
}

impl From<KeyEvent> for Key {
    /// Converts a key event. Shift is removed for characters, which are capital letters already.
    fn from(event: KeyEvent) -> Self {
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let mut modifiers = event.modifiers & known;
        let code = match event.code {
            KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => {
                KeyCode::Char(c.to_ascii_lowercase())
            }
            // Terminals report Shift+Tab as a separate key.
            KeyCode::BackTab => KeyCode::Tab,
            code => code,
        };
        if matches!(code, KeyCode::Char(_)) {
            modifiers.remove(KeyModifiers::SHIFT);
        }
        Self { code, modifiers }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a key: a character, or one of enter, esc, space, tab, backspace, delete, insert, up, down, \
     left, right, home, end, pageup, pagedown, f1 … f12, with ctrl-, alt- or shift- before it"
)]
pub struct NoKey(pub String);

impl FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let (mut rest, mut modifiers) = (text, KeyModifiers::NONE);
        while let Some((name, modifier)) =
            MODIFIERS.iter().find(|(name, _)| rest.len() > name.len() && rest.starts_with(name))
        {
            rest = &rest[name.len()..];
            modifiers |= *modifier;
        }
        let code = code(rest).ok_or_else(|| NoKey(text.to_owned()))?;
        Ok(Self::from(KeyEvent::new(code, modifiers)))
    }
}

fn capital(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn code(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    let mut characters = name.chars();
    match (characters.next(), characters.as_str()) {
        (Some(c), "") if !c.is_control() => Some(KeyCode::Char(c)),
        (Some('f'), number) => number.parse().ok().filter(|n| (1..=12).contains(n)).map(KeyCode::F),
        _ => None,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, modifier) in MODIFIERS {
            if self.modifiers.contains(*modifier) {
                f.write_str(name)?;
            }
        }
        match (NAMES.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, other) => write!(f, "{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_reads_back() {
        for text in [
            "y",
            "G",
            "ctrl-c",
            "alt-enter",
            "ctrl-alt-x",
            "pageup",
            "f12",
            "shift-tab",
            "space",
            "-",
            "ctrl--",
            ":",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "yy", "ctrl-", "f13", "hyper-x", "\u{1b}"] {
            assert!(text.parse::<Key>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn labels_are_the_words_on_keyboards() {
        let notations = ["y", "G", "esc", "ctrl-o", "alt-enter", "space", "pagedown", "left", "f1", ":"];
        let labels: Vec<_> = notations.iter().map(|text| text.parse::<Key>().unwrap().label()).collect();
        assert_eq!(labels, ["y", "G", "Esc", "Ctrl+O", "Alt+Enter", "Space", "PageDown", "←", "F1", ":"]);
    }

    #[test]
    fn a_shifted_character_is_the_character() {
        let event = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(Key::from(event), "G".parse().unwrap());
        let event = KeyEvent::new(KeyCode::Char('C'), KeyModifiers::CONTROL | KeyModifiers::SHIFT);
        assert_eq!(Key::from(event), "ctrl-c".parse().unwrap());
    }

    #[test]
    fn what_a_terminal_sends_for_enter_is_enter() {
        for text in ["enter", "space", "ctrl-j", "ctrl-m", "alt-enter", "ctrl-space"] {
            assert!(text.parse::<Key>().unwrap().is_enter_or_space(), "{text}");
        }
        assert!(!"y".parse::<Key>().unwrap().is_enter_or_space());
    }
}
