//! Highlighting of visible code, some lines at a time.

use crate::highlight::{CodeRead, CodeToRead, Place};
use crate::message::Action;
use crate::model::{Areas, Model, Part};

/// Requests the highlighting of the next visible lines, unless a request is open.
pub(super) fn ask(model: &mut Model, actions: &mut Vec<Action>) {
    if model.reads_code {
        return;
    }
    let number = model.next_revision();
    let area = Areas::now(model).transcript;
    let of_card = model.cards.front_mut().and_then(|card| {
        let place = card.number();
        let parts = card.body.block.parts.iter_mut().enumerate();
        first(parts, number).map(|(part, lines)| (Place::Card(place, part), lines))
    });
    let place = model.page.revision();
    let parts = model.page.block.parts.iter_mut().enumerate();
    let of_page = first(parts, number).map(|(part, lines)| (Place::Page(place, part), lines));
    let next = of_card.or(of_page).or_else(|| {
        let agent = model.agents.shown_id().clone();
        let transcript = &mut model.agents.shown_mut().transcript;
        transcript.shown_blocks(area.width, area.height).find_map(|at| {
            let parts = transcript.block_mut(at)?.parts.iter_mut().enumerate();
            first(parts, number).map(|(part, lines)| (Place::Transcript(agent.clone(), at, part), lines))
        })
    });
    if let Some((place, unread)) = next {
        model.reads_code = true;
        actions.push(Action::Read(Box::new(CodeToRead { place, number, unread })));
    }
}

fn first<'a>(
    mut parts: impl Iterator<Item = (usize, &'a mut Part)>,
    number: u64,
) -> Option<(usize, crate::highlight::Unread)> {
    parts.find_map(|(at, part)| Some((at, part.begin_reading(number)?)))
}

pub(super) fn read(model: &mut Model, read: &CodeRead) -> bool {
    model.reads_code = false;
    let part = match &read.place {
        Place::Card(number, part) => {
            let card = model.cards.iter_mut().find(|card| card.number() == *number);
            card.and_then(|card| card.body.block.parts.get_mut(*part))
        }
        Place::Page(revision, part) => {
            let is_it = model.page.revision() == *revision;
            is_it.then_some(&mut model.page.block.parts).and_then(|parts| parts.get_mut(*part))
        }
        Place::Transcript(agent, block, part) => {
            let block = model.agents.of(agent).transcript.block_mut(*block);
            block.and_then(|block| block.parts.get_mut(*part))
        }
    };
    // If the code is no longer there, the next frame requests what is visible.
    part.is_none_or(|part| part.has_read(read))
}
