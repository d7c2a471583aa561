use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::start::Capabilities;

/// Number of screen rows for the title, the filter and the key hints.
pub(crate) const AROUND: u16 = 4;

pub(crate) const TALL: u16 = 2;

const LONGEST: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickerRow {
    pub title: String,
    pub about: String,
    /// True if the row is always listed; false if it is listed only after Tab.
    pub is_near: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picked {
    Row(usize),
    Nothing,
}

#[derive(Debug)]
pub struct Picker {
    pub(crate) heading: String,
    rows: Vec<PickerRow>,
    small: Vec<String>,
    pub(crate) typed: String,
    /// True if all rows are listed, not only those with `is_near`.
    pub(crate) shows_all: bool,
    found: Vec<usize>,
    chosen: usize,
    pub(crate) capabilities: Capabilities,
}

impl Picker {
    pub fn new(heading: impl Into<String>, rows: Vec<PickerRow>, capabilities: Capabilities) -> Self {
        let small = rows.iter().map(|row| format!("{} {}", row.title, row.about).to_lowercase()).collect();
        let shows_all = !rows.iter().any(|row| row.is_near);
        let (heading, typed, found) = (heading.into(), String::new(), Vec::new());
        let mut picker = Self { heading, rows, small, typed, shows_all, found, chosen: 0, capabilities };
        picker.find();
        picker
    }

    pub fn key(&mut self, event: KeyEvent) -> Option<Picked> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Esc => return Some(Picked::Nothing),
            KeyCode::Char('c' | 'd' | 'g') if control => return Some(Picked::Nothing),
            KeyCode::Enter => return self.found.get(self.chosen).copied().map(Picked::Row),
            KeyCode::Up => self.go(1, false),
            KeyCode::Char('p' | 'k') if control => self.go(1, false),
            KeyCode::Down => self.go(1, true),
            KeyCode::Char('n' | 'j') if control => self.go(1, true),
            KeyCode::PageUp => self.go(self.page(), false),
            KeyCode::PageDown => self.go(self.page(), true),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = self.found.len().saturating_sub(1),
            KeyCode::Tab => {
                self.shows_all = !self.shows_all;
                self.find();
            }
            KeyCode::Backspace => {
                self.typed.pop();
                self.find();
            }
            KeyCode::Char('u' | 'w') if control => {
                self.typed.clear();
                self.find();
            }
            KeyCode::Char(c) if !control && !event.modifiers.contains(KeyModifiers::ALT) => {
                self.write(&c.to_string());
            }
            _ => {}
        }
        None
    }

    pub fn write(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.typed.chars().count());
        self.typed.extend(text.chars().filter(|c| !c.is_control()).take(room));
        self.find();
    }

    pub const fn resize(&mut self, size: (u16, u16)) {
        self.capabilities.size = size;
    }

    pub(crate) fn visible(&self) -> impl Iterator<Item = (&PickerRow, bool)> {
        let first = (self.chosen + 1).saturating_sub(self.page());
        let places = self.found.iter().enumerate().skip(first).take(self.page());
        places.filter_map(|(place, at)| Some((self.rows.get(*at)?, place == self.chosen)))
    }

    /// Returns the number of rows that match the filter, and the number of rows that there would be without a filter.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.found.len(), self.rows.iter().filter(|row| self.shows_all || row.is_near).count())
    }

    fn page(&self) -> usize {
        usize::from(self.capabilities.size.1.saturating_sub(AROUND) / TALL).max(1)
    }

    fn go(&mut self, rows: usize, down: bool) {
        let last = self.found.len().saturating_sub(1);
        self.chosen = if down { (self.chosen + rows).min(last) } else { self.chosen.saturating_sub(rows) };
    }

    /// Lists the rows that contain all typed words, and selects the first.
    fn find(&mut self) {
        let typed = self.typed.to_lowercase();
        let words: Vec<_> = typed.split_whitespace().collect();
        let shows = |row: &PickerRow| self.shows_all || row.is_near;
        let rows = self.rows.iter().zip(&self.small).enumerate();
        let found =
            rows.filter(|(_, (row, small))| shows(row) && words.iter().all(|word| small.contains(word)));
        self.found = found.map(|(at, _)| at).collect();
        self.chosen = 0;
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::start::{Colour, ThemeName};
    use crate::view::pick;

    fn row(title: &str, is_near: bool) -> PickerRow {
        PickerRow { title: title.to_owned(), about: "2026-11-25 · m".to_owned(), is_near }
    }

    fn picker(rows: Vec<PickerRow>) -> Picker {
        let capabilities =
            Capabilities { colour: Colour::None, theme: Some(ThemeName::Dark), size: (44, 10) };
        Picker::new("continue a session of /p", rows, capabilities)
    }

    fn press(picker: &mut Picker, codes: &[KeyCode]) -> Option<Picked> {
        codes.iter().find_map(|code| picker.key(KeyEvent::new(*code, KeyModifiers::NONE)))
    }

    fn screen(picker: &Picker) -> String {
        let (columns, rows) = picker.capabilities.size;
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| pick(picker, frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let lines = (0..rows).map(|y| {
            let cells = (0..columns).map(|x| buffer[(x, y)].symbol().to_owned());
            cells.collect::<String>().trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn typing_narrows_and_enter_picks() {
        let rows = vec![row("fix the parser", true), row("Fix the docs", true), row("elsewhere", false)];
        let mut picker = picker(rows);
        insta::assert_snapshot!(screen(&picker), @"
        continue a session of /p
        > type to filter · 2 of 2

        ▸ fix the parser
            2026-11-25 · m
          Fix the docs
            2026-11-25 · m


        ↑ ↓ choose · Enter open · Tab every project…
        ");
        for c in "DOCS fix".chars() {
            assert_eq!(press(&mut picker, &[KeyCode::Char(c)]), None);
        }
        assert_eq!(picker.count(), (1, 2));
        assert_eq!(press(&mut picker, &[KeyCode::Enter]), Some(Picked::Row(1)));
        picker.write("\u{1b}[2J\n");
        assert_eq!(picker.count(), (0, 2));
        assert!(screen(&picker).contains("> DOCS fix[2J"), "{}", screen(&picker));
        assert_eq!(press(&mut picker, &[KeyCode::Enter]), None, "there is nothing to pick");
        assert_eq!(press(&mut picker, &[KeyCode::Esc]), Some(Picked::Nothing));
    }

    #[test]
    fn a_row_that_does_not_fit_says_so() {
        let screen = screen(&picker(vec![row(&"word ".repeat(30), true)]));
        assert!(
            screen.lines().any(|line| line.starts_with("▸ word word") && line.ends_with('…')),
            "{screen}"
        );
    }

    #[test]
    fn tab_shows_the_rows_that_are_not_near() {
        let mut other = picker(vec![row("here", true), row("elsewhere", false)]);
        assert_eq!(press(&mut other, &[KeyCode::Tab, KeyCode::Down, KeyCode::Enter]), Some(Picked::Row(1)));
        assert_eq!(press(&mut other, &[KeyCode::Tab, KeyCode::Down, KeyCode::Enter]), Some(Picked::Row(0)));
        assert_eq!(
            press(&mut picker(vec![row("elsewhere", false)]), &[KeyCode::Enter]),
            Some(Picked::Row(0))
        );
    }

    #[test]
    fn the_chosen_row_is_on_the_screen_at_any_size() {
        let rows: Vec<_> = (0..30).map(|number| row(&format!("number {number}"), true)).collect();
        let mut picker = picker(rows);
        for size in [(44, 10), (20, 5), (3, 1), (200, 60), (0, 0)] {
            picker.resize(size);
            for code in
                [KeyCode::End, KeyCode::PageUp, KeyCode::Up, KeyCode::PageDown, KeyCode::Home, KeyCode::Up]
            {
                assert_eq!(press(&mut picker, &[code]), None);
                assert_eq!(
                    picker.visible().filter(|(_, is_chosen)| *is_chosen).count(),
                    1,
                    "{size:?} {code:?}"
                );
                if size.0 > 0 {
                    let _ = screen(&picker);
                }
            }
        }
        assert_eq!(press(&mut picker, &[KeyCode::End, KeyCode::Enter]), Some(Picked::Row(29)));
    }

    #[test]
    fn a_hostile_row_is_one_line_of_text() {
        let mut rows = vec![row("a\u{1b}]0;t\u{7}\n\u{202e}b", true)];
        rows[0].about = "c\r\nd".to_owned();
        let screen = screen(&picker(rows));
        assert!(screen.contains("a\\u{1b}]0;t\\u{7}") && screen.contains("\\u{202e}b"), "{screen}");
        assert!(screen.chars().all(|c| c == '\n' || !c.is_control()));
    }
}
