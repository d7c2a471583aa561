//! Names of the project's files, by which users mention a file in a message. The agent's worker lists them.

use std::time::Duration;

use ipc::message::{CallOutcome, SnapshotEntry, Work};
use ipc::path::WirePath;
use protocol::frontend::UiEventKind;
use tokio::time::Instant;

use super::order::OwnOrder;
use super::origin::OwnCall;

const MOST: usize = 50_000;

/// Maximum total size of the names: 8 MiB.
const MOST_BYTES: usize = 8 << 20;

/// Age of an unfinished listing from which on a request starts a new listing. Earlier requests are ignored.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct FileNames {
    asked: u32,
    open: Option<Listing>,
}

#[derive(Debug)]
struct Listing {
    count: u32,
    began: Instant,
    names: Vec<WirePath>,
    bytes: usize,
}

impl FileNames {
    /// Returns the orders to list the project's files; none if a listing began recently.
    pub(super) fn list(&mut self) -> Vec<OwnOrder> {
        let late = match &self.open {
            Some(listing) if listing.began.elapsed() < PATIENCE => return Vec::new(),
            Some(listing) => Some(OwnOrder::Cancel(OwnCall::FileNames(listing.count))),
            None => None,
        };
        let call = OwnCall::FileNames(self.begin());
        late.into_iter().chain([OwnOrder::Send(call, Work::Snapshot { contents: false })]).collect()
    }

    pub(super) fn take_entries(&mut self, count: u32, entries: Vec<SnapshotEntry>) -> Vec<OwnOrder> {
        if entries.into_iter().all(|entry| self.take(count, entry.path)) {
            return Vec::new();
        }
        let cancel = OwnOrder::Cancel(OwnCall::FileNames(count));
        [cancel].into_iter().chain(self.shown(count, true, None)).collect()
    }

    /// Takes the end of a listing. Returns the order to show the names, or an error.
    pub(super) fn finish(&mut self, count: u32, outcome: &CallOutcome) -> Option<OwnOrder> {
        let failed = match outcome {
            CallOutcome::Done(_) => None,
            CallOutcome::Failed(error) => Some(error.message.clone()),
            CallOutcome::Prepared | CallOutcome::Cancelled => Some("the worker was interrupted".to_owned()),
        };
        self.shown(count, false, failed)
    }

    pub(super) fn lose(&mut self, count: u32, reason: &str) -> Option<OwnOrder> {
        self.shown(count, false, Some(reason.to_owned()))
    }

    fn shown(&mut self, count: u32, cut: bool, failed: Option<String>) -> Option<OwnOrder> {
        let names = self.end(count)?;
        Some(OwnOrder::Show(UiEventKind::FileNames { names, cut, failed }))
    }

    fn begin(&mut self) -> u32 {
        let count = self.asked;
        self.asked = self.asked.wrapping_add(1);
        self.open = Some(Listing { count, began: Instant::now(), names: Vec::new(), bytes: 0 });
        count
    }

    fn take(&mut self, count: u32, name: WirePath) -> bool {
        let Some(listing) = self.open.as_mut().filter(|listing| listing.count == count) else { return true };
        let bytes = listing.bytes.saturating_add(name.as_bytes().len());
        if listing.names.len() >= MOST || bytes > MOST_BYTES {
            return false;
        }
        listing.bytes = bytes;
        listing.names.push(name);
        true
    }

    fn end(&mut self, count: u32) -> Option<Vec<WirePath>> {
        self.open.take_if(|listing| listing.count == count).map(|listing| listing.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_bound_and_late_names_are_nobodys() {
        let mut files = FileNames::default();
        let call = files.begin();
        assert!((0..MOST).all(|n| files.take(call, format!("f{n}").as_str().into())));
        assert!(!files.take(call, "one more".into()));
        assert_eq!(files.end(call).map(|names| names.len()), Some(MOST));
        assert!(files.take(call, "late".into()) && files.end(call).is_none());
        let other = files.begin();
        assert!(other != call && files.take(call, "of the one before".into()));
        assert_eq!(files.end(other), Some(Vec::new()));
    }

    #[test]
    fn long_names_end_a_list_before_it_takes_the_memory() {
        let mut files = FileNames::default();
        let call = files.begin();
        let name: WirePath = vec![b'x'; 1 << 20].into();
        assert!((0..8).all(|_| files.take(call, name.clone())));
        assert!(!files.take(call, name));
    }
}
