//! Rewind of files and conversation. The person selects a message, sees the consequences, and confirms.

use std::path::Path;

use ipc::id::AgentId;
use ipc::path::WirePath;
use protocol::event::{ChangeKind, RewindPreview, RewindScope, RewindTarget, Rewound};
use protocol::frontend::UserActionKind;

use super::scrolled;
use crate::card::CardPage;
use crate::commands::Command;
use crate::message::Action;
use crate::model::{Areas, Block, Editor, Look, Mode, Model, Part, Reply, plan_rows};
use crate::text::SafeText;

pub(super) fn open(model: &mut Model) {
    if model.agents.any_is_running() {
        return model.answer(Look::Notice, "an agent is working: stop it (Esc) before a rewind");
    }
    if model.rewind.said.is_empty() && !model.rewind.can_undo {
        return model.answer(Look::Notice, "there is no message to rewind to");
    }
    model.mode = Mode::Rewind;
    model.rewind.turn = None;
    model.rewind.only.clear();
    model.rewind.chosen = model.rewind.said.len().saturating_sub(1);
    (model.rewind.asked, model.rewind.preview) = (None, None);
    lay(model);
}

/// Shows the changes of a turn that has ended, to keep or to undo, if the person allowed all of its requests.
pub(super) fn turn_over(model: &mut Model, actions: &mut Vec<Action>) {
    let is_of_turn = std::mem::take(&mut model.rewind.is_of_turn);
    let first = model.rewind.end_turn().map(|said| (said.id, said.change));
    let Some((to, change)) = first.filter(|_| is_of_turn) else { return };
    let is_free = matches!(model.mode, Mode::Normal | Mode::Insert) && model.cards.is_empty();
    if !is_free {
        return model
            .say(Look::Notice, "you allowed the whole turn: :rewind shows its changes, and undoes them");
    }
    model.came_from = model.mode;
    model.mode = Mode::Rewind;
    model.rewind.only.clear();
    model.rewind.turn = Some(change);
    ask_for(model, RewindTarget { to: Some(to), scope: RewindScope::Files }, actions);
}

/// Restores one file to its state at the start of the session.
pub(super) fn revert(model: &mut Model, path: &str, actions: &mut Vec<Action>) {
    open(model);
    if model.mode != Mode::Rewind {
        return;
    }
    let path = Path::new(path);
    let path = path.strip_prefix(model.start.project.as_path()).unwrap_or(path);
    model.rewind.only = vec![WirePath::from(path)];
    model.rewind.chosen = 0;
    ask(model, RewindScope::Files, actions);
}

pub(super) fn key(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let asks = model.rewind.asked.is_some();
    let size = size(model);
    if let Some(rows) = scrolled(command, size.1) {
        return if asks { model.rewind.sheet.scroll(rows, size) } else { choose(model, rows) };
    }
    let is_turn = model.rewind.turn.is_some();
    match command {
        // The changes of a turn can only be kept or undone as a whole.
        Command::RewindTo
        | Command::RewindBoth
        | Command::RewindFiles
        | Command::RewindConversation
        | Command::UndoRewind
            if is_turn => {}
        // Restoring one file does not change the conversation.
        Command::RewindTo | Command::RewindBoth | Command::RewindConversation
            if !model.rewind.only.is_empty() => {}
        Command::RewindTo | Command::RewindBoth => ask(model, RewindScope::Both, actions),
        Command::RewindFiles => ask(model, RewindScope::Files, actions),
        Command::RewindConversation => ask(model, RewindScope::Conversation, actions),
        Command::UndoRewind => {
            let undo = RewindTarget { to: None, scope: RewindScope::Both };
            ask_for(model, undo, actions);
        }
        Command::ConfirmRewind => confirm(model, actions),
        Command::Repaint => actions.push(Action::Repaint),
        _ if is_turn => {
            model.rewind.turn = None;
            (model.rewind.asked, model.rewind.preview) = (None, None);
            model.mode = model.came_from;
        }
        _ if asks => {
            (model.rewind.asked, model.rewind.preview) = (None, None);
            model.rewind.only.clear();
            lay(model);
        }
        _ => model.mode = model.came_from,
    }
}

fn choose(model: &mut Model, places: isize) {
    let last = model.rewind.said.len().saturating_sub(1);
    model.rewind.chosen = model.rewind.chosen.saturating_add_signed(places).min(last);
    lay(model);
}

pub(super) fn wheel(model: &mut Model, rows: isize) {
    let size = size(model);
    model.rewind.sheet.scroll(rows, size);
}

fn size(model: &Model) -> (u16, u16) {
    let area = Areas::now(model).transcript;
    (area.width, plan_rows(area.height))
}

fn ask(model: &mut Model, scope: RewindScope, actions: &mut Vec<Action>) {
    if let Some(target) = model.rewind.target(scope) {
        ask_for(model, target, actions);
    }
}

fn ask_for(model: &mut Model, target: RewindTarget, actions: &mut Vec<Action>) {
    (model.rewind.asked, model.rewind.preview) = (Some(target), None);
    model.rewind.sheet = CardPage::default();
    lay(model);
    let files = model.rewind.only.clone();
    actions.push(Action::User(AgentId::root(), UserActionKind::Rewind { target, files, digest: None }));
}

/// Executes the rewind if the person has scrolled to the end of its consequences. For the page after a turn whose
/// requests were all allowed, scrolling is not needed.
fn confirm(model: &mut Model, actions: &mut Vec<Action>) {
    let (width, height) = size(model);
    let Some(preview) = &model.rewind.preview else { return };
    let sheet = &model.rewind.sheet;
    let has_to_read = model.rewind.turn.is_none();
    if has_to_read && sheet.top(width, height) + usize::from(height) < sheet.rows(width) {
        model.remark = Some("read the list to its end first".to_owned());
        return;
    }
    let RewindPreview { target, only: files, digest, .. } = preview.clone();
    let kind = UserActionKind::Rewind { target, files, digest: Some(digest) };
    actions.push(Action::User(AgentId::root(), kind));
    model.rewind.preview = None;
    lay(model);
}

pub(super) fn previewed(model: &mut Model, preview: RewindPreview) {
    if model.mode != Mode::Rewind {
        return;
    }
    if model.rewind.turn.is_some() && preview.files.is_empty() && preview.left.is_empty() {
        refused(model);
        return model.say(Look::Notice, "the turn that you allowed changed no file");
    }
    model.rewind.asked = Some(preview.target);
    model.rewind.preview = Some(preview);
    model.rewind.sheet = CardPage::default();
    lay(model);
}

pub(super) fn refused(model: &mut Model) {
    model.rewind.turn = None;
    if model.mode == Mode::Rewind {
        model.mode = model.came_from;
    }
}

/// Removes the rewound messages and changes from the views.
pub(super) fn rewound(model: &mut Model, rewound: &Rewound) {
    let Rewound { target, files, left, error } = rewound;
    model.rewind.can_undo = target.to.is_some();
    let project = model.start.project.as_path();
    let paths = files.iter().map(|file| project.join(file.path.as_path()).into()).collect();
    match target.to {
        Some(to) => {
            let said = model.rewind.said.iter().find(|said| said.id == to);
            model.changes.take_back(paths, said.map_or(0, |said| said.change));
        }
        None => model.changes.give_back(),
    }
    let view = model.agents.of(&AgentId::root());
    let transcript = &mut view.transcript;
    match target.to {
        Some(to) if target.scope.has_conversation() => {
            view.session.context = None;
            view.reply = Reply::default();
            if let Some((block, text)) = model.rewind.take_back(to) {
                model.rewind.keep(transcript.cut_from(block));
                view.reads.cut_from(block);
                model.agents.forget_rows(block);
                if model.prompt.is_empty() {
                    // The removed message returns to the prompt, where it can be changed.
                    model.prompt = Editor::with(text);
                }
            }
        }
        Some(_) => model.rewind.forget_taken_back(),
        None => {
            let blocks = model.rewind.give_back(transcript.len());
            for block in blocks {
                transcript.push(block);
            }
        }
    }
    let is_turn = model.rewind.turn.take().is_some();
    let words = match (target.to.is_some(), target.scope) {
        (true, RewindScope::Files) if is_turn => "the turn is undone: files restored to before it",
        (false, _) => "the last rewind is undone",
        (true, RewindScope::Both) => "files and conversation restored to before that message",
        (true, RewindScope::Files) => "files restored to before that message",
        (true, RewindScope::Conversation) => "conversation restored to before that message",
    };
    let view = model.agents.of(&AgentId::root());
    view.say(Look::Notice, &format!("{words}{}", counted(files.len())));
    for left in left {
        view.say(Look::Notice, &format!("{} is not restored: {}", left.path, left.reason));
    }
    if let Some(error) = error {
        view.say(Look::Error, &format!("cannot restore everything: {error}"));
    }
    if model.mode == Mode::Rewind {
        model.mode = model.came_from;
    }
}

fn counted(files: usize) -> String {
    match files {
        0 => String::new(),
        1 => " · 1 file".to_owned(),
        more => format!(" · {more} files"),
    }
}

fn lay(model: &mut Model) {
    let revision = model.next_revision();
    let block = match (&model.rewind.asked, &model.rewind.preview) {
        (Some(_), Some(preview)) if model.rewind.turn.is_some() => whole_turn(model, preview),
        (Some(target), Some(preview)) => consequences(preview, model.rewind.beginning(*target)),
        (Some(_), None) => Block::of(vec![part("reading the project …", Look::Heading)]),
        (None, _) => messages(model),
    };
    model.rewind.sheet.renew(block, revision);
    if model.rewind.asked.is_none() {
        let (chosen, size) = (model.rewind.chosen + 1, size(model));
        model.rewind.sheet.reveal(chosen, 0, size);
    }
}

fn part(text: &str, look: Look) -> Part {
    Part::new(SafeText::line(text), look)
}

/// Returns the list of messages to rewind to, with times, later changes of files, and branches but the current one.
fn messages(model: &Model) -> Block {
    const ROW: usize = 300;
    let mut parts = vec![part("restore the session to before a message", Look::Heading)];
    let said = &model.rewind.said;
    let ends = said.iter().skip(1).map(|next| next.change).chain([model.changes.next()]);
    let changes: Vec<_> = said
        .iter()
        .zip(ends)
        .map(|(said, end)| model.changes.between(said.change..end).unwrap_or_default())
        .collect();
    let width = changes.iter().map(|change| change.chars().count()).max().unwrap_or(0);
    for (at, (said, change)) in said.iter().zip(&changes).enumerate() {
        let first = said.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(a picture)");
        let first: String = first.chars().take(ROW).collect();
        let is_chosen = at == model.rewind.chosen;
        let (mark, look) = if is_chosen { ("▸", Look::Heading) } else { (" ", Look::Tool) };
        let time = (model.start.local_time)(said.time_ms);
        let branch = said.branch.as_ref().filter(|_| said.branch != model.branch);
        let branch = branch.map(|name| format!(" · on branch {name}")).unwrap_or_default();
        let gap = if width == 0 { "" } else { "  " };
        let text = format!("{mark} {:>3}  {time}{gap}{change:<width$}  {first}{branch}", at + 1);
        parts.push(part(&text, look));
    }
    Block::of(parts)
}

/// Returns the page after a turn whose requests were all allowed: the consequences of an undo, then the changes.
fn whole_turn(model: &Model, preview: &RewindPreview) -> Block {
    let first = model.rewind.turn.unwrap_or_default();
    let changed = model.changes.between(first..model.changes.next());
    let heading = match changed {
        Some(counts) => format!("the turn that you allowed is over: {counts} · undo all of it?"),
        None => "the turn that you allowed is over: no file has changed".to_owned(),
    };
    let mut block = consequences(preview, None);
    block.parts.splice(0..1, [part(&heading, Look::Heading), part("undoing it would:", Look::Assistant)]);
    block.parts.extend(model.changes.since(first, &model.start.project));
    block
}

fn consequences(preview: &RewindPreview, said: Option<&str>) -> Block {
    let RewindPreview { target, files, left, messages, notes, .. } = preview;
    let heading = match target.to {
        Some(_) => format!("restore to before: {}", said.unwrap_or("(a picture)")),
        None => "undo the last rewind".to_owned(),
    };
    let mut parts = vec![part(&heading, Look::Heading)];
    if target.scope.has_conversation() && target.to.is_some() {
        let words = if *messages == 1 { "your last message, and" } else { "your messages, and" };
        let count = if *messages == 1 { String::new() } else { format!("the last {messages} of ") };
        parts.push(part(
            &format!("remove from the conversation: {count}{words} all that followed"),
            Look::Assistant,
        ));
    }
    if target.scope.has_files() {
        parts.extend(files.iter().map(|file| {
            let verb = match file.change {
                ChangeKind::Deleted => "delete",
                ChangeKind::Added | ChangeKind::Modified | ChangeKind::RenamedFrom(_) => "restore",
            };
            Part::new(SafeText::labelled(&format!("{verb:<8}"), file.path.as_bytes()), Look::Fact)
        }));
        if files.is_empty() {
            parts.push(part("no file would change", Look::Assistant));
        }
        for left in left {
            let text = format!("not restored ({}): ", left.reason);
            parts.push(Part::new(SafeText::labelled(&text, left.path.as_bytes()), Look::Notice));
        }
        parts.extend(notes.iter().map(|note| part(note, Look::Notice)));
        let beyond = "not changed: ignored files, git's own directory (commits stay), files above 2 MiB";
        parts.push(part(beyond, Look::Notice));
    }
    Block::of(parts)
}
