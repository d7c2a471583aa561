use ratatui::layout::Rect;

use super::{Mode, Model, OfferedCommands, Recalled, files, short_help, tasks, tree, written};
use crate::card::Card;
use crate::keymap::Keymap;

/// Minimum columns and rows of a screen. A smaller screen shows only one line, which says that it is too small.
const SMALLEST: (u16, u16) = (40, 10);

/// Minimum height of a screen on which the prompt stays visible below an approval request.
const ROOMY: u16 = 16;

/// True if a terminal is too small for the UI, and shows one line instead.
pub const fn is_tiny((width, height): (u16, u16)) -> bool {
    width < SMALLEST.0 || height < SMALLEST.1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    pub transcript: Rect,
    pub tree: Option<Rect>,
    pub queue: Rect,
    pub tasks: Rect,
    pub rule: Rect,
    pub answer: Rect,
    pub prompt: Rect,
    pub palette: Option<Rect>,
    pub status: Rect,
    /// Area of the approval request. It covers the queued messages, and on a low screen also the prompt.
    pub card: Option<Rect>,
}

impl Areas {
    pub(crate) fn of(model: &Model, screen: Rect) -> Self {
        let roomy = screen.height >= ROOMY;
        let mut rest = screen;
        let status = bottom(&mut rest, 1);
        let without_status = rest;
        let prompt =
            bottom(&mut rest, written::prompt_rows(model, screen.width).clamp(1, (screen.height / 3).max(1)));
        let rule = bottom(&mut rest, 1);
        let answer = model.answer.as_ref().map_or(0, |answer| answer.rows(screen.width));
        let answer = bottom(&mut rest, answer);
        let above_rule = rest;
        let palette = palette_area(model, above_rule);
        let queued = u16::try_from(model.agents.shown().queue.len()).unwrap_or(u16::MAX);
        let queue = bottom(&mut rest, queued.min(screen.height / 5));
        let tasks = bottom(&mut rest, u16::from(tasks::has_row(model, (screen.width, screen.height))));
        let card = model.card().map(|card| {
            let covers = model.mode != Mode::Command && answer.height == 0 && (!roomy || card.whole);
            let room = if covers { without_status } else { above_rule };
            card_area(card, &model.start.keymap, room)
        });
        // The transcript's last rows, which led to a request, stay visible above it.
        rest.height = card.map_or(rest.height, |card| rest.height.min(card.y.saturating_sub(rest.y)));
        let tree = match tree::columns(model, screen.width) {
            Some(columns) => Some(right(&mut rest, columns)),
            None => model.walks_tree().then_some(rest),
        };
        Self { transcript: rest, tree, tasks, queue, rule, answer, prompt, palette, status, card }
    }

    pub(crate) fn now(model: &Model) -> Self {
        Self::of(model, Rect::new(0, 0, model.size.0, model.size.1))
    }
}

/// Returns the number of rows for text in a view whose last row shows key hints.
pub(crate) const fn plan_rows(height: u16) -> u16 {
    height.saturating_sub(1)
}

pub(crate) const fn log_rows(height: u16) -> u16 {
    height.saturating_sub(2)
}

fn card_area(card: &Card, keymap: &Keymap, mut room: Rect) -> Rect {
    let text = u16::try_from(card.sheet().rows(room.width)).unwrap_or(u16::MAX);
    let frame = card.frame_rows(keymap, (room.width, room.height));
    let wanted = if card.whole { room.height } else { text.saturating_add(frame) };
    bottom(&mut room, wanted)
}

fn palette_area(model: &Model, mut room: Rect) -> Option<Rect> {
    let commands = OfferedCommands::of(model).map_or(0, |offered| offered.rows().len());
    let recalled = Recalled::of(model).map_or(0, |recalled| recalled.found().len());
    let files = if files::are_offered(model) { model.files.rows() } else { 0 };
    let rows = commands.max(recalled).max(files).max(short_help::rows(model).len());
    let rows = u16::try_from(rows).unwrap_or(u16::MAX);
    let rows = rows.min(room.height.saturating_sub(2));
    (rows > 0).then(|| bottom(&mut room, rows))
}

fn right(area: &mut Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width);
    area.width -= columns;
    Rect { x: area.x + area.width, width: columns, ..*area }
}

fn bottom(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    area.height -= rows;
    Rect { y: area.y + area.height, height: rows, ..*area }
}
