//! Calls that the supervisor itself sends to an agent's worker, and the start of an agent. Its first turn begins once
//! there is a worker and the search for the project's instructions is over.

use std::path::Path;
use std::time::Duration;

use ipc::message::{CallOutcome, SnapshotEntry, Work};
use ipc::path::WirePath;
use tokio::time::{Instant, sleep_until};

use super::branch::Branch;
use super::file_names::FileNames;
use super::instructions::{INSTRUCTIONS, InstructionsSearch};
use super::order::{OwnOrder, ProjectWords};
use super::origin::OwnCall;
use super::repository_above::{dead_link, instructions_above};

/// Time limit for the search for instructions, since a compromised worker may not answer.
const INSTRUCTIONS_TIME: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(in crate::engine::driver) struct OwnCalls {
    startup: Startup,
    file_names: FileNames,
    branch: Branch,
}

#[derive(Debug, Default)]
enum Startup {
    #[default]
    Worker,
    Instructions(OpenSearch),
    /// The agent has got its environment and instructions.
    Done,
}

#[derive(Debug)]
struct OpenSearch {
    until: Instant,
    search: InstructionsSearch,
    /// Project of a top-level agent, whose user is told about unread files; `None` for a sub-agent.
    told: Option<WirePath>,
}

impl OwnCalls {
    pub(in crate::engine::driver) const fn awaits_worker(&self) -> bool {
        matches!(self.startup, Startup::Worker)
    }

    /// Returns orders to search for the project's instructions, for the first worker of the agent.
    pub(in crate::engine::driver) fn worker_is_ready(
        &mut self,
        is_top_level: bool,
        project: &WirePath,
    ) -> Vec<OwnOrder> {
        if !self.awaits_worker() {
            return Vec::new();
        }
        let above = instructions_above(project.as_path());
        let (search, calls) = InstructionsSearch::begin(is_top_level, above);
        let told = is_top_level.then(|| project.clone());
        let until = Instant::now() + INSTRUCTIONS_TIME;
        self.startup = Startup::Instructions(OpenSearch { until, search, told });
        let send = |(at, tool)| OwnOrder::Send(OwnCall::Instructions(at), Work::Run(tool));
        calls.into_iter().map(send).collect()
    }

    /// Ends the start of the agent, because no first worker could be started.
    pub(in crate::engine::driver) fn cannot_start(&mut self) {
        self.startup = Startup::Done;
    }

    /// Returns the order to begin the agent's work without instructions, if a change of access during its start left
    /// the agent without a worker. The user can change the access again.
    pub(in crate::engine::driver) fn not_replaced(&mut self) -> Option<OwnOrder> {
        self.awaits_worker().then(|| self.begin())
    }

    /// Handles the end of the worker. If the worker died during the search for instructions, returns the order to begin
    /// without them. If the worker is being replaced, the next worker searches again.
    pub(in crate::engine::driver) fn worker_ended(&mut self, is_being_replaced: bool) -> Option<OwnOrder> {
        if !matches!(self.startup, Startup::Instructions(_)) {
            return None;
        }
        if is_being_replaced {
            self.startup = Startup::Worker;
            return None;
        }
        Some(self.begin())
    }

    /// Waits for the time limit of the search for instructions; pends if there is no search. Cancel safe.
    pub(in crate::engine::driver) async fn is_late(&self) {
        match &self.startup {
            Startup::Instructions(open) => sleep_until(open.until).await,
            Startup::Worker | Startup::Done => std::future::pending().await,
        }
    }

    /// Returns the orders to begin without instructions, and to replace the worker, which did not answer.
    pub(in crate::engine::driver) fn give_up(&mut self) -> [OwnOrder; 3] {
        let remark = format!("{INSTRUCTIONS} was not read: the worker did not answer");
        [OwnOrder::Remark(remark), OwnOrder::ReplaceWorker, self.begin()]
    }

    pub(in crate::engine::driver) fn list_files(&mut self) -> Vec<OwnOrder> {
        self.file_names.list()
    }

    pub(in crate::engine::driver) fn find_branch(&mut self) -> Option<OwnOrder> {
        self.branch.find()
    }

    pub(in crate::engine::driver) fn entries(
        &mut self,
        call: OwnCall,
        entries: Vec<SnapshotEntry>,
    ) -> Vec<OwnOrder> {
        match call {
            OwnCall::FileNames(count) => self.file_names.take_entries(count, entries),
            OwnCall::Instructions(_) | OwnCall::Branch(_) => Vec::new(),
        }
    }

    pub(in crate::engine::driver) fn answered(
        &mut self,
        call: OwnCall,
        outcome: &CallOutcome,
    ) -> Vec<OwnOrder> {
        match call {
            OwnCall::Instructions(at) => self.take_instructions(at, outcome).into_iter().collect(),
            OwnCall::FileNames(count) => self.file_names.finish(count, outcome).into_iter().collect(),
            OwnCall::Branch(count) => self.branch.take(count, outcome),
        }
    }

    pub(in crate::engine::driver) fn lost(&mut self, call: OwnCall, reason: &str) -> Option<OwnOrder> {
        match call {
            OwnCall::FileNames(count) => return self.file_names.lose(count, reason),
            OwnCall::Branch(_) => self.branch.forget(),
            // `worker_ended` handles all calls of the search at once.
            OwnCall::Instructions(_) => {}
        }
        None
    }

    fn take_instructions(&mut self, at: u8, outcome: &CallOutcome) -> Option<OwnOrder> {
        let Startup::Instructions(open) = &mut self.startup else { return None };
        open.search.take(at, outcome).then(|| self.begin())
    }

    fn begin(&mut self) -> OwnOrder {
        let words = match std::mem::replace(&mut self.startup, Startup::Done) {
            Startup::Instructions(OpenSearch { search, told, .. }) => ProjectWords {
                items: search.items(),
                remarks: told.map(|project| remarks(&search, project.as_path())).unwrap_or_default(),
            },
            Startup::Worker | Startup::Done => ProjectWords::default(),
        };
        OwnOrder::Begin(words)
    }
}

fn remarks(search: &InstructionsSearch, project: &Path) -> Vec<String> {
    search.remarks().into_iter().chain(dead_link(project)).collect()
}

#[cfg(test)]
mod tests {
    use ipc::tool::{FileText, ToolError, ToolErrorKind, ToolOutput};
    use protocol::frontend::UiEventKind;

    use super::*;

    const PROJECT: &str = "/nowhere/project";

    fn missing() -> CallOutcome {
        let message = "no such file".to_owned();
        CallOutcome::Failed(ToolError { kind: ToolErrorKind::NotFound, message, access: None })
    }

    fn file(text: &str) -> CallOutcome {
        CallOutcome::Done(ToolOutput::File(FileText {
            text: text.to_owned(),
            first_line: 1,
            lines: 1,
            total_lines: Some(1),
            encoding: "UTF-8".to_owned(),
            notes: vec![],
        }))
    }

    fn started() -> (OwnCalls, Vec<OwnCall>) {
        let mut own = OwnCalls::default();
        let sent = sent(own.worker_is_ready(false, &PROJECT.into()));
        assert_eq!(sent, [OwnCall::Instructions(0), OwnCall::Instructions(1)]);
        (own, sent)
    }

    fn sent(orders: impl IntoIterator<Item = OwnOrder>) -> Vec<OwnCall> {
        let call = |order| match order {
            OwnOrder::Send(call, _) => Some(call),
            _ => None,
        };
        orders.into_iter().filter_map(call).collect()
    }

    fn words(order: Option<OwnOrder>) -> Option<Vec<String>> {
        match order? {
            OwnOrder::Begin(words) => Some(words.items.into_iter().map(|item| item.text).collect()),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_begins_once_with_the_last_answer() {
        let (mut own, sent) = started();
        assert!(own.answered(sent[0], &file("use tabs")).is_empty());
        let begun = own.answered(sent[1], &missing()).pop();
        assert_eq!(words(begun), Some(vec!["use tabs".to_owned()]));
        assert!(own.answered(sent[0], &file("late")).is_empty() && own.worker_ended(false).is_none());
        assert!(own.worker_is_ready(false, &PROJECT.into()).is_empty(), "the next worker is not asked again");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_worker_searches_after_a_replacement_and_not_after_a_death() {
        let (mut own, _) = started();
        assert!(own.worker_ended(true).is_none() && own.awaits_worker());
        assert_eq!(sent(own.worker_is_ready(false, &PROJECT.into())).len(), 2);
        assert_eq!(words(own.worker_ended(false)), Some(Vec::new()));
        assert!(own.worker_is_ready(false, &PROJECT.into()).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_does_not_answer_is_replaced_before_the_agent_begins() {
        let (mut own, _) = started();
        own.is_late().await;
        let [remark, replace, begin] = own.give_up();
        assert!(matches!(remark, OwnOrder::Remark(text) if text.starts_with(INSTRUCTIONS)));
        assert!(matches!(replace, OwnOrder::ReplaceWorker));
        assert_eq!(words(Some(begin)), Some(Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_worker_ends_a_list_and_a_read_of_the_branch() {
        let mut own = OwnCalls::default();
        let [list] = sent(own.list_files())[..] else { panic!("one call") };
        assert!(own.list_files().is_empty(), "it is listed already");
        let shown = own.lost(list, "gone");
        let failed = |order: &OwnOrder| matches!(order, OwnOrder::Show(UiEventKind::FileNames { failed: Some(why), .. }) if why == "gone");
        assert!(shown.as_ref().is_some_and(failed) && own.lost(list, "gone").is_none());
        let [read] = sent(own.find_branch())[..] else { panic!("one call") };
        assert!(own.find_branch().is_none() && own.lost(read, "gone").is_none());
        let [next] = sent(own.find_branch())[..] else { panic!("one call") };
        assert!(next != read && own.answered(read, &file("ref: refs/heads/old")).is_empty());
        let found = own.answered(next, &file("ref: refs/heads/new"));
        let name = |order: &OwnOrder| match order {
            OwnOrder::Show(UiEventKind::Branch { name }) => name.clone(),
            _ => None,
        };
        assert_eq!(found.iter().map(name).collect::<Vec<_>>(), [Some("new".to_owned())]);
    }
}
