//! Calls that no worker serves, each in a task of its own, which is aborted when its call is cancelled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agent::core::{Input, ServedOutcome};
use boundary::monitor::GuestLog;
use futures_util::future::BoxFuture;
use gate::tools::{PermittedFetch, ServedCall};
use ipc::confinement::Confinement;
use ipc::id::{AgentId, CallId, Generation};
use ipc::image::Image;
use ipc::mcp::{McpAnswer, McpForm};
use protocol::event::HostUse;
use protocol::server_prompt::{ExpandedPrompt, WantedPrompt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout};

use super::super::boundary::{Boundary, PageOrder};
use super::super::millis;
use super::pages::{self, PageUses};
use super::server_questions::{QuestionSender, ServerQuestion, ServerQuestions};

const PROGRESS_QUEUE: usize = 64;

const MOST_PROMPTS: usize = 4;

/// Time limit for a server to return the text of a prompt. Includes the start of the server.
const EXPANDING: Duration = Duration::from_secs(90);

/// Result of a call that a tool server carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedAnswer {
    /// Text for the model. It includes the paths of the pictures.
    pub text: String,
    pub images: Vec<Image>,
}

impl From<String> for ServedAnswer {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}

impl From<ServedAnswer> for ServedOutcome {
    fn from(ServedAnswer { text, images }: ServedAnswer) -> Self {
        if images.is_empty() { Self::Answered(text) } else { Self::Pictured(text, images) }
    }
}

/// Call that a server carries out and its agent, with channels to the user.
#[derive(Clone, Debug)]
pub struct Caller {
    pub agent: AgentId,
    pub call: CallId,
    progress: mpsc::Sender<CallProgressed>,
    questions: QuestionSender,
}

/// A server's text about the progress of a call. It is an unverified claim.
#[derive(Debug)]
pub(super) struct CallProgressed {
    call: CallId,
    words: String,
}

impl Caller {
    /// Shows a line about the progress of the call. The line is dropped if too many wait to be shown.
    pub fn progress(&self, words: String) {
        let _ = self.progress.try_send(CallProgressed { call: self.call, words });
    }

    pub fn ask(&self, message: String, form: McpForm) -> BoxFuture<'static, McpAnswer> {
        Box::pin(self.questions.clone().ask(self.call, message, form))
    }
}

pub trait ToolServer: Send + Sync {
    /// Carries out a call. Returns a text for the model, also as the error. Dropping the future cancels the call.
    fn serve(&self, caller: &Caller, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>>;

    /// Asks a server for the text of a prompt. The error is a text for the user.
    fn expand(&self, wanted: WantedPrompt) -> BoxFuture<'static, Result<String, String>> {
        let why = format!("this session has no MCP server {}", wanted.server);
        Box::pin(std::future::ready(Err(why)))
    }

    fn log_guests(&self, guests: GuestLog) {
        drop(guests);
    }

    /// Ends all processes that were started for calls, when the agent ends.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Default)]
pub(super) struct ServedCalls {
    server: Option<Arc<dyn ToolServer>>,
    /// Calls whose approval is not synced to the disk yet, with their time limits.
    unwritten: HashMap<CallId, (ServedCall, Duration)>,
    running: HashMap<CallId, Running>,
    tasks: JoinSet<ServedOutcome>,
    progress: ProgressChannel,
    questions: ServerQuestions,
    prompts: JoinSet<ExpandedPrompt>,
    /// Starts guests that fetch pages; `None` before the first call and after the end.
    fetchers: Option<Fetchers>,
    pages: PageUses,
}

struct ProgressChannel {
    sender: mpsc::Sender<CallProgressed>,
    inbox: mpsc::Receiver<CallProgressed>,
}

impl Default for ProgressChannel {
    fn default() -> Self {
        let (sender, inbox) = mpsc::channel(PROGRESS_QUEUE);
        Self { sender, inbox }
    }
}

pub(super) enum ServedUpdate {
    Used(HostUse),
    Over(Input),
    Progress(CallId, String),
    Question(ServerQuestion),
    /// Text of a prompt for the user, or an error.
    Prompt(ExpandedPrompt),
}

struct Fetchers {
    boundary: Arc<dyn Boundary>,
    agent: Confinement,
    uses: mpsc::UnboundedSender<HostUse>,
    guests: GuestLog,
}

struct Running {
    began: Instant,
    task: AbortHandle,
}

impl ServedCalls {
    pub(super) fn new(server: Option<Arc<dyn ToolServer>>) -> Self {
        Self { server, ..Self::default() }
    }

    pub(super) fn fetch_by(&mut self, boundary: Arc<dyn Boundary>, agent: Confinement, guests: GuestLog) {
        self.fetchers = Some(Fetchers { boundary, agent, uses: self.pages.sender(), guests });
    }

    /// Takes a call. True if it was approved and waits until its approval is synced; [`Self::release`] begins it then.
    pub(super) fn take(
        &mut self,
        agent: &AgentId,
        call: CallId,
        wanted: ServedCall,
        longest: Duration,
    ) -> bool {
        let waits = match &wanted {
            ServedCall::External(_) => true,
            ServedCall::Fetch(fetch) => fetch.is_approved,
            ServedCall::Supervisor(_) => false,
        };
        if waits {
            self.unwritten.insert(call, (wanted, longest));
        } else {
            self.begin(agent, call, wanted, longest);
        }
        waits
    }

    /// Begins a call whose approval is synced to the disk. False if the call has ended.
    pub(super) fn release(&mut self, agent: &AgentId, call: CallId) -> bool {
        let waited = self.unwritten.remove(&call);
        waited.map(|(wanted, longest)| self.begin(agent, call, wanted, longest)).is_some()
    }

    fn begin(&mut self, agent: &AgentId, call: CallId, wanted: ServedCall, longest: Duration) {
        if let ServedCall::Fetch(fetch) = wanted {
            return self.begin_fetch(call, fetch);
        }
        let server = self.server.clone();
        let questions = self.questions.of_call();
        let progress = self.progress.sender.clone();
        let caller = Caller { agent: agent.clone(), call, progress, questions: questions.clone() };
        let task = self.tasks.spawn(async move {
            let Some(server) = server else {
                return ServedOutcome::Unserved("this tool is not available in this session".to_owned());
            };
            match questions.within(longest, server.serve(&caller, wanted)).await {
                Some(Ok(answer)) => answer.into(),
                Some(Err(text)) => ServedOutcome::Failed(text),
                None => ServedOutcome::Late(longest),
            }
        });
        self.running.insert(call, Running { began: Instant::now(), task });
    }

    /// Starts a guest that fetches a page, in a task that runs until the guest is gone, even if the call ends earlier.
    fn begin_fetch(&mut self, call: CallId, fetch: PermittedFetch) {
        let Some(Fetchers { boundary, agent, uses, guests }) = &self.fetchers else {
            let unserved = ServedOutcome::Unserved("pages cannot be fetched in this session".to_owned());
            let task = self.tasks.spawn(std::future::ready(unserved));
            self.running.insert(call, Running { began: Instant::now(), task });
            return;
        };
        let (waits, cancelled) = oneshot::channel();
        let uses = uses.clone();
        let guests = guests.of_call(call);
        let order = PageOrder { agent: agent.clone(), fetch: fetch.clone(), guests };
        let fetching = boundary.fetch(order, cancelled);
        let fetched = tokio::spawn(async move {
            let (outcome, host) = pages::outcome(&fetch, fetching.await);
            // An error means that the session is over.
            let _ = uses.send(host);
            outcome
        });
        let task = self.tasks.spawn(async move {
            let _waits = waits;
            fetched.await.unwrap_or_else(|error| {
                ServedOutcome::Unserved(format!("the task of this call failed: {error}"))
            })
        });
        self.running.insert(call, Running { began: Instant::now(), task });
    }

    pub(super) fn cancel(&mut self, call: CallId) -> bool {
        if let Some(running) = self.running.remove(&call) {
            running.task.abort();
            return true;
        }
        self.unwritten.remove(&call).is_some()
    }

    /// Returns the next update; pends while there is none. Drops progress of calls that are over. Cancel safe.
    pub(super) async fn next(&mut self) -> ServedUpdate {
        loop {
            tokio::select! {
                biased;
                used = self.pages.next() => return ServedUpdate::Used(used),
                Some(CallProgressed { call, words }) = self.progress.inbox.recv() => {
                    if self.running.contains_key(&call) {
                        return ServedUpdate::Progress(call, words);
                    }
                }
                question = self.questions.next() => return ServedUpdate::Question(question),
                Some(over) = self.tasks.join_next_with_id() => {
                    if let Some(input) = self.over(over) {
                        return ServedUpdate::Over(input);
                    }
                }
                Some(Ok(expanded)) = self.prompts.join_next() => return ServedUpdate::Prompt(expanded),
            }
        }
    }

    pub(super) fn sum(&mut self, generation: Generation, used: HostUse) -> HostUse {
        self.pages.sum(generation, used)
    }

    pub(super) fn open(&mut self, question: ServerQuestion) -> Input {
        self.questions.open(question)
    }

    pub(super) fn answer(&mut self, question: u64, answer: McpAnswer) {
        self.questions.answer(question, answer);
    }

    pub(super) fn expand(&mut self, wanted: WantedPrompt) {
        let WantedPrompt { server: of, name, .. } = wanted.clone();
        let server = self.server.clone().filter(|_| self.prompts.len() < MOST_PROMPTS);
        self.prompts.spawn(async move {
            let outcome = match server {
                None => Err("this session has no MCP servers".to_owned()),
                Some(server) => timeout(EXPANDING, server.expand(wanted))
                    .await
                    .unwrap_or_else(|_| Err(format!("no answer within {} s", EXPANDING.as_secs()))),
            };
            let (text, failed) = match outcome {
                Ok(text) => (Some(text), None),
                Err(why) => (None, Some(why)),
            };
            ExpandedPrompt { server: of, name, text, failed }
        });
    }

    fn over(&mut self, over: Result<(Id, ServedOutcome), JoinError>) -> Option<Input> {
        let (id, outcome) = match over {
            Ok(over) => over,
            Err(error) => {
                (error.id(), ServedOutcome::Unserved(format!("the task of this call failed: {error}")))
            }
        };
        let call =
            self.running.iter().find_map(|(call, running)| (running.task.id() == id).then_some(*call))?;
        let began = self.running.remove(&call)?.began;
        Some(Input::Served { call, outcome, duration_ms: millis(began.elapsed()) })
    }

    /// Ends all calls and waits until they are over. Returns the total host uses of the fetches that were open.
    pub(super) async fn end(&mut self, generation: Generation) -> Vec<HostUse> {
        self.fetchers = None;
        self.unwritten.clear();
        self.running.clear();
        self.tasks.shutdown().await;
        self.prompts.shutdown().await;
        if let Some(server) = &self.server {
            server.close().await;
        }
        self.pages.last(generation).await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use gate::tools::{ExternalCall, SupervisorCall};

    /// Tool server that returns the arguments of a call as its result, or never ends a call.
    struct Echo;

    impl ToolServer for Echo {
        fn serve(
            &self,
            caller: &Caller,
            call: ServedCall,
        ) -> BoxFuture<'static, Result<ServedAnswer, String>> {
            caller.progress("begun".to_owned());
            match call {
                ServedCall::Supervisor(call) => std::future::ready(Ok(call.json.into())).boxed(),
                ServedCall::External(_) | ServedCall::Fetch(_) => std::future::pending().boxed(),
            }
        }
    }

    fn served() -> ServedCalls {
        ServedCalls::new(Some(Arc::new(Echo)))
    }

    fn take(calls: &mut ServedCalls, call: u64, wanted: ServedCall) -> bool {
        calls.take(&AgentId::root(), CallId(call), wanted, Duration::from_millis(20))
    }

    fn own(json: &str) -> ServedCall {
        ServedCall::Supervisor(SupervisorCall { tool: "note".into(), json: json.to_owned() })
    }

    fn external() -> ServedCall {
        let [server, tool, json] = ["docs", "search", "{}"].map(str::to_owned);
        ServedCall::External(ExternalCall { server, tool, json, guest: None })
    }

    async fn next(calls: &mut ServedCalls) -> (u64, ServedOutcome) {
        loop {
            match timeout(Duration::from_secs(20), calls.next()).await.unwrap() {
                ServedUpdate::Over(Input::Served { call, outcome, .. }) => return (call.0, outcome),
                ServedUpdate::Progress(_, words) => assert_eq!(words, "begun"),
                ServedUpdate::Used(_)
                | ServedUpdate::Over(_)
                | ServedUpdate::Prompt(_)
                | ServedUpdate::Question(_) => {
                    panic!("nobody asked for it")
                }
            }
        }
    }

    #[tokio::test]
    async fn words_about_a_call_are_shown_while_it_runs_and_are_bounded() {
        let mut calls = served();
        take(&mut calls, 1, own("{}"));
        let first = timeout(Duration::from_secs(20), calls.next()).await.unwrap();
        assert!(matches!(first, ServedUpdate::Progress(CallId(1), words) if words == "begun"));
        next(&mut calls).await;
        let (progress, questions) = (calls.progress.sender.clone(), calls.questions.of_call());
        let caller = Caller { agent: AgentId::root(), call: CallId(1), progress, questions };
        for _ in 0..10 * PROGRESS_QUEUE {
            caller.progress("late".to_owned());
        }
        assert_eq!(calls.progress.inbox.len(), PROGRESS_QUEUE);
        take(&mut calls, 2, own("{}"));
        assert_eq!(next(&mut calls).await.0, 2);
    }

    #[tokio::test]
    async fn a_prompt_has_its_text_or_a_reason() {
        let mut calls = served();
        let wanted =
            || WantedPrompt { server: "docs".to_owned(), name: "p".to_owned(), arguments: [].into() };
        (0..=MOST_PROMPTS).for_each(|_| calls.expand(wanted()));
        for _ in 0..=MOST_PROMPTS {
            let update = timeout(Duration::from_secs(20), calls.next()).await.unwrap();
            let ServedUpdate::Prompt(expanded) = update else { panic!("no prompt") };
            assert!(expanded.text.is_none() && expanded.failed.is_some());
        }
    }

    #[tokio::test]
    async fn an_approved_call_waits_for_the_disk_and_is_given_up_at_its_deadline() {
        let mut calls = served();
        assert!(take(&mut calls, 1, external()) && calls.running.is_empty());
        calls.release(&AgentId::root(), CallId(1));
        assert_eq!(next(&mut calls).await, (1, ServedOutcome::Late(Duration::from_millis(20))));
    }

    #[tokio::test]
    async fn an_approved_call_that_was_ended_before_it_is_on_the_disk_never_begins() {
        let mut calls = served();
        take(&mut calls, 1, external());
        assert!(calls.cancel(CallId(1)));
        calls.release(&AgentId::root(), CallId(1));
        assert!(calls.running.is_empty() && calls.tasks.is_empty());
    }

    #[tokio::test]
    async fn a_call_that_was_ended_is_told_no_more() {
        let mut calls = served();
        assert!(!take(&mut calls, 1, own("{}")), "one of our own begins at once");
        assert!(calls.cancel(CallId(1)) && !calls.cancel(CallId(1)));
        take(&mut calls, 2, own("[]"));
        assert_eq!(next(&mut calls).await, (2, ServedOutcome::Answered("[]".to_owned())));
        assert!(calls.running.is_empty());
    }

    #[tokio::test]
    async fn without_a_server_a_call_fails() {
        let mut calls = ServedCalls::default();
        take(&mut calls, 1, own("{}"));
        assert!(matches!(next(&mut calls).await, (1, ServedOutcome::Unserved(_))));
    }
}
