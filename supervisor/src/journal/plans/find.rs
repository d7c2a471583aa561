//! Search for stored plans by name or by project.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use gate::plan::{self, Document};

use super::record::{PlanFate, PlanRecord};
use super::store::Store;

/// Maximum number of bytes that are read of a plan's file. It exceeds the size limit of a plan, so that the error can
/// state the size of a file that is too large.
const LONGEST_TEXT: u64 = 16 << 20;

/// Maximum size of a record in bytes.
const LONGEST_RECORD: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct KeptPlan {
    /// The name of the plan's file without its extension.
    pub id: String,
    pub path: PathBuf,
    pub text: String,
    /// SHA-256 of the text, in hexadecimal.
    pub digest: String,
    /// The plan's record; `None` if it is missing or unreadable.
    pub record: Option<PlanRecord>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error(
        "there is no plan for {}\n  hint: bailiwick exec --activity plan \"…\" makes a plan; bailiwick plan list --all lists the plans of every project",
        .0.display()
    )]
    None(PathBuf),
    #[error("there is no plan {0:?}\n  hint: bailiwick plan list --all lists all plans")]
    Unknown(String),
    /// The given text is the beginning of the names of these two plans.
    #[error("the names of several plans begin with {0:?}: {1}")]
    Ambiguous(String, String),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
}

impl KeptPlan {
    /// Returns the fate of the plan. If the file was edited after the plan's record was written, the plan counts as
    /// proposed.
    pub(crate) fn fate(&self) -> PlanFate {
        let of_these = self.record.as_ref().filter(|record| record.digest == self.digest);
        of_these.map_or(PlanFate::Proposed, |record| record.fate)
    }

    /// True if the file was edited after the plan's record was written.
    pub(crate) fn is_edited(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.digest != self.digest)
    }

    pub(crate) fn project(&self) -> Option<&Path> {
        self.record.as_ref().map(|record| record.project.as_path())
    }

    pub(crate) fn read(&self) -> Result<Document, String> {
        Document::parse(&self.text).map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

impl Store {
    pub(crate) fn all(&self) -> Result<Vec<KeptPlan>, FindError> {
        let mut ids = self.ids()?;
        ids.reverse();
        ids.iter().map(|id| self.read(id)).collect()
    }

    /// Returns the plan with this name, or the only one whose name begins with it. Without a name, returns the
    /// project's newest plan. Fails if no plan matches, or more than one.
    pub(crate) fn find(&self, name: Option<&str>, project: &Path) -> Result<KeptPlan, FindError> {
        let Some(name) = name else {
            let is_of = |kept: &KeptPlan| kept.project() == Some(project);
            return self.all()?.into_iter().find(is_of).ok_or_else(|| FindError::None(project.to_owned()));
        };
        let ids = self.ids()?;
        if ids.iter().any(|id| id == name) {
            return self.read(name);
        }
        let matching: Vec<_> =
            ids.iter().filter(|id| !name.is_empty() && id.starts_with(name)).map(String::as_str).collect();
        match matching.as_slice() {
            [] => Err(FindError::Unknown(name.to_owned())),
            [id] => self.read(id),
            several => Err(FindError::Ambiguous(name.to_owned(), several.join(", "))),
        }
    }

    fn ids(&self) -> Result<Vec<String>, FindError> {
        let failed = |source| FindError::Read { path: self.place().to_owned(), source };
        let entries = match fs::read_dir(self.place()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".md")).map(str::to_owned));
        }
        ids.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        Ok(ids)
    }

    fn read(&self, id: &str) -> Result<KeptPlan, FindError> {
        let path = self.place().join(format!("{id}.md"));
        let text = read(&path, LONGEST_TEXT).and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error().to_string()))
        });
        let text = text.map_err(|source| FindError::Read { path: path.clone(), source })?;
        let record = record_of(&path);
        Ok(KeptPlan { id: id.to_owned(), path, digest: plan::digest(&text), text, record })
    }
}

pub(crate) fn record_of(path: &Path) -> Option<PlanRecord> {
    let bytes = read(&path.with_extension("json"), LONGEST_RECORD).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns a sort key for a plan's name: its time, then its number among the plans of the same second.
fn order(id: &str) -> (&str, u64) {
    const SECOND: usize = "2026-11-25-101112".len();
    match id.split_at_checked(SECOND) {
        Some((second, rest)) => (second, rest.strip_prefix('-').and_then(|n| n.parse().ok()).unwrap_or(1)),
        None => (id, 1),
    }
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
