//! Attributes changes between two snapshots to calls that ran between them and may write there, or to somebody else.
//!
//! Of several such calls, the one counts that ran at the file's last change (`st_ctime`, which programs cannot set). A
//! file tool makes only the changes in its diffs: other changes of that file are attributed to others.

use std::collections::{BTreeMap, BTreeSet};

use ipc::id::{AgentCall, AgentId};
use ipc::path::WirePath;
use protocol::event::{ChangeKind, FileDiff, FilesChanged, Ignored, SeenChange, SeenContent};

use crate::journal::changes::ProjectPath;
use crate::journal::checkpoints::{CheckpointChanges, counts};

/// Maximum lag of a file's timestamp behind the clock, in nanoseconds: a kernel tick at 100 Hz, and a margin.
const TICK_NS: i64 = 12_000_000;

/// Maximum distance of a timestamp from the time between two snapshots, in nanoseconds. Other timestamps are ignored.
const CLOCK_NS: i64 = 2_000_000_000;

/// Calls that may have made changes since the last snapshot.
#[derive(Debug)]
pub(super) struct Writers {
    project: WirePath,
    calls: Vec<WritingCall>,
    /// Start of the last snapshot, in nanoseconds since the epoch; `None` before the first one of this process.
    last_ns: Option<i64>,
    /// Ignored paths, as in the last report of changes.
    ignored: Ignored,
}

#[derive(Debug)]
struct WritingCall {
    call: AgentCall,
    roots: Vec<WirePath>,
    /// Files that a file tool writes; `None` for a command.
    only: Option<Vec<WirePath>>,
    began_ns: i64,
    ended_ns: Option<i64>,
    diffs: Vec<FileDiff>,
}

impl WritingCall {
    fn may_write(&self, path: &WirePath) -> bool {
        self.roots.iter().any(|root| path.is_within(root))
            && self.only.as_ref().is_none_or(|only| only.contains(path))
    }

    fn told(&self, path: &WirePath) -> impl Iterator<Item = &FileDiff> {
        self.diffs.iter().filter(move |diff| diff.path == *path)
    }
}

impl Writers {
    pub(super) const fn new(project: WirePath) -> Self {
        let ignored = Ignored { count: 0, first: Vec::new() };
        Self { project, calls: Vec::new(), last_ns: None, ignored }
    }

    /// Records the start of a call that may write below `roots`; if `only` is given, only to these files.
    pub(super) fn began(
        &mut self,
        call: AgentCall,
        roots: Vec<WirePath>,
        only: Option<Vec<WirePath>>,
        now_ns: i64,
    ) {
        let (ended_ns, diffs) = (None, Vec::new());
        self.calls.push(WritingCall { call, roots, only, began_ns: now_ns, ended_ns, diffs });
    }

    /// Records the end of a call, with the changes that a file tool reported. True if the call may have written.
    pub(super) fn ended(
        &mut self,
        agent: &AgentId,
        call: ipc::id::CallId,
        diffs: &[FileDiff],
        now_ns: i64,
    ) -> bool {
        let is = |writer: &&mut WritingCall| writer.call.agent == *agent && writer.call.call == call;
        let Some(writer) = self.calls.iter_mut().find(is) else { return false };
        writer.ended_ns = Some(now_ns);
        writer.diffs = diffs.to_vec();
        true
    }

    pub(super) fn rests(&mut self, agent: &AgentId, now_ns: i64) {
        for writer in self.calls.iter_mut().filter(|writer| writer.call.agent == *agent) {
            writer.ended_ns.get_or_insert(now_ns);
        }
    }

    pub(super) fn written(&self) -> BTreeSet<ProjectPath> {
        let diffs = self.calls.iter().flat_map(|writer| &writer.diffs);
        diffs.filter_map(|diff| self.relative(&diff.path)).collect()
    }

    /// Returns the changes that a snapshot found, with the calls that may have made them; `None` if nothing is new.
    pub(super) fn tell(&mut self, seen: CheckpointChanges, ignored: Ignored) -> Option<FilesChanged> {
        let mut files: Vec<_> = seen
            .changes
            .iter()
            .filter_map(|(change, at)| self.attributed(change.clone(), *at, &seen))
            .collect();
        files.extend(self.undone(&seen));
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let cut_off = seen.after_cut && self.last_ns.is_none();
        self.last_ns = Some(seen.asked_ns);
        // The snapshot may lack changes that a call made after the snapshot was requested.
        self.calls.retain(|writer| writer.ended_ns.is_none_or(|ended| ended >= seen.asked_ns));
        let is_news = !files.is_empty() || seen.more > 0 || self.ignored != ignored;
        self.ignored.clone_from(&ignored);
        is_news.then_some(FilesChanged { files, more: seen.more, cut_off, ignored })
    }

    /// Returns a change without the parts that file tools reported, and the possible causes; `None` if nothing is left.
    fn attributed(
        &self,
        mut change: SeenChange,
        at_ns: Option<i64>,
        seen: &CheckpointChanges,
    ) -> Option<SeenChange> {
        let path = self.absolute(&change.path);
        let told: Vec<_> = self.calls.iter().flat_map(|writer| writer.told(&path)).collect();
        let candidates: Vec<_> = self.calls.iter().filter(|writer| writer.may_write(&path)).collect();
        let others: Vec<_> =
            candidates.iter().copied().filter(|writer| writer.told(&path).next().is_none()).collect();
        if told.is_empty() {
            change.by = self.narrowed(&candidates, at_ns, seen);
            return Some(change);
        }
        let by = self.narrowed(&others, at_ns, seen);
        let Some(diff) = &mut change.diff else {
            // Without texts, the change counts as the file tool's, unless another call wrote later.
            change.by = by;
            return (!change.by.is_empty() || change.modes.is_some()).then_some(change);
        };
        match after(diff, &told) {
            Some(text) if text == diff.new_text && change.change != ChangeKind::Deleted => {
                change.modes?;
                (change.diff, change.added, change.removed) = (None, 0, 0);
            }
            Some(text) => {
                (change.added, change.removed) = counts(&text, &diff.new_text);
                diff.old_text = Some(text);
                if change.change == ChangeKind::Added {
                    change.change = ChangeKind::Modified;
                }
            }
            None if by.is_empty() => return None,
            None => {}
        }
        change.by = by;
        Some(change)
    }

    /// Returns changes that file tools reported and that were undone before the snapshot.
    fn undone(&self, seen: &CheckpointChanges) -> Vec<SeenChange> {
        let mut undone = Vec::new();
        for path in seen.unchanged.iter().chain(&seen.gone) {
            let place = self.absolute(&path.to_wire());
            let told: Vec<_> = self.calls.iter().flat_map(|writer| writer.told(&place)).collect();
            let Some(first) = told.first() else { continue };
            let before = FileDiff { new_text: String::new(), ..(*first).clone() };
            let Some(text) = after(&before, &told) else { continue };
            let is_gone = seen.gone.contains(path);
            let now = if is_gone { "" } else { first.old_text.as_deref().unwrap_or_default() };
            if text == now && !is_gone {
                continue;
            }
            let others = self.calls.iter().filter(|writer| writer.may_write(&place));
            let others: Vec<_> = others.filter(|writer| writer.told(&place).next().is_none()).collect();
            let (added, removed) = counts(&text, now);
            let diff = FileDiff { old_text: Some(text), new_text: now.to_owned(), ..(*first).clone() };
            undone.push(SeenChange {
                path: path.to_wire(),
                change: if is_gone { ChangeKind::Deleted } else { ChangeKind::Modified },
                by: self.narrowed(&others, None, seen),
                content: SeenContent::Text,
                modes: None,
                added,
                removed,
                diff: Some(diff),
            });
        }
        undone
    }

    /// Returns the calls that ran when the file last changed; all of `calls` if the time is unknown.
    fn narrowed(
        &self,
        calls: &[&WritingCall],
        at_ns: Option<i64>,
        seen: &CheckpointChanges,
    ) -> Vec<AgentCall> {
        let since_ns = self.last_ns.unwrap_or(i64::MIN);
        let is_telling = |at: &i64| {
            *at >= since_ns.saturating_sub(CLOCK_NS) && *at <= seen.asked_ns.saturating_add(CLOCK_NS)
        };
        let at = at_ns.filter(is_telling);
        let began = began(&self.calls);
        let ran = |writer: &&&WritingCall| {
            at.is_none_or(|at| {
                let began = began.get(&writer.call).copied().unwrap_or(writer.began_ns);
                at >= began.saturating_sub(TICK_NS) && writer.ended_ns.is_none_or(|ended| at <= ended)
            })
        };
        calls.iter().filter(ran).map(|writer| writer.call.clone()).collect()
    }

    fn absolute(&self, path: &WirePath) -> WirePath {
        self.project.as_path().join(path.as_path()).into()
    }

    fn relative(&self, path: &WirePath) -> Option<ProjectPath> {
        let path = path.as_path().strip_prefix(self.project.as_path()).ok()?;
        ProjectPath::try_from(WirePath::from(path)).ok()
    }
}

/// Returns the actual start of each call. An agent's worker runs calls that may write one after another.
fn began(calls: &[WritingCall]) -> BTreeMap<AgentCall, i64> {
    let mut free: BTreeMap<&AgentId, i64> = BTreeMap::new();
    let mut began = BTreeMap::new();
    for writer in calls {
        let free = free.entry(&writer.call.agent).or_insert(i64::MIN);
        began.insert(writer.call.clone(), writer.began_ns.max(*free));
        *free = writer.ended_ns.unwrap_or(*free).max(*free);
    }
    began
}

/// Returns the old text of a change with the reported changes applied; `None` if these do not fit the text.
fn after(change: &FileDiff, told: &[&FileDiff]) -> Option<String> {
    let first = change.first_line.unwrap_or(1);
    let mut text = change.old_text.clone().unwrap_or_default();
    for diff in told {
        let line = usize::try_from(diff.first_line?.checked_sub(first)?).ok()?;
        let at: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let old = diff.old_text.as_deref().unwrap_or_default();
        let rest = text.get(at..)?.strip_prefix(old)?;
        if diff.old_text.is_none() && !text.is_empty() {
            return None;
        }
        text = format!("{}{}{rest}", text.get(..at)?, diff.new_text);
    }
    Some(text)
}

#[cfg(test)]
mod tests;
