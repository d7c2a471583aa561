//! Files that sub-agents change, also by commands. A snapshot is taken when another agent begins to write to the same
//! paths, and when a writer has ended. Agents with overlapping write roots take turns. So differences below a writer's
//! roots are that agent's changes, or were made outside the session.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ipc::id::AgentId;
use ipc::path::WirePath;
use tokio::task::spawn_blocking;

use super::observer::{ObserverError, SnapshotTaker};
use super::write_turns::overlap;
use crate::journal::changes::Base;

/// Maximum number of changed files that are kept for one sub-agent.
const MOST: usize = 1000;

pub(super) struct WrittenFiles {
    observer: SnapshotTaker,
    /// Last snapshot; `None` before the first write of a sub-agent and after a failed snapshot.
    last: Option<Base>,
    /// Agents that may have written since the last snapshot, with their write roots, which do not overlap.
    writers: BTreeMap<AgentId, Vec<WirePath>>,
    files: BTreeMap<AgentId, Written>,
    open: Option<OpenSnapshot>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Changed files, at most [`MOST`].
    pub(super) files: BTreeSet<WirePath>,
    /// Reason why further files may have changed; `None` if all are known.
    pub(super) unseen: Option<String>,
}

struct OpenSnapshot {
    seen: BoxFuture<'static, Result<FilesSeen, ObserverError>>,
    then: AfterSnapshot,
}

enum AfterSnapshot {
    /// The agent is about to write below these roots.
    Begins(AgentId, Vec<WirePath>),
    Ended(AgentId),
}

struct FilesSeen {
    now: Base,
    /// Paths that differ from the last snapshot; `None` if there was no earlier snapshot.
    changed: Option<Vec<WirePath>>,
}

impl WrittenFiles {
    pub(super) const fn new(observer: SnapshotTaker) -> Self {
        Self { observer, last: None, writers: BTreeMap::new(), files: BTreeMap::new(), open: None }
    }

    /// Records that an agent with a write turn will write. True if the agent has to wait for a snapshot.
    pub(super) fn before_a_write(&mut self, agent: &AgentId, roots: &[WirePath]) -> bool {
        if self.open.is_some() {
            return true;
        }
        let is_known =
            self.writers.get(agent).is_some_and(|known| roots.iter().all(|root| known.contains(root)));
        let meets = |(writer, theirs): (&AgentId, &Vec<WirePath>)| writer != agent && overlap(theirs, roots);
        // No report lists the first agent's files. Its writes matter only in the write roots of a sub-agent.
        if is_known || (agent.is_top_level() && !self.writers.iter().any(meets)) {
            return false;
        }
        self.take_snapshot(AfterSnapshot::Begins(agent.clone(), roots.to_vec()));
        true
    }

    /// True while the changes of an agent that has ended are unknown. Takes a snapshot if none is being taken.
    pub(super) fn is_open(&mut self, agent: &AgentId) -> bool {
        if self.open.is_none() && self.writers.contains_key(agent) {
            self.take_snapshot(AfterSnapshot::Ended(agent.clone()));
        }
        self.writers.contains_key(agent)
    }

    pub(super) fn take(&mut self, agent: &AgentId) -> Written {
        self.files.remove(agent).unwrap_or_default()
    }

    fn take_snapshot(&mut self, then: AfterSnapshot) {
        let (observer, last) = (self.observer.clone(), self.last.take());
        self.open = Some(OpenSnapshot { seen: seen(observer, last).boxed(), then });
    }

    /// Waits for the open snapshot. Cancel safe.
    pub(super) async fn next(&mut self) {
        let Some(open) = &mut self.open else { return std::future::pending().await };
        let seen = (&mut open.seen).await;
        if let Some(OpenSnapshot { then, .. }) = self.open.take() {
            self.note(seen);
            match then {
                AfterSnapshot::Begins(agent, roots) => {
                    self.writers.retain(|_, theirs| !overlap(theirs, &roots));
                    if !agent.is_top_level() {
                        self.writers.insert(agent, roots);
                    }
                }
                AfterSnapshot::Ended(agent) => drop(self.writers.remove(&agent)),
            }
        }
    }

    /// Waits until the changes of an agent that has ended are known.
    pub(super) async fn settle(&mut self, agent: &AgentId) {
        while self.is_open(agent) {
            self.next().await;
        }
    }

    fn note(&mut self, seen: Result<FilesSeen, ObserverError>) {
        let unseen = match seen {
            Ok(FilesSeen { now, changed }) => {
                self.last = Some(now);
                match changed {
                    Some(changed) => return self.hand_out(changed),
                    None => "an earlier check of the project's files failed".to_owned(),
                }
            }
            Err(error) => error.to_string(),
        };
        for writer in self.writers.keys() {
            self.files.entry(writer.clone()).or_default().unseen.get_or_insert_with(|| unseen.clone());
        }
    }

    fn hand_out(&mut self, changed: Vec<WirePath>) {
        for path in changed {
            let is_within =
                |(_, roots): &(&AgentId, &Vec<WirePath>)| roots.iter().any(|root| path.is_within(root));
            let Some((writer, _)) = self.writers.iter().find(is_within) else { continue };
            let written = self.files.entry(writer.clone()).or_default();
            if written.files.len() < MOST {
                written.files.insert(path);
            } else {
                let more = || format!("only the first {MOST} changed files are listed");
                written.unseen.get_or_insert_with(more);
            }
        }
    }
}

async fn seen(observer: SnapshotTaker, last: Option<Base>) -> Result<FilesSeen, ObserverError> {
    let project = observer.confinement.project.clone();
    let now = observer.stamps().await?;
    // On another thread, since a project may have a million files.
    let compare = move || {
        let absolute = |path: &crate::journal::changes::ProjectPath| {
            project.as_path().join(path.to_wire().as_path()).into()
        };
        let changed = last.map(|last| last.stamped_since(&now).iter().map(absolute).collect());
        FilesSeen { now: Base::of_stamps(now), changed }
    };
    Ok(spawn_blocking(compare).await.map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ipc::confinement::Confinement;
    use ipc::rights::Rights;
    use tokio::sync::oneshot;

    use super::*;
    use crate::engine::driver::{Boundary, StartedWorker, WorkerOrder};
    use boundary::monitor::StartError;

    /// A boundary that starts no worker.
    struct Nothing;

    impl Boundary for Nothing {
        fn start(
            &self,
            _: WorkerOrder,
            _: oneshot::Receiver<()>,
        ) -> BoxFuture<'static, Result<StartedWorker, StartError>> {
            std::future::ready(Err(StartError::Cancelled)).boxed()
        }
    }

    fn files() -> WrittenFiles {
        let confinement = Confinement::new(Rights::default(), "/p".into());
        let agent = AgentId::root();
        WrittenFiles::new(SnapshotTaker {
            boundary: Arc::new(Nothing),
            agent,
            confinement,
            store: "/".into(),
        })
    }

    #[tokio::test]
    async fn a_failed_snapshot_blocks_nobody_and_is_reported_about_the_writers() {
        let (mut files, agent) = (files(), AgentId::from("1.1"));
        assert!(files.before_a_write(&agent, &["/p".into()]));
        files.next().await;
        assert!(!files.before_a_write(&agent, &["/p".into()]), "the snapshot was taken at once");
        files.settle(&agent).await;
        let written = files.take(&agent);
        assert!(written.files.is_empty());
        let unseen = written.unseen.unwrap_or_default();
        assert!(unseen.starts_with("cannot read the project's files: "), "{unseen}");
    }

    #[tokio::test]
    async fn no_snapshot_is_taken_for_the_first_agent_alone_or_for_one_that_writes_nothing() {
        let mut files = files();
        assert!(!files.before_a_write(&AgentId::root(), &["/p".into()]));
        assert!(!files.is_open(&AgentId::from("1.1")));
        assert!(files.before_a_write(&"1.2".into(), &["/p/a".into()]));
        files.next().await;
        assert!(files.before_a_write(&AgentId::root(), &["/p".into()]), "1.2 wrote before it");
    }
}
