//! The choice of tasks by flags: a filter, then a slice of the matches, then a shard of that slice.

use regex_automata::meta::Regex;

use super::task::BatchTask;

#[derive(Debug, Default)]
pub(super) struct BatchChoice {
    filter: Option<Regex>,
    slice: Slice,
    shard: Option<Shard>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slice {
    from: usize,
    to: Option<usize>,
}

/// The `index`-th of `count` shards of the chosen tasks, as equal in size as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    index: usize,
    count: usize,
}

impl BatchChoice {
    /// Parses `--filter`, `--slice` and `--shard`. The error is a message for the person.
    pub(super) fn new(
        filter: Option<&str>,
        slice: Option<&str>,
        shard: Option<&str>,
    ) -> Result<Self, String> {
        let filter = filter.map(|text| Regex::new(text).map_err(|error| format!("--filter: {error}")));
        let slice = slice.map_or(Some(Slice::default()), read_slice);
        let slice = slice.ok_or("--slice: expected A:B, :B or A: with A at most B, as in 0:50")?;
        let shard =
            shard.map(|text| read_shard(text).ok_or("--shard: expected I/N with I from 1 to N, as in 2/8"));
        Ok(Self { filter: filter.transpose()?, slice, shard: shard.transpose()? })
    }

    /// Returns the chosen tasks in their original order.
    pub(super) fn of(&self, tasks: Vec<BatchTask>) -> Vec<BatchTask> {
        let matches = |task: &BatchTask| self.filter.as_ref().is_none_or(|filter| filter.is_match(&task.id));
        let Slice { from, to } = self.slice;
        let length = to.map_or(usize::MAX, |to| to.saturating_sub(from));
        let Shard { index, count } = self.shard.unwrap_or(Shard { index: 0, count: 1 });
        tasks.into_iter().filter(matches).skip(from).take(length).skip(index).step_by(count).collect()
    }
}

fn read_slice(text: &str) -> Option<Slice> {
    let (from, to) = text.split_once(':')?;
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    let slice = Slice { from: number(from)?.unwrap_or(0), to: number(to)? };
    slice.to.is_none_or(|to| slice.from <= to).then_some(slice)
}

fn read_shard(text: &str) -> Option<Shard> {
    let (index, count) = text.split_once('/')?;
    let (index, count): (usize, usize) = (index.parse().ok()?, count.parse().ok()?);
    (1..=count).contains(&index).then(|| Shard { index: index - 1, count })
}
