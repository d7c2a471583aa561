//! Tasks from a file of JSON lines. The file is untrusted: lines are limited, and ids are checked because they become
//! file names.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ipc::text::hexadecimal;
use protocol::cost::Usd;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::engine::is_image;

const MOST_LINE: u64 = 8 << 20;

/// Maximum size in bytes of a prompt, which is also the limit of `exec`.
const MOST_PROMPT: usize = 1 << 20;

const MOST_TASKS: usize = 100_000;

const MOST_ID: usize = 128;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct BatchTask {
    pub id: String,
    pub prompt: String,
    pub source: TaskSource,
    pub limits: TaskLimits,
}

/// The source of a task's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaskSource {
    /// A directory of which each run gets a copy.
    Copy { directory: PathBuf },
    /// A commit of a local repository, without any later commits.
    Commit { repository: PathBuf, commit: String },
    /// A container image, and the path of the project in it.
    Image { image: String, project: String },
}

impl TaskSource {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Copy { directory } => Some(directory),
            Self::Commit { repository, .. } => Some(repository),
            Self::Image { .. } => None,
        }
    }
}

/// Limits of one task, which override those of the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TaskLimits {
    pub max_steps: Option<u32>,
    pub max_tokens: Option<u64>,
    pub max_usd: Option<Usd>,
    pub timeout_s: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Tasks {
    pub list: Vec<BatchTask>,
    /// SHA-256 of the file of tasks.
    pub digest: String,
    /// True if the tasks are instances of SWE-bench.
    pub is_swe_bench: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TaskError {
    #[error("cannot read the tasks in {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot run the tasks in {}: the file has no task", .0.display())]
    Empty(PathBuf),
    #[error("cannot use task {number} in {}: {reason}", path.display())]
    Unfit { path: PathBuf, number: usize, reason: String },
    #[error("cannot read line {number} of {}: the line is longer than 8 MiB", path.display())]
    LongLine { path: PathBuf, number: usize },
    #[error("cannot read {}: the JSON array in it has more than 512 MiB\n  hint: write the tasks as JSON lines, which have no limit", .0.display())]
    LargeArray(PathBuf),
    #[error(
        "cannot read {}: this is a Parquet file\n  hint: python3 -c 'import pandas, sys; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", lines=True)' IN.parquet OUT.jsonl",
        .0.display()
    )]
    Parquet(PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(alias = "instance_id")]
    id: String,
    prompt: String,
    directory: Option<PathBuf>,
    repo: Option<PathBuf>,
    base_commit: Option<String>,
    image: Option<String>,
    workdir: Option<String>,
    max_steps: Option<u32>,
    max_tokens: Option<u64>,
    max_usd: Option<Usd>,
    timeout_s: Option<f64>,
}

pub(super) fn read(path: &Path) -> Result<Tasks, TaskError> {
    let near = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    let near = near.unwrap_or_default();
    let mut list = List::new(path);
    let digest = lines(path, |number, line| {
        let row = serde_json::from_slice::<Row>(line).map_err(|error| error.to_string());
        list.add(number, row.and_then(|row| task(row, &near)))
    })?;
    list.finish(digest)
}

fn task(row: Row, near: &Path) -> Result<BatchTask, String> {
    let source = match (row.directory, row.repo, row.base_commit, row.image) {
        (Some(directory), None, None, None) => TaskSource::Copy { directory: near.join(directory) },
        (None, Some(repository), Some(commit), None) => {
            TaskSource::Commit { repository: near.join(repository), commit: checked_commit(commit)? }
        }
        (None, None, None, Some(image)) => {
            in_image(image, row.workdir.clone().unwrap_or_else(|| TESTBED.to_owned()))?
        }
        _ => return Err("expected `directory`, or `repo` and `base_commit`, or `image`".to_owned()),
    };
    if row.workdir.is_some() && !matches!(source, TaskSource::Image { .. }) {
        return Err("workdir: allowed only together with `image`".to_owned());
    }
    let limits = TaskLimits {
        max_steps: row.max_steps,
        max_tokens: row.max_tokens,
        max_usd: row.max_usd,
        timeout_s: row.timeout_s,
    };
    Ok(BatchTask { id: row.id, prompt: row.prompt, source, limits: limits.checked()? })
}

impl TaskLimits {
    fn checked(self) -> Result<Self, String> {
        let is_nothing =
            self.max_steps == Some(0) || self.max_tokens == Some(0) || self.max_usd == Some(Usd::ZERO);
        let is_no_time = self.timeout_s.is_some_and(|seconds| !(0.001..=31_536_000.0).contains(&seconds));
        if is_nothing || is_no_time {
            return Err("expected limits above 0, and a timeout_s from 0.001 to 31536000".to_owned());
        }
        Ok(self)
    }
}

/// Default path of the project in an image.
pub(super) const TESTBED: &str = "/testbed";

/// Returns the source for an image. Fails if an engine could misread the image or the path, for example as an option.
pub(super) fn in_image(image: String, project: String) -> Result<TaskSource, String> {
    if !is_image(&image) {
        return Err("image: expected a name of letters, digits and `._-/:@`".to_owned());
    }
    if !project.starts_with('/') || project.contains(|c: char| c.is_control() || c == ':') {
        return Err("workdir: expected an absolute path".to_owned());
    }
    Ok(TaskSource::Image { image, project })
}

/// Checks a commit. Fails unless it is hexadecimal, because git could take another name for an option or a branch.
pub(super) fn checked_commit(commit: String) -> Result<String, String> {
    let is_name = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name { Ok(commit) } else { Err("base_commit: expected 7 to 64 hexadecimal digits".to_owned()) }
}

/// True if the id is safe as a file name.
fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MOST_ID).contains(&id.len())
        && id.bytes().all(plain)
        && id.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

pub(super) struct List<'a> {
    path: &'a Path,
    tasks: Vec<BatchTask>,
    ids: HashSet<String>,
}

impl<'a> List<'a> {
    pub(super) fn new(path: &'a Path) -> Self {
        Self { path, tasks: Vec::new(), ids: HashSet::new() }
    }

    /// Adds a task. Fails if `task` is an error or invalid. `number` is its position in the file, counted from 1.
    pub(super) fn add(&mut self, number: usize, task: Result<BatchTask, String>) -> Result<(), TaskError> {
        let task = task.and_then(|task| self.checked(task));
        let unfit = |reason| TaskError::Unfit { path: self.path.to_owned(), number, reason };
        self.tasks.push(task.map_err(unfit)?);
        Ok(())
    }

    fn checked(&mut self, task: BatchTask) -> Result<BatchTask, String> {
        if !is_id(&task.id) {
            return Err(format!(
                "expected an id of at most {MOST_ID} letters, digits, `.`, `_` and `-` that begins with a letter or digit"
            ));
        }
        if task.prompt.trim().is_empty() || task.prompt.len() > MOST_PROMPT {
            return Err("expected a prompt with text, of at most 1 MiB".to_owned());
        }
        if self.tasks.len() >= MOST_TASKS {
            return Err(format!("expected at most {MOST_TASKS} tasks"));
        }
        if !self.ids.insert(task.id.to_ascii_lowercase()) {
            return Err(format!("an earlier task has the id {} already", task.id));
        }
        Ok(task)
    }

    pub(super) fn finish(self, digest: String) -> Result<Tasks, TaskError> {
        if self.tasks.is_empty() {
            return Err(TaskError::Empty(self.path.to_owned()));
        }
        Ok(Tasks { list: self.tasks, digest, is_swe_bench: false })
    }
}

/// Calls `each` with the number and the text of every line that is not blank. Returns the file's SHA-256.
pub(super) fn lines(
    path: &Path,
    mut each: impl FnMut(usize, &[u8]) -> Result<(), TaskError>,
) -> Result<String, TaskError> {
    let failed = |source| TaskError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    if file.fill_buf().map_err(failed)?.starts_with(b"PAR1") {
        return Err(TaskError::Parquet(path.to_owned()));
    }
    let (mut digest, mut line) = (Sha256::new(), Vec::new());
    for number in 1.. {
        line.clear();
        let read = (&mut file).take(MOST_LINE + 1).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        if read as u64 > MOST_LINE {
            return Err(TaskError::LongLine { path: path.to_owned(), number });
        }
        digest.update(&line);
        if !line.trim_ascii().is_empty() {
            each(number, &line)?;
        }
    }
    Ok(hex(digest))
}

pub(super) fn hex(digest: Sha256) -> String {
    hexadecimal(&digest.finalize())
}

pub(super) fn said(error: impl Display) -> String {
    error.to_string()
}
