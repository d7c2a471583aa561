//! The policy for a path, and the actions on it that a confined process can really do.

use std::path::Path;

use boundary::policy::{ResolvedLink, leads_to};
use gate::plain;
use ipc::denial::Operation;
use ipc::path::WirePath;
use ipc::probe::{Outcome, Probe};
use serde::Serialize;

use super::ExplainPolicy;
use super::answer::ExplainAnswer;
use super::judge::Judge;
use super::subject::tidy;

#[derive(Debug, Serialize)]
pub(crate) struct PathExplained {
    pub path: WirePath,
    /// The path to which symbolic links in this path lead; `None` without such links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<WirePath>,
    /// The path relative to the project; `None` if the path is outside of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_project: Option<WirePath>,
    /// True if this process can see that the path exists.
    pub exists: bool,
    pub notes: Vec<String>,
    pub read: ExplainAnswer,
    /// Answer for changing, creating or removing the path.
    pub write: ExplainAnswer,
    pub execute: ExplainAnswer,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<ExplainAnswer>,
}

impl PathExplained {
    /// Number of actions that are tried on a path.
    pub(crate) const PROBES: usize = 4;

    /// Returns the actions that are tried, in their order.
    pub(crate) fn probes(path: &Path) -> [Probe; Self::PROBES] {
        let path = WirePath::from(path);
        [
            Probe::Read { path: path.clone() },
            Probe::Write { path: path.clone() },
            Probe::Execute { path: path.clone() },
            Probe::Connect { path },
        ]
    }

    /// Judges the path, and compares the judgement with the results of [`Self::probes`].
    pub(crate) fn new(path: &Path, policy: &ExplainPolicy<'_>, outcomes: &[Outcome]) -> Self {
        let ResolvedLink { path: real, exists } = leads_to(path);
        let judge = Judge { real: (&real).into(), exists, policy };
        let tried =
            |operation, at: usize| judge.compare(operation, judge.answer(operation), outcomes.get(at));
        let named = tidy(path);
        Self {
            leads_to: (real != named).then(|| judge.real.clone()),
            in_project: real.strip_prefix(policy.standing.project()).ok().map(Into::into),
            exists,
            notes: judge.notes(&named),
            read: tried(Operation::Read, 0),
            write: tried(Operation::Write, 1),
            execute: tried(Operation::Execute, 2),
            connect: judge.connect(outcomes.get(3)),
            path: named.into(),
        }
    }
}

impl Judge<'_> {
    fn notes(&self, named: &Path) -> Vec<String> {
        let standing = self.policy.standing;
        let mut notes = Vec::new();
        if plain(named).is_some()
            && named.starts_with(standing.project())
            && !self.real.is_within(standing.project())
        {
            notes.push("a link leads out of the project: the answers are about its target".to_owned());
        }
        if !self.exists {
            let nearest = self.real.as_path().ancestors().skip(1).find(|above| above.exists());
            let nearest = nearest.unwrap_or(Path::new("/"));
            notes.push(format!(
                "the path does not exist; the nearest existing directory is {}",
                nearest.display()
            ));
        }
        if !self.exists && self.is_beside_hidden() {
            notes.push(
                "a file created here during a session cannot be read, because a hidden path is next to it"
                    .to_owned(),
            );
        }
        if self.is_in_own_tmp() {
            notes.push(
                "in this tier the sandbox has its own /tmp: files in the host's /tmp are not visible"
                    .to_owned(),
            );
        }
        notes
    }

    /// True if this path's directory contains a hidden path. Then each readable entry of the directory has its own
    /// rule.
    fn is_beside_hidden(&self) -> bool {
        let directory = self.real.as_path().parent().map(WirePath::from);
        let hidden = &self.policy.standing.rights().hidden;
        directory.is_some_and(|directory| hidden.iter().any(|root| root.is_within(&directory)))
    }
}
