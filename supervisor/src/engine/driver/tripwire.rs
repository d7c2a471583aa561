//! The tripwire in a session: set before the first call that may write, looked at after each, and at the end.
//!
//! It lives on a thread of its own, which takes orders and answers them in turn: neither its walk through the project nor a
//! look holds up the main loop. A call's result is nobody's before the look after it is over.

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

/// Git's own configuration.
const GIT_CONFIG: &str = ".git/config";

/// The most places that the model is told of; the log has them all.
const MOST_TOLD: usize = 12;

/// The tripwire's thread, and the calls that may touch what it watches.
pub struct TripwireWatch {
    orders: orders::Sender<Order>,
    answers: mpsc::UnboundedReceiver<Answer>,
    stage: GuardStage,
    /// True if something that may write ran since the last turn ended.
    has_run: bool,
    /// Calls that may write, until the look after them is over.
    writing: BTreeSet<AgentCall>,
    /// The calls of which one did what the next look finds.
    ran: BTreeSet<AgentCall>,
}

/// The phase of the tripwire with regard to tool calls that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardStage {
    /// The watched files are being recorded for the first time.
    Setting,
    /// No tool call runs, so that changes of watched files count as the person's.
    Resting,
    /// The person's changes since the last tool call are being recorded, before the next one may write.
    Beginning,
    /// Tool calls may write.
    AtWork,
}

enum Order {
    Accept(Vec<Approved>),
    Widen(Box<Watch>),
    BeginCall,
    EndCall,
    LookAfter(AgentCall),
    EndTurn,
    LookAtEverything,
}

enum Answer {
    Set(io::Result<()>),
    Begun(io::Result<Report>),
    Looked(AgentCall, Report),
    TurnEnded(Report),
    LookedAtEverything(Report),
}

/// What became of the tripwire.
pub(super) enum Watched {
    /// It is set, or a call may begin: what waited for it is asked again.
    Ready(Report),
    /// The look after a turn is over.
    TurnEnded(Report),
    /// A look is over.
    Looked(GuardLook),
}

/// A look after a call.
pub(super) struct GuardLook {
    pub(super) after: AgentCall,
    /// The others that ran since the look before.
    pub(super) beside: Vec<AgentCall>,
    /// The changed places.
    pub(super) report: Report,
}

impl TripwireWatch {
    /// Begins to take what there is. A session that ends meanwhile does not wait for it.
    pub fn start(watch: Watch) -> io::Result<Self> {
        let (orders, inbox) = orders::channel();
        let (outbox, answers) = mpsc::unbounded_channel();
        aside("tripwire", move || serve(&watch, &inbox, &outbox))?;
        let stage = GuardStage::Setting;
        Ok(Self { orders, answers, stage, has_run: false, writing: BTreeSet::new(), ran: BTreeSet::new() })
    }

    /// True while what there is is still being taken: nothing may write until it is.
    pub(super) const fn is_setting(&self) -> bool {
        matches!(self.stage, GuardStage::Setting)
    }

    /// True if a call that may write can begin; else it is made ready, and [`Watched::Ready`] says so.
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

    /// Goes to rest where no call that may write runs, or is about to.
    pub(super) fn rest(&mut self) {
        if self.stage == GuardStage::AtWork && self.writing.is_empty() {
            self.stage = GuardStage::Resting;
            self.order(Order::EndCall);
        }
    }

    /// Has everything looked at when a turn is over in which something may have written.
    pub(super) fn end_turn(&mut self) {
        self.rest();
        if self.has_run && self.stage == GuardStage::Resting {
            self.has_run = false;
            self.order(Order::EndTurn);
        }
    }

    /// Remembers a call that may write.
    pub(super) fn sent(&mut self, call: AgentCall) {
        self.has_run = true;
        self.writing.insert(call.clone());
        self.ran.insert(call);
    }

    /// Has what is watched looked at after a call; true if that call may have written.
    pub(super) fn look_after(&mut self, call: AgentCall) -> bool {
        let may_have_written = self.writing.contains(&call);
        if may_have_written {
            self.order(Order::LookAfter(call));
        }
        may_have_written
    }

    /// Tells it what was approved by its bytes, and is not put back.
    pub(super) fn accept(&self, approved: Vec<Approved>) {
        self.order(Order::Accept(approved));
    }

    /// Watches what agents may write from now on as well. What is ordered afterwards waits until that is taken.
    pub(super) fn widen(&self, watch: Watch) {
        self.order(Order::Widen(Box::new(watch)));
    }

    /// A thread that is gone answers nothing, which is found out by whoever waits for an answer.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Waits for what it has to say. Cancel safe.
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
                Answer::Looked(call, report) => return Ok(Watched::Looked(self.looked(call, report))),
                Answer::TurnEnded(report) => return Ok(Watched::TurnEnded(report)),
                Answer::LookedAtEverything(_) => {}
            }
        }
    }

    async fn answer(&mut self) -> Result<Answer, SessionError> {
        let gone = || SessionError::Tripwire(io::ErrorKind::BrokenPipe.into());
        self.answers.recv().await.ok_or_else(gone)
    }

    fn looked(&mut self, after: AgentCall, report: Report) -> GuardLook {
        self.writing.remove(&after);
        // What runs on, or was not looked after yet, may have done what the next look finds as well.
        let ran = std::mem::replace(&mut self.ran, self.writing.clone());
        let beside = ran.into_iter().filter(|call| *call != after).collect();
        self.rest();
        GuardLook { after, beside, report }
    }

    /// Looks at everything, when no worker lives any more. What looks after calls found comes first.
    pub(super) async fn look_at_everything(mut self) -> Result<(Vec<GuardLook>, Report), SessionError> {
        let (mut looks, mut before) = (Vec::new(), Report::default());
        self.order(Order::LookAtEverything);
        loop {
            match self.answer().await? {
                Answer::Set(set) => set.map_err(SessionError::Tripwire)?,
                Answer::Begun(Ok(report)) | Answer::TurnEnded(report) => before.append(report),
                Answer::Begun(Err(error)) => before.notes.push(error.to_string()),
                Answer::Looked(call, report) => looks.push(self.looked(call, report)),
                Answer::LookedAtEverything(report) => {
                    before.append(report);
                    return Ok((looks, before));
                }
            }
        }
    }
}

/// The thread of the tripwire, until nobody orders anything any more.
fn serve(watch: &Watch, orders: &orders::Receiver<Order>, answers: &mpsc::UnboundedSender<Answer>) {
    // Whoever waited for an answer may have gone.
    let answer = |answer| answers.send(answer).is_ok();
    let mut tripwire = match Tripwire::set(watch) {
        Ok(tripwire) => tripwire,
        Err(error) => {
            answer(Answer::Set(Err(error)));
            return;
        }
    };
    let mut heard = answer(Answer::Set(Ok(())));
    // What could not be widened lets no call begin.
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
            Order::LookAfter(call) => heard = answer(Answer::Looked(call, tripwire.check())),
            Order::EndTurn => heard = answer(Answer::TurnEnded(tripwire.end())),
            Order::LookAtEverything => heard = answer(Answer::LookedAtEverything(tripwire.end())),
        }
    }
}

/// Returns the events to log for a look; the calls `beside` may have done it as well as the one that it is about.
pub(super) fn events(call: Option<CallId>, beside: &[AgentCall], report: Report) -> Vec<EventKind> {
    let notice = |message| EventKind::Notice { code: NoticeCode::Tripwire, message };
    let mut events: Vec<_> = report.notes.into_iter().map(notice).collect();
    let places = report.changes;
    if !places.is_empty() {
        events.push(EventKind::Restored { call, beside: beside.to_vec(), places });
    }
    events
}

/// Blocking work on a thread of its own, waited for.
pub(crate) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    aside("tripwire", work)?.await.map_err(|_| io::ErrorKind::BrokenPipe.into())
}

/// Blocking work on a thread that nobody has to wait for.
pub(super) fn aside<T: Send + 'static>(
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

/// Message to the model.
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

/// A sentence with the places; none without places.
fn listed(title: &str, changes: &[&RestoredPlace]) -> Option<String> {
    let place = |change: &&RestoredPlace| format!("{} ({})", change.path, change.phrase());
    let mut places: Vec<_> = changes.iter().take(MOST_TOLD).map(place).collect();
    if changes.len() > MOST_TOLD {
        places.push(format!("and {} more", changes.len() - MOST_TOLD));
    }
    (!places.is_empty()).then(|| format!("{title}: {}.", places.join("; ")))
}
