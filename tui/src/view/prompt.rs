//! Prompt, and the rows directly above it.

use std::fmt::Write;

use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{Areas, Editor, LineFor, Mode, Model, PLANNER, Pending, Shape, Written, is_recalling};
use crate::text::{Clusters, SafeStr, SafeText};

/// Maximum number of transcript rows below the screen that are counted.
const MOST_BELOW: usize = 999;

pub(super) fn queue(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    for (y, message) in (0..pane.height()).zip(&model.agents.shown().queue) {
        let x = pane.put(0, y, "queued › ", theme.dim());
        pane.put(x, y, SafeText::line(&message.beginning()).all(), theme.dim());
    }
}

pub(super) fn rule(model: &Model, areas: &Areas, pane: &mut Pane<'_>, theme: Theme) {
    let dashes = "─".repeat(usize::from(pane.width()));
    pane.put(0, 0, SafeText::prose(&dashes).all(), theme.dim());
    let words = activity(model, areas);
    let mut x = 2;
    if !words.is_empty() {
        x = pane.put(x, 0, " ", Style::new());
        x = pane.put_cut(x, 0, SafeText::line(&words).all(), theme.strong());
        x = pane.put(x, 0, " ", Style::new());
    }
    changed(model, pane, x, theme);
}

/// Draws the summary of the changes at the right end of the row, if it fits after column `from`.
fn changed(model: &Model, pane: &mut Pane<'_>, from: u16, theme: Theme) {
    let Some(summary) = model.changes.summary().filter(|_| model.mode != Mode::Page) else { return };
    let text = SafeText::line(&format!(" {summary} · :diff "));
    let columns: usize = Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum();
    let at = usize::from(pane.width()).checked_sub(columns + 2).filter(|at| *at > usize::from(from));
    if let Some(at) = at.and_then(|at| u16::try_from(at).ok()) {
        pane.put(at, 0, text.all(), theme.dim());
    }
}

fn activity(model: &Model, areas: &Areas) -> String {
    let view = model.agents.shown();
    let mut words = String::new();
    let add = |words: &mut String, more: &str| {
        words.push_str(if words.is_empty() { "" } else { " · " });
        words.push_str(more);
    };
    if model.agents.each().count() > 1 {
        // Names the agent that gets the messages. Writing to a string cannot fail.
        let _ = write!(words, "agent {}", model.agents.shown_id());
    }
    if let Some(remark) = &model.remark {
        add(&mut words, remark);
    }
    if model.mode == Mode::Select {
        // Keys act on the selection here; the state of the turn follows.
        add(&mut words, &selecting(model, areas));
    }
    if !model.cards.is_empty() {
        add(&mut words, "waiting for your answer");
    } else if let Some(began) = view.turn.began {
        let interrupt = model.start.keymap.hint(KeyMode::Normal, Command::Interrupt);
        let doing = if view.turn.interrupted {
            format!("interrupting {} s", model.now.since(began).as_secs())
        } else {
            view.turn.doing.words(began, model.now)
        };
        add(&mut words, &format!("{doing} · {interrupt} interrupts"));
    } else if model.over {
        add(&mut words, "the session is over · :q leaves");
    } else if view.ended.is_some() {
        add(&mut words, "this agent has ended");
    }
    if let Some(own) = &model.own {
        add(&mut words, &own.words());
    }
    for image in &model.attached {
        add(&mut words, &format!("{image} goes with the next message"));
    }
    if let Some(Pending::Net(_)) = view.session.pending {
        add(&mut words, "the worker is finishing");
    }
    let reads = matches!(model.mode, Mode::Normal | Mode::Insert | Mode::Command | Mode::Agents);
    if reads && !view.transcript.follows() {
        add(&mut words, &below(model, areas));
    }
    words
}

fn selecting(model: &Model, areas: &Areas) -> String {
    let transcript = &model.agents.shown().transcript;
    let unit = match transcript.selection_shape() {
        Some(Shape::Lines) | None => "row",
        Some(Shape::Characters) => "row by characters",
        Some(Shape::Columns) => "row by columns",
    };
    let rows = transcript.selected_rows(areas.transcript.width);
    let unit = if rows == 1 { unit.to_owned() } else { unit.replacen("row", "rows", 1) };
    let key = |command| model.start.keymap.hint(KeyMode::Select, command);
    let hints = [
        (Command::CopySelection, "copies"),
        (Command::SelectAround, "all of it"),
        (Command::OtherEnd, "other end"),
        (Command::CloseSelection, "leaves"),
    ];
    let hints = hints.map(|(command, does)| (key(command), does));
    let hints = hints.iter().filter(|(key, _)| !key.is_empty()).map(|(key, does)| format!(" · {key} {does}"));
    std::iter::once(format!("{rows} {unit}")).chain(hints).collect()
}

fn below(model: &Model, areas: &Areas) -> String {
    let rows =
        model.agents.shown().transcript.below((areas.transcript.width, areas.transcript.height), MOST_BELOW);
    let more = if rows == MOST_BELOW { "+" } else { "" };
    let lines = if rows == 1 { "line" } else { "lines" };
    let key = match model.mode {
        Mode::Normal | Mode::Agents => model.start.keymap.hint(KeyMode::Normal, Command::Bottom),
        Mode::Insert => model.start.keymap.hint(KeyMode::Insert, Command::LineEnd),
        _ => String::new(),
    };
    let key = if key.is_empty() { key } else { format!(" - {key} to follow") };
    format!("{rows}{more} {lines} below{key}")
}

/// Draws the prompt or the command line. Returns the position of the caret; `None` if typed keys write nothing.
pub(super) fn prompt(model: &Model, pane: &mut Pane<'_>, theme: Theme) -> Option<(u16, u16)> {
    let (mark, editor) = match model.mode {
        Mode::Command => (if model.line_for == LineFor::Command { ":" } else { "/" }, &model.line),
        Mode::Insert if is_recalling(model) => ("history › ", &model.prompt),
        Mode::Insert
        | Mode::Normal
        | Mode::Agents
        | Mode::Plan
        | Mode::Log
        | Mode::Rewind
        | Mode::Page
        | Mode::Findings
        | Mode::Select => ("› ", &model.prompt),
    };
    let writes = matches!(model.mode, Mode::Command | Mode::Insert);
    let style = if writes { Style::new() } else { theme.dim() };
    // The prompt shows that the message goes to a planning agent.
    let left = if model.plans_now() { pane.put(0, 0, PLANNER, theme.planner()) } else { 0 };
    let left = pane.put(left, 0, mark, theme.strong());
    let caret = written(pane, (left, 0), editor, pane.height(), style);
    caret.filter(|_| writes)
}

/// Draws the text of an editor after a mark. Returns the caret's position on the screen; `None` if it is not visible.
pub(super) fn marked(
    pane: &mut Pane<'_>,
    (x, y): (u16, u16),
    mark: SafeStr<'_>,
    editor: &Editor,
    rows: u16,
    theme: Theme,
) -> Option<(u16, u16)> {
    let left = pane.put(x, y, mark, theme.strong());
    written(pane, (left, y), editor, rows, Style::new())
}

fn written(
    pane: &mut Pane<'_>,
    (x, y): (u16, u16),
    editor: &Editor,
    rows: u16,
    style: Style,
) -> Option<(u16, u16)> {
    let written = Written::new(editor, pane.width().saturating_sub(x), rows);
    for (row, line) in (y..).zip(&written.rows) {
        pane.put(x, row, written.text.slice(line.start..line.end), style);
    }
    pane.on_screen((x + written.caret.0, y + written.caret.1))
}
