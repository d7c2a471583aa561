//! `bailiwick plan`: commands for stored plans.

mod access;
mod decide;
mod edit;
mod export;
mod list;
mod progress;
mod show;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::secrets::TakenKeys;
use protocol::plan::PlaceToCreate;
use protocol::shell_word::shell_word;
use tokio::runtime::Runtime;

use self::progress::PlanProgress;
use crate::engine::opening::{EarlierPlan, Refusal, SessionDirs};
use crate::front::exec::{self, ApprovedPlan};
use crate::journal::plans::{FindError, KeptPlan, PlanFate, PlanRecord, Store, StoreError};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::settings::args::{OnePlan, PlanCommand, PlanExecuteArgs};

pub(super) fn run(command: PlanCommand, keys: TakenKeys, runtime: &Runtime) -> Exit {
    let done = Directories::of_process().map_err(Refusal::usage).and_then(|directories| {
        let store = Store::at(&directories);
        match command {
            PlanCommand::List(args) => list::run(&store, &directories, &args),
            PlanCommand::Show(args) => show::run(&store, &directories, &args),
            PlanCommand::Edit(args) => edit::run(&store, &args),
            PlanCommand::Approve(args) => decide::approve(&store, &directories, &args),
            PlanCommand::Reject(args) => decide::reject(&store, &args),
            PlanCommand::Export(args) => export::run(&store, &args),
            PlanCommand::Execute(args) => execute(*args, &store, SessionDirs { directories, keys }, runtime),
        }
    });
    done.unwrap_or_else(|Refusal(exit, message)| {
        complain(&message);
        exit
    })
}

impl From<FindError> for Refusal {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Read { .. } => Self::internal(error),
            FindError::None(_) | FindError::Unknown(_) | FindError::Ambiguous(..) => Self::usage(error),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::internal(error)
    }
}

fn project(directory: &Path) -> Result<PathBuf, Refusal> {
    let failed =
        |error| Refusal::usage(format!("cannot use {} as the project: {error}", directory.display()));
    directory.canonicalize().map_err(failed)
}

fn find(store: &Store, args: &OnePlan) -> Result<KeptPlan, Refusal> {
    Ok(store.find(args.plan.as_deref(), &project(&args.directory)?)?)
}

/// Stores a new fate of a plan, such as its approval. `to_create` lists the directories that its execution will create.
fn becomes(
    store: &Store,
    kept: &KeptPlan,
    fate: PlanFate,
    to_create: Vec<PlaceToCreate>,
) -> Result<(), Refusal> {
    let record = kept.record.clone().ok_or_else(|| no_record(kept))?;
    let record = match fate {
        PlanFate::Approved if !kept.is_edited() => record.approved(),
        _ => record.now(fate, kept.digest.clone()),
    };
    Ok(store.write_record(&kept.path, &record.creating(to_create))?)
}

/// Returns the error for a plan whose project is unknown.
fn no_record(kept: &KeptPlan) -> Refusal {
    let path = kept.path.with_extension("json");
    Refusal::usage(format!(
        "the project of the plan {} is unknown: {} cannot be read",
        kept.id,
        path.display()
    ))
}

/// Returns the fate of a plan and its time, such as `approved 2026-11-25 10:11`.
fn told(kept: &KeptPlan, directories: &Directories) -> String {
    let Some(PlanRecord { fate, since, done, ended, .. }) = &kept.record else {
        return "unknown, as the plan's record is missing".to_owned();
    };
    let since = minute(*since);
    if kept.is_edited() {
        return format!("edited after the plan was {fate} ({since})");
    }
    let steps = |done: u32| counted(done, "step done", "steps done");
    let came = match (PlanProgress::of(kept, directories), done) {
        (Ok(Some(PlanProgress { session: Some(session), done })), _) => {
            format!("being executed by session {session} since {since}, {}", steps(done))
        }
        (Ok(Some(PlanProgress { session: None, done })), _) => format!("{fate} {since}, {}", steps(done)),
        (Err(error), _) => format!("{fate} {since}: {error}"),
        (Ok(None), Some(done)) => format!("{fate} {since}, {}", steps(*done)),
        (Ok(None), None) => format!("{fate} {since}"),
    };
    ended.iter().fold(came, |came, ended| format!("{came}; end of the last execution: {ended}"))
}

fn counted(count: u32, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn minute(time: Timestamp) -> String {
    crate::process::messages::time::local(time)
}

fn execute(
    args: PlanExecuteArgs,
    store: &Store,
    place: SessionDirs,
    runtime: &Runtime,
) -> Result<Exit, Refusal> {
    let project = project(&args.directory)?;
    let kept = store.find(args.plan.as_deref(), &project)?;
    let steps = kept.read().map_err(Refusal::usage)?.plan().steps.clone();
    let made_for = kept.project().ok_or_else(|| no_record(&kept))?;
    if made_for != project {
        return Err(Refusal::usage(format!(
            "{} was made for {}\n  hint: -C {}",
            kept.id,
            made_for.display(),
            shell_word(made_for)
        )));
    }
    match kept.fate() {
        PlanFate::Approved | PlanFate::Unfinished => {}
        PlanFate::Executed => {
            return Err(Refusal::usage(format!(
                "{} has already been executed\n  hint: bailiwick plan approve {} allows another execution",
                kept.id, kept.id
            )));
        }
        PlanFate::Proposed | PlanFate::Rejected => {
            return Err(Refusal(
                Exit::Denied,
                format!(
                    "{} is not approved: {}\n  hint: bailiwick plan approve {}",
                    kept.id,
                    told(&kept, &place.directories),
                    kept.id
                ),
            ));
        }
    }
    let done = done_before(&kept, &place.directories, args.all_steps)?;
    let finished = steps.into_iter().take(done).collect();
    let to_create = kept.record.map(|record| record.to_create).unwrap_or_default();
    let earlier = EarlierPlan { digest: kept.digest, path: kept.path, to_create, finished };
    Ok(runtime.block_on(exec::execute_plan(args, ApprovedPlan { earlier, markdown: kept.text }, place)))
}

/// Returns the number of steps that earlier executions have finished; 0 with `all_steps`.
fn done_before(kept: &KeptPlan, directories: &Directories, all_steps: bool) -> Result<usize, Refusal> {
    let begins_anew =
        format!("bailiwick plan execute {} --all-steps starts with the first step again", kept.id);
    let progress = match PlanProgress::of(kept, directories) {
        Err(_) if all_steps => None,
        Err(error) => {
            return Err(Refusal::usage(format!(
                "cannot tell how far {} was executed: {error}\n  hint: {begins_anew}",
                kept.id
            )));
        }
        Ok(progress) => progress,
    };
    if let Some(PlanProgress { session: Some(session), .. }) = &progress {
        return Err(Refusal::usage(format!(
            "{} is being executed by session {session}\n  hint: end this session first; bailiwick sessions lists it",
            kept.id
        )));
    }
    let recorded = kept.record.as_ref().and_then(|record| record.done);
    let done = progress.map(|progress| progress.done).or(recorded).filter(|_| !all_steps);
    Ok(usize::try_from(done.unwrap_or(0)).unwrap_or(0))
}
