use super::scrolled;
use crate::card::CardPage;
use crate::commands::Command;
use crate::message::Action;
use crate::model::{Areas, Block, LineFor, Log, LogRows, Look, Mode, Model, Part, log_rows, plan_rows};
use crate::text::SafeText;

pub(super) fn open(model: &mut Model, actions: &mut Vec<Action>) {
    model.log = Log::awaited();
    model.mode = Mode::Log;
    actions.push(Action::ReadLog);
}

pub(super) fn read(model: &mut Model, read: Result<LogRows, String>) -> bool {
    match read {
        _ if !model.shows_log() => return false,
        Ok(rows) => model.log.read(rows),
        Err(why) => fail(model, &why),
    }
    true
}

pub(super) fn read_event(model: &mut Model, read: Result<String, String>) -> bool {
    match read {
        _ if !model.shows_log() => return false,
        Ok(json) => {
            let revision = model.next_revision();
            let block = Block::of(vec![Part::new(SafeText::exact(&json), Look::Output)]);
            model.log.event = Some(CardPage::new(block, revision));
        }
        Err(why) => fail(model, &why),
    }
    true
}

fn fail(model: &mut Model, why: &str) {
    close(model);
    model.answer(Look::Error, why);
}

fn close(model: &mut Model) {
    model.log = Log::default();
    model.line_for = LineFor::Command;
    model.mode = model.came_from;
}

pub(super) fn walk(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let area = Areas::now(model).transcript;
    let shows_event = model.log.event.is_some();
    let height = if shows_event { plan_rows(area.height) } else { log_rows(area.height) };
    if let Some(rows) = scrolled(command, height) {
        return match &mut model.log.event {
            Some(sheet) => sheet.scroll(rows, (area.width, height)),
            None => model.log.go(rows),
        };
    }
    match command {
        Command::Repaint => actions.push(Action::Repaint),
        Command::CloseLog if shows_event => model.log.event = None,
        Command::OpenEvent if !shows_event => {
            actions.extend(model.log.row().map(|row| Action::ReadEvent { at: row.at }));
        }
        Command::FilterLog if !shows_event => {
            model.line_for = LineFor::Filter;
            model.mode = Mode::Command;
        }
        Command::OnlyKind if !shows_event => model.log.toggle_kind(),
        Command::CloseLog => close(model),
        _ => {}
    }
}

pub(super) fn submit(model: &mut Model) {
    let words = model.line.take();
    model.log.filter(&words);
    leave_line(model);
}

pub(super) fn leave_line(model: &mut Model) {
    model.line_for = LineFor::Command;
    model.mode = Mode::Log;
}
