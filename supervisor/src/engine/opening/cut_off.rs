//! File changes that the end of Bailiwick's process cut off. An observer finds out whether the changes were completed.

use std::collections::BTreeMap;

use gate::activity::Activity;
use gate::tools::{Invocation, Registry};
use ipc::effect::Effect;
use ipc::id::{AgentId, CallId};
use ipc::tool::{Edit, EditFile, ToolCall};
use protocol::event::{EventKind, SessionEvent};
use tokio::runtime::Builder;

use crate::engine::driver::SnapshotTaker;
use crate::journal::session::CutOff;

/// Maximum number of calls that are checked in a session.
const MOST: usize = 64;

/// Returns the state of each file whose change was cut off, except files whose state cannot be determined.
pub(super) fn found(
    events: &[SessionEvent],
    observer: &SnapshotTaker,
) -> BTreeMap<(AgentId, CallId), CutOff> {
    let open = open_changes(events);
    // For each call, its effect now and the effect of the call that would undo it.
    let asked: Vec<_> = open
        .iter()
        .flat_map(|(_, call)| [call.clone(), reverse(call).unwrap_or_else(|| call.clone())])
        .collect();
    let effects = effects(observer, asked);
    let states = open.iter().zip(effects.chunks_exact(2)).filter_map(|((id, call), effects)| {
        let [again, back] = effects else { return None };
        Some((id.clone(), state(call, again.as_ref(), back.is_some())?))
    });
    states.collect()
}

/// Returns the calls of file tools that have no end event.
fn open_changes(events: &[SessionEvent]) -> Vec<((AgentId, CallId), ToolCall)> {
    let tools = Registry::for_activity(Activity::Execute);
    let mut open = BTreeMap::new();
    for event in events {
        match &event.kind {
            EventKind::ToolCallStarted { call, name, input, .. } => {
                if let Ok(Invocation::Worker(tool @ (ToolCall::WriteFile(_) | ToolCall::EditFile(_)))) =
                    tools.parse(name, input.get())
                {
                    open.insert((event.agent.clone(), *call), tool);
                }
            }
            EventKind::ToolCallFinished { call, .. } => drop(open.remove(&(event.agent.clone(), *call))),
            _ => {}
        }
    }
    open.into_iter().take(MOST).collect()
}

/// Returns the edit that would undo an edit; `None` if the edit's texts do not determine the text before it.
fn reverse(call: &ToolCall) -> Option<ToolCall> {
    let ToolCall::EditFile(EditFile { path, edits }) = call else { return None };
    let back = |edit: &Edit| Edit {
        old_string: edit.new_string.clone(),
        new_string: edit.old_string.clone(),
        replace_all: edit.replace_all,
    };
    let is_told = edits.iter().all(|edit| !edit.new_string.is_empty());
    is_told.then(|| {
        let edits = edits.iter().rev().map(back).collect();
        ToolCall::EditFile(EditFile { path: path.clone(), edits })
    })
}

fn state(call: &ToolCall, again: Option<&Effect>, goes_back: bool) -> Option<CutOff> {
    if let ToolCall::WriteFile(_) = call {
        let Some(Effect::Patch(patch)) = again else { return None };
        let is_so = patch.files.iter().all(|file| {
            let bytes =
                |state: &Option<ipc::effect::FileState>| state.as_ref().map(|state| state.bytes.clone());
            bytes(&file.old) == bytes(&file.new)
        });
        return Some(if is_so { CutOff::CarriedOut } else { CutOff::Otherwise });
    }
    match (again.is_some(), goes_back, reverse(call).is_some()) {
        (_, _, false) | (true, true, true) => None,
        (true, false, true) => Some(CutOff::NotCarriedOut),
        (false, true, true) => Some(CutOff::CarriedOut),
        (false, false, true) => Some(CutOff::Otherwise),
    }
}

/// Returns the effect that each call would have now; `None` if the effect is unknown. Opening a session is not async,
/// so this blocks, with an async runtime on another thread.
fn effects(observer: &SnapshotTaker, calls: Vec<ToolCall>) -> Vec<Option<Effect>> {
    if calls.is_empty() {
        return Vec::new();
    }
    let told = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(observer.effects(calls)).ok()
        });
        asking.join().ok().flatten()
    });
    told.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ipc::effect::{FileEffect, FileState, Patch};
    use ipc::tool::WriteFile;

    use super::*;

    fn edit(old: &str, new: &str) -> ToolCall {
        let (old_string, new_string) = (old.to_owned(), new.to_owned());
        let edits = vec![Edit { old_string, new_string, replace_all: false }];
        ToolCall::EditFile(EditFile { path: "a".into(), edits })
    }

    fn patch(old: Option<&str>, new: &str) -> Effect {
        let file = |text: &str| FileState { bytes: text.as_bytes().to_vec(), mode: 0o644 };
        let (old, new) = (old.map(file), Some(file(new)));
        Effect::Patch(Patch { files: vec![FileEffect { path: "/p/a".into(), old, new, replacements: 1 }] })
    }

    #[test]
    fn a_state_is_told_where_it_is_the_only_one_that_fits() {
        let (one, effect) = (edit("1", "2"), patch(Some("1"), "2"));
        assert_eq!(state(&one, Some(&effect), false), Some(CutOff::NotCarriedOut));
        assert_eq!(state(&one, None, true), Some(CutOff::CarriedOut));
        assert_eq!(state(&one, None, false), Some(CutOff::Otherwise));
        assert_eq!(state(&one, Some(&effect), true), None);
        // A deleted text cannot be found again.
        assert_eq!(state(&edit("1", ""), None, true), None);
        let write = ToolCall::WriteFile(WriteFile { path: "a".into(), content: "2".to_owned() });
        assert_eq!(state(&write, Some(&patch(Some("2"), "2")), false), Some(CutOff::CarriedOut));
        assert_eq!(state(&write, Some(&patch(None, "2")), false), Some(CutOff::Otherwise));
        assert_eq!(state(&write, None, false), None);
    }
}
