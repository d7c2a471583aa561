//! Keys that go from message to message or from output to output in the transcript, and keys that open or fold it.

use ipc::id::AgentId;

use super::tree;
use crate::commands::{Command, KeyMode};
use crate::model::{Areas, Found, Mode, Model, Stop, Unfolded};

/// Goes to the next or previous message or output. A remark says which keys go on from there.
pub(super) fn by(model: &mut Model, command: Command) {
    let down = matches!(command, Command::NextMessage | Command::NextOutput);
    let is_message = matches!(command, Command::PreviousMessage | Command::NextMessage);
    let stop = if is_message { Stop::Message } else { Stop::Output };
    let size = size(model);
    let found = model.agents.shown_mut().transcript.walk(stop, down, size);
    model.remark = Some(match (found, stop) {
        (Some(found), stop) => on(model, found, stop),
        (None, Stop::Message) => format!("no message {}", if down { "below" } else { "above" }),
        (None, Stop::Output) => format!("no output {}", if down { "below" } else { "above" }),
    });
}

/// Opens the marked block as a page; shows the sub-agent if it is the row of one. Returns false without a mark.
pub(super) fn open(model: &mut Model) -> bool {
    let Some(marked) = model.agents.shown().transcript.marked(size(model)) else { return false };
    if let Some(agent) = agent_of(model, marked) {
        tree::show(model, &agent);
        return true;
    }
    let transcript = &model.agents.shown().transcript;
    if let Some(whole) = transcript.whole(transcript.extent(marked)) {
        model.open_page(whole);
    }
    true
}

/// Folds or unfolds the marked block. If no block that can be folded is marked, folds or unfolds all output of tools.
pub(super) fn fold_output(model: &mut Model) {
    let size = size(model);
    let transcript = &mut model.agents.shown_mut().transcript;
    let unfolded = transcript.unfolded();
    let marked = transcript.marked(size).and_then(|marked| transcript.block_mut(marked));
    match marked.filter(|block| block.can_fold(size.0)) {
        Some(block) => block.toggle(size.0, unfolded),
        None => transcript.fold_all(|Unfolded { output, .. }| *output ^= true),
    }
}

pub(super) fn is_marked(model: &Model) -> bool {
    model.agents.shown().transcript.marked(size(model)).is_some()
}

pub(super) fn size(model: &Model) -> (u16, u16) {
    let area = Areas::now(model).transcript;
    (area.width, area.height)
}

/// Returns the remark: number of the message or output at which the keys stopped, and the keys that go on.
fn on(model: &Model, Found { number, of }: Found, stop: Stop) -> String {
    let mode = if model.mode == Mode::Insert { KeyMode::Insert } else { KeyMode::Normal };
    let key = |command| model.start.keymap.hint(mode, command);
    let (noun, above, below) = match stop {
        Stop::Message => ("message", Command::PreviousMessage, Command::NextMessage),
        Stop::Output => ("output", Command::PreviousOutput, Command::NextOutput),
    };
    let open = if mode == KeyMode::Insert { Command::Submit } else { Command::OpenRow };
    let hints = [
        (format!("{} {}", key(above), key(below)), "further"),
        (key(open), "opens"),
        (key(Command::FoldOutput), "folds"),
    ];
    let hints = hints.iter().take(if stop == Stop::Message { 1 } else { 3 });
    let hints = hints.filter(|(key, _)| !key.is_empty()).map(|(key, does)| format!(" · {key} {does}"));
    std::iter::once(format!("{noun} {number} of {of}")).chain(hints).collect()
}

/// Returns the running sub-agent whose row is block `block` of the shown transcript; `None` if it is another block.
fn agent_of(model: &Model, block: usize) -> Option<AgentId> {
    let shown = model.agents.shown_id();
    let mut rows = model.agents.each().filter_map(|(agent, view)| Some((agent, view.row.as_ref()?)));
    rows.find(|(_, row)| row.is_at(shown, block)).map(|(agent, _)| agent.clone())
}
