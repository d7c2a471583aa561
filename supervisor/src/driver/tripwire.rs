//! The tripwire in a session: set before the first call that may write, looked at after each, and at the end.
//!
//! It lives on a thread of its own, which takes orders and answers them in turn: neither its walk through the project nor a
//! look holds up the main loop. A call's result is nobody's before the look after it is over.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc as orders;

use ipc::event::{EventKind, NoticeCode, RestoredPlace};
use ipc::id::{AgentCall, CallId};
use tokio::sync::{mpsc, oneshot};

use super::SessionError;
use crate::shell_word::shell_word;
use crate::tripwire::{Approved, Report, Tripwire, Watch};

/// The most places that the model is told of; the log has them all.
const MOST_TOLD: usize = 12;

/// The tripwire's thread, and the calls that may touch what it watches.
pub struct TripwireWatch {
    orders: orders::Sender<Order>,
    answers: mpsc::UnboundedReceiver<Answer>,
    is_set: bool,
    /// Calls that may write, until the look after them is over.
    writing: BTreeSet<AgentCall>,
    /// The calls of which one did what the next look finds.
    ran: BTreeSet<AgentCall>,
}

enum Order {
    Accept(Vec<Approved>),
    Widen(Vec<PathBuf>),
    LookAfter(AgentCall),
    LookAtEverything,
}

enum Answer {
    Set(io::Result<()>),
    Looked(AgentCall, Report),
    LookedAtEverything(Report),
}

/// What became of the tripwire.
pub(super) enum Watched {
    /// It is set: what may write may begin.
    Set,
    /// A look is over.
    Looked(GuardLook),
}

/// A look after a call.
pub(super) struct GuardLook {
    /// The call.
    pub(super) after: AgentCall,
    /// The others that ran since the look before.
    pub(super) beside: Vec<AgentCall>,
    /// What was found.
    pub(super) report: Report,
}

impl TripwireWatch {
    /// Begins to take what there is. A session that ends meanwhile does not wait for it.
    pub fn start(watch: Watch) -> io::Result<Self> {
        let (orders, inbox) = orders::channel();
        let (outbox, answers) = mpsc::unbounded_channel();
        aside("tripwire", move || serve(&watch, &inbox, &outbox))?;
        Ok(Self { orders, answers, is_set: false, writing: BTreeSet::new(), ran: BTreeSet::new() })
    }

    /// True while what there is is still being taken: nothing may write until it is.
    pub(super) const fn is_setting(&self) -> bool {
        !self.is_set
    }

    /// Remembers a call that may write.
    pub(super) fn sent(&mut self, call: AgentCall) {
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

    /// Lets agents write these directories as well, from now on.
    pub(super) fn widen(&self, writable: Vec<PathBuf>) {
        self.order(Order::Widen(writable));
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
                    self.is_set = true;
                    return Ok(Watched::Set);
                }
                Answer::Looked(call, report) => return Ok(Watched::Looked(self.looked(call, report))),
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
        GuardLook { after, beside, report }
    }

    /// Looks at everything, when no worker lives any more. What looks after calls found comes first.
    pub(super) async fn look_at_everything(mut self) -> Result<(Vec<GuardLook>, Report), SessionError> {
        let mut looks = Vec::new();
        self.order(Order::LookAtEverything);
        loop {
            match self.answer().await? {
                Answer::Set(set) => set.map_err(SessionError::Tripwire)?,
                Answer::Looked(call, report) => looks.push(self.looked(call, report)),
                Answer::LookedAtEverything(report) => return Ok((looks, report)),
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
    while heard && let Ok(order) = orders.recv() {
        match order {
            Order::Accept(approved) => tripwire.accept(&approved),
            Order::Widen(writable) => tripwire.widen(writable),
            Order::LookAfter(call) => heard = answer(Answer::Looked(call, tripwire.check())),
            Order::LookAtEverything => {
                heard = answer(Answer::LookedAtEverything(tripwire.check_everything()));
            }
        }
    }
}

/// What is logged of a look; the calls `beside` may have done it as well as the one that it is about.
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
pub(super) fn remark(beside: &[AgentCall], changes: &[RestoredPlace]) -> Option<String> {
    let (restored, left): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.restored);
    let said =
        [listed("Changed and restored", &restored), listed("Changed, and could not be restored", &left)];
    let mut text = said.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return None;
    }
    if !beside.is_empty() {
        text.push_str(" Other calls ran at the same time, and it may have been one of them.");
    }
    text.push_str(
        " The user's own programs (git, shell, editor, agents) run what stands there, so agents may not change it; all \
         else that this call did stands. Go on without it, or tell the user what you would need.",
    );
    if let Some(config) =
        changes.iter().map(|change| &change.path).find(|path| path.as_path().ends_with(".git/config"))
    {
        let _ = write!(
            text,
            " Configuring git freely is a right of its own: --write {}.",
            shell_word(config.as_path())
        );
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
