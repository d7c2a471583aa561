//! The addresses of links by reference: `[text][name]`, and elsewhere `[name]: address`.

use std::collections::BTreeMap;
use std::rc::Rc;

use pulldown_cmark::{BrokenLink, CowStr, Parser};

use super::OPTIONS;

/// Maximum number of definitions of a reply: a text with more contains no real links.
const MOST: usize = 1000;

/// The definitions before a place in a text.
///
/// A link has its address if that was defined before it. Its line may be finished when a later definition
/// comes, and what is finished is not laid anew: then the link stays as it was written, and its address is
/// shown at its definition, since definitions show as they are written. So it depends on the text alone, and
/// not on the way in which it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Definitions(Rc<BTreeMap<String, (String, String)>>);

impl Definitions {
    /// Takes in the definitions of a text between two blocks. The first one of a name counts.
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

    /// Address and title of a link whose definition is not in the block itself.
    pub(super) fn find<'a>(&self, link: &BrokenLink<'_>) -> Option<(CowStr<'a>, CowStr<'a>)> {
        let (address, title) = self.0.get(&key(&link.reference))?;
        Some((address.clone().into(), title.clone().into()))
    }
}

/// A name without what makes no difference: the case of letters, and how much space there is.
fn key(name: &str) -> String {
    name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
