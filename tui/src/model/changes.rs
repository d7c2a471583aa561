use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ipc::id::{AgentCall, AgentId};
use ipc::path::WirePath;
use protocol::event::{ChangeKind, FileDiff, FilesChanged, Ignored, SeenChange};

use super::net::{Net, of};
use super::{Block, Look, Part};
use crate::card::in_project;
use crate::diff::{Counts, Diff};
use crate::highlight::language_of;
use crate::text::SafeText;
use crate::tool_summary::cut;

/// Maximum total size of the kept changes in bytes. Later changes are only counted.
const KEPT: usize = 16 << 20;

/// Maximum number of columns of a call that is shown as the cause of a change.
const CALL: usize = 60;

const SOURCES: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Changes {
    steps: Vec<ChangeStep>,
    bytes: usize,
    left_out: BTreeSet<AgentCall>,
    calls: BTreeMap<AgentCall, String>,
    nets: BTreeMap<WirePath, Counts>,
    more: u64,
    ignored: Ignored,
    next: usize,
    taken_back: Vec<ChangeStep>,
}

#[derive(Debug)]
pub(super) struct ChangeStep {
    number: usize,
    /// Absolute path of the file. If a later change moves the file, the path after the move.
    pub(super) path: WirePath,
    pub(super) told: ChangeTold,
}

#[derive(Debug)]
pub(super) enum ChangeTold {
    /// Change by a call of a file tool, as the call reported it.
    ByCall(AgentCall, FileDiff),
    /// Change found by comparing two snapshots of the project. True if calls of an interrupted run may have made it.
    ByLook(Box<SeenChange>, bool),
}

impl ChangeStep {
    pub(super) fn diff(&self) -> Option<&FileDiff> {
        match &self.told {
            ChangeTold::ByCall(_, diff) => Some(diff),
            ChangeTold::ByLook(seen, _) => seen.diff.as_ref(),
        }
    }

    pub(super) fn seen(&self) -> Option<&SeenChange> {
        match &self.told {
            ChangeTold::ByCall(..) => None,
            ChangeTold::ByLook(seen, _) => Some(seen),
        }
    }
}

impl Changes {
    pub(crate) fn begins(&mut self, call: AgentCall, is_command: bool, summary: &str) {
        let words = if is_command { summary } else { summary.split(' ').next().unwrap_or_default() };
        self.calls.insert(call, cut(words, CALL));
    }

    pub(crate) fn made(&mut self, call: &AgentCall, files: Vec<FileDiff>) {
        self.bytes += files.iter().map(length).sum::<usize>();
        if self.bytes > KEPT {
            return self.left_out(call.clone());
        }
        for file in files {
            let path = file.path.clone();
            self.push(path, ChangeTold::ByCall(call.clone(), file));
        }
    }

    pub(crate) fn seen(&mut self, changed: FilesChanged, project: &WirePath) {
        let FilesChanged { files, more, cut_off, ignored } = changed;
        self.more = self.more.saturating_add(more);
        self.ignored = ignored;
        let absolute = |path: &WirePath| WirePath::from(project.as_path().join(path.as_path()));
        for mut file in files {
            self.bytes += file.diff.as_ref().map_or(0, length);
            file.diff = file.diff.filter(|_| self.bytes <= KEPT);
            file.by.iter().for_each(|call| _ = self.left_out.remove(call));
            let path = absolute(&file.path);
            if let ChangeKind::RenamedFrom(old) = &file.change {
                self.moved(&absolute(old), &path);
            }
            self.push(path, ChangeTold::ByLook(Box::new(file), cut_off));
        }
    }

    fn push(&mut self, path: WirePath, told: ChangeTold) {
        self.steps.push(ChangeStep { number: self.next, path: path.clone(), told });
        self.next += 1;
        self.count([path].into());
    }

    fn moved(&mut self, old: &WirePath, new: &WirePath) {
        let steps = self.steps.iter_mut().filter(|step| step.path == *old);
        steps.for_each(|step| step.path.clone_from(new));
        self.nets.remove(old);
    }

    fn count(&mut self, paths: BTreeSet<WirePath>) {
        for path in paths {
            let steps: Vec<_> = self.steps.iter().filter(|step| step.path == path).collect();
            match Net::of(&steps) {
                Some(net) => _ = self.nets.insert(path, net.counts()),
                None => drop(self.nets.remove(&path)),
            }
        }
    }

    /// Returns the diff of each file since change number `first`, which is included.
    pub(crate) fn since(&self, first: usize, project: &WirePath) -> Vec<Part> {
        let mut files = BTreeMap::<&WirePath, Vec<&ChangeStep>>::new();
        for step in self.steps.iter().filter(|step| step.number >= first) {
            files.entry(&step.path).or_default().push(step);
        }
        let nets = files.values().filter_map(|steps| Some(self.file(steps, Net::of(steps)?, project)));
        nets.flat_map(|block| block.parts).collect()
    }

    pub(crate) fn between(&self, numbers: Range<usize>) -> Option<String> {
        let mut files = BTreeMap::<&WirePath, Vec<&ChangeStep>>::new();
        for step in self.steps.iter().filter(|step| numbers.contains(&step.number)) {
            files.entry(&step.path).or_default().push(step);
        }
        let nets: Vec<_> = files.values().filter_map(|steps| Net::of(steps)).collect();
        let mut sum = Counts::default();
        for counts in nets.iter().map(Net::counts) {
            sum.added = sum.added.saturating_add(counts.added);
            sum.removed = sum.removed.saturating_add(counts.removed);
        }
        match nets.len() {
            0 => None,
            1 => Some(format!("1 file {sum}")),
            files => Some(format!("{files} files {sum}")),
        }
    }

    pub(crate) const fn next(&self) -> usize {
        self.next
    }

    /// Returns sums, such as `3 files · +5 -4` or `1 file · +2 · not counted: 1 call`; `None` without changes.
    pub(crate) fn summary(&self) -> Option<String> {
        let mut sum = Counts::default();
        for counts in self.nets.values() {
            sum.added = sum.added.saturating_add(counts.added);
            sum.removed = sum.removed.saturating_add(counts.removed);
        }
        let count = self.nets.len();
        let words = if count == 1 { "file" } else { "files" };
        let files = (count > 0).then(|| format!("{count} {words} · {sum}"));
        let unknown = match self.left_out.len() {
            0 => None,
            1 => Some("not counted: 1 call".to_owned()),
            calls => Some(format!("not counted: {calls} calls")),
        };
        let parts: Vec<_> = files.into_iter().chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    pub(crate) fn take_back(&mut self, paths: BTreeSet<WirePath>, first: usize) {
        let (kept, taken) = std::mem::take(&mut self.steps)
            .into_iter()
            .partition(|step| step.number < first || !paths.contains(&step.path));
        (self.steps, self.taken_back) = (kept, taken);
        self.count(paths);
    }

    pub(crate) fn give_back(&mut self) {
        let paths = self.taken_back.iter().map(|step| step.path.clone()).collect();
        self.steps.append(&mut self.taken_back);
        self.steps.sort_by_key(|step| step.number);
        self.count(paths);
    }

    pub(crate) fn left_out(&mut self, call: AgentCall) {
        self.left_out.insert(call);
    }

    /// Returns a block per changed file, or per change if `by_step`. During a turn, a note says that changes may be
    /// missing.
    pub(crate) fn shown(&self, by_step: bool, project: &WirePath, in_turn: bool) -> Vec<Block> {
        let mut blocks: Vec<_> = if by_step {
            self.steps.iter().map(|step| self.step(step, project)).collect()
        } else {
            let of_path = |path: &WirePath| {
                let steps: Vec<_> = self.steps.iter().filter(|step| step.path == *path).collect();
                Some(self.file(&steps, Net::of(&steps)?, project))
            };
            self.nets.keys().filter_map(of_path).collect()
        };
        let note = |note: &String| Part::new(SafeText::line(note), Look::Notice);
        let notes = self.notes(blocks.is_empty(), in_turn);
        if !notes.is_empty() {
            blocks.push(Block::of(notes.iter().map(note).collect()).apart());
        }
        blocks
    }

    fn notes(&self, is_empty: bool, in_turn: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if is_empty {
            notes.push("no file has changed".to_owned());
        }
        if !self.left_out.is_empty() {
            let count = self.left_out.len();
            let calls = if count == 1 { "call" } else { "calls" };
            notes.push(format!("changes of {count} {calls} are not shown: too large, or no text"));
        }
        if self.more > 0 {
            notes.push(format!("{} more files changed: too many to be listed", self.more));
        }
        if !self.ignored.is_empty() {
            notes.push(self.ignored.to_string());
        }
        if in_turn {
            notes.push("the turn is still running: its last changes may be missing".to_owned());
        }
        notes
    }

    fn file(&self, steps: &[&ChangeStep], net: Net, project: &WirePath) -> Block {
        let path = steps.first().map(|step| in_project(&step.path, project)).unwrap_or_default();
        let mut sources = Vec::new();
        for source in steps.iter().map(|step| self.source(step)) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        titled(path, &listed(sources), net)
    }

    fn step(&self, step: &ChangeStep, project: &WirePath) -> Block {
        let net = Net::of_step(step);
        titled(in_project(&step.path, project), &self.source(step), net)
    }

    fn source(&self, step: &ChangeStep) -> String {
        match &step.told {
            ChangeTold::ByCall(call, _) => self.call(call),
            ChangeTold::ByLook(seen, cut_off) => match seen.by.as_slice() {
                [] if *cut_off => "by a call that was cut off, by you or by another program".to_owned(),
                [] => "by you or another program".to_owned(),
                calls => {
                    let named = calls.iter().take(SOURCES).map(|call| self.call(call));
                    let mut named: Vec<_> = named.collect();
                    let more = calls.len().saturating_sub(SOURCES);
                    named.extend((more > 0).then(|| format!("{more} others")));
                    named.join(", or ")
                }
            },
        }
    }

    fn call(&self, call: &AgentCall) -> String {
        let of =
            if call.agent == AgentId::root() { String::new() } else { format!(" of agent {}", call.agent) };
        match self.calls.get(call) {
            Some(words) => format!("call {}{of}: {words}", call.call),
            None => format!("call {}{of}", call.call),
        }
    }
}

/// Joins the calls that may have caused a change; names at most [`SOURCES`] of them.
fn listed(mut sources: Vec<String>) -> String {
    let more = sources.len().saturating_sub(SOURCES);
    sources.truncate(SOURCES);
    sources.extend((more > 0).then(|| format!("and {more} more")));
    sources.join("; ")
}

fn titled(path: &[u8], source: &str, net: Net) -> Block {
    let counts = net.counts();
    let mut words: Vec<_> =
        Some(counts).filter(|counts| *counts != Counts::default()).iter().map(ToString::to_string).collect();
    words.extend(net.facts.iter().cloned());
    let words = if words.is_empty() { counts.to_string() } else { words.join(" · ") };
    let title = SafeText::labelled("", &[path, b" ", words.as_bytes()].concat());
    let mut parts = vec![Part::new(title, Look::Heading), Part::new(SafeText::line(source), Look::Notice)];
    parts.extend(net.diff.map(|diff| Part::diff(diff.in_language(&language_of(path)))));
    Block::of(parts).apart()
}

fn length(file: &FileDiff) -> usize {
    file.old_text.as_ref().map_or(0, String::len) + file.new_text.len()
}

pub(crate) fn of_call(files: &[FileDiff]) -> Diff {
    let language = files.first().map(|file| language_of(file.path.as_bytes())).unwrap_or_default();
    let diffs = files.iter().map(|file| of(file.old_text.as_deref(), file));
    Diff::joined(diffs).in_language(&language)
}
