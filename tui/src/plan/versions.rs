use std::rc::Rc;

use protocol::event::{PlanAuthor, PlanCreated};

use crate::card::CardPage;
use crate::diff::between;
use crate::model::{Block, Look, Part};
use crate::text::SafeText;

/// Number of hexadecimal digits of a digest that the person sees.
const DIGITS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    author: PlanAuthor,
    digest: String,
    markdown: String,
    steps: usize,
}

impl Version {
    pub(crate) fn of(created: &PlanCreated) -> Self {
        Self {
            author: created.author,
            digest: created.digest.clone(),
            markdown: created.markdown.clone(),
            steps: created.plan.steps.len(),
        }
    }

    fn words(&self, number: usize) -> String {
        let by = match self.author {
            PlanAuthor::Planner => "by the planner",
            PlanAuthor::Person => "by you",
            PlanAuthor::Earlier => "from before the session",
        };
        let unit = if self.steps == 1 { "step" } else { "steps" };
        let digits = self.digest.get(..DIGITS).unwrap_or(&self.digest);
        format!("{number} {by} · {} {unit} · {digits}", self.steps)
    }
}

#[derive(Debug)]
pub(crate) struct Compared {
    versions: Vec<Rc<Version>>,
    old: usize,
    new: usize,
    pub sheet: CardPage,
}

impl Compared {
    /// Returns a comparison of the last version with the one before it.
    pub(crate) fn last(versions: Vec<Rc<Version>>, revision: u64) -> Self {
        let new = versions.len().saturating_sub(1);
        let mut compared = Self { old: new.saturating_sub(1), new, versions, sheet: CardPage::default() };
        compared.lay(revision);
        compared
    }

    pub(crate) fn choose(&mut self, is_newer: bool, by: isize, revision: u64) {
        let last = self.versions.len().saturating_sub(1);
        let chosen = if is_newer { &mut self.new } else { &mut self.old };
        *chosen = chosen.saturating_add_signed(by).min(last);
        self.sheet = CardPage::default();
        self.lay(revision);
    }

    fn lay(&mut self, revision: u64) {
        let part = |text: String, look| Part::new(SafeText::line(&text), look);
        let mut parts = vec![part("versions of the plan:".to_owned(), Look::Heading)];
        for (at, version) in self.versions.iter().enumerate() {
            let mark = match at {
                _ if at == self.new => "+ ",
                _ if at == self.old => "- ",
                _ => "  ",
            };
            let look = if at == self.new || at == self.old { Look::Heading } else { Look::Tool };
            parts.push(part([mark, &version.words(at + 1)].concat(), look));
        }
        if let [Some(old), Some(new)] = [self.old, self.new].map(|at| self.versions.get(at)) {
            let diff = between(&old.markdown, &new.markdown, Some(1));
            let [from, to] = [self.old, self.new].map(|at| at + 1);
            if diff.is_empty() {
                parts.push(part(format!("no difference between {from} and {to}"), Look::Notice));
            } else {
                parts.push(part(format!("from {from} to {to}, {}:", diff.counts()), Look::Heading));
                parts.push(Part::diff(diff));
            }
        }
        self.sheet.renew(Block::of(parts), revision);
    }
}
