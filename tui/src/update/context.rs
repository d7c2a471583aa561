use std::collections::BTreeMap;

use crate::model::{Block, Context, ContextPiece, Look, Model, Part, tokens_in_short};
use crate::text::SafeText;

const MOST: usize = 10;

const BAR: u64 = 20;

pub(super) fn show(model: &mut Model) {
    let view = model.agents.shown();
    let (context, session) = (&view.context, &view.session);
    let estimated: u64 = context.pieces().iter().map(|piece| piece.tokens).sum();
    if estimated == 0 {
        return model.answer(Look::Notice, "the context is empty: no messages yet");
    }
    let scale = Scale { counted: session.context.unwrap_or(estimated), estimated };
    let mut parts = vec![line(&heading(scale.counted, session.window, session.filled()), Look::Heading)];
    let dropped = tokens_in_short(scale.of(context.summarised()));
    parts.push(line(
        &format!("sizes of the pieces are estimates · /compact replaces about {dropped} by a summary"),
        Look::Tool,
    ));
    let lists = [
        ("by kind", by(context, |piece| Some(piece.kind.as_str().to_owned()))),
        ("by file", by(context, |piece| piece.file.clone())),
        ("by tool", by(context, |piece| piece.tool.clone())),
        ("by message, with the work that followed", by(context, |piece| of_message(context, piece))),
        ("the largest pieces", largest(context)),
    ];
    // One scale for all lists: a small part of the window has a short bar in each.
    let most =
        lists.iter().filter_map(|(_, rows)| rows.first()).map(|(_, tokens)| *tokens).max().unwrap_or(1);
    for (title, rows) in lists.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        parts.push(line(title, Look::Heading));
        let hidden = rows.len().saturating_sub(MOST);
        for (name, tokens) in rows.into_iter().take(MOST) {
            let bar = "█".repeat(usize::try_from((tokens * BAR + most / 2) / most.max(1)).unwrap_or(0));
            let (size, share) = (tokens_in_short(scale.of(tokens)), tokens * 100 / estimated);
            parts.push(line(&format!("{size:>6} {share:>3}%  {bar:<20}  {name}"), Look::Tool));
        }
        if hidden > 0 {
            parts.push(line(&format!("{hidden} more"), Look::Tool));
        }
    }
    model.open_page(Block::of(parts));
}

fn line(text: &str, look: Look) -> Part {
    Part::new(SafeText::line(text), look)
}

fn heading(counted: u64, window: Option<u64>, share: Option<u64>) -> String {
    let of = window.map(|window| format!(" of {}", tokens_in_short(window))).unwrap_or_default();
    let share = share.map(|share| format!(" · {share}%")).unwrap_or_default();
    format!("context · {}{of} tokens{share}", tokens_in_short(counted))
}

/// Ratio of the provider's token count to the sum of the estimated tokens of all pieces.
#[derive(Clone, Copy)]
struct Scale {
    counted: u64,
    estimated: u64,
}

impl Scale {
    fn of(self, tokens: u64) -> u64 {
        let scaled = u128::from(tokens) * u128::from(self.counted) / u128::from(self.estimated.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Sums the tokens of pieces with the same `name`, largest sum first. Skips pieces for which `name` returns `None`.
fn by(context: &Context, name: impl Fn(&ContextPiece) -> Option<String>) -> Vec<(String, u64)> {
    let mut sums = BTreeMap::<String, u64>::new();
    for piece in context.pieces() {
        if let Some(name) = name(piece) {
            *sums.entry(name).or_default() += piece.tokens;
        }
    }
    sorted(sums.into_iter().collect())
}

fn of_message(context: &Context, piece: &ContextPiece) -> Option<String> {
    context.message(piece.turn).map(|text| format!("{}  {text}", piece.turn))
}

fn largest(context: &Context) -> Vec<(String, u64)> {
    sorted(context.pieces().iter().map(|piece| (piece.name.clone(), piece.tokens)).collect())
}

fn sorted(mut rows: Vec<(String, u64)>) -> Vec<(String, u64)> {
    rows.retain(|(_, tokens)| *tokens > 0);
    // The sort is stable: rows of one size stay in their order.
    rows.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    rows
}
