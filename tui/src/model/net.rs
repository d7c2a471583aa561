//! Combination of several changes of a file into their net change.

use protocol::event::{ChangeKind, FileDiff, SeenContent};

use super::changes::ChangeStep;
use crate::diff::{Counts, Diff, between};

pub(super) struct Net {
    /// Changed lines; `None` if the texts are unknown or equal.
    pub(super) diff: Option<Diff>,
    more: Counts,
    /// Changes of anything but lines, such as a new file mode.
    pub(super) facts: Vec<String>,
}

impl Net {
    /// Combines all changes of one file; `None` if the file is the same as before them.
    pub(super) fn of(steps: &[&ChangeStep]) -> Option<Self> {
        let (first, last) = (steps.first()?, steps.last()?);
        let (is_new, is_gone) = (comes(first), goes(last));
        if is_new && is_gone {
            return None;
        }
        let texts: Vec<_> = steps.iter().filter_map(|step| step.diff()).collect();
        let mut facts = facts(steps);
        facts.extend(is_new.then(|| "new".to_owned()));
        facts.extend(is_gone.then(|| "deleted".to_owned()));
        let is_same = texts
            .first()
            .zip(texts.last())
            .is_some_and(|(first, last)| follow(&texts) && first.old_text.as_deref() == Some(&last.new_text));
        let diff = (!texts.is_empty() && !is_same).then(|| composed(&texts));
        let net = Self { diff, more: untold(steps), facts };
        let is_nothing = net.facts.is_empty() && net.diff.is_none() && net.more == Counts::default();
        // A single call that wrote the same bytes is shown nevertheless.
        (!is_nothing || steps.len() == 1).then_some(net)
    }

    pub(super) fn of_step(step: &ChangeStep) -> Self {
        let mut facts = facts(&[step]);
        facts.extend(comes(step).then(|| "new".to_owned()));
        facts.extend(goes(step).then(|| "deleted".to_owned()));
        let diff = step.diff().map(|diff| of(diff.old_text.as_deref(), diff));
        Self { diff, more: untold(&[step]), facts }
    }

    pub(super) fn counts(&self) -> Counts {
        let Counts { added, removed } = self.diff.as_ref().map(Diff::counts).unwrap_or_default();
        Counts {
            added: added.saturating_add(self.more.added),
            removed: removed.saturating_add(self.more.removed),
        }
    }
}

fn comes(step: &ChangeStep) -> bool {
    match step.seen() {
        Some(seen) => seen.change == ChangeKind::Added,
        None => step.diff().is_some_and(|diff| diff.old_text.is_none()),
    }
}

fn goes(step: &ChangeStep) -> bool {
    step.seen().is_some_and(|seen| seen.change == ChangeKind::Deleted)
}

fn facts(steps: &[&ChangeStep]) -> Vec<String> {
    let mut facts = Vec::new();
    let seen = || steps.iter().filter_map(|step| step.seen());
    let old_name = seen().find_map(|seen| match &seen.change {
        ChangeKind::RenamedFrom(old) => Some(old),
        ChangeKind::Added | ChangeKind::Deleted | ChangeKind::Modified => None,
    });
    facts.extend(old_name.map(|old| format!("renamed from {old}")));
    let content = seen().map(|seen| (seen.content, &seen.change)).next_back();
    facts.extend(content.and_then(|(content, change)| match content {
        SeenContent::Binary => Some("binary".to_owned()),
        SeenContent::Link => Some("link".to_owned()),
        SeenContent::NotKept if *change != ChangeKind::Deleted => {
            Some("large, or unreadable: not shown".to_owned())
        }
        SeenContent::Text | SeenContent::NotKept => None,
    }));
    let modes = || seen().filter_map(|seen| seen.modes);
    if let (Some([old, _]), Some([_, new])) = (modes().next(), modes().next_back())
        && old != new
    {
        facts.push(format!("mode {old:o} → {new:o}"));
    }
    facts
}

/// Returns the numbers of changed lines in the changes reported without a diff, since the texts were too long.
fn untold(steps: &[&ChangeStep]) -> Counts {
    let mut more = Counts::default();
    let number = |count| usize::try_from(count).unwrap_or(usize::MAX);
    for seen in steps.iter().filter_map(|step| step.seen()).filter(|seen| seen.diff.is_none()) {
        more.added = more.added.saturating_add(number(seen.added));
        more.removed = more.removed.saturating_add(number(seen.removed));
    }
    more
}

/// True if the old text of each change is the new text of the change before.
fn follow(texts: &[&FileDiff]) -> bool {
    let follow = |pair: &[&FileDiff]| match pair {
        [one, next] => {
            let is_new_again = next.old_text.is_none() && one.new_text.is_empty();
            next.first_line == one.first_line
                && (next.old_text.as_deref() == Some(&one.new_text) || is_new_again)
        }
        _ => true,
    };
    texts.first().is_some_and(|first| first.first_line.is_some()) && texts.windows(2).all(follow)
}

/// Returns one diff from the first old text to the last new text if the changes are consecutive, else all diffs.
fn composed(texts: &[&FileDiff]) -> Diff {
    match (texts.first(), texts.last()) {
        (Some(first), Some(last)) if follow(texts) => of(first.old_text.as_deref(), last),
        _ => Diff::joined(texts.iter().map(|diff| of(diff.old_text.as_deref(), diff))),
    }
}

pub(super) fn of(old: Option<&str>, change: &FileDiff) -> Diff {
    match old {
        Some(old) => between(old, &change.new_text, change.first_line),
        None => Diff::added(&change.new_text),
    }
}
