//! `bailiwick batch merge`: collects the results of shards in one directory, which appears only when it is complete.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::command::PATCH;
use super::instance::MOST_PATCH;
use super::output::{BatchOutput, Manifest, make, state_file, states};
use super::predictions::Predictions;
use super::progress::counted;
use super::state::{BatchState, Status, load, read_bounded};
use super::{swe_bench, task};
use crate::engine::opening::Refusal;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say};
use crate::settings::args::BatchMergeArgs;

/// Maximum number of tasks without a result that a message names.
const NAMED: usize = 20;

#[derive(Clone, Debug)]
struct FoundResult {
    shard: PathBuf,
    state: BatchState,
}

#[derive(Debug, thiserror::Error)]
enum MergeError {
    #[error("cannot read the results in {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot merge {}: it is not the output directory of a batch, since batch.json is missing", .0.display())]
    NoBatch(PathBuf),
    #[error("cannot merge {} and {}: the {what} of their batches differs", one.display(), other.display())]
    Other { one: PathBuf, other: PathBuf, what: &'static str },
    #[error(
        "cannot merge {id}: {} and {} have different results of this task\n  hint: remove instances/{id} from the directory whose result is wrong",
        one.display(), other.display()
    )]
    Twice { id: String, one: PathBuf, other: PathBuf },
    #[error("cannot write {}: the path exists already\n  hint: name a new directory with --output", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot compare with {}: the shards ran another file of tasks", .0.display())]
    Tasks(PathBuf),
    #[error(transparent)]
    Unreadable(#[from] task::TaskError),
}

pub(super) fn run(args: &BatchMergeArgs) -> Result<Exit, Refusal> {
    let merged = merge(args).map_err(Refusal::usage)?;
    let list: Vec<_> = merged.values().map(|found| found.state.clone()).collect();
    say(&format!("{}: {}", args.output.display(), counted(&list)));
    let missing: Vec<_> = list.iter().filter(|state| !state.status.is_final()).collect();
    if missing.is_empty() {
        return Ok(Exit::Done);
    }
    let named: Vec<_> =
        missing.iter().take(NAMED).map(|state| format!("{} ({})", state.id, state.status)).collect();
    let more = missing.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    complain(&format!(
        "there is no result of these tasks: {}{more}\n  hint: finish their shards with the same commands, then merge again",
        named.join(", ")
    ));
    Ok(Exit::GaveUp)
}

fn merge(args: &BatchMergeArgs) -> Result<BTreeMap<String, FoundResult>, MergeError> {
    let manifest = manifest(&args.shards)?;
    let mut merged = BTreeMap::new();
    for shard in &args.shards {
        let unreadable = |source| MergeError::Read { path: shard.clone(), source };
        for state in states(shard).map_err(unreadable)? {
            add(&mut merged, FoundResult { shard: shard.clone(), state })?;
        }
    }
    for id in args.tasks.as_deref().map(|file| ids(file, &manifest)).transpose()?.unwrap_or_default() {
        let nobodys = || FoundResult { shard: PathBuf::new(), state: BatchState::queued(&id) };
        merged.entry(id.clone()).or_insert_with(nobodys);
    }
    write(&args.output, &manifest, &merged)?;
    Ok(merged)
}

/// Returns the manifest that all shards share. Fails if two shards had different settings.
fn manifest(shards: &[PathBuf]) -> Result<Manifest, MergeError> {
    let mut first: Option<(&PathBuf, Manifest)> = None;
    for shard in shards {
        let unreadable = |source| MergeError::Read { path: shard.clone(), source };
        let found = load::<Manifest>(&shard.join("batch.json")).map_err(unreadable)?;
        let found = found.ok_or_else(|| MergeError::NoBatch(shard.clone()))?;
        match &first {
            None => first = Some((shard, found)),
            Some((one, manifest)) => {
                if let Some(what) = manifest.difference(&found) {
                    return Err(MergeError::Other { one: (*one).clone(), other: shard.clone(), what });
                }
            }
        }
    }
    // The command line requires at least one shard.
    first.map(|(_, manifest)| manifest).ok_or_else(|| MergeError::NoBatch(PathBuf::new()))
}

/// Adds a task's result. A final result replaces an unfinished one. Fails if two shards have different final results.
fn add(merged: &mut BTreeMap<String, FoundResult>, found: FoundResult) -> Result<(), MergeError> {
    let id = found.state.id.clone();
    match merged.get(&id) {
        Some(one) if one.state.status.is_final() && found.state.status.is_final() => {
            let unreadable = |source| MergeError::Read { path: found.shard.clone(), source };
            if !is_same(one, &found).map_err(unreadable)? {
                return Err(MergeError::Twice { id, one: one.shard.clone(), other: found.shard });
            }
        }
        Some(one) if one.state.status.is_final() || found.state.status == Status::Queued => {}
        _ => drop(merged.insert(id, found)),
    }
    Ok(())
}

/// True if two results are copies of the same run.
fn is_same(one: &FoundResult, other: &FoundResult) -> io::Result<bool> {
    let patch = |found: &FoundResult| read_bounded(&directory(found).join(PATCH), MOST_PATCH);
    Ok(one.state == other.state && patch(one)? == patch(other)?)
}

fn directory(found: &FoundResult) -> PathBuf {
    found.shard.join("instances").join(&found.state.id)
}

/// Returns the ids of the tasks in a file. Fails if the batch was run with a different file.
fn ids(file: &Path, manifest: &Manifest) -> Result<Vec<String>, MergeError> {
    let tasks = task::read(file).or_else(|error| swe_bench::read(file, None, None).map_err(|_| error))?;
    if tasks.digest != manifest.tasks {
        return Err(MergeError::Tasks(file.to_owned()));
    }
    Ok(tasks.list.into_iter().map(|task| task.id).collect())
}

/// Writes the merged results into a temporary directory next to `output`, then renames the directory.
fn write(
    output: &Path,
    manifest: &Manifest,
    merged: &BTreeMap<String, FoundResult>,
) -> Result<(), MergeError> {
    let failed = |source| MergeError::Write { path: output.to_owned(), source };
    if output.symlink_metadata().is_ok() {
        return Err(MergeError::Exists(output.to_owned()));
    }
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make(parent).map_err(failed)?;
    let fresh = tempfile::Builder::new().prefix(".merge-").tempdir_in(parent).map_err(failed)?;
    let open = || -> Result<BatchOutput, super::output::OutputError> {
        let output = BatchOutput::open(fresh.path())?;
        output.agree(manifest)?;
        output.choose(merged.keys().map(String::as_str))?;
        Ok(output)
    };
    let results = open().map_err(|error| failed(io::Error::other(error)))?;
    for found in merged.values().filter(|found| !found.shard.as_os_str().is_empty()) {
        copy(&directory(found), &results.instance(&found.state.id)).map_err(failed)?;
    }
    let list: Vec<_> = merged.values().map(|found| found.state.clone()).collect();
    let predictions = Predictions::new(&results, &manifest.name);
    predictions.restore(&list).and_then(|()| predictions.finish(&list)).map_err(failed)?;
    drop(results);
    fs::rename(fresh.path(), output).map_err(failed)?;
    // The directory was renamed, so the drop must not remove it.
    let _ = fresh.keep();
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    make(to)?;
    let last = state_file(from);
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.path() != last {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    fs::copy(last, state_file(to)).map(drop)
}
