mod agents;
mod grant;
mod one_model;
mod unserialisable;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipc::id::{AgentId, ApprovalId, CallId, ConversationId};
use ipc::image::MediaType;
use ipc::rights::{Grant, Network, RightsChange, RightsSummary};
use ipc::tool::Access;
use protocol::approval::{ApprovalAnswer, ApprovalMode, ExecCommandApprovalParams, ServerRequest};
use protocol::event::{RewindScope, RewindTarget, SCHEMA};
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use protocol::rpc::{Attachment, ErrorObject, ErrorWord, Line, NewConversationParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::one_model::OneModel;
use super::dialect::ServeServer;
use crate::engine::opening::Handle;
use crate::front::wire::{OpenConversation, OpenedConversation, StartAccess, Writer};
use crate::process::exit::Exit;

const PATIENCE: Duration = Duration::from_secs(20);

struct Core {
    id: ConversationId,
    actions: mpsc::Receiver<UserAction>,
    events: mpsc::UnboundedSender<UiEvent>,
    log: PathBuf,
    over: oneshot::Sender<Result<(), String>>,
}

struct Scripted {
    cores: mpsc::UnboundedSender<Core>,
    opened: Mutex<u32>,
    logs: TempDir,
}

impl OpenConversation for Scripted {
    fn open(&self, params: NewConversationParams, _: bool) -> Result<OpenedConversation, ErrorObject> {
        if params.cwd.as_path().ends_with("refused") {
            return Err(ErrorWord::ProjectRefused.because("refused"));
        }
        let mut opened = self.opened.lock().unwrap();
        *opened += 1;
        let id = ConversationId(format!("c{opened}"));
        let (sender, actions) = mpsc::channel(2);
        let (events, shown) = mpsc::unbounded_channel();
        let (over, end) = oneshot::channel();
        let log = self.logs.path().join(format!("{id}.jsonl"));
        let _ = self.cores.send(Core { id: id.clone(), actions, events, log: log.clone(), over });
        let run = Box::pin(async move { end.await.unwrap_or(Ok(())) });
        Ok(OpenedConversation {
            handle: Handle::new(id, sender),
            events: shown,
            log,
            models: Some(Arc::new(OneModel)),
            start: StartAccess { mode: ApprovalMode::Ask, net: Network::Off, models: Vec::new() },
            prompts: Vec::new(),
            commands: Vec::new(),
            run,
        })
    }
}

impl Core {
    fn show(&self, kind: UiEventKind) {
        let _ = self.events.send(UiEvent { conversation_id: self.id.clone(), agent: AgentId::root(), kind });
    }

    fn asks(&self, id: u64) {
        let params = ExecCommandApprovalParams {
            conversation_id: self.id.clone(),
            agent: AgentId::root(),
            call_id: CallId(id),
            command: vec!["true".to_owned()],
            cwd: "/p".into(),
            environment: vec![],
            access: Access::Write,
            network: None,
            digest: "d".to_owned(),
            grant: Grant::default(),
            rights: RightsSummary::default().into(),
            timeout_ms: 1000,
            reason: None,
            prefix: None,
            parts: Vec::new(),
            grant_root: None,
            turn: None,
            in_project: None,
        };
        let request = Box::new(ServerRequest::ExecCommandApproval(params));
        self.show(UiEventKind::ApprovalRequested { id: ApprovalId(id), request });
    }

    /// Returns the next action that the server sent to the session, and the agent for which it is.
    async fn wanted(&mut self) -> (Option<AgentId>, UserActionKind) {
        let action = timeout(PATIENCE, self.actions.recv()).await.expect("in time").expect("an action");
        (action.agent, action.kind)
    }

    async fn action(&mut self) -> UserActionKind {
        let action = timeout(PATIENCE, self.actions.recv()).await.expect("in time").expect("an action");
        assert_eq!(action.conversation_id, self.id);
        action.kind
    }

    async fn answer(&mut self, id: u64) -> ApprovalAnswer {
        match self.action().await {
            UserActionKind::Answer { id: answered, answer } if answered == ApprovalId(id) => answer,
            other => panic!("{other:?}"),
        }
    }
}

struct Client {
    input: Option<mpsc::Sender<Line>>,
    output: mpsc::Receiver<String>,
    finished: Option<oneshot::Sender<()>>,
    cores: mpsc::UnboundedReceiver<Core>,
    server: JoinHandle<Exit>,
}

impl Client {
    fn start() -> Self {
        Self::start_after(|_| {})
    }

    fn start_after(prepare: impl FnOnce(&mut ServeServer<Scripted>)) -> Self {
        let (input, lines) = mpsc::channel(4);
        let (sender, output) = mpsc::channel(1);
        let (done, finished) = oneshot::channel();
        let (cores, made) = mpsc::unbounded_channel();
        let scripted = Scripted { cores, opened: Mutex::new(0), logs: TempDir::new().unwrap() };
        let mut server = ServeServer::new(scripted);
        prepare(&mut server);
        let server = tokio::spawn(server.run(lines, Writer { lines: sender, finished }));
        Self { input: Some(input), output, finished: Some(done), cores: made, server }
    }

    async fn greeted() -> Self {
        let mut client = Self::start();
        client.call(0, "initialize", json!({})).await;
        client
    }

    async fn raw(&self, line: &str) {
        let input = self.input.as_ref().expect("it is open");
        input.send(Line::Whole(line.as_bytes().to_vec())).await.expect("it is read");
    }

    async fn send(&self, message: Value) {
        self.raw(&message.to_string()).await;
    }

    async fn read(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.recv()).await.expect("in time").expect("a line");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request and returns its response. Fails if another line arrives before the response.
    async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let response = self.read().await;
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(id)), "{response}");
        response
    }

    async fn word(&mut self, method: &str, params: Value) -> String {
        let response = self.call(7, method, params).await;
        response["error"]["data"]["word"].as_str().unwrap_or("none").to_owned()
    }

    async fn converse(&mut self) -> Core {
        let response = self.call(1, "newConversation", json!({"cwd": "/p"})).await;
        let core = self.cores.recv().await.expect("it was opened");
        assert_eq!(response["result"]["conversation_id"], core.id.as_str());
        core
    }

    async fn respond(&self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// Closes the input. Returns all remaining lines and the exit status.
    async fn end(mut self) -> (Vec<Value>, Exit) {
        self.input = None;
        let mut lines = Vec::new();
        while let Some(line) = timeout(PATIENCE, self.output.recv()).await.expect("in time") {
            lines.push(serde_json::from_str(&line).unwrap());
        }
        drop(self.finished.take());
        (lines, self.server.await.unwrap())
    }
}

#[tokio::test]
async fn each_action_reaches_its_own_conversation() {
    let mut client = Client::greeted().await;
    let (mut one, mut two) = (client.converse().await, client.converse().await);
    let grant = json!({"conversation_id": "c2", "grant_id": 3});
    let target = RewindTarget { to: Some(ipc::id::EventId(7)), scope: RewindScope::Files };
    for (method, params, expected) in [
        (
            "sendUserMessage",
            json!({"conversation_id": "c2", "text": "hi"}),
            UserActionKind::Agent(AgentAction::Prompt { text: "hi".to_owned(), images: vec![] }),
        ),
        ("interrupt", json!({"conversation_id": "c2"}), UserActionKind::Agent(AgentAction::Interrupt)),
        ("compact", json!({"conversation_id": "c2"}), UserActionKind::Agent(AgentAction::Compact)),
        (
            "rewind",
            json!({"conversation_id": "c2", "to": 7, "scope": "files", "files": ["a"], "digest": "d"}),
            UserActionKind::Rewind { target, files: vec!["a".into()], digest: Some("d".to_owned()) },
        ),
        (
            "setNet",
            json!({"conversation_id": "c2", "net": "on"}),
            UserActionKind::Agent(AgentAction::SetRights {
                change: RightsChange::Network { net: Network::On, reach: None },
            }),
        ),
        ("revokeGrant", grant, UserActionKind::Agent(AgentAction::RevokeGrant { id: ipc::id::GrantId(3) })),
        ("closeConversation", json!({"conversation_id": "c2"}), UserActionKind::Agent(AgentAction::Quit)),
    ] {
        let response = client.call(5, method, params).await;
        assert_eq!(response["result"], json!({}), "{method}");
        assert_eq!(two.action().await, expected, "{method}");
    }
    assert!(one.actions.try_recv().is_err());
}

#[tokio::test]
async fn only_whole_pictures_reach_a_conversation() {
    const PNG: &[u8] = include_bytes!("../../../../../fixtures/images/shapes.png");
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    let message = |data: &[u8]| {
        let image = Attachment { media_type: MediaType::Png, width: None, height: None, data: data.into() };
        json!({"conversation_id": "c1", "text": "look", "images": [image]})
    };
    let error = client.call(5, "sendUserMessage", message(&PNG[..60])).await["error"].to_string();
    assert!(error.contains("-32602") && error.contains("images[0]: the picture is a damaged png"), "{error}");
    client.call(6, "sendUserMessage", message(PNG)).await;
    let UserActionKind::Agent(AgentAction::Prompt { images, .. }) = core.action().await else { panic!() };
    assert_eq!(images, [picture::read(PNG).unwrap()]);
}

#[tokio::test]
async fn a_model_is_chosen_of_those_that_the_provider_has() {
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    let params = |model| json!({"conversation_id": "c1", "agent": "1.2", "model": model});
    let refused = client.call(5, "setModel", params("o")).await["error"].clone();
    assert_eq!(refused["message"], "model: o is another provider's");
    assert_eq!(refused["data"]["word"], "option_refused");
    client.call(6, "setModel", params("n")).await;
    let agent = Some(AgentId::from("1.2"));
    assert_eq!(core.wanted().await, (agent, UserActionKind::SetModel { model: "n".to_owned() }));
}

#[tokio::test]
async fn the_history_comes_in_pages() {
    let mut client = Client::greeted().await;
    let core = client.converse().await;
    let line = |id: u64, agent: &str| {
        let head = json!({"v": SCHEMA, "id": id, "time_ms": 7, "session": "c1", "agent": agent, "observed_by": "supervisor"});
        let data = json!({"text": format!("message {id}")});
        let head = head.to_string();
        format!("{},\"type\":\"user_message\",\"data\":{data},\"prev\":\"p\"}}\n", &head[..head.len() - 1])
    };
    // The incomplete last line is not returned.
    let log = [line(1, "1"), line(2, "1.1"), line(3, "1"), "{\"v\":".to_owned()].concat();
    fs::write(&core.log, log).unwrap();
    let mut page = async |params: Value| {
        let result = client.call(5, "history", params).await["result"].clone();
        let ids: Vec<_> =
            result["events"].as_array().unwrap().iter().map(|it| it["logged"]["id"].clone()).collect();
        (ids, result["next"].clone(), result["events"][0].clone())
    };
    let (ids, next, first) = page(json!({"conversation_id": "c1", "limit": 2})).await;
    assert_eq!((ids, next), (vec![json!(1), json!(2)], json!(2)));
    assert_eq!((&first["type"], &first["data"]["text"]), (&json!("user_message"), &json!("message 1")));
    let (ids, next, _) = page(json!({"conversation_id": "c1", "after": 2})).await;
    assert_eq!((ids, next), (vec![json!(3)], Value::Null));
    let (ids, ..) = page(json!({"conversation_id": "c1", "agent": "1.1"})).await;
    assert_eq!(ids, [json!(2)]);
    let (ids, next, _) = page(json!({"conversation_id": "c1", "after": 9})).await;
    assert_eq!((ids, next), (vec![], Value::Null));
    assert_eq!(client.word("history", json!({"conversation_id": "c9"})).await, "no_such_conversation");
    fs::remove_file(&core.log).unwrap();
    assert_eq!(client.word("history", json!({"conversation_id": "c1"})).await, "internal_error");
}

#[tokio::test]
async fn what_is_not_in_order_is_refused_and_the_connection_goes_on() {
    let mut client = Client::start();
    assert_eq!(client.word("newConversation", json!({"cwd": "/p"})).await, "not_initialised");
    assert_eq!(
        client.word("sendUserMessage", json!({"conversation_id": "c", "text": ""})).await,
        "not_initialised"
    );
    assert_eq!(client.word("initialize", json!({})).await, "none");
    assert_eq!(client.word("initialize", json!({})).await, "already_initialised");
    assert_eq!(client.word("interrupt", json!({"conversation_id": "c9"})).await, "no_such_conversation");
    assert_eq!(client.word("newConversation", json!({"cwd": "/refused"})).await, "project_refused");
    assert_eq!(client.word("yolo", json!({})).await, "method_not_found");
    let core = client.converse().await;
    let busy = json!({"conversation_id": "c1"});
    assert_eq!(client.word("interrupt", busy.clone()).await, "none");
    assert_eq!(client.word("interrupt", busy.clone()).await, "none");
    assert_eq!(client.word("interrupt", busy.clone()).await, "busy");
    core.over.send(Ok(())).unwrap();
    assert_eq!(client.read().await["method"], "event/conversationClosed");
    assert_eq!(client.word("interrupt", busy).await, "no_such_conversation");
}

#[tokio::test]
async fn a_notification_of_the_client_has_no_answer() {
    let mut client = Client::greeted().await;
    client.send(json!({"jsonrpc": "2.0", "method": "shutdown"})).await;
    client.send(json!({"jsonrpc": "2.0", "method": "nothing", "params": {}})).await;
    assert_eq!(client.word("interrupt", json!({"conversation_id": "c9"})).await, "no_such_conversation");
}

#[tokio::test]
async fn an_approval_is_answered_once() {
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    core.asks(4);
    let request = client.read().await;
    assert_eq!((&request["id"], &request["method"]), (&json!("c1:1:4"), &json!("execCommandApproval")));
    assert_eq!(request["params"]["conversation_id"], "c1");
    client.respond(&json!("c9:1:4"), json!({"decision": "approved"})).await;
    client.respond(&json!(4), json!({"decision": "approved"})).await;
    client.respond(&request["id"], json!({"decision": "denied", "message": "no"})).await;
    let ApprovalAnswer::Exec(response) = core.answer(4).await else { panic!() };
    assert_eq!(response.decision.as_str(), "denied");
    // A second answer to the same request has no effect, and neither has one after the request was closed.
    client.respond(&request["id"], json!({"decision": "approved"})).await;
    core.asks(5);
    let request = client.read().await;
    core.show(UiEventKind::ApprovalClosed { id: ApprovalId(5) });
    let closed = client.read().await;
    assert_eq!(closed["method"], "event/approvalClosed");
    assert_eq!(closed["params"]["data"], json!({"agent": "1", "id": 5, "request_id": "c1:1:5"}));
    client.respond(&request["id"], json!({"decision": "approved"})).await;
    client.call(9, "interrupt", json!({"conversation_id": "c1"})).await;
    assert_eq!(core.action().await, UserActionKind::Agent(AgentAction::Interrupt));
}

#[tokio::test]
async fn whatever_is_no_response_of_the_request_is_no_answer() {
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    let bad = [
        json!({"result": null}),
        json!({"result": true}),
        json!({"result": "approved"}),
        json!({"result": {}}),
        json!({"result": ["approved"]}),
        json!({"result": {"decision": "yes"}}),
        json!({"result": {"decision": "approved", "scope": {"type": "exact"}}}),
        json!({"error": {"code": 1, "message": "approved"}}),
        json!({"error": {"decision": "approved"}}),
        json!({"error": null}),
    ];
    for (id, mut answer) in (1..).zip(bad) {
        core.asks(id);
        let request = client.read().await;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        client.send(answer.clone()).await;
        assert!(matches!(core.answer(id).await, ApprovalAnswer::Failed { .. }), "{answer}");
    }
}

#[tokio::test]
async fn a_front_end_that_is_gone_denies_and_ends_everything() {
    let mut client = Client::greeted().await;
    let (mut one, mut two) = (client.converse().await, client.converse().await);
    one.asks(1);
    client.read().await;
    client.input = None;
    let ApprovalAnswer::Failed { cause } = one.answer(1).await else { panic!() };
    assert_eq!(cause, "the front end closed the connection");
    for core in [&mut one, &mut two] {
        assert_eq!(core.action().await, UserActionKind::Agent(AgentAction::Terminate));
    }
    // Later questions are denied too.
    two.asks(1);
    assert!(matches!(two.answer(1).await, ApprovalAnswer::Failed { .. }));
    for core in [one, two] {
        core.over.send(Ok(())).unwrap();
    }
    let (lines, exit) = client.end().await;
    assert_eq!((lines.len(), exit), (3, Exit::Done), "{lines:?}");
}

#[tokio::test]
async fn an_output_that_nobody_reads_ends_everything() {
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    core.asks(1);
    client.read().await;
    drop(std::mem::replace(&mut client.output, mpsc::channel(1).1));
    assert!(matches!(core.answer(1).await, ApprovalAnswer::Failed { .. }));
    assert_eq!(core.action().await, UserActionKind::Agent(AgentAction::Terminate));
    core.over.send(Ok(())).unwrap();
    assert_eq!(client.server.await.unwrap(), Exit::Internal);
}

#[tokio::test]
async fn shutdown_is_answered_when_everything_is_over() {
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    core.asks(1);
    client.read().await;
    client.send(json!({"jsonrpc": "2.0", "id": "bye", "method": "shutdown"})).await;
    assert!(matches!(core.answer(1).await, ApprovalAnswer::Failed { .. }));
    assert_eq!(core.action().await, UserActionKind::Agent(AgentAction::Quit));
    assert_eq!(client.word("newConversation", json!({"cwd": "/p"})).await, "shutting_down");
    core.show(UiEventKind::TextDelta { text: "last".to_owned() });
    core.over.send(Err("broke".to_owned())).unwrap();
    let (lines, exit) = client.end().await;
    let methods: Vec<_> = lines.iter().map(|line| line["method"].as_str().unwrap_or("-")).collect();
    assert_eq!(methods, ["event/textDelta", "event/conversationClosed", "-"]);
    assert_eq!(lines[1]["params"]["data"]["message"], "broke");
    assert_eq!((&lines[2], exit), (&json!({"jsonrpc": "2.0", "id": "bye", "result": {}}), Exit::Done));
}

/// Tests that a front end that does not read delays no session, and that the output queue stays bounded.
#[tokio::test]
async fn a_reader_that_sleeps_holds_nobody_up() {
    let mut client = Client::greeted().await;
    let core = client.converse().await;
    let text = "x".repeat(64 << 10);
    for _ in 0..1000 {
        core.show(UiEventKind::TextDelta { text: text.clone() });
    }
    core.show(UiEventKind::ApprovalClosed { id: ApprovalId(1) });
    let mut got = 0;
    let mut skipped = 0;
    loop {
        let line = client.read().await;
        match line["method"].as_str() {
            Some("event/textDelta") => got += line["params"]["data"]["text"].as_str().unwrap().len(),
            Some("event/deltasSkipped") => {
                skipped += usize::try_from(line["params"]["data"]["bytes"].as_u64().unwrap()).unwrap();
            }
            _ => break,
        }
    }
    assert_eq!(got + skipped, 1000 * text.len());
    assert!(skipped > 0 && got > 0);
}

#[tokio::test]
async fn the_generic_form_names_the_kind() {
    let mut client = Client::start();
    let hello = client.call(1, "initialize", json!({"notifications": "generic"})).await;
    assert_eq!(hello["result"]["capabilities"]["notifications"], "generic");
    let core = client.converse().await;
    core.show(UiEventKind::TextDelta { text: "t".to_owned() });
    let told = client.read().await;
    assert_eq!((&told["method"], &told["params"]["type"]), (&json!("sessionEvent"), &json!("text_delta")));
}
