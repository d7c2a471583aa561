//! Taking files back: looks by workers that only read, and one-shots that write exactly what was shown.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ipc::effect::Effect;
use ipc::event::{
    ChangeKind, ChangedFile, EventKind, LeftFile, Recorded, RewindPreview, RewindTarget, SessionEvent,
};
use ipc::id::{AgentId, CallId, ConversationId, EventId, Generation};
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::rights::{Grant, NamedRoot, RightsSummary};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::observer::{ObserverError, SnapshotTaker};
use super::one_shot::{Journal, OneShot, Unlogged};
use crate::changes::ProjectPath;
use crate::checkpoints::{At, Checkpoints, Restore, Rewinding, Why, remove_old};
use crate::core::standing;
use crate::protected::is_acted_on;

/// The most bytes of contents that are kept of all sessions together, when another one begins to keep some: 2 GiB.
const MOST_OF_ALL: u64 = 2 << 30;

/// The note on a message since which nothing was kept.
const UNSEEN: &str = "no copies of files were kept since that message, as in sessions of `exec`: changed files stay as they are";

/// The one-shots of a rewind belong to no call of the model's.
pub(super) const NO_CALL: CallId = CallId(0);

/// Takes the files of a session back.
#[derive(Clone)]
pub struct Rewinder {
    observer: SnapshotTaker,
    state: PathBuf,
    session: ConversationId,
    kept: Arc<Mutex<Option<Checkpoints>>>,
}

/// The place in which a rewind is written down.
pub trait RewindJournal: Journal {
    /// The number of a one-shot, which no other worker of the agent has.
    fn number(&mut self) -> impl Future<Output = Result<Generation, Unlogged>> + Send;
}

/// Why nothing was taken back.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// There is nothing.
    #[error("{0}")]
    Nothing(&'static str),
    /// The project could not be looked at.
    #[error(transparent)]
    Look(#[from] ObserverError),
    /// The looks that were kept cannot be used.
    #[error("cannot use what was kept of the files: {0}")]
    Kept(#[from] io::Error),
}

/// A rewind of files as it is to be carried out.
struct Prepared {
    kept: OwnedMutexGuard<Option<Checkpoints>>,
    rewinding: Rewinding,
    preview: RewindPreview,
}

/// The end of a rewind of files.
#[derive(Debug)]
pub struct RewoundFiles {
    /// The files that are again as they were.
    pub files: Vec<ChangedFile>,
    /// The others.
    pub left: Vec<LeftFile>,
    /// Why not everything was carried out.
    pub error: Option<String>,
    /// The rewind, with the scope that it had.
    pub target: RewindTarget,
}

impl Rewinder {
    /// Of this session, whose looks lie in the state directory.
    pub fn new(observer: SnapshotTaker, state: PathBuf, session: ConversationId) -> Self {
        Self { observer, state, session, kept: Arc::default() }
    }

    /// Looks at the project, and keeps what it sees; what could not be seen, one sentence each.
    pub async fn look(&self, at: At) -> Result<Vec<String>, ObserverError> {
        Ok(self.look_and_hold(at).await?.1)
    }

    /// Notes the end of a turn in which nothing was written.
    async fn rest(&self) -> Result<Vec<String>, ObserverError> {
        let mut kept = Arc::clone(&self.kept).lock_owned().await;
        if let Some(mut checkpoints) = kept.take() {
            let rest = move || checkpoints.rest().map(|()| checkpoints);
            *kept = Some(spawn_blocking(rest).await.map_err(io::Error::other)??);
        }
        Ok(Vec::new())
    }

    async fn look_and_hold(
        &self,
        at: At,
    ) -> Result<(OwnedMutexGuard<Option<Checkpoints>>, Vec<String>), ObserverError> {
        let mut kept = Arc::clone(&self.kept).lock_owned().await;
        let checkpoints = match kept.take() {
            Some(checkpoints) => checkpoints,
            None => self.open().await?,
        };
        // After an error they are opened again: what was not written whole is cut off.
        let (checkpoints, notes) = self.observer.look(checkpoints, at).await?;
        *kept = Some(checkpoints);
        Ok((kept, notes))
    }

    async fn open(&self) -> io::Result<Checkpoints> {
        let (state, session) = (self.state.clone(), self.session.clone());
        let open = move || {
            remove_old(&state, &session, MOST_OF_ALL)?;
            Checkpoints::open(&state, &session)
        };
        spawn_blocking(open).await.map_err(io::Error::other)?
    }

    /// The consequences of a rewind, in a session with these events; of these files `only`, where some are named.
    pub async fn preview(
        &self,
        (target, only): (RewindTarget, &[WirePath]),
        events: &[SessionEvent],
    ) -> Result<RewindPreview, RewindError> {
        let (target, messages) = settled(target, events)?;
        let called = calls_since(target, events);
        if !target.scope.has_files() {
            return Ok(preview_of((target, only), messages, &Rewinding::default(), Vec::new()));
        }
        Ok(self.prepare((target, only), (messages, called)).await?.preview)
    }

    /// Looks at the project, and works out the rewind to a message after which calls were made, or not.
    async fn prepare(
        &self,
        (target, only): (RewindTarget, &[WirePath]),
        (messages, called): (u32, bool),
    ) -> Result<Prepared, RewindError> {
        let (kept, mut notes) = self.look_and_hold(At::BeforeRewind).await?;
        let checkpoints = kept.as_ref().ok_or_else(|| io::Error::other("no looks are open"))?;
        let look = match target.to {
            Some(message) => checkpoints.look_of(message),
            None => Some(
                checkpoints
                    .look_to_undo()
                    .ok_or(RewindError::Nothing("there is no rewind of files to undo"))?,
            ),
        };
        let project = self.observer.confinement.project.as_path();
        let protected = &self.observer.confinement.rights.protected;
        // What a look says that a file held is a worker's word: none of it is written where the host acts on it by itself, and what an
        // agent put there goes all the same.
        let is_protected = |path: &ProjectPath, is_written: bool| {
            let relative = path.to_wire();
            let place = project.join(relative.as_path());
            protected.iter().any(|root| place.starts_with(root.as_path()))
                || is_written && is_acted_on(relative.as_path())
        };
        let mut rewinding = look.map(|look| checkpoints.rewinding(look, is_protected)).unwrap_or_default();
        if !only.is_empty() {
            rewinding.keep_only(|path| only.contains(&path.to_wire()));
        }
        if look.is_none() && called {
            notes.push(UNSEEN.to_owned());
        }
        let preview = preview_of((target, only), messages, &rewinding, notes);
        Ok(Prepared { kept, rewinding, preview })
    }

    /// Carries a rewind of files out, if its preview is still the one with this digest; else gives the present one.
    pub async fn carry_out(
        &self,
        (target, only): (RewindTarget, &[WirePath]),
        (events, digest): (&[SessionEvent], &str),
        journal: &mut impl RewindJournal,
    ) -> Result<Result<RewoundFiles, RewindPreview>, RewindError> {
        let (target, messages) = settled(target, events)?;
        let called = calls_since(target, events);
        if !target.scope.has_files() {
            let preview = preview_of((target, only), messages, &Rewinding::default(), Vec::new());
            let done = RewoundFiles { files: Vec::new(), left: Vec::new(), error: None, target };
            return Ok(if preview.digest == digest { Ok(done) } else { Err(preview) });
        }
        let Prepared { kept, rewinding, preview } = self.prepare((target, only), (messages, called)).await?;
        if preview.digest != digest {
            return Ok(Err(preview));
        }
        let checkpoints = kept.as_ref().ok_or_else(|| io::Error::other("no looks are open"))?;
        let patches = checkpoints.patches(&self.observer.confinement.project, &rewinding)?;
        drop(kept);
        let mut error = None;
        for (patch, write) in patches {
            let grant = Grant { write, ..Grant::default() };
            if let Err(why) = self.write(Effect::Patch(patch), grant, journal).await {
                error = Some(why);
                break;
            }
        }
        // Whatever became of it: the files are seen as they are.
        let (kept, _) = self.look_and_hold(At::AfterRewind).await?;
        let is = |restore: &&Restore| {
            kept.as_ref().is_some_and(|kept| kept.state(&restore.path) == restore.then.as_ref())
        };
        let (done, undone): (Vec<_>, Vec<_>) = rewinding.restored.iter().partition(is);
        let mut left = preview.left;
        let reason = |restore: &&Restore| LeftFile {
            path: restore.path.to_wire(),
            reason: "could not be written".to_owned(),
        };
        left.extend(undone.iter().map(reason));
        Ok(Ok(RewoundFiles { files: done.into_iter().map(changed).collect(), left, error, target }))
    }

    async fn write(
        &self,
        effect: Effect,
        grant: Grant,
        journal: &mut impl RewindJournal,
    ) -> Result<(), String> {
        let shot = OneShot {
            agent: self.observer.agent.clone(),
            generation: journal.number().await.map_err(|error| error.to_string())?,
            standing: self.observer.confinement.clone(),
            watch: None,
            asked: grant.clone(),
            granted: grant,
            call: NO_CALL,
            effect: Arc::new(effect),
        };
        // Nobody cancels it.
        let (_cancel, cancelled) = oneshot::channel();
        match shot.carry_out(&*self.observer.boundary, journal, cancelled).await {
            Ok(CallOutcome::Done(_)) => Ok(()),
            Ok(CallOutcome::Failed(error)) => Err(error.message),
            Ok(CallOutcome::Prepared | CallOutcome::Cancelled) => {
                Err("the worker answered something else".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A rewind with the scope that it has, and the number of the user's messages that the conversation loses; an error names what cannot be meant.
fn settled(target: RewindTarget, events: &[SessionEvent]) -> Result<(RewindTarget, u32), RewindError> {
    let Some(to) = target.to else {
        let last = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Rewound(rewound) => Some(rewound.target.to.map(|_| rewound.target.scope)),
            EventKind::UserMessage { .. } => Some(None),
            _ => None,
        });
        let nothing = RewindError::Nothing("there is no rewind to undo, or something was said after it");
        let scope = last.flatten().ok_or(nothing)?;
        return Ok((RewindTarget { scope, ..target }, 0));
    };
    let said = standing(events);
    let said = said.iter().filter(|event| is_message(event));
    let after = said.clone().skip_while(|event| event.id != to).count();
    match after {
        0 => Err(RewindError::Nothing(
            "there is no message of the user's with this number in the conversation",
        )),
        after => Ok((target, u32::try_from(after).unwrap_or(u32::MAX))),
    }
}

/// True if a call was made after the message.
fn calls_since(target: RewindTarget, events: &[SessionEvent]) -> bool {
    let is_call = |event: &&SessionEvent| matches!(event.kind, EventKind::ToolCallStarted { .. });
    target.to.is_some_and(|to| standing(events).into_iter().filter(is_call).any(|event| event.id > to))
}

/// True of a message of the user's to the first agent.
pub(super) fn is_message(event: &SessionEvent) -> bool {
    event.agent.is_top_level() && matches!(event.kind, EventKind::UserMessage { .. })
}

fn preview_of(
    (target, only): (RewindTarget, &[WirePath]),
    messages: u32,
    rewinding: &Rewinding,
    notes: Vec<String>,
) -> RewindPreview {
    let left = |(path, why): &(ProjectPath, Why)| LeftFile { path: path.to_wire(), reason: why.to_string() };
    let mut preview = RewindPreview {
        target,
        only: only.to_vec(),
        files: rewinding.restored.iter().map(changed).collect(),
        left: rewinding.left.iter().map(left).collect(),
        messages: if target.scope.has_conversation() { messages } else { 0 },
        notes,
        digest: String::new(),
    };
    preview.digest = digest_of(&preview, &rewinding.restored);
    preview
}

/// Of everything that the person was shown, and of the states that stand behind it.
fn digest_of(preview: &RewindPreview, restored: &[Restore]) -> String {
    let states: Vec<_> = restored.iter().map(|restore| (&restore.now, &restore.then)).collect();
    let text = serde_json::to_vec(&(preview, states)).unwrap_or_default();
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut text, byte| {
        use std::fmt::Write as _;
        // A String takes every write.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn changed(restore: &Restore) -> ChangedFile {
    let change = match (&restore.now, &restore.then) {
        (None, _) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Deleted,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    ChangedFile { path: restore.path.to_wire(), change }
}

/// A look that goes on.
type Looking = JoinHandle<Result<Vec<String>, ObserverError>>;

/// The looks of a running session: after a message of the user's, as soon as a call may write, and at the end of a turn in which one did.
pub(super) struct Looks {
    rewinder: Rewinder,
    /// Messages of the user's since the last look.
    due: Vec<EventId>,
    /// True if the first agent may write in the project without asking.
    may_write: bool,
    /// True while the first agent has a turn.
    in_turn: bool,
    /// The agents that execute a plan beside it.
    executors: BTreeSet<AgentId>,
    stretch: Stretch,
    looking: Option<Looking>,
    /// The look at the end of a turn, which nobody waits for.
    last: Option<Looking>,
}

/// The time in which what changes is the agents' own: a turn, or the execution of a plan beside it.
#[derive(Default)]
struct Stretch {
    /// True if the project was looked at in it.
    looked: bool,
    /// True if a call may have written in it.
    written: bool,
}

impl Looks {
    pub(super) const fn new(rewinder: Rewinder) -> Self {
        Self {
            rewinder,
            due: Vec::new(),
            may_write: false,
            in_turn: false,
            executors: BTreeSet::new(),
            stretch: Stretch { looked: false, written: false },
            looking: None,
            last: None,
        }
    }

    pub(super) const fn rewinder(&self) -> &Rewinder {
        &self.rewinder
    }

    /// Takes note of what was logged. The model, or a person who is asked, takes longer than a look: it begins before
    /// they answer.
    pub(super) fn note(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::SubAgentSpawned(spawned) if spawned.plan.is_some() => {
                self.executors.insert(spawned.agent.clone());
            }
            EventKind::SubAgentResult(result) => {
                let executed = self.executors.remove(&result.agent);
                if (executed || result.call.is_none()) && !self.in_turn {
                    self.end_turn();
                }
            }
            // The rest is about the first agent.
            _ if !event.agent.is_top_level() => {}
            EventKind::WorkerStarted(started) if started.one_shot.is_none() => {
                self.may_write = writes(&started.rights);
            }
            EventKind::RightsChanged(changed) => self.may_write = writes(&changed.rights),
            EventKind::UserMessage { .. } => {
                self.in_turn = true;
                self.due.push(event.id);
                if self.may_write {
                    self.begin();
                }
            }
            EventKind::ApprovalRequested { .. } => self.begin(),
            EventKind::TurnFinished(_) => {
                self.in_turn = false;
                self.end_turn();
            }
            _ => {}
        }
    }

    /// Has the project looked at, if it was not since the last message.
    fn begin(&mut self) {
        if !self.due.is_empty() {
            self.look();
        }
    }

    fn look(&mut self) {
        if self.looking.is_none() {
            let at = At::Messages(std::mem::take(&mut self.due));
            let rewinder = self.rewinder.clone();
            self.stretch.looked = true;
            self.looking = Some(tokio::spawn(async move { rewinder.look(at).await }));
        }
    }

    /// While a plan is executed, what changes is still the agents' own.
    fn end_turn(&mut self) {
        if self.executors.is_empty() {
            self.end_stretch();
        }
    }

    fn end_stretch(&mut self) {
        let rewinder = self.rewinder.clone();
        let Stretch { looked, written } = std::mem::take(&mut self.stretch);
        if written {
            self.last = Some(tokio::spawn(async move { rewinder.look(At::End).await }));
        } else if looked {
            self.last = Some(tokio::spawn(async move { rewinder.rest().await }));
        }
    }

    /// Has the project looked at, if it was not since the last message; true while that goes on: nothing may write. What a plan changes
    /// after the last turn is not taken for somebody else's either.
    pub(super) fn before_a_write(&mut self) -> bool {
        self.stretch.written = true;
        if !self.stretch.looked || !self.due.is_empty() {
            self.look();
        }
        self.looking.is_some()
    }

    /// Waits for the look before a write. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Vec<String>, ObserverError> {
        let Some(looking) = &mut self.looking else { return std::future::pending().await };
        let looked = looking.await;
        self.looking = None;
        looked.unwrap_or_else(|error| Err(ObserverError::Failed(format!("the task ended: {error}"))))
    }

    /// Waits for the looks that are not over.
    pub(super) async fn finish(&mut self) {
        let open = self.looking.take();
        self.end_stretch();
        for look in [open, self.last.take()].into_iter().flatten() {
            if let Ok(Err(error)) = look.await {
                tracing::warn!(%error, "the last look at the project failed");
            }
        }
    }
}

/// True if these rights are more than to write in a private temp directory.
fn writes(rights: &Recorded<RightsSummary>) -> bool {
    rights.value().is_none_or(|rights| rights.write.iter().any(|root| *root != NamedRoot::Temp))
}
