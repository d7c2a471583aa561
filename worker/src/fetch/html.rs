//! Conversion of HTML to text with Markdown headings, lists and links.

use std::cell::RefCell;
use std::rc::Rc;

use html2text::config;
use html2text::render::TextDecorator;

/// Line width, in characters, at which text is wrapped.
const COLUMNS: usize = 120;

pub(super) fn render(html: &str) -> Option<String> {
    config::with_decorator(Markdown::default())
        .no_table_borders()
        .no_link_wrapping()
        .allow_width_overflow()
        .string_from_read(html.as_bytes(), COLUMNS)
        .ok()
        .map(|text| without_gaps(&text))
}

fn without_gaps(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut was_empty = true;
    for line in text.lines().map(str::trim_end) {
        if !(line.is_empty() && was_empty) {
            kept.push_str(line);
            kept.push('\n');
        }
        was_empty = line.is_empty();
    }
    kept
}

#[derive(Clone, Debug, Default)]
struct Markdown {
    /// Targets of the links whose text is not complete yet, the innermost link last.
    links: Rc<RefCell<Vec<String>>>,
}

impl TextDecorator for Markdown {
    type Annotation = ();

    fn decorate_link_start(&mut self, url: &str) -> (String, ()) {
        self.links.borrow_mut().push(url.to_owned());
        ("[".to_owned(), ())
    }

    fn decorate_link_end(&mut self) -> String {
        let url = self.links.borrow_mut().pop().unwrap_or_default();
        format!("]({url})")
    }

    fn decorate_em_start(&self) -> (String, ()) {
        ("*".to_owned(), ())
    }

    fn decorate_em_end(&self) -> String {
        "*".to_owned()
    }

    fn decorate_strong_start(&self) -> (String, ()) {
        ("**".to_owned(), ())
    }

    fn decorate_strong_end(&self) -> String {
        "**".to_owned()
    }

    fn decorate_strikeout_start(&self) -> (String, ()) {
        ("~~".to_owned(), ())
    }

    fn decorate_strikeout_end(&self) -> String {
        "~~".to_owned()
    }

    fn decorate_code_start(&self) -> (String, ()) {
        ("`".to_owned(), ())
    }

    fn decorate_code_end(&self) -> String {
        "`".to_owned()
    }

    fn decorate_preformat_first(&self) {}

    fn decorate_preformat_cont(&self) {}

    fn decorate_image(&mut self, _: &str, title: &str) -> (String, ()) {
        (format!("[picture: {title}]"), ())
    }

    fn header_prefix(&self, level: usize) -> String {
        "#".repeat(level) + " "
    }

    fn quote_prefix(&self) -> String {
        "> ".to_owned()
    }

    fn unordered_item_prefix(&self) -> String {
        "* ".to_owned()
    }

    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }

    fn make_subblock_decorator(&self) -> Self {
        self.clone()
    }
}
