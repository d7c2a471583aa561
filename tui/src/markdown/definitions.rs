use std::collections::BTreeMap;
use std::rc::Rc;

use pulldown_cmark::{BrokenLink, CowStr, Parser};

use super::{OPTIONS, notes};

/// Maximum number of link definitions of a reply that are kept; later ones are ignored.
const MOST: usize = 1000;

/// Link definitions before a position in a text.
///
/// A link uses only definitions before it, so that the result does not depend on the pieces in which the text was
/// streamed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Definitions(Rc<BTreeMap<String, (String, String)>>);

impl Definitions {
    pub(super) fn add(&mut self, between: &str) {
        if !between.contains("]:") {
            return;
        }
        let parser = Parser::new_ext(between, OPTIONS);
        for (name, definition) in parser.reference_definitions().iter() {
            if self.0.len() >= MOST || self.0.contains_key(&key(name)) {
                continue;
            }
            let title = definition.title.as_deref().unwrap_or_default().to_owned();
            Rc::make_mut(&mut self.0).insert(key(name), (definition.dest.to_string(), title));
        }
    }

    /// Returns the address and title of a link that its block does not define; `None` if no earlier block defines it.
    pub(super) fn find<'a>(&self, link: &BrokenLink<'_>) -> Option<(CowStr<'a>, CowStr<'a>)> {
        if notes::raised(&link.reference).is_some() {
            return Some((notes::ADDRESS.into(), "".into()));
        }
        let (address, title) = self.0.get(&key(&link.reference))?;
        Some((address.clone().into(), title.clone().into()))
    }
}

/// Normalises a link name: lower case, single spaces.
fn key(name: &str) -> String {
    name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
