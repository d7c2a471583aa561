//! Streamed text of a reply, which is parsed as Markdown at most once per frame.

use std::time::Duration;

use crate::markdown::{Piece, Source, render};
use crate::model::{AgentView, Block, Look, Model};
use crate::moment::UiTime;

/// Minimum time between two parses: the duration of a frame.
const PACE: Duration = Duration::from_millis(16);

/// Number of unparsed bytes from which they are parsed without waiting for [`PACE`].
const MOST: usize = 64 << 10;

pub(super) fn push(view: &mut AgentView, now: UiTime, delta: &str) {
    view.reply.source.push(delta);
    view.reply.waits = true;
    if due_in(view, now) == Some(Duration::ZERO) || view.reply.source.len() > MOST {
        read(view, now);
    }
}

/// Returns the time until an agent's streamed text is parsed; `None` if no text is unparsed.
fn due_in(view: &AgentView, now: UiTime) -> Option<Duration> {
    let reply = &view.reply;
    reply.waits.then(|| reply.read_at.map_or(Duration::ZERO, |at| PACE.saturating_sub(now.since(at))))
}

/// Returns the time until the next parse of any agent's text; `None` if no text is unparsed.
pub(super) fn next(model: &Model, now: UiTime) -> Option<Duration> {
    model.agents.each().filter_map(|(_, view)| due_in(view, now)).min()
}

pub(super) fn read_all(model: &mut Model) -> bool {
    let now = model.now;
    let mut any = false;
    for view in model.agents.all_mut().filter(|view| view.reply.waits) {
        read(view, now);
        any = true;
    }
    any
}

/// Parses the streamed text. Finished blocks of Markdown are kept; the unfinished rest is parsed again next time.
fn read(view: &mut AgentView, now: UiTime) {
    (view.reply.waits, view.reply.read_at) = (false, Some(now));
    for piece in view.reply.source.finished() {
        show(view, &piece);
        view.reply.text = None;
    }
    if let Some(piece) = view.reply.source.open() {
        show(view, &piece);
    }
}

pub(super) fn end(view: &mut AgentView, now: UiTime) {
    if view.reply.waits {
        read(view, now);
    }
    view.reply.source = Source::default();
    view.reply.text = None;
}

pub(super) fn begin(view: &mut AgentView, block: Block) -> usize {
    let at = view.transcript.push(block);
    view.reply.blocks.push(at);
    at
}

fn show(view: &mut AgentView, piece: &Piece) {
    let block = render(piece, Look::Assistant);
    match view.reply.text.and_then(|at| view.transcript.block_mut(at)) {
        Some(open) => open.renew(block),
        None => view.reply.text = Some(begin(view, block)),
    }
}
