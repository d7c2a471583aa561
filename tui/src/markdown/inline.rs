use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};
use ratatui::style::Modifier;

use super::notes;
use crate::text::{Clusters, Ground, Ink, Styled, Tone};

#[derive(Debug, Default)]
pub(super) struct Inline {
    text: Styled,
    ink: Ink,
    tones: Vec<Modifier>,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    address: String,
    title: String,
    label: String,
    /// True if the link is the number of a footnote.
    is_note: bool,
}

impl Link {
    const fn is_note(&self) -> bool {
        self.is_note
    }
}

pub(super) const fn check_mark(is_done: bool) -> &'static str {
    if is_done { "☑ " } else { "☐ " }
}

impl Inline {
    pub(super) fn begin(ink: Ink, emphasis: Modifier) -> Self {
        Self { ink, tones: vec![emphasis], ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.text().is_empty()
    }

    pub(super) fn columns(&self) -> usize {
        Clusters::new(self.text.text().as_str(), 0).map(|cluster| cluster.columns).sum()
    }

    pub(super) fn finish(mut self) -> Styled {
        self.text.finish();
        self.text
    }

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
                let tone = self.tone().on(Ground::Code);
                self.text.push_in(&code.replace('\n', " "), tone);
                self.say(code);
            }
            Event::SoftBreak | Event::HardBreak => self.push("\n"),
            Event::TaskListMarker(done) => self.push(check_mark(*done)),
            Event::Text(text) if self.links.last().is_some_and(Link::is_note) => {
                self.push(&notes::raised(text).unwrap_or_else(|| text.to_string()));
            }
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

    fn tone(&self) -> Tone {
        Tone { emphasis: self.emphasis(), ..Tone::of(self.ink) }
    }

    fn push(&mut self, text: &str) {
        self.text.push_in(text, self.tone());
        self.say(text);
    }

    fn say(&mut self, text: &str) {
        self.links.iter_mut().for_each(|link| link.label.push_str(text));
    }

    fn link(&mut self, kind: LinkType, address: &CowStr<'_>, title: &CowStr<'_>) {
        let scheme = if kind == LinkType::Email { "mailto:" } else { "" };
        let address = address.strip_prefix(scheme).unwrap_or(address).to_owned();
        let is_note = kind == LinkType::ShortcutUnknown && address == notes::ADDRESS;
        self.links.push(Link { address, title: title.to_string(), label: String::new(), is_note });
    }

    /// Ends a link, and appends its address, so that the label cannot hide it.
    fn end_link(&mut self) {
        let Some(link) = self.links.pop().filter(|link| !link.is_note) else { return };
        let title = if link.title.is_empty() { String::new() } else { format!(" \"{}\"", link.title) };
        if link.label != link.address || !title.is_empty() {
            self.push(" (");
            let tone = self.tone();
            let tone = Tone { emphasis: tone.emphasis | Modifier::UNDERLINED, ..tone };
            self.text.push_in(&link.address, tone);
            self.say(&link.address);
            self.push(&format!("{title})"));
        }
    }
}
