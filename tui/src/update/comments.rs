//! Keys for commenting on the steps of a plan.

use protocol::approval::ReviewDecision;

use super::approval::{answer, set_stage, text_rows};
use crate::card::{Asked, Card, Comments, Stage};
use crate::commands::{Command, KeyMode};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{Areas, Model};

pub(super) fn begin(model: &mut Model) {
    if model.cards.front().is_some_and(|card| card.comments.is_some()) {
        set_stage(model, Stage::Comments);
        lay(model);
    }
}

pub(super) fn keep(model: &mut Model, closed: &Asked) {
    let card = model.cards.iter_mut().find(|card| card.asked == *closed && card.is_revised());
    if let Some(comments) = card.and_then(|card| card.comments.take()) {
        model.comments = Some((closed.agent.clone(), comments));
    }
}

/// Moves the comments on the plan's previous version to the request `card`. Reports comments whose step is gone.
pub(super) fn take_over(model: &mut Model, card: &mut Card) {
    let Some(comments) = &mut card.comments else { return };
    let Some((_, before)) = model.comments.take_if(|(agent, _)| *agent == card.asked.agent) else { return };
    let words = match comments.take_over(before) {
        0 => return,
        1 => "1 comment was removed with its step".to_owned(),
        gone => format!("{gone} comments were removed with their steps"),
    };
    let revision = model.next_revision();
    card.remark(&words, &model.start.project, revision);
}

pub(super) fn key(model: &mut Model, key: Key, actions: &mut Vec<Action>) -> bool {
    let page = isize::try_from(rows(model).1.saturating_sub(1).max(1)).unwrap_or(1);
    let command = model.start.keymap.command(KeyMode::Comments, key);
    let digit = key.text().and_then(|c| c.to_digit(10)).and_then(|digit| usize::try_from(digit).ok());
    let Some(comments) = comments(model) else { return false };
    match (command, digit) {
        (Some(Command::SendComments), _) => return send(model, actions),
        (Some(Command::Back), _) => {
            set_stage(model, Stage::Deciding);
            return true;
        }
        (Some(Command::WriteComment), _) => comments.write(),
        (Some(Command::LineUp), _) => comments.choose(-1),
        (Some(Command::LineDown), _) => comments.choose(1),
        (Some(Command::PageUp), _) => comments.choose(-page),
        (Some(Command::PageDown), _) => comments.choose(page),
        (Some(Command::Top), _) => comments.choose(isize::MIN),
        (Some(Command::Bottom), _) => comments.choose(isize::MAX),
        (None, Some(digit)) => comments.choose_by_digit(digit),
        _ => return false,
    }
    lay(model);
    true
}

pub(super) fn end_writing(model: &mut Model) {
    if let Some(comments) = comments(model) {
        comments.end_writing();
    }
    lay(model);
}

fn send(model: &mut Model, actions: &mut Vec<Action>) -> bool {
    let Some(message) = comments(model).and_then(|comments| comments.message()) else { return false };
    answer(model, ReviewDecision::Denied { message: Some(message) }, actions);
    true
}

fn lay(model: &mut Model) {
    let revision = model.next_revision();
    let size = rows(model);
    if let Some(comments) = comments(model) {
        comments.lay(revision, size);
    }
}

fn rows(model: &Model) -> (u16, u16) {
    let area = Areas::now(model).card.unwrap_or_default();
    let card = model.cards.front();
    (area.width, card.map_or(0, |card| text_rows(card, &model.start.keymap, area)))
}

fn comments(model: &mut Model) -> Option<&mut Comments> {
    model.cards.front_mut()?.comments.as_mut()
}
