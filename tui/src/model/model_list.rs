//! List of language models on a page, from which the person chooses one.

use super::{Block, Look, Part};
use crate::known_models::{KnownModel, KnownModels};
use crate::text::SafeText;

const NAMES: usize = 34;

#[derive(Debug)]
pub(crate) struct ModelList {
    heading: String,
    rows: Vec<ModelRow>,
    chosen: usize,
}

#[derive(Debug)]
struct ModelRow {
    name: String,
    window: String,
    price: String,
}

impl ModelRow {
    fn of(known: &KnownModel) -> Self {
        let price = known.price.clone().unwrap_or_else(|| "price unknown".to_owned());
        Self { name: known.name.clone(), window: tokens(known.window), price }
    }
}

pub(crate) fn tokens(count: u64) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        1_000_000.. => format!("{}.{}M", count / 1_000_000, count / 100_000 % 10),
        1_000.. => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}

impl ModelList {
    /// Returns a list of all known models, in which the current one, `now`, is selected.
    pub(crate) fn all(models: &KnownModels, now: &str) -> Self {
        let mut rows: Vec<_> = models.all().map(ModelRow::of).collect();
        if !rows.iter().any(|row| row.name == now) {
            let (window, price) = ("?".to_owned(), "window and price unknown".to_owned());
            rows.insert(0, ModelRow { name: now.to_owned(), window, price });
        }
        let chosen = rows.iter().position(|row| row.name == now).unwrap_or(0);
        let heading = "models · context window · price of a million tokens".to_owned();
        Self { heading, rows, chosen }
    }

    /// Returns a list of models with names similar to `name`, and `name` itself as it was typed.
    pub(crate) fn near(models: &KnownModels, name: &str) -> Self {
        let near = models.near(name);
        let mut rows: Vec<_> = near.iter().filter_map(|near| models.named(near)).map(ModelRow::of).collect();
        let (window, price) = ("?".to_owned(), "as typed; window and price unknown".to_owned());
        rows.push(ModelRow { name: name.to_owned(), window, price });
        Self { heading: format!("unknown model {name}; choose a model"), rows, chosen: 0 }
    }

    pub(crate) fn go(&mut self, rows: isize) {
        let bottom = self.rows.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(rows).min(bottom);
    }

    pub(crate) fn chosen(&self) -> Option<&str> {
        self.rows.get(self.chosen).map(|row| row.name.as_str())
    }

    /// Returns the row of the page that must be visible: the selected model, or the heading if that is the first one.
    pub(crate) const fn chosen_row(&self) -> usize {
        if self.chosen == 0 { 0 } else { self.chosen + 1 }
    }

    /// Returns the list as a block; the row of the current model says `now`.
    pub(crate) fn block(&self, now: &str) -> Block {
        let names = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(NAMES);
        let mut parts = vec![Part::new(SafeText::line(&self.heading), Look::Heading)];
        for (at, ModelRow { name, window, price }) in self.rows.iter().enumerate() {
            let is_chosen = at == self.chosen;
            let (mark, look) = if is_chosen { ("▸", Look::Heading) } else { (" ", Look::Tool) };
            let current = if name == now { " · now" } else { "" };
            let line = format!("{mark} {name:<names$}  {window:>5}  {price}{current}");
            parts.push(Part::new(SafeText::line(&line), look));
        }
        Block::of(parts)
    }
}
