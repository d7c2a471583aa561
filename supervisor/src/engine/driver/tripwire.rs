//! Tripwire of a session: set before the first call that may write, with a check after each such call and at the end.
//!
//! A thread checks the files without blocking the main loop. The result of a call waits for the check after the call.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::sync::mpsc as orders;

use boundary::tripwire::{Approved, Report, Tripwire, Watch, right_to_change};
use ipc::id::{AgentCall, CallId};
use protocol::event::{EventKind, NoticeCode, RestoredPlace};
use protocol::shell_word::shell_word;
use tokio::sync::{mpsc, oneshot};

use super::SessionError;

const GIT_CONFIG: &str = ".git/config";

/// Maximum number of changed paths that the model gets. The log has all changed paths.
const MOST_TOLD: usize = 12;

/// Channels to the tripwire's thread, and the calls that may change watched files.
pub struct TripwireWatch {
    orders: orders::Sender<Order>,
    answers: mpsc::UnboundedReceiver<Answer>,
    stage: GuardStage,
    /// True if a call that may write ran since the last check of all files.
    has_run: bool,
    /// Calls that may write. A call stays here until it was checked.
    writing: BTreeSet<AgentCall>,
    /// Calls that may have made the changes that the next check finds.
    ran: BTreeSet<AgentCall>,
}

/// State of the watched files with respect to calls that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardStage {
    /// The tripwire is being set: the files are recorded for the first time.
    Setting,
    /// No call runs, so that changes of watched files count as the user's.
    Resting,
    /// Changes since the last call are being recorded as the user's. The next call may not write yet.
    Beginning,
    AtWork,
}

enum Order {
    Accept(Vec<Approved>),
    Widen(Box<Watch>),
    BeginCall,
    EndCall,
    CheckAfter(AgentCall),
    EndTurn,
    CheckEverything,
}

enum Answer {
    Set(io::Result<()>),
    Begun(io::Result<Report>),
    Checked(AgentCall, Report),
    TurnEnded(Report),
    CheckedEverything(Report),
}

/// Answer of the tripwire's thread to the session.
pub(super) enum Watched {
    /// The tripwire is set, or a call that may write can begin: waiting calls are tried again.
    Ready(Report),
    TurnEnded(Report),
    Checked(TripwireCheck),
}

/// Result of a check after a call. The calls `beside` ran at the same time.
pub(super) struct TripwireCheck {
    pub(super) after: AgentCall,
    pub(super) beside: Vec<AgentCall>,
    pub(super) report: Report,
}

impl TripwireWatch {
    /// Begins to record the watched files, on a thread that the end of the session does not wait for.
    pub fn start(watch: Watch) -> io::Result<Self> {
        let (orders, inbox) = orders::channel();
        let (outbox, answers) = mpsc::unbounded_channel();
        aside("tripwire", move || serve(&watch, &inbox, &outbox))?;
        let stage = GuardStage::Setting;
        Ok(Self { orders, answers, stage, has_run: false, writing: BTreeSet::new(), ran: BTreeSet::new() })
    }

    /// True while the watched files are recorded for the first time. No call may write meanwhile.
    pub(super) const fn is_setting(&self) -> bool {
        matches!(self.stage, GuardStage::Setting)
    }

    /// True if a call that may write can begin. If false, [`Watched::Ready`] follows once it can begin.
    pub(super) fn may_begin(&mut self) -> bool {
        match self.stage {
            GuardStage::AtWork => return true,
            GuardStage::Resting => {
                self.stage = GuardStage::Beginning;
                self.order(Order::BeginCall);
            }
            GuardStage::Setting | GuardStage::Beginning => {}
        }
        false
    }

    /// Lets changes from now on count as the user's, unless a call that may write is open.
    pub(super) fn rest(&mut self) {
        if self.stage == GuardStage::AtWork && self.writing.is_empty() {
            self.stage = GuardStage::Resting;
            self.order(Order::EndCall);
        }
    }

    /// Orders a check of all watched files after a turn in which a call may have written.
    pub(super) fn end_turn(&mut self) {
        self.rest();
        if self.has_run && self.stage == GuardStage::Resting {
            self.has_run = false;
            self.order(Order::EndTurn);
        }
    }

    pub(super) fn sent(&mut self, call: AgentCall) {
        self.has_run = true;
        self.writing.insert(call.clone());
        self.ran.insert(call);
    }

    /// Orders a check of the watched files after a call. True if a check follows, because the call may have written.
    pub(super) fn check_after(&mut self, call: AgentCall) -> bool {
        let may_have_written = self.writing.contains(&call);
        if may_have_written {
            self.order(Order::CheckAfter(call));
        }
        may_have_written
    }

    pub(super) fn accept(&self, approved: Vec<Approved>) {
        self.order(Order::Accept(approved));
    }

    /// Watches more files. Later orders wait until the present state of these files is recorded.
    pub(super) fn widen(&self, watch: Watch) {
        self.order(Order::Widen(Box::new(watch)));
    }

    /// Sends an order to the thread. A failure is ignored here, since [`Self::next`] reports a thread that is gone.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Waits for the next answer of the thread. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Watched, SessionError> {
        loop {
            match self.answer().await? {
                Answer::Set(set) => {
                    set.map_err(SessionError::Tripwire)?;
                    self.stage = GuardStage::Resting;
                    return Ok(Watched::Ready(Report::default()));
                }
                Answer::Begun(begun) => {
                    self.stage = GuardStage::AtWork;
                    return begun.map(Watched::Ready).map_err(SessionError::Tripwire);
                }
                Answer::Checked(call, report) => return Ok(Watched::Checked(self.checked(call, report))),
                Answer::TurnEnded(report) => return Ok(Watched::TurnEnded(report)),
                Answer::CheckedEverything(_) => {}
            }
        }
    }

    async fn answer(&mut self) -> Result<Answer, SessionError> {
        let gone = || SessionError::Tripwire(io::ErrorKind::BrokenPipe.into());
        self.answers.recv().await.ok_or_else(gone)
    }

    fn checked(&mut self, after: AgentCall, report: Report) -> TripwireCheck {
        self.writing.remove(&after);
        // Calls that still run or are still to be checked may also have made changes that the next check finds.
        let ran = std::mem::replace(&mut self.ran, self.writing.clone());
        let beside = ran.into_iter().filter(|call| *call != after).collect();
        self.rest();
        TripwireCheck { after, beside, report }
    }

    /// Checks all watched files, after the last worker has ended. Also returns the results of open checks.
    pub(super) async fn check_everything(mut self) -> Result<(Vec<TripwireCheck>, Report), SessionError> {
        let (mut checks, mut before) = (Vec::new(), Report::default());
        self.order(Order::CheckEverything);
        loop {
            match self.answer().await? {
                Answer::Set(set) => set.map_err(SessionError::Tripwire)?,
                Answer::Begun(Ok(report)) | Answer::TurnEnded(report) => before.append(report),
                Answer::Begun(Err(error)) => before.notes.push(error.to_string()),
                Answer::Checked(call, report) => checks.push(self.checked(call, report)),
                Answer::CheckedEverything(report) => {
                    before.append(report);
                    return Ok((checks, before));
                }
            }
        }
    }
}

fn serve(watch: &Watch, orders: &orders::Receiver<Order>, answers: &mpsc::UnboundedSender<Answer>) {
    // A failed send means that the session has ended.
    let answer = |answer| answers.send(answer).is_ok();
    let mut tripwire = match Tripwire::set(watch) {
        Ok(tripwire) => tripwire,
        Err(error) => {
            answer(Answer::Set(Err(error)));
            return;
        }
    };
    let mut heard = answer(Answer::Set(Ok(())));
    // After a failure to watch more files, no call may begin.
    let mut refused = None;
    while heard && let Ok(order) = orders.recv() {
        match order {
            Order::Accept(approved) => tripwire.accept(&approved),
            Order::Widen(watch) => refused = tripwire.widen(&watch).err().or(refused),
            Order::BeginCall => {
                let begun = refused.take().map_or_else(|| tripwire.begin_call(), Err);
                heard = answer(Answer::Begun(begun));
            }
            Order::EndCall => tripwire.end_call(),
            Order::CheckAfter(call) => heard = answer(Answer::Checked(call, tripwire.check())),
            Order::EndTurn => heard = answer(Answer::TurnEnded(tripwire.end())),
            Order::CheckEverything => heard = answer(Answer::CheckedEverything(tripwire.end())),
        }
    }
}

/// Returns the events to log for a check after `call`. The calls `beside` may also have made the changes.
pub(super) fn events(call: Option<CallId>, beside: &[AgentCall], report: Report) -> Vec<EventKind> {
    let notice = |message| EventKind::Notice { code: NoticeCode::Tripwire, message };
    let mut events: Vec<_> = report.notes.into_iter().map(notice).collect();
    let places = report.changes;
    if !places.is_empty() {
        events.push(EventKind::Restored { call, beside: beside.to_vec(), places });
    }
    events
}

/// Runs blocking work on a thread of its own, and waits for its result.
pub(crate) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    aside("tripwire", work)?.await.map_err(|_| io::ErrorKind::BrokenPipe.into())
}

/// Runs blocking work on a thread that the end of the process does not wait for.
pub(super) fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<oneshot::Receiver<T>> {
    let (done, receiver) = oneshot::channel();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // An error means that nobody waits for the result.
        let _ = done.send(work());
    })?;
    Ok(receiver)
}

pub(super) fn remark(beside: &[AgentCall], changes: &[RestoredPlace]) -> Option<String> {
    let (restored, left): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.restored);
    let said =
        [listed("Changed and restored", &restored), listed("Changed, and could not be restored", &left)];
    let mut text = said.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return None;
    }
    if !beside.is_empty() {
        text.push_str(" Other calls ran at the same time: one of them may have made the change.");
    }
    text.push_str(
        " The user's own programs (git, shell, editor, agents) run these files, so agents cannot change them; everything else that this call did stays. Continue without this change, or tell the user what you need.",
    );
    if let Some(place) = changes.iter().find_map(right_to_change) {
        let what = if place.ends_with(GIT_CONFIG) { "Configuring git freely" } else { "Changing this file" };
        let _ = write!(text, " {what} has to be allowed separately: --write {}.", shell_word(place));
    }
    Some(format!("({text})"))
}

fn listed(title: &str, changes: &[&RestoredPlace]) -> Option<String> {
    let place = |change: &&RestoredPlace| format!("{} ({})", change.path, change.phrase());
    let mut places: Vec<_> = changes.iter().take(MOST_TOLD).map(place).collect();
    if changes.len() > MOST_TOLD {
        places.push(format!("and {} more", changes.len() - MOST_TOLD));
    }
    (!places.is_empty()).then(|| format!("{title}: {}.", places.join("; ")))
}
