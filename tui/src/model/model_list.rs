//! List of models on a page, from which the person chooses one.

use super::{Areas, Block, Look, Model, Part, plan_rows};
use crate::known_models::KnownModel;
use crate::text::SafeText;

/// Maximum width of the column of names.
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

impl Model {
    /// Selects the current model.
    pub(crate) fn open_models(&mut self) {
        let now = self.agents.shown().session.model.clone();
        let mut rows: Vec<_> = self.start.models.all().map(ModelRow::of).collect();
        if !rows.iter().any(|row| row.name == now) {
            let (window, price) = ("?".to_owned(), "window and price unknown".to_owned());
            rows.insert(0, ModelRow { name: now.clone(), window, price });
        }
        let chosen = rows.iter().position(|row| row.name == now).unwrap_or(0);
        let heading = "models · context window · price of a million tokens".to_owned();
        self.open_list(ModelList { heading, rows, chosen });
    }

    /// Lists similar models, and the name as it was typed.
    pub(crate) fn ask_about_model(&mut self, name: &str) {
        let models = &self.start.models;
        let near = models.near(name);
        let mut rows: Vec<_> = near.iter().filter_map(|near| models.named(near)).map(ModelRow::of).collect();
        let (window, price) = ("?".to_owned(), "as typed; window and price unknown".to_owned());
        rows.push(ModelRow { name: name.to_owned(), window, price });
        let heading = format!("unknown model {name}; choose a model");
        self.open_list(ModelList { heading, rows, chosen: 0 });
    }

    fn open_list(&mut self, list: ModelList) {
        self.open_page(Block::default());
        self.known_list = Some(list);
        self.lay_models();
    }

    pub(crate) fn move_in_models(&mut self, rows: isize) -> bool {
        let Some(list) = &mut self.known_list else { return false };
        let bottom = list.rows.len().saturating_sub(1);
        list.chosen = list.chosen.saturating_add_signed(rows).min(bottom);
        self.lay_models();
        true
    }

    pub(crate) fn chosen_model(&self) -> Option<String> {
        let list = self.known_list.as_ref()?;
        list.rows.get(list.chosen).map(|row| row.name.clone())
    }

    fn lay_models(&mut self) {
        let revision = self.next_revision();
        let Some(list) = &self.known_list else { return };
        let now = &self.agents.shown().session.model;
        let names = list.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(NAMES);
        let mut parts = vec![Part::new(SafeText::line(&list.heading), Look::Heading)];
        for (at, ModelRow { name, window, price }) in list.rows.iter().enumerate() {
            let is_chosen = at == list.chosen;
            let (mark, look) = if is_chosen { ("▸", Look::Heading) } else { (" ", Look::Tool) };
            let current = if name == now { " · now" } else { "" };
            let line = format!("{mark} {name:<names$}  {window:>5}  {price}{current}");
            parts.push(Part::new(SafeText::line(&line), look));
        }
        let shown = if list.chosen == 0 { 0 } else { list.chosen + 1 };
        let area = Areas::now(self).transcript;
        self.page.renew(Block::of(parts), revision);
        self.page.reveal(shown, 0, (area.width, plan_rows(area.height)));
    }
}
