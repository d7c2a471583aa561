//! Builds HTML from constant markup and escaped text.

use std::fmt::Write;

use tui::text::SafeText;

const LONGEST_TEXT: usize = 2000;

const MOST_ROWS: usize = 200;

/// HTML under construction. Markup must be `'static`, so that no text from run time can become markup.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    pub(crate) fn number(&mut self, number: usize) -> &mut Self {
        let _ = write!(self.0, "{number}");
        self
    }

    /// Adds a text, shortened and escaped. Invisible characters become visible.
    pub(crate) fn text(&mut self, untrusted: &str) -> &mut Self {
        let mut rest = untrusted.chars();
        let cut: String = rest.by_ref().take(LONGEST_TEXT).collect();
        self.0.push_str(&escaped(&cut));
        let left_out = rest.count();
        if left_out > 0 {
            let _ = write!(self.0, "… ({left_out} more characters)");
        }
        self
    }

    /// Adds a whole text, escaped. Invisible characters become visible.
    pub(crate) fn whole(&mut self, untrusted: &str) -> &mut Self {
        self.0.push_str(&escaped(untrusted));
        self
    }

    pub(crate) fn element(&mut self, name: &'static str, untrusted: &str) -> &mut Self {
        self.raw("<").raw(name).raw(">").text(untrusted).raw("</").raw(name).raw(">")
    }

    pub(crate) fn list(&mut self, class: &'static str, rows: impl IntoIterator<Item = String>) -> &mut Self {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return self;
        }
        self.raw("<ul class=\"").raw(class).raw("\">\n");
        for row in rows.by_ref().take(MOST_ROWS) {
            self.element("li", &row).raw("\n");
        }
        self.raw("</ul>\n").more(rows.count(), "rows")
    }

    /// Adds a note about the number of things that were left out, unless it is zero.
    pub(crate) fn more(&mut self, left_out: usize, kind: &'static str) -> &mut Self {
        if left_out == 0 {
            return self;
        }
        self.raw("<p class=\"more\">").number(left_out).raw(" more ").raw(kind).raw(" are in the log.</p>\n")
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Escapes a text. Every text reaches a page through this function. Quotes are escaped too, so the text is safe in an
/// attribute.
fn escaped(untrusted: &str) -> String {
    let safe = SafeText::exact(untrusted);
    let mut escaped = String::with_capacity(safe.len());
    for c in safe.as_str().chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Texts that a page must not contain, because they would make it load or run something.
#[cfg(test)]
pub(crate) const LOADS: [&str; 10] =
    ["<script", "src=", "url(", "@import", "http://", "https://", "javascript:", "<link", "<iframe", "<form"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_text_becomes_markup_or_leaves_an_attribute() {
        assert_eq!(escaped("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;");
        assert_eq!(escaped("\" onload='x' `&lt;"), "&quot; onload=&#39;x&#39; `&amp;lt;");
    }

    #[test]
    fn what_does_not_show_stands_as_an_escape() {
        assert_eq!(escaped("a\u{202e}b\u{1b}[31m\0"), "a\\u{202e}b\\u{1b}[31m\\u{0}");
        assert_eq!(escaped("no\u{200b}break\u{a0}"), "no\\u{200b}break\\u{a0}");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let mut html = Html::default();
        html.text(&"<".repeat(LONGEST_TEXT + 7));
        let text = html.into_string();
        assert!(text.ends_with("&lt;… (7 more characters)"), "{text}");
    }

    proptest! {
        #[test]
        fn escaped_text_has_no_character_of_markup(text in any::<String>()) {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            prop_assert!(escaped.chars().all(|c| c == '\n' || !c.is_control()));
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            for (at, _) in escaped.match_indices('&') {
                prop_assert!(entities.iter().any(|entity| escaped[at..].starts_with(entity)));
            }
        }
    }
}
