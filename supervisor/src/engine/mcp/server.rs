//! Task of one MCP server: starts it with the first call, restarts it once after a failure, ends it with the session.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use boundary::install::SelfInstaller;
use boundary::monitor::{
    GuestLog, McpEnd, McpEvent, McpOrderError, McpServerProcess, McpServerSpec, Spawner,
};
use ipc::confinement::Confinement;
use ipc::mcp::{McpAnswer, McpCommand, McpDescription, McpReport, McpRequest, McpTool};
use protocol::event::{GuestEnd, PinChange, ToolPinned};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::confine::{Confined, keep_what_runs_later};
use super::installed::{InstalledServer, NotStarted};
use super::own_code::OwnCode;
use super::pin::Pin;
use super::progress::ProgressLines;
use super::questions::{AnsweredQuestion, OpenQuestions, QuestionOf};
use super::result::{answer, words};
use crate::engine::driver::{Caller, ServedAnswer};
use crate::engine::place::ProjectSandbox;
use crate::settings::config::McpServer;

/// Maximum number of starts of a server in one session.
const STARTS: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct ServerSpec {
    pub(super) server: McpServer,
    pub(super) spawner: Spawner,
    /// Program of the guest process that runs the server. It is the worker's program.
    pub(super) program: PathBuf,
    pub(super) confinement: Confinement,
    /// Maximum size of a result in bytes.
    pub(super) most: usize,
    /// Installed files; `None` if the server's command installs no packages.
    pub(super) installed: Option<InstalledServer>,
    pub(super) code: OwnCode,
    pub(super) approved: ApprovedTools,
    pub(super) log: GuestLog,
}

#[derive(Clone, Debug)]
pub(super) struct ApprovedTools {
    /// Digest of all tool definitions of the server.
    pub(super) digest: String,
    pub(super) by: ApprovedBy,
}

/// Origin of the approval that the definitions of a server have to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovedBy {
    Person,
    /// The server is of a file that the user named: its first start in this run fixes the definitions.
    Run,
}

impl ApprovedBy {
    /// Returns a clause about the time since which a definition must not change, and about the remedy.
    fn since(self, server: &str) -> String {
        match self {
            Self::Person => format!(
                "since the user approved the server `{server}`; `bailiwick mcp add {server}` shows the difference and asks the user"
            ),
            Self::Run => format!("since this run first started the server `{server}`"),
        }
    }
}

impl ServerSpec {
    pub(super) fn new(
        setup: &ProjectSandbox,
        server: &McpServer,
        confined: &Confined,
        approved: ApprovedTools,
        installed: Option<&InstalledServer>,
    ) -> Self {
        Self {
            server: server.clone(),
            spawner: setup.spawner.clone(),
            program: setup.programs.worker.clone(),
            confinement: confined.confinement.clone(),
            most: usize::try_from(setup.policy.limits.output_bytes).unwrap_or(usize::MAX),
            installed: installed.cloned(),
            code: OwnCode::of(setup, server),
            approved,
            log: GuestLog::default(),
        }
    }

    /// Checks the files of the server's command, and returns the process to start.
    pub(super) async fn process(&self) -> Result<McpServerSpec, NotStarted> {
        let McpServer { name, command, args, .. } = &self.server;
        let code = self.code.clone();
        tokio::task::spawn_blocking(move || code.check()).await.map_err(|_| NotStarted::Ended)??;
        let (program, arguments) = match (&self.installed, SelfInstaller::of(command, args)) {
            (Some(files), Some(installer)) => {
                files.checked().await?;
                (files.command().to_owned(), installer.arguments)
            }
            _ => (command.clone(), args.clone()),
        };
        Ok(McpServerSpec {
            name: name.clone(),
            program: self.program.clone(),
            confinement: guarded(self.confinement.clone()).await?,
            command: McpCommand { program, arguments },
            log: self.log.clone(),
        })
    }
}

/// Makes files read-only if programs outside the sandbox run them later, without blocking other tasks.
async fn guarded(mut confinement: Confinement) -> Result<Confinement, NotStarted> {
    let look = move || keep_what_runs_later(&mut confinement).map(|()| confinement);
    let looked = tokio::task::spawn_blocking(look).await.map_err(|_| NotStarted::Ended)?;
    looked.map_err(NotStarted::RunsLater)
}

pub(super) struct ToolCall {
    /// Number of the call. It is unique in the session.
    pub(super) id: u64,
    pub(super) wanted: WantedCall,
    /// Channels to the user; `None` for a prompt that the user named.
    pub(super) caller: Option<Caller>,
    pub(super) progress: ProgressLines,
    pub(super) answer: oneshot::Sender<Result<ServedAnswer, String>>,
}

pub(super) enum WantedCall {
    Tool {
        tool: String,
        json: String,
        /// Digest of the tool's definition that the model was given.
        definition: String,
    },
    /// A resource with this URI; `None` lists all resources.
    Resource(Option<String>),
    /// A prompt that the user named, with its arguments as JSON.
    Prompt { name: String, arguments: String },
}

impl ToolCall {
    fn fail(self, why: String) {
        // An error means that nobody waits any more.
        let _ = self.answer.send(Err(why));
    }
}

pub(super) enum ServerOrder {
    Call(Box<ToolCall>),
    /// Cancels the call with this id.
    Cancel(u64),
}

pub(super) trait ServerLink: Sized + Send {
    fn start(spec: &ServerSpec) -> impl Future<Output = Result<Self, String>> + Send;
    fn request(&mut self, what: McpRequest) -> impl Future<Output = Result<u64, McpOrderError>> + Send;
    fn cancel(&mut self, request: u64) -> impl Future<Output = Result<(), McpOrderError>> + Send;
    fn answer(
        &mut self,
        question: u64,
        answer: McpAnswer,
    ) -> impl Future<Output = Result<(), McpOrderError>> + Send;
    /// Waits for the next event of the server. Cancel safe.
    fn next(&mut self) -> impl Future<Output = McpEvent> + Send;
    fn end(self, reason: GuestEnd) -> impl Future<Output = ()> + Send;
}

impl ServerLink for McpServerProcess {
    async fn start(spec: &ServerSpec) -> Result<Self, String> {
        let name = &spec.server.name;
        let process = spec.process().await;
        let process = process.map_err(|why| format!("{why}; for the user: {}", why.remedy(name)))?;
        Self::start(&spec.spawner, process).await.map_err(|error| error.to_string())
    }

    async fn request(&mut self, what: McpRequest) -> Result<u64, McpOrderError> {
        self.request(what).await
    }

    async fn cancel(&mut self, request: u64) -> Result<(), McpOrderError> {
        self.cancel(request).await
    }

    async fn answer(&mut self, question: u64, answer: McpAnswer) -> Result<(), McpOrderError> {
        self.answer(question, answer).await
    }

    async fn next(&mut self) -> McpEvent {
        self.next().await
    }

    async fn end(self, reason: GuestEnd) {
        let ended = self.end(reason).await;
        tracing::info!(?ended, "a server of MCP ended");
    }
}

/// Serves the calls of one server until `orders` ends.
pub(super) async fn attend<L: ServerLink>(spec: ServerSpec, mut orders: UnboundedReceiver<ServerOrder>) {
    let name = &spec.server.name;
    let (mut starts, mut last) = (0, String::new());
    while let Some(order) = orders.recv().await {
        let ServerOrder::Call(call) = order else { continue };
        if starts == STARTS {
            call.fail(format!(
                "the server `{name}` ended {STARTS} times in this session and is not started again: {last}"
            ));
            continue;
        }
        starts += 1;
        let ended = match L::start(&spec).await {
            Ok(link) => AttendedServer::new(link, &spec).serve(*call, &mut orders).await,
            Err(why) => {
                call.fail(format!("the server `{name}` could not be started: {why}"));
                Some(why)
            }
        };
        match ended {
            Some(why) => last = why,
            None => return,
        }
    }
}

struct AttendedServer<'a, L> {
    link: L,
    spec: &'a ServerSpec,
    tools: Vec<McpTool>,
    /// Definitions of the running server; `None` until its description is complete.
    live: Option<LiveServer>,
    /// Calls that wait for the complete description.
    waiting: Vec<ToolCall>,
    /// Calls that were sent, by the numbers of their requests.
    open: HashMap<u64, ToolCall>,
    questions: OpenQuestions,
}

struct LiveServer {
    /// Digests of definitions, by the names of the tools.
    digests: BTreeMap<String, String>,
    resources: bool,
}

impl LiveServer {
    /// Returns the request for a call. The error says why the call is refused.
    fn request(&self, wanted: &WantedCall, spec: &ServerSpec) -> Result<McpRequest, String> {
        let server = &spec.server.name;
        match wanted {
            WantedCall::Tool { tool, json, definition } if self.digests.get(tool) == Some(definition) => {
                Ok(McpRequest::CallTool { tool: tool.clone(), arguments: json.clone() })
            }
            WantedCall::Tool { tool, .. } => {
                let how = if self.digests.contains_key(tool) { "has changed" } else { "was removed" };
                let since = spec.approved.by.since(server);
                Err(format!("the call was not made: the definition of `{tool}` {how} {since}"))
            }
            WantedCall::Resource(_) if !self.resources => {
                Err(format!("the call was not made: the server `{server}` offers no MCP resources any more"))
            }
            WantedCall::Resource(Some(uri)) => Ok(McpRequest::ReadResource { uri: uri.clone() }),
            WantedCall::Resource(None) => Ok(McpRequest::ListResources),
            WantedCall::Prompt { name, arguments } => {
                Ok(McpRequest::GetPrompt { name: name.clone(), arguments: arguments.clone() })
            }
        }
    }
}

impl<'a, L: ServerLink> AttendedServer<'a, L> {
    fn new(link: L, spec: &'a ServerSpec) -> Self {
        let questions = OpenQuestions::default();
        Self {
            link,
            spec,
            tools: Vec::new(),
            live: None,
            waiting: Vec::new(),
            open: HashMap::new(),
            questions,
        }
    }

    /// Serves calls until the server fails. Returns the reason of the failure; `None` if the session ends.
    async fn serve(mut self, first: ToolCall, orders: &mut UnboundedReceiver<ServerOrder>) -> Option<String> {
        self.waiting.push(first);
        loop {
            let fault = tokio::select! {
                event = self.link.next() => self.on_event(event).await,
                answered = self.questions.next() => self.on_answered(answered).await,
                order = orders.recv() => {
                    let Some(order) = order else {
                        self.link.end(GuestEnd::OwnerEnded).await;
                        return None;
                    };
                    self.on_order(order).await
                }
            };
            if let Err(why) = fault {
                return Some(self.fail(why).await);
            }
        }
    }

    /// Fails all calls and ends the server. Returns the reason `why`.
    async fn fail(self, why: String) -> String {
        let name = &self.spec.server.name;
        for call in self.waiting.into_iter().chain(self.open.into_values()) {
            call.fail(format!("the server `{name}` has ended: {why}"));
        }
        self.link.end(GuestEnd::Failed { failure: why.clone() }).await;
        why
    }

    async fn on_order(&mut self, order: ServerOrder) -> Result<(), String> {
        match order {
            ServerOrder::Call(call) => self.take(*call).await,
            ServerOrder::Cancel(id) => {
                self.waiting.retain(|call| call.id != id);
                let request =
                    self.open.iter().find_map(|(request, call)| (call.id == id).then_some(*request));
                match request {
                    Some(request) => self.link.cancel(request).await.map_err(|error| error.to_string()),
                    None => Ok(()),
                }
            }
        }
    }

    /// Sends a call to the server if the call's definition is approved. The error is a fault of the server.
    async fn take(&mut self, call: ToolCall) -> Result<(), String> {
        let Some(live) = &self.live else {
            self.waiting.push(call);
            return Ok(());
        };
        let what = match live.request(&call.wanted, self.spec) {
            Ok(what) => what,
            Err(why) => {
                call.fail(why);
                return Ok(());
            }
        };
        match self.link.request(what).await {
            Ok(request) => drop(self.open.insert(request, call)),
            Err(error @ McpOrderError::TooMany) => call.fail(error.to_string()),
            Err(error) => {
                self.waiting.push(call);
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    async fn on_event(&mut self, event: McpEvent) -> Result<(), String> {
        match event {
            McpEvent::Report(report) => self.on_report(report).await,
            McpEvent::Refused(refused) => {
                tracing::info!(server = self.spec.server.name, ?refused, "denied to a server of MCP");
                Ok(())
            }
            McpEvent::HostUsed(used) => {
                tracing::info!(server = self.spec.server.name, ?used, "a server of MCP connected");
                Ok(())
            }
            McpEvent::Ended(end) => Err(words_of_end(&end)),
        }
    }

    async fn on_report(&mut self, report: McpReport) -> Result<(), String> {
        match report {
            McpReport::Tool(tool) => self.tools.push(tool),
            McpReport::Described(description) => return self.described(&description).await,
            McpReport::Done { request, outcome } => {
                if let Some(call) = self.open.remove(&request) {
                    let outcome = match outcome {
                        Ok(result) => answer(result, self.spec.most),
                        Err(failure) => Err(words(&failure)),
                    };
                    // An error means that nobody waits any more.
                    let _ = call.answer.send(outcome);
                }
            }
            McpReport::Question { question, request, message, form } => {
                let caller = self.open.get(&request).and_then(|call| call.caller.as_ref());
                self.questions.ask(QuestionOf { question, request }, caller, message, form);
            }
            McpReport::Progress { request, words } => {
                if let Some(call) = self.open.get_mut(&request) {
                    call.progress.show(&words);
                }
            }
            McpReport::Gone(failure) => return Err(words(&failure)),
            // The definitions in the prompt stay. The next start compares them with the server's.
            McpReport::ToolsChanged => {
                tracing::info!(
                    server = self.spec.server.name,
                    "a server of MCP says that its tools have changed"
                );
            }
            McpReport::Ready | McpReport::Prompt(_) => {}
        }
        Ok(())
    }

    /// Sends the user's answer to the server, if the call is still open.
    async fn on_answered(&mut self, answered: AnsweredQuestion) -> Result<(), String> {
        let AnsweredQuestion { of: QuestionOf { question, request }, answer } = answered;
        if !self.open.contains_key(&request) {
            return Ok(());
        }
        self.link.answer(question, answer).await.map_err(|error| error.to_string())
    }

    async fn described(&mut self, description: &McpDescription) -> Result<(), String> {
        let pin = Pin::new(&self.spec.server, description, std::mem::take(&mut self.tools));
        if pin.digest() != self.spec.approved.digest {
            let change = PinChange::Withheld;
            self.spec.log.pinned(ToolPinned { change, ..pin.pinned(&self.spec.server.name) });
        }
        let digests = pin.tools.into_iter().map(|tool| (tool.name, tool.digest)).collect();
        self.live = Some(LiveServer { digests, resources: description.resources });
        let mut waiting = std::mem::take(&mut self.waiting).into_iter();
        while let Some(call) = waiting.next() {
            if let Err(why) = self.take(call).await {
                self.waiting.extend(waiting);
                return Err(why);
            }
        }
        Ok(())
    }
}

pub(super) fn words_of_end(end: &McpEnd) -> String {
    match end {
        McpEnd::Closed => "the server's process ended".to_owned(),
        McpEnd::Violation(violation) => format!("the server broke the protocol by {violation}"),
        McpEnd::GatewayGone => "the gateway to the server's hosts ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use boundary::policy::HiddenInodes;
    use ipc::mcp::{McpContent, McpForm, McpResult};
    use ipc::rights::Rights;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::super::pin::tests::{server, tool};
    use super::*;

    struct Scripted {
        events: UnboundedReceiver<McpEvent>,
        said: UnboundedSender<String>,
        last: u64,
    }

    /// Server that the next start returns.
    static NEXT: Mutex<Option<Scripted>> = Mutex::new(None);

    impl ServerLink for Scripted {
        async fn start(_: &ServerSpec) -> Result<Self, String> {
            NEXT.lock().unwrap().take().ok_or_else(|| "there is no other".to_owned())
        }

        async fn request(&mut self, what: McpRequest) -> Result<u64, McpOrderError> {
            self.last += 1;
            self.said.send(format!("{} {what:?}", self.last)).unwrap();
            Ok(self.last)
        }

        async fn cancel(&mut self, request: u64) -> Result<(), McpOrderError> {
            self.said.send(format!("cancel {request}")).unwrap();
            Ok(())
        }

        async fn answer(&mut self, question: u64, answer: McpAnswer) -> Result<(), McpOrderError> {
            self.said.send(format!("answer {question} {answer:?}")).unwrap();
            Ok(())
        }

        async fn next(&mut self) -> McpEvent {
            self.events.recv().await.unwrap_or(McpEvent::Ended(McpEnd::Closed))
        }

        async fn end(self, reason: GuestEnd) {
            self.said.send(format!("end: it {reason}")).unwrap();
        }
    }

    fn call(id: u64, definition: &str) -> (ServerOrder, oneshot::Receiver<Result<ServedAnswer, String>>) {
        let (answer, answered) = oneshot::channel();
        let (tool, json) = ("a".to_owned(), "{}".to_owned());
        let wanted = WantedCall::Tool { tool, json, definition: definition.to_owned() };
        let progress = ProgressLines::of(None);
        (ServerOrder::Call(Box::new(ToolCall { id, wanted, caller: None, progress, answer })), answered)
    }

    #[tokio::test]
    async fn calls_wait_for_the_description_and_are_cancelled_failed_and_withheld() {
        let (news, events) = unbounded_channel();
        let (said, mut heard) = unbounded_channel();
        let (log, mut logged) = GuestLog::channel();
        *NEXT.lock().unwrap() = Some(Scripted { events, said, last: 0 });
        let spec = ServerSpec {
            server: server(),
            spawner: Spawner::of_this_process("/none".into(), HiddenInodes::default()).unwrap(),
            program: "/none".into(),
            confinement: Confinement::new(Rights::default(), "/".into()),
            most: 100,
            installed: None,
            code: OwnCode::default(),
            approved: ApprovedTools {
                digest: super::super::pin::tests::pin(vec![tool("a")]).digest(),
                by: ApprovedBy::Person,
            },
            log,
        };
        let (orders, inbox) = unbounded_channel();
        let task = tokio::spawn(attend::<Scripted>(spec, inbox));
        let pin = super::super::pin::tests::pin(vec![tool("a")]);
        let digest = &pin.tools[0].digest;
        let (first, answered) = call(1, digest);
        orders.send(first).ok().unwrap();
        let (other, withheld) = call(2, "another digest");
        orders.send(other).ok().unwrap();
        let report = |report| news.send(McpEvent::Report(report)).unwrap();
        report(McpReport::Tool(tool("a")));
        let description = McpDescription {
            name: "d".to_owned(),
            version: "1".to_owned(),
            protocol: "p".to_owned(),
            instructions: String::new(),
            resources: false,
        };
        report(McpReport::Described(description));
        assert!(heard.recv().await.unwrap().starts_with("1 CallTool"));
        assert!(logged.try_recv().is_err(), "the tools are those that were approved");
        assert!(withheld.await.unwrap().unwrap_err().contains("has changed since the user approved"));
        report(McpReport::Question {
            question: 7,
            request: 1,
            message: "password?".to_owned(),
            form: McpForm::Page,
        });
        assert_eq!(heard.recv().await.unwrap(), "answer 7 Cancelled");
        let content = vec![McpContent::Text("found".to_owned())];
        report(McpReport::Done {
            request: 1,
            outcome: Ok(McpResult { failed: false, content, structured: None }),
        });
        assert_eq!(answered.await.unwrap(), Ok("found".to_owned().into()));
        let (third, _nobody) = call(3, digest);
        orders.send(third).ok().unwrap();
        assert!(heard.recv().await.unwrap().starts_with("2 CallTool"));
        orders.send(ServerOrder::Cancel(3)).ok().unwrap();
        assert_eq!(heard.recv().await.unwrap(), "cancel 2");
        let (fourth, failed) = call(4, digest);
        orders.send(fourth).ok().unwrap();
        assert!(heard.recv().await.unwrap().starts_with("3 CallTool"));
        news.send(McpEvent::Ended(McpEnd::GatewayGone)).unwrap();
        assert!(failed.await.unwrap().unwrap_err().contains("the gateway to the server's hosts ended"));
        assert_eq!(heard.recv().await.unwrap(), "end: it failed: the gateway to the server's hosts ended");
        let (fifth, refused) = call(5, digest);
        orders.send(fifth).ok().unwrap();
        assert!(refused.await.unwrap().unwrap_err().contains("could not be started: there is no other"));
        let (sixth, refused) = call(6, digest);
        orders.send(sixth).ok().unwrap();
        assert!(refused.await.unwrap().unwrap_err().contains("not started again"));
        drop(orders);
        task.await.unwrap();
    }

    #[tokio::test]
    async fn an_installed_server_starts_from_its_files_with_the_arguments_behind_its_packages() {
        let place = tempfile::tempdir().unwrap();
        let (server, installed) = super::super::installed::tests::installed(place.path());
        let spec = ServerSpec {
            server,
            spawner: Spawner::of_this_process("/none".into(), HiddenInodes::default()).unwrap(),
            program: "/none".into(),
            confinement: Confinement::new(Rights::default(), "/".into()),
            most: 100,
            installed: Some(installed),
            code: OwnCode::default(),
            approved: ApprovedTools { digest: String::new(), by: ApprovedBy::Person },
            log: GuestLog::default(),
        };
        let McpCommand { program, arguments } = spec.process().await.unwrap().command;
        assert_eq!(program, place.path().join("tree/bin/server").display().to_string());
        assert_eq!(arguments, ["--port=3"]);
        std::fs::write(place.path().join("tree/bin/server"), "changed").unwrap();
        assert!(matches!(spec.process().await, Err(NotStarted::Changed)));
    }
}
