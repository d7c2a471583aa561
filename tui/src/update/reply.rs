//! The text of a reply, as it streams.

use crate::markdown::{Piece, Source, render};
use crate::model::{AgentView, Block, Look};

/// Goes on with what comes next: what is finished stays as it is, and the rest is read again.
pub(super) fn push(view: &mut AgentView, delta: &str) {
    let only_words = view.reply.source.is_continued_by(delta);
    for piece in view.reply.source.push(delta) {
        show(view, &piece);
        view.reply.text = None;
    }
    let block = view.reply.text.and_then(|at| view.transcript.block_mut(at));
    if only_words && block.and_then(|block| block.parts.last_mut()).is_some_and(|part| part.push_words(delta))
    {
        return;
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
