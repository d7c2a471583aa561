//! Text of one paragraph, heading or table cell.

use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};
use ratatui::style::Modifier;

use crate::text::{Ground, Styled, Tone};

/// Builder of the text of a paragraph, heading or table cell.
#[derive(Debug, Default)]
pub(super) struct Inline {
    text: Styled,
    tones: Vec<Modifier>,
    links: Vec<Link>,
}

/// Open link or picture.
#[derive(Debug)]
struct Link {
    address: String,
    title: String,
    label: String,
}

impl Inline {
    pub(super) fn begin(emphasis: Modifier) -> Self {
        Self { tones: vec![emphasis], ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.text().is_empty()
    }

    pub(super) fn finish(mut self) -> Styled {
        self.text.finish();
        self.text
    }

    /// Handles a parser event about text.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(Tag::Emphasis) => self.tones.push(Modifier::ITALIC),
            Event::Start(Tag::Strong) => self.tones.push(Modifier::BOLD),
            Event::Start(Tag::Strikethrough) => self.tones.push(Modifier::CROSSED_OUT),
            Event::Start(Tag::Link { link_type, dest_url, title, .. }) => {
                self.link(*link_type, dest_url, title);
            }
            Event::Start(Tag::Image { link_type, dest_url, title, .. }) => {
                self.push("image: ");
                self.link(*link_type, dest_url, title);
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => _ = self.tones.pop(),
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            Event::Code(code) => {
                let tone = Tone::with(self.emphasis()).on(Ground::Code);
                self.text.push_in(&code.replace('\n', " "), tone);
                self.say(code);
            }
            Event::SoftBreak | Event::HardBreak => self.push("\n"),
            Event::TaskListMarker(done) => self.push(if *done { "[x] " } else { "[ ] " }),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push(text),
            Event::Start(_) | Event::End(_) | Event::Rule => {}
        }
    }

    fn emphasis(&self) -> Modifier {
        self.tones.iter().fold(Modifier::empty(), |all, one| all | *one)
    }

    fn push(&mut self, text: &str) {
        self.text.push_in(text, Tone::with(self.emphasis()));
        self.say(text);
    }

    fn say(&mut self, text: &str) {
        self.links.iter_mut().for_each(|link| link.label.push_str(text));
    }

    fn link(&mut self, kind: LinkType, address: &CowStr<'_>, title: &CowStr<'_>) {
        let scheme = if kind == LinkType::Email { "mailto:" } else { "" };
        let address = address.strip_prefix(scheme).unwrap_or(address).to_owned();
        self.links.push(Link { address, title: title.to_string(), label: String::new() });
    }

    /// Ends a link. Its address is always shown, so that the label cannot hide it.
    fn end_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let title = if link.title.is_empty() { String::new() } else { format!(" \"{}\"", link.title) };
        if link.label != link.address || !title.is_empty() {
            self.push(" (");
            self.text.push_in(&link.address, Tone::with(self.emphasis() | Modifier::UNDERLINED));
            self.say(&link.address);
            self.push(&format!("{title})"));
        }
    }
}
