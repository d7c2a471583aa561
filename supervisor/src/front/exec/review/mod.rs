//! `bailiwick exec review`: an agent that cannot write reviews a change and returns findings as data.
//!
//! Git runs in a sandbox that only reads and has no network, like the reviewer's own commands.

mod difference;
mod finding;
mod git;
mod placed;
mod printed;
mod sarif;
mod task;

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use ipc::rights::Network;
use model::recording::Task;

use self::difference::{Difference, ReviewTarget};
use self::finding::{Review, SCHEMA, Severity};
use self::git::{GitError, ProjectGit};
use self::placed::{PlacedFinding, place};
use super::schema::AnswerSchema;
use super::{Beginning, RunOutcome, carry_out};
use crate::engine::opening::{Refusal, SessionDirs};
use crate::engine::place::{Caches, ConfinementOptions};
use crate::process::exit::{Exit, printed};
use crate::process::messages::{complain, say};
use crate::settings::args::{ConfinementArgs, DeniedArg, ExecArgs, FailOn, ReviewArgs, of_confinement};
use crate::settings::config::Sources;

pub(super) async fn review(args: ReviewArgs, directories: SessionDirs) -> Exit {
    match Box::pin(attempt(args, directories)).await {
        Ok(exit) => exit,
        Err(Refusal(exit, message)) => {
            complain(&message);
            exit
        }
    }
}

async fn attempt(args: ReviewArgs, directories: SessionDirs) -> Result<Exit, Refusal> {
    let exec = exec_args(&args);
    let schema = AnswerSchema::compile(Path::new("review"), SCHEMA).map_err(Refusal::internal)?;
    let git = project_git(&exec, &directories)?;
    let target = match (&args.base, &args.commit) {
        (Some(branch), _) => ReviewTarget::Base(branch.clone()),
        (None, Some(commit)) => ReviewTarget::Commit(commit.clone()),
        (None, None) => ReviewTarget::Uncommitted,
    };
    let difference = Difference::read(&git, &target).await.map_err(|error| refused(error, &target))?;
    if !difference.hidden.is_empty() {
        say(&left_out(&difference.hidden));
    }
    let (review, ended) = if difference.files.is_empty() {
        say(&format!("nothing to review: no file was changed in {}", difference.about));
        (Review::default(), Exit::Done)
    } else {
        let prompt = task::text(&difference, args.focus.as_deref());
        let task = Task { prompt, images: Vec::new() };
        let beginning = Beginning::Review { task, answer: Arc::new(schema) };
        let RunOutcome { exit, answer } = carry_out(&exec, beginning, directories, |_| ()).await;
        let Some(answer) = answer.filter(|_| exit == Exit::Done) else { return Ok(exit) };
        (serde_json::from_value(answer).map_err(Refusal::internal)?, exit)
    };
    let Review { summary, findings } = review;
    let mut findings = place(&git, &difference, findings).await.map_err(|error| refused(error, &target))?;
    findings.sort_by_key(|placed| Reverse(placed.finding.severity));
    let exit = if fails(args.fail_on, &findings) { Exit::Findings } else { ended };
    Ok(printed(printed::print(args.output, &difference, &summary, &findings), exit))
}

const MOST_NAMED: usize = 5;

fn left_out(hidden: &[String]) -> String {
    let named: Vec<_> = hidden.iter().take(MOST_NAMED).map(|path| path.escape_debug().to_string()).collect();
    let more = match hidden.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("not reviewed, because these files are hidden: {}{more}", named.join(", "))
}

fn project_git(exec: &ExecArgs, place: &SessionDirs) -> Result<ProjectGit, Refusal> {
    let sources = Sources::read(&place.directories, &exec.directory).map_err(Refusal::usage)?;
    let effective = sources.effective(&of_confinement(&exec.confinement));
    let wanted =
        ConfinementOptions::of(&effective, exec.confinement.tier.into(), exec.confinement.allow_degraded);
    let wanted = reading_only(ConfinementOptions { caches: Caches::EndWithIt, ..wanted });
    ProjectGit::new(place.directories.clone(), &exec.directory, &wanted)
        .map_err(|error| refused(error, &ReviewTarget::Uncommitted))
}

/// Removes the access that a reviewer does not have: writing, sockets and the network.
pub(super) fn reading_only(wanted: ConfinementOptions) -> ConfinementOptions {
    ConfinementOptions { net: Network::Off, write: Vec::new(), sockets: Vec::new(), ..wanted }
}

fn refused(error: GitError, target: &ReviewTarget) -> Refusal {
    let hint = match target {
        ReviewTarget::Uncommitted => "review a directory of a git repository",
        ReviewTarget::Base(_) => {
            "name a branch or commit of this repository, with its history (fetch-depth: 0 in CI)"
        }
        ReviewTarget::Commit(_) => {
            "name a commit of this repository whose parent is here too (fetch-depth: 0 in CI)"
        }
    };
    match error {
        GitError::Setup(error) => Refusal(error.exit(), error.to_string()),
        GitError::Failed { .. } | GitError::NoCommit { .. } => {
            Refusal::usage(format!("cannot read the change: {error}\n  hint: {hint}"))
        }
        GitError::Spawn(_) | GitError::NotStarted(_) => Refusal(Exit::NoSandbox, error.to_string()),
        GitError::System(_) | GitError::TooSlow { .. } => Refusal::internal(error),
    }
}

/// True if the findings are severe enough for the exit status that reports findings.
fn fails(fail_on: FailOn, findings: &[PlacedFinding]) -> bool {
    let lowest = match fail_on {
        FailOn::Critical => Severity::Critical,
        FailOn::High => Severity::High,
        FailOn::Medium => Severity::Medium,
        FailOn::Low => Severity::Low,
        FailOn::Never => return false,
    };
    findings.iter().any(|placed| placed.finding.severity >= lowest)
}

fn exec_args(args: &ReviewArgs) -> ExecArgs {
    let confinement = ConfinementArgs {
        net: Some(Network::Off),
        hide: args.hide.clone(),
        allow_degraded: args.allow_degraded,
        forget_caches: args.forget_caches,
        tier: args.tier,
        ..ConfinementArgs::default()
    };
    ExecArgs {
        denied: DeniedArg::Ok,
        max_steps: args.max_steps,
        max_tokens: args.max_tokens,
        max_usd: args.max_usd,
        timeout: args.timeout,
        no_rewind: true,
        ..ExecArgs::without_flags(args.directory.clone(), confinement, args.model.clone())
    }
}
