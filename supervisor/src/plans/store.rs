//! The store itself.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ipc::id::ConversationId;
use ipc::path::WirePath;
use jiff::Timestamp;

use super::error::StoreError;
use super::files;
use super::id::PlanId;
use super::record::{Approval, ApprovedBy, Execution, Record, Rejection, State, Switch, rfc3339};
use crate::directories::Directories;
use crate::plan::{MOST_BYTES, digest};

/// The most bytes of a record.
const MOST_RECORD: usize = 1 << 20;

/// The directory of all plans.
#[derive(Clone, Debug)]
pub struct Store {
    place: PathBuf,
}

/// A plan as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlan {
    /// Its name.
    pub id: PlanId,
    /// The file of its text.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The digest of the text.
    pub digest: String,
    /// Everything else.
    pub record: Record,
}

/// Plans, newest first, and the reason for each that was left out.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that can be used.
    pub plans: Vec<StoredPlan>,
    /// Those that cannot.
    pub left_out: Vec<StoreError>,
}

impl StoredPlan {
    /// Its state.
    pub fn state(&self) -> State {
        self.record.state(&self.digest)
    }
}

impl Store {
    /// The store in these directories.
    pub fn at(directories: &Directories) -> Self {
        Self { place: directories.plans() }
    }

    /// Keeps a new plan of a project, whose path is canonical.
    pub fn create(
        &self,
        project: &Path,
        session: Option<ConversationId>,
        text: &str,
    ) -> Result<StoredPlan, StoreError> {
        check(text)?;
        let now = Timestamp::now();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Write { path, source }
        };
        files::make(&self.place).map_err(failed(&self.place))?;
        let mut count = 1;
        let (id, path) = loop {
            let id = PlanId::of(now, count);
            let path = self.text(&id);
            match files::create(&path, text.as_bytes()) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => count += 1,
                Err(error) => return Err(failed(&path)(error)),
                Ok(()) => break (id, path),
            }
        };
        let record = Record::new(project, session, now);
        self.keep(&id, &record)?;
        Ok(StoredPlan { id, path, text: text.to_owned(), digest: digest(text), record })
    }

    /// Replaces the text of a plan. An approval of the earlier text counts for nothing then.
    pub fn write(&self, id: &PlanId, text: &str) -> Result<StoredPlan, StoreError> {
        check(text)?;
        let path = self.text(id);
        files::replace(&self.place, &path, text.as_bytes())
            .map_err(|source| StoreError::Write { path, source })?;
        self.read(id)
    }

    /// Reads a plan.
    pub fn read(&self, id: &PlanId) -> Result<StoredPlan, StoreError> {
        let path = self.text(id);
        let bytes = files::read(&path, MOST_BYTES)
            .map_err(|source| StoreError::Read { path: path.clone(), source })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| StoreError::Record { path: path.clone(), cause: "its text is not UTF-8".into() })?;
        let record = self.record(id)?;
        Ok(StoredPlan { id: id.clone(), path, digest: digest(&text), text, record })
    }

    /// The plans of a project, or all.
    pub fn list(&self, project: Option<&Path>) -> Result<Listing, StoreError> {
        let failed = |source| StoreError::Read { path: self.place.clone(), source };
        let entries = match fs::read_dir(&self.place) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Listing::default()),
            entries => entries.map_err(failed)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".md")).and_then(PlanId::parse));
        }
        ids.sort_by(|one, other| other.age().cmp(&one.age()));
        let mut listing = Listing::default();
        for id in ids {
            match self.read(&id) {
                Ok(plan) if project.is_none_or(|project| plan.record.project.as_path() == project) => {
                    listing.plans.push(plan);
                }
                Ok(_) => {}
                Err(error) => listing.left_out.push(error),
            }
        }
        Ok(listing)
    }

    /// The plan of a project whose name begins so, or its newest one.
    pub fn find(&self, project: Option<&Path>, prefix: Option<&str>) -> Result<StoredPlan, StoreError> {
        let mut plans = self.list(project)?.plans;
        let Some(prefix) = prefix else { return plans.into_iter().next().ok_or(StoreError::None) };
        let names = |plans: &[StoredPlan]| plans.iter().map(|plan| plan.id.to_string()).collect();
        let all: Vec<String> = names(&plans);
        if let Some(at) = all.iter().position(|name| name == prefix) {
            return Ok(plans.swap_remove(at));
        }
        plans.retain(|plan| plan.id.as_str().starts_with(prefix));
        if plans.len() > 1 {
            return Err(StoreError::Ambiguous { prefix: prefix.to_owned(), candidates: names(&plans) });
        }
        match plans.pop() {
            Some(plan) => Ok(plan),
            None if all.is_empty() => Err(StoreError::None),
            None => Err(StoreError::Unknown { prefix: prefix.to_owned(), candidates: all }),
        }
    }

    /// Notes the approval of exactly this text, with absolute places. It takes back a rejection.
    pub fn approve(
        &self,
        plan: &StoredPlan,
        write: Vec<WirePath>,
        network: Switch,
        by: ApprovedBy,
    ) -> Result<StoredPlan, StoreError> {
        let mut now = self.read(&plan.id)?;
        if now.digest != plan.digest {
            return Err(StoreError::Changed { id: plan.id.to_string(), found: now.digest });
        }
        let at = rfc3339(Timestamp::now());
        now.record.approval = Some(Approval { digest: plan.digest.clone(), write, network, by, at });
        now.record.rejected = None;
        self.keep(&now.id, &now.record)?;
        Ok(now)
    }

    /// Notes that a plan is rejected. It takes back an approval.
    pub fn reject(&self, id: &PlanId, reason: Option<String>) -> Result<StoredPlan, StoreError> {
        let mut plan = self.read(id)?;
        plan.record.rejected = Some(Rejection { reason, at: rfc3339(Timestamp::now()) });
        plan.record.approval = None;
        self.keep(id, &plan.record)?;
        Ok(plan)
    }

    /// Notes the end of an execution.
    pub fn executed(
        &self,
        id: &PlanId,
        session: ConversationId,
        outcome: &str,
    ) -> Result<StoredPlan, StoreError> {
        let mut plan = self.read(id)?;
        let at = rfc3339(Timestamp::now());
        plan.record.executed.push(Execution { session, at, outcome: outcome.to_owned() });
        self.keep(id, &plan.record)?;
        Ok(plan)
    }

    fn text(&self, id: &PlanId) -> PathBuf {
        self.place.join(format!("{id}.md"))
    }

    fn record_file(&self, id: &PlanId) -> PathBuf {
        self.place.join(format!("{id}.json"))
    }

    fn record(&self, id: &PlanId) -> Result<Record, StoreError> {
        let path = self.record_file(id);
        let bytes = files::read(&path, MOST_RECORD)
            .map_err(|source| StoreError::Read { path: path.clone(), source })?;
        let record: Record = serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::Record { path: path.clone(), cause: error.to_string() })?;
        if record.is_known() {
            Ok(record)
        } else {
            Err(StoreError::Record { path, cause: "another version of Bailiwick wrote it".into() })
        }
    }

    fn keep(&self, id: &PlanId, record: &Record) -> Result<(), StoreError> {
        let path = self.record_file(id);
        let written = serde_json::to_vec_pretty(record).map_err(Into::into);
        let written = written.and_then(|bytes| files::replace(&self.place, &path, &bytes));
        written.map_err(|source| StoreError::Write { path, source })
    }
}

fn check(text: &str) -> Result<(), StoreError> {
    if text.len() > MOST_BYTES { Err(StoreError::TooLong(text.len())) } else { Ok(()) }
}
