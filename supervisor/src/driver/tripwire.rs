//! The tripwire in a run: set before the first call that may write, looked at after each, and at the end.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use ipc::event::{EventKind, Observer as Witness, RestoredPlace};
use ipc::id::CallId;
use ipc::tool::ToolCall;
use tokio::sync::oneshot;

use super::{Driver, DriverError};
use crate::core::Input;
use crate::shell_word::shell_word;
use crate::tripwire::{Approved, Change, Report, Tripwire, Watch};

/// The most places that the model is told of; the log has them all.
const MOST_TOLD: usize = 12;

/// The tripwire, and the calls that may touch it.
pub struct Guard {
    state: State,
    writing: HashSet<CallId>,
    /// What agents came to be allowed to write while it was set.
    widened: Vec<PathBuf>,
}

enum State {
    /// It walks the project, on a thread of its own: a run that ends meanwhile does not wait for it.
    Setting(oneshot::Receiver<io::Result<Tripwire>>),
    Set(Tripwire),
}

impl Guard {
    /// Begins to take what there is.
    pub fn start(watch: Watch) -> io::Result<Self> {
        let state = State::Setting(aside("tripwire", move || Tripwire::set(&watch))?);
        Ok(Self { state, writing: HashSet::new(), widened: Vec::new() })
    }

    /// Whether what there is is still being taken: nothing may write until it is.
    pub(super) const fn is_setting(&self) -> bool {
        matches!(self.state, State::Setting(_))
    }

    /// Waits until it is set. Cancel safe.
    pub(super) async fn set(&mut self) -> Result<(), DriverError> {
        if let State::Setting(setting) = &mut self.state {
            let set = setting.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
            let mut set = set.map_err(DriverError::Tripwire)?;
            set.widen(std::mem::take(&mut self.widened));
            self.state = State::Set(set);
        }
        Ok(())
    }

    /// Remembers a call that may write.
    pub(super) fn sent(&mut self, call: CallId, tool: &ToolCall) {
        if tool.may_write() {
            self.writing.insert(call);
        }
    }

    /// What was approved by its bytes is not put back.
    pub(super) fn accept(&mut self, approved: &[Approved]) {
        if let State::Set(tripwire) = &mut self.state {
            tripwire.accept(approved);
        }
    }

    /// Lets agents write these directories as well, from now on.
    pub(super) fn widen(&mut self, writable: Vec<PathBuf>) {
        match &mut self.state {
            State::Set(tripwire) => tripwire.widen(writable),
            State::Setting(_) => self.widened.extend(writable),
        }
    }

    fn after(&mut self, call: CallId) -> Report {
        match &mut self.state {
            State::Set(tripwire) if self.writing.remove(&call) => tripwire.check(),
            _ => Report::default(),
        }
    }
}

impl Driver {
    /// Compares after a call, before its result is anybody's.
    pub(super) fn compare(&mut self, call: CallId) -> Result<(), DriverError> {
        let report = self.tripwire.as_mut().map(|guard| guard.after(call)).unwrap_or_default();
        if let Some(text) = remark(&report.changes) {
            self.feed(Input::Remark { call, text })?;
        }
        self.tell(Some(call), report)
    }

    /// Compares everything when no worker lives any more.
    pub(super) async fn compare_everything(&mut self) -> Result<(), DriverError> {
        let Some(Guard { state: State::Set(mut tripwire), .. }) = self.tripwire.take() else { return Ok(()) };
        let looked = apart(move || tripwire.check_everything()).await;
        self.tell(None, looked.map_err(DriverError::Tripwire)?)
    }

    fn tell(&mut self, call: Option<CallId>, report: Report) -> Result<(), DriverError> {
        events(call, report).into_iter().try_for_each(|event| self.record(event, Witness::Supervisor))
    }
}

/// What is logged of a look.
pub(super) fn events(call: Option<CallId>, report: Report) -> Vec<EventKind> {
    let notice = |message| EventKind::Notice { code: "tripwire".to_owned(), message };
    let mut events: Vec<_> = report.notes.into_iter().map(notice).collect();
    let place = |Change { path, what, restored }| RestoredPlace { path: path.into(), what, restored };
    let places: Vec<_> = report.changes.into_iter().map(place).collect();
    if !places.is_empty() {
        events.push(EventKind::Restored { call, places });
    }
    events
}

/// Blocking work on a thread of its own, waited for.
pub(super) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    aside("tripwire", work)?.await.map_err(|_| io::ErrorKind::BrokenPipe.into())
}

/// Blocking work on a thread that nobody has to wait for.
fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<oneshot::Receiver<T>> {
    let (done, receiver) = oneshot::channel();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Whoever waited may have gone.
        let _ = done.send(work());
    })?;
    Ok(receiver)
}

/// What the model is told.
pub(super) fn remark(changes: &[Change]) -> Option<String> {
    let (restored, left): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.restored);
    let said =
        [listed("Changed and restored", &restored), listed("Changed, and could not be restored", &left)];
    let mut text = said.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return None;
    }
    text.push_str(
        " The user's own programs (git, shell, editor, agents) run what stands there, so agents may not change it; all \
         else that this call did stands. Go on without it, or tell the user what you would need.",
    );
    if let Some(config) = changes.iter().map(|change| &change.path).find(|path| path.ends_with(".git/config"))
    {
        let _ =
            write!(text, " Configuring git freely is a right of its own: --write {}.", shell_word(config));
    }
    Some(format!("({text})"))
}

/// A sentence with the places; none without places.
fn listed(title: &str, changes: &[&Change]) -> Option<String> {
    let place = |change: &&Change| format!("{} ({})", change.path.display(), change.what);
    let mut places: Vec<_> = changes.iter().take(MOST_TOLD).map(place).collect();
    if changes.len() > MOST_TOLD {
        places.push(format!("and {} more", changes.len() - MOST_TOLD));
    }
    (!places.is_empty()).then(|| format!("{title}: {}.", places.join("; ")))
}
