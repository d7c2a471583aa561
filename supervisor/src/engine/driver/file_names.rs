//! The names of the project's files, for a person who names one in a message. The agent's worker lists them by a call of our own, as it
//! does for a patch: nobody but a worker opens anything in a project.

use std::time::Duration;

use ipc::id::CallId;
use ipc::message::{CallOutcome, SnapshotEntry, Work};
use ipc::path::WirePath;
use protocol::frontend::UiEventKind;
use tokio::time::Instant;

use super::call_origin::CallOrigin;
use super::{AgentRun, Shared};

/// The most names that are listed.
const MOST: usize = 50_000;

/// The most bytes that they have together: 8 MiB.
const MOST_BYTES: usize = 8 << 20;

/// Age from which a listing that is not finished makes way for another request; a younger one has that request ignored.
const PATIENCE: Duration = Duration::from_secs(10);

/// The lists that were asked for.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    asked: u32,
    open: Option<Listing>,
}

/// A listing under way, with the names so far.
#[derive(Debug)]
struct Listing {
    call: CallId,
    began: Instant,
    names: Vec<WirePath>,
    bytes: usize,
}

impl FileNames {
    fn begin(&mut self) -> CallId {
        let call = CallOrigin::FileNames(self.asked).id();
        self.asked = self.asked.wrapping_add(1);
        self.open = Some(Listing { call, began: Instant::now(), names: Vec::new(), bytes: 0 });
        call
    }

    /// Takes a name in; false if there is no room for it.
    fn take(&mut self, call: CallId, name: WirePath) -> bool {
        let Some(listing) = self.open.as_mut().filter(|listing| listing.call == call) else { return true };
        let bytes = listing.bytes.saturating_add(name.as_bytes().len());
        if listing.names.len() >= MOST || bytes > MOST_BYTES {
            return false;
        }
        listing.bytes = bytes;
        listing.names.push(name);
        true
    }

    /// The names of a list that ends with this call, if it is waited for.
    fn end(&mut self, call: CallId) -> Option<Vec<WirePath>> {
        self.open.take_if(|listing| listing.call == call).map(|listing| listing.names)
    }
}

impl AgentRun {
    /// Has the worker list the project's files, unless it does so already.
    pub(super) fn list_files(&mut self) {
        match &self.file_names.open {
            Some(listing) if listing.began.elapsed() < PATIENCE => return,
            Some(listing) => _ = self.worker.cancel(listing.call),
            None => {}
        }
        let call = self.file_names.begin();
        self.worker.call(call, Work::Snapshot { contents: false });
    }

    /// Names come; a list that is full ends with those before them.
    pub(super) fn take_file_names(&mut self, shared: &Shared, call: CallId, entries: Vec<SnapshotEntry>) {
        let took_all = entries.into_iter().all(|entry| self.file_names.take(call, entry.path));
        if !took_all {
            self.worker.cancel(call);
            self.show_file_names(shared, call, true, None);
        }
    }

    /// The worker has listed all of them, or cannot.
    pub(super) fn file_names_are_whole(&mut self, shared: &Shared, call: CallId, outcome: &CallOutcome) {
        let failed = match outcome {
            CallOutcome::Done(_) => None,
            CallOutcome::Failed(error) => Some(error.message.clone()),
            CallOutcome::Prepared | CallOutcome::Cancelled => Some("the worker was interrupted".to_owned()),
        };
        self.show_file_names(shared, call, false, failed);
    }

    /// There is no worker any more that would list them.
    pub(super) fn file_names_are_lost(&mut self, shared: &Shared, call: CallId, reason: &str) {
        self.show_file_names(shared, call, false, Some(reason.to_owned()));
    }

    fn show_file_names(&mut self, shared: &Shared, call: CallId, cut: bool, failed: Option<String>) {
        if let Some(names) = self.file_names.end(call) {
            self.sink.show(shared, UiEventKind::FileNames { names, cut, failed });
        }
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
