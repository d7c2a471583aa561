//! Conversion of Markdown to parts of the transcript.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui::style::Modifier;

use super::definitions::Definitions;
use super::inline::{Inline, check_mark};
use super::source::start;
use super::{OPTIONS, Piece, Table, notes};
use crate::model::{Block, Look, Part};
use crate::text::{Ink, SafeText, Styled, Tone};

/// Margin before every row. Only Bailiwick itself writes into the first columns of the transcript.
const MARGIN: &str = "  ";

/// Maximum number of nested quotations and lists that are indented.
const DEEPEST: usize = 16;

const BULLET: &str = "• ";

/// Maximum length of the line below a heading, in columns.
const RULE: usize = 24;

pub(crate) fn render(piece: &Piece, look: Look) -> Block {
    let mut parts = Render {
        look,
        parts: Vec::new(),
        around: Vec::new(),
        inline: None,
        code: None,
        table: None,
        is_cell: false,
        gap: false,
        number: piece.number,
        is_continued: piece.is_continued,
    };
    let mut read = 0;
    let mut definitions = piece.definitions.clone();
    for range in blocks(&piece.text) {
        let between = read..range.start;
        definitions.add(piece.text.get(between.clone()).unwrap_or_default());
        parts.unread(&piece.text, between);
        read = range.end;
        // Parsed separately, so that later link definitions do not apply.
        let text = piece.text.get(range).unwrap_or_default();
        let find = |link: BrokenLink<'_>| definitions.find(&link);
        Parser::new_with_broken_link_callback(text, OPTIONS, Some(find)).for_each(|event| parts.take(event));
        parts.end_paragraph();
    }
    parts.unread(&piece.text, read..piece.text.len());
    Block { parts: parts.parts, gap: piece.is_apart, opened: None }
}

pub(super) fn defined(piece: &Piece) -> Definitions {
    let mut definitions = piece.definitions.clone();
    let mut read = 0;
    if piece.text.contains("]:") {
        let end = piece.text.len()..piece.text.len();
        for range in blocks(&piece.text).into_iter().chain([end]) {
            definitions.add(piece.text.get(read..range.start).unwrap_or_default());
            read = range.end;
        }
    }
    definitions
}

fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        if depth == 0 {
            blocks.push(start(text, &event, &range)..range.end);
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    blocks
}

struct Render {
    look: Look,
    parts: Vec<Part>,
    /// Enclosing quotations and list items, outermost first.
    around: Vec<Around>,
    inline: Option<Inline>,
    code: Option<RenderedCode>,
    table: Option<Table>,
    is_cell: bool,
    /// True if an empty row must precede whatever comes next.
    gap: bool,
    number: Option<u64>,
    is_continued: bool,
}

struct RenderedCode {
    language: String,
    text: String,
}

enum Around {
    Quote,
    /// List, with the number of its next item; `None` for bullets.
    List(Option<u64>),
    /// List item: its bullet or number, and true once that has been shown.
    Item(String, bool),
}

impl Render {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) if self.starts(&tag) => {}
            Event::End(tag) if self.ends(tag) => {}
            Event::Text(text) if self.code.is_some() => {
                if let Some(code) = &mut self.code {
                    code.text.push_str(&text);
                }
            }
            Event::TaskListMarker(is_done) if self.has_bullet() => {
                if let Some(Around::Item(mark, _)) = self.around.last_mut() {
                    check_mark(is_done).clone_into(mark);
                }
            }
            Event::Rule => {
                self.apart();
                self.text("─".repeat(20).as_str(), Tone::of(Ink::Mark));
                self.gap = true;
            }
            event => self.inline.get_or_insert_default().take(&event),
        }
    }

    /// True if the next text is the first one in a list item that has a bullet.
    fn has_bullet(&self) -> bool {
        self.around.len() <= DEEPEST
            && matches!(self.around.last(), Some(Around::Item(mark, false)) if mark == BULLET)
    }

    fn starts(&mut self, tag: &Tag<'_>) -> bool {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(Ink::Plain, Modifier::empty()),
            // The three levels differ from each other and from bold text, without colour too. The first has a line
            // below.
            Tag::Heading { level, .. } => self.begin(
                Ink::Heading,
                match level {
                    HeadingLevel::H1 => Modifier::BOLD,
                    HeadingLevel::H2 => Modifier::BOLD | Modifier::UNDERLINED,
                    _ => Modifier::UNDERLINED,
                },
            ),
            Tag::BlockQuote(_) => {
                self.apart();
                self.mark();
                self.around.push(Around::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.apart();
                self.mark();
                self.begin_code(kind);
            }
            Tag::List(first) => {
                self.end_paragraph();
                self.mark();
                self.gap = false;
                let first = first.map(|first| self.number.take().unwrap_or(first));
                self.around.push(Around::List(first));
            }
            Tag::Item => self.begin_item(),
            Tag::Table(alignments) => {
                self.apart();
                self.mark();
                let has_header = !self.is_continued;
                self.table = Some(Table { alignments: alignments.clone(), has_header, ..Table::default() });
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => (self.is_cell, self.inline) = (true, Some(Inline::default())),
            Tag::TableHead => {}
            _ => return false,
        }
        true
    }

    fn ends(&mut self, tag: TagEnd) -> bool {
        match tag {
            TagEnd::Heading(HeadingLevel::H1) => {
                let columns = self.inline.as_ref().map_or(0, Inline::columns).min(RULE);
                self.end_paragraph();
                if columns > 0 {
                    self.text(&"━".repeat(columns), Tone::of(Ink::Heading));
                }
                self.gap = true;
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::Heading(_) => {
                self.end_paragraph();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.end_paragraph();
                self.around.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.end_code();
                self.gap = true;
            }
            TagEnd::Item => {
                self.end_paragraph();
                self.mark();
                self.around.pop();
                self.gap = false;
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                let (first, rest) = self.prefix();
                self.parts.push(Part::table(table, self.look).after(first, rest));
                self.gap = true;
            }
            TagEnd::TableCell => self.end_cell(),
            TagEnd::TableRow => {
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                if let Some(row) = row {
                    let last = row.iter().rposition(|cell| !cell.text().is_empty());
                    row.truncate(last.map_or(0, |last| last + 1));
                }
            }
            TagEnd::TableHead => {}
            _ => return false,
        }
        true
    }

    /// Shows Markdown that the parser drops, such as a link definition, unchanged.
    fn unread(&mut self, text: &str, range: Range<usize>) {
        let text = text.get(range).unwrap_or_default();
        if !text.trim().is_empty() {
            self.apart();
            let text = text.trim_matches('\n');
            let note = notes::begun(text);
            self.text(note.as_deref().unwrap_or(text), Tone::default());
            self.gap = true;
        }
    }

    fn begin(&mut self, ink: Ink, emphasis: Modifier) {
        self.apart();
        self.inline = Some(Inline::begin(ink, emphasis));
    }

    fn begin_item(&mut self) {
        self.end_paragraph();
        let mark = match self.around.last_mut() {
            Some(Around::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => BULLET.to_owned(),
        };
        self.around.push(Around::Item(mark, false));
        self.gap = false;
    }

    /// Ends the paragraph, and adds an empty row if one is due.
    fn apart(&mut self) {
        self.end_paragraph();
        if std::mem::take(&mut self.gap) {
            self.empty_row();
        }
    }

    fn end_paragraph(&mut self) {
        if let Some(inline) = self.inline.take().filter(|inline| !inline.is_empty()) {
            let (first, rest) = self.prefix();
            self.parts.push(Part::styled(inline.finish(), self.look).after(first, rest));
        }
    }

    fn mark(&mut self) {
        if self.around.iter().take(DEEPEST).any(|around| matches!(around, Around::Item(_, false))) {
            self.empty_row();
        }
    }

    fn empty_row(&mut self) {
        let (first, rest) = self.prefix();
        self.parts.push(Part::new(SafeText::prose("\n"), self.look).after(first, rest));
    }

    fn text(&mut self, text: &str, tone: Tone) {
        let mut styled = Styled::default();
        styled.push_in(text, tone);
        let (first, rest) = self.prefix();
        self.parts.push(Part::styled(styled, self.look).after(first, rest));
    }

    fn begin_code(&mut self, kind: &CodeBlockKind<'_>) {
        let words = match kind {
            CodeBlockKind::Fenced(words) => words.trim(),
            CodeBlockKind::Indented => "",
        };
        if !words.is_empty() && !self.is_continued {
            self.text(&format!("╭ {words}"), Tone::of(Ink::Mark));
        }
        let language = words.split([' ', ',', '{']).next().unwrap_or_default().to_owned();
        self.code = Some(RenderedCode { language, text: String::new() });
    }

    fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        if code.text.is_empty() && self.is_continued {
            return;
        }
        let (first, rest) = self.prefix();
        let part = Part::code(&code.text, &code.language);
        self.parts.push(part.after([&first, "│ "].concat(), [&rest, "↪ "].concat()));
    }

    fn end_cell(&mut self) {
        self.is_cell = false;
        let cell = self.inline.take().unwrap_or_default().finish();
        let Some(table) = &mut self.table else { return };
        match table.rows.last_mut() {
            None => table.header.push(cell),
            Some(row) => row.push(cell),
        }
    }

    /// Returns the margins of a part with the marks of its quotations and lists: for the first row, and for all others.
    fn prefix(&mut self) -> (String, String) {
        let (mut first, mut rest) = (MARGIN.to_owned(), MARGIN.to_owned());
        for around in self.around.iter_mut().take(DEEPEST) {
            match around {
                Around::Quote => {
                    first.push_str("▏ ");
                    rest.push_str("▏ ");
                }
                Around::Item(mark, is_shown) => {
                    let spaces = " ".repeat(mark.chars().count());
                    first.push_str(if std::mem::replace(is_shown, true) { &spaces } else { mark });
                    rest.push_str(&spaces);
                }
                Around::List(_) => {}
            }
        }
        (first, rest)
    }
}
