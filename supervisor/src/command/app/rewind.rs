//! `bailiwick rewind`: restores the files and the conversation of a closed session to their state at a message.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;

use gate::modes::ApprovalMode;
use ipc::id::{AgentId, Generation};
use nix::sys::termios::{FlushArg, tcflush};
use protocol::event::{
    ChangeKind, EventKind, ObservedBy, RewindPreview, RewindTarget, Rewound, SessionEvent,
};
use tokio::runtime::Runtime;

use crate::engine::driver::{Journal, RewindError, RewindJournal, Rewinder, RewoundFiles, Unlogged};
use crate::engine::opening::{Refusal, find_log, observer};
use crate::engine::place::{ConfinementOptions, Mode, ProjectSandbox, SetupError};
use crate::journal::session::{LogError, Reopened, SessionLog, closing, leftovers, messages};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{ReadingProgress, complain, harmless, one_line, say};
use crate::settings::args::RewindArgs;
use crate::settings::config::{Layer, Sources, can_ask};

/// Width in columns of a message in the list.
const COLUMNS: usize = 100;

pub(super) fn run(args: &RewindArgs, runtime: &Runtime) -> Exit {
    let done = Directories::of_process()
        .map_err(Refusal::usage)
        .and_then(|directories| runtime.block_on(rewind(args, directories)));
    done.unwrap_or_else(|Refusal(exit, message)| {
        complain(&message);
        exit
    })
}

impl From<LogError> for Refusal {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Held { .. } | LogError::Broken { .. } => Self::usage(error),
            _ => Self::internal(error),
        }
    }
}

impl From<RewindError> for Refusal {
    fn from(error: RewindError) -> Self {
        match error {
            RewindError::Nothing(why) => Self::usage(format!("nothing was restored: {why}")),
            RewindError::Snapshot(_) | RewindError::Kept(_) => Self::internal(error),
        }
    }
}

impl From<SetupError> for Refusal {
    fn from(error: SetupError) -> Self {
        Self(error.exit(), error.to_string())
    }
}

async fn rewind(args: &RewindArgs, directories: Directories) -> Result<Exit, Refusal> {
    let project = args.directory.canonicalize().unwrap_or_else(|_| args.directory.clone());
    let path =
        find_log(&directories.sessions(), args.session.as_deref(), &project).map_err(Refusal::usage)?;
    let mut progress = ReadingProgress::begin();
    let Reopened { mut log, needed, torn } =
        SessionLog::reopen(&path, &mut |read, whole| progress.tell(read, whole))?;
    drop(progress);
    let mut events = needed.events;
    if torn {
        say("note: the last line of the log was incomplete, and was removed");
    }
    for (agent, kind) in closing(&events, &BTreeMap::new()) {
        events.push(log.append(&agent, ObservedBy::Supervisor, kind)?);
    }
    let said = messages(&events);
    let target = match (args.to, args.undo) {
        (None, false) => return list(&said, &path),
        (_, true) => RewindTarget { to: None, scope: args.scope() },
        (Some(number), false) => {
            let wanted = number.checked_sub(1).and_then(|at| said.get(at));
            let why = || {
                format!("the conversation has {} messages from you: there is no message {number}", said.len())
            };
            RewindTarget { to: Some(wanted.ok_or_else(|| Refusal::usage(why()))?.id), scope: args.scope() }
        }
    };
    let project = events.iter().find_map(|event| match &event.kind {
        EventKind::SessionStarted(started) => Some(started.project.clone()),
        _ => None,
    });
    let project = project.ok_or_else(|| {
        Refusal::usage("the session's log does not name its project, so nothing can be restored")
    })?;
    let setup = setup(directories, project.as_path())?;
    let temp = setup.another_temp()?;
    let boundary = setup.boundary(leftovers(&events));
    let state = setup.directories.state.clone();
    let rewinder = Rewinder::new(observer(&setup, &boundary, &temp), state, log.session().clone());
    let only = args.files(project.as_path()).map_err(Refusal::usage)?;
    let preview = rewinder.preview(target, &only, &events).await?;
    let Some(digest) = confirmed(&preview, args.digest.as_deref())? else {
        say("nothing was restored");
        return Ok(Exit::Denied);
    };
    let mut journal = OwnJournal { last: last_worker(&events), log };
    let done = rewinder.carry_out(target, &only, &events, &digest, &mut journal).await?;
    let RewoundFiles { files, left, error, target } = match done {
        Ok(done) => done,
        Err(preview) => {
            shown(print(&preview))?;
            let why = "the project changed meanwhile: nothing was restored; the list above shows what would change now";
            return Err(Refusal::usage(why));
        }
    };
    let rewound = Rewound { target, files, left, error };
    let told = told(&rewound);
    let failed = rewound.error.clone();
    journal.log.append(&AgentId::root(), ObservedBy::Supervisor, EventKind::Rewound(rewound))?;
    journal.log.sync()?;
    if let Some(error) = failed {
        return Err(Refusal::internal(format!("not everything was restored: {error}")));
    }
    say(&told);
    Ok(Exit::Done)
}

fn told(rewound: &Rewound) -> String {
    let files = match rewound.files.len() {
        0 => "no file".to_owned(),
        1 => "1 file".to_owned(),
        more => format!("{more} files"),
    };
    match rewound.target.to {
        Some(_) => format!("restored ({files} changed); to undo: bailiwick rewind --undo"),
        None => format!("the last rewind is undone ({files} changed)"),
    }
}

fn setup(directories: Directories, project: &Path) -> Result<ProjectSandbox, Refusal> {
    let sources = Sources::read(&directories, project).map_err(Refusal::usage)?;
    let effective = sources.effective(&Layer::default());
    let wanted = ConfinementOptions::of(&effective, ipc::confinement::TierChoice::Best, false);
    Ok(ProjectSandbox::new(directories, project, Mode::fixed(ApprovalMode::Deny), &wanted)?)
}

/// Returns the highest generation of the first agent's workers; 0 without workers.
fn last_worker(events: &[SessionEvent]) -> Generation {
    let numbers = events.iter().filter(|event| event.agent == AgentId::root());
    let numbers = numbers.filter_map(|event| match &event.kind {
        EventKind::WorkerStarted(started) => Some(started.generation),
        _ => None,
    });
    numbers.max().unwrap_or(Generation(0))
}

fn list(said: &[&SessionEvent], log: &Path) -> Result<Exit, Refusal> {
    let mut out = io::stdout().lock();
    let mut write = || {
        for (number, event) in (1..).zip(said) {
            let EventKind::UserMessage { text, .. } = &event.kind else { continue };
            let line = tui::cut(text.lines().next().unwrap_or("(a picture)"), COLUMNS);
            writeln!(out, "{}", harmless(&format!("{number:>3}  {line}")))?;
        }
        out.flush()
    };
    shown(write())?;
    let session = log.file_stem().unwrap_or_default().to_string_lossy();
    if said.is_empty() {
        say("this session has no messages");
    } else {
        say(&format!(
            "--to NUMBER restores files and conversation to before that message: bailiwick rewind {session}"
        ));
    }
    Ok(Exit::Done)
}

/// Returns the digest of the preview if the person, or `--digest`, confirmed it; `None` if the person refused.
fn confirmed(preview: &RewindPreview, digest: Option<&str>) -> Result<Option<String>, Refusal> {
    if let Some(digest) = digest.filter(|digest| *digest == preview.digest) {
        return Ok(Some(digest.to_owned()));
    }
    shown(print(preview))?;
    if let Some(digest) = digest {
        return Err(Refusal::usage(format!(
            "nothing was restored: got --digest {digest}, expected {} for the list above",
            preview.digest
        )));
    }
    if !can_ask() {
        return Err(Refusal::usage(format!(
            "cannot ask: standard input or standard error is not a terminal\n  hint: --digest {} restores exactly what is shown",
            preview.digest
        )));
    }
    let ask = || {
        // Input from before the question does not answer it.
        tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
        let mut out = io::stderr().lock();
        write!(out, "Restore? [y/N] ")?;
        out.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok::<_, io::Error>(matches!(answer.trim(), "y" | "Y" | "yes"))
    };
    Ok(ask().map_err(Refusal::internal)?.then(|| preview.digest.clone()))
}

fn shown(printed: io::Result<()>) -> Result<(), Refusal> {
    printed.map_err(|error| Refusal::internal(format!("cannot write to standard output: {error}")))
}

fn print(preview: &RewindPreview) -> io::Result<()> {
    let RewindPreview { target, files, left, messages, notes, .. } = preview;
    let mut out = io::stdout().lock();
    let mut line = |text: String| writeln!(out, "{}", harmless(&text));
    if target.to.is_some() && target.scope.has_conversation() {
        line(match messages {
            1 => "remove from the conversation: your last message, and all that followed".to_owned(),
            more => format!(
                "remove from the conversation: the last {more} of your messages, and all that followed"
            ),
        })?;
    }
    for file in files {
        let verb = match file.change {
            ChangeKind::Deleted => "delete",
            ChangeKind::Added | ChangeKind::Modified | ChangeKind::RenamedFrom(_) => "restore",
        };
        line(one_line(&format!("{verb:<10}{}", file.path)))?;
    }
    if files.is_empty() && target.scope.has_files() {
        line("no file would change".to_owned())?;
    }
    for left in left {
        line(one_line(&format!("stays     {} ({})", left.path, left.reason)))?;
    }
    for note in notes {
        line(one_line(&format!("note: {note}")))?;
    }
    out.flush()
}

struct OwnJournal {
    log: SessionLog,
    last: Generation,
}

impl Journal for OwnJournal {
    async fn log(&mut self, kind: EventKind) -> Result<(), Unlogged> {
        let logged =
            self.log.append(&AgentId::root(), ObservedBy::Supervisor, kind).and_then(|_| self.log.sync());
        logged.map_err(|_| Unlogged)
    }

    async fn output(&mut self, _: Vec<u8>) {}

    async fn remark(&mut self, _: String) {}
}

impl RewindJournal for OwnJournal {
    async fn number(&mut self) -> Result<Generation, Unlogged> {
        self.last = self.last.next();
        Ok(self.last)
    }
}
