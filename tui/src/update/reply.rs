//! The text of a reply, as it streams.

use crate::markdown::{Piece, Source, render};
use crate::model::{AgentView, Block, Look};

/// Goes on with what comes next: what is finished stays as it is, and the rest is read again.
pub(super) fn push(view: &mut AgentView, delta: &str) {
    if let Some(words) = view.reply.source.words(delta)
        && let Some(block) = view.reply.text.and_then(|at| view.transcript.block_mut(at))
        && block.parts.last_mut().is_some_and(|part| part.push_words(words))
    {
        // No block is over, and nothing has to be read again.
        view.reply.source.push(delta);
        return;
    }
    for piece in view.reply.source.push(delta) {
        show(view, &piece);
        view.reply.text = None;
    }
    if let Some(piece) = view.reply.source.open() {
        show(view, &piece);
    }
}

/// Ends the text: what comes next is another one.
pub(super) fn end(view: &mut AgentView) {
    view.reply.source = Source::default();
    view.reply.text = None;
}

/// Begins a block of the reply.
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
