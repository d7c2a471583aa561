//! Core and front end by their channel alone: actions in, the exact sequence of events out. The model is a recording, the
//! worker a real one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs::{DirBuilder, create_dir};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipc::confinement::{Confinement, Environment};
use ipc::event::EventKind;
use ipc::frontend::{UiEvent, UiEventKind, UserAction, UserActionKind};
use ipc::id::{AgentId, ConversationId};
use ipc::rights::{Network, Reach, RightsChange};
use supervisor::core::{Agent, AgentConfig, Backoff, RunEnd, RunLimits};
use supervisor::driver::{Driver, DriverError, Running, SessionWorker};
use supervisor::gate::{Activity, ApprovalMode, Standing};
use supervisor::monitor::{PrivateTemp, Programs, Spawner};
use supervisor::policy::Policy;
use supervisor::prompt::Surroundings;
use supervisor::provider::{ModelProvider, ProviderError, ReplayProvider};
use supervisor::session::SessionLog;
use supervisor::tools::Registry;
use tests::replies::{done, says, shell};
use tests::{World, alive, marked};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The longest that an event may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A front end's end of a session.
struct FrontEnd {
    id: ConversationId,
    actions: Option<mpsc::Sender<UserAction>>,
    events: mpsc::UnboundedReceiver<UiEvent>,
    run: JoinHandle<Result<RunEnd, DriverError>>,
    seen: Vec<String>,
    provider: Arc<ReplayProvider>,
    place: (World, PrivateTemp),
}

struct Never;

impl Backoff for Never {
    fn delay(&self, _: u32, _: &ProviderError) -> Option<Duration> {
        None
    }
}

/// The parts of our programs that a session needs.
fn programs() -> Programs {
    let ours = tests::Programs::get();
    Programs { sandbox_exec: ours.path("sandbox-exec"), worker: ours.path("bailiwick-worker") }
}

fn marked_environment(world: &World) -> Environment {
    let set = world.mark().split_once('=').map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    Environment { set: set.into_iter().collect(), ..Environment::default() }
}

fn private(directory: PathBuf) -> PathBuf {
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).unwrap();
    directory
}

fn standing(project: &Path, temp: &Path, net: Network) -> Standing {
    let policy = Policy {
        project: project.into(),
        temp: temp.into(),
        mode: ApprovalMode::Auto,
        net,
        reach: Reach { host: true, ..Reach::default() },
        write: Vec::new(),
        hidden: Vec::new(),
        protected: Vec::new(),
    };
    Standing::new(policy.standing(), policy.project, Some(policy.temp), policy.mode)
}

fn agent(standing: Standing) -> Agent {
    Agent::new(AgentConfig {
        model: "recorded".to_owned(),
        system: "system".into(),
        tools: Arc::new(Registry::builtin()),
        max_tokens: 1000,
        limits: RunLimits::default(),
        backoff: Box::new(Never),
        standing,
        id: AgentId::root(),
        activity: Activity::Execute,
    })
}

impl FrontEnd {
    /// A session that has begun, in a world of its own, with a model that gives these replies.
    fn open(replies: impl IntoIterator<Item = String>) -> Self {
        Self::open_with(Network::Off, replies)
    }

    /// The same, with the network like this. What its workers run has the world's mark in its environment.
    fn open_with(net: Network, replies: impl IntoIterator<Item = String>) -> Self {
        let world = World::new(tests::User::Myself);
        let state = private(world.own().join("state"));
        create_dir(state.join("locks")).unwrap();
        let temp = PrivateTemp::create(&state.join("locks")).unwrap();
        let standing = standing(&world.project(), temp.path(), net);
        let programs = programs();
        let confinement = Confinement {
            rights: standing.rights.clone(),
            project: standing.project.clone(),
            temp: standing.temp.clone(),
            hidden_files: Vec::new(),
            environment: marked_environment(&world),
            read_only: false,
            tier: ipc::confinement::TierChoice::default(),
            landlock_abi: None,
            identity: None,
            terminal: false,
            allow_degraded: false,
        };
        let spawner = Spawner::start(programs.sandbox_exec.clone()).unwrap();
        let id = ConversationId("ours".to_owned());
        let (ui, events) = mpsc::unbounded_channel();
        let (actions, inbox) = mpsc::channel(16);
        let provider = Arc::new(ReplayProvider::new(replies));
        let driver = Driver {
            conversation: id.clone(),
            agent: agent(standing),
            provider: Arc::clone(&provider) as Arc<dyn ModelProvider>,
            worker: SessionWorker::new(spawner, programs, AgentId::root(), confinement),
            log: SessionLog::create(&state, &id).unwrap(),
            ui,
            actions: Some(inbox),
            changes: None,
            tripwire: None,
            deadline: None,
            running: Running::default(),
        };
        let around = Surroundings {
            platform: "Linux".to_owned(),
            date: "2026-11-21".to_owned(),
            activity: Activity::Execute,
        };
        let run = tokio::spawn(driver.run(Instant::now(), around));
        let place = (world, temp);
        Self { id, actions: Some(actions), events, run, seen: Vec::new(), provider, place }
    }

    async fn act(&self, kind: UserActionKind) {
        self.act_in(&self.id, kind).await;
    }

    async fn act_in(&self, id: &ConversationId, kind: UserActionKind) {
        let action = UserAction { conversation_id: id.clone(), kind };
        self.actions.as_ref().unwrap().send(action).await.unwrap();
    }

    async fn prompt(&self, text: &str) {
        self.act(UserActionKind::Prompt { text: text.to_owned() }).await;
    }

    /// Takes events in until one of them says so.
    async fn until(&mut self, wanted: &str) {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect(wanted) {
            assert_eq!(event.conversation_id, self.id);
            self.seen.push(line(&event.kind));
            if self.seen.last().unwrap().contains(wanted) {
                return;
            }
        }
        panic!("{wanted}: not among {:#?}", self.seen);
    }

    /// Everything that was shown until the session's end.
    async fn end(mut self) -> String {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an end") {
            self.seen.push(line(&event.kind));
        }
        let end = self.run.await.unwrap().unwrap();
        self.seen.push(format!("= {}", end.reason.as_str()));
        self.seen.join("\n")
    }
}

/// An event as a line, without what differs from run to run.
fn line(kind: &UiEventKind) -> String {
    match kind {
        UiEventKind::TextDelta { text } => format!("text {text:?}"),
        UiEventKind::ThinkingDelta { text } => format!("thinking {text:?}"),
        UiEventKind::OutputDelta { call, text } => format!("output of {call}: {text:?}"),
        UiEventKind::Logged(event) => format!("{} {}", event.id, logged(&event.kind)),
    }
}

fn logged(kind: &EventKind) -> String {
    match kind {
        EventKind::WorkerStarted(started) => format!("worker {} started", started.generation),
        EventKind::RightsChanged(changed) => {
            let line = &changed.rights[changed.rights.rfind("·").unwrap()..];
            format!("rights changed for worker {}: {line}", changed.generation)
        }
        EventKind::WorkerEnded { generation, reason } => format!("worker {generation} ended: {reason}"),
        EventKind::ContextAdded { source, .. } => format!("context from {source}"),
        EventKind::UserMessage { text } => format!("user {text:?}"),
        EventKind::ModelRequested { step, attempt } => format!("request {step}.{attempt}"),
        EventKind::AssistantMessage(message) => format!("reply ({})", message.stop_reason),
        EventKind::ModelFailed { kind, .. } => format!("failed: {kind}"),
        EventKind::ToolCallStarted { call, name, .. } => format!("call {call}: {name}"),
        EventKind::ToolCallFinished { call, status, .. } => format!("call {call} {status}"),
        EventKind::Notice { code, message } => format!("notice {code}: {message}"),
        EventKind::Result(result) => format!("result {} {}", result.exit_code, result.reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_turn_from_prompt_to_result() {
    let front = FrontEnd::open([shell("echo hello"), says("All is well.", "end_turn")]);
    front.prompt("look").await;
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "look"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    output of 1: "hello\n"
    7 call 1 completed
    8 request 2.1
    text "All"
    text " is"
    text " well."
    9 reply (end_turn)
    10 worker 1 ended: the run is over
    11 result 0 done
    = done
    "#);
}

#[tokio::test]
async fn an_interrupt_ends_a_command_and_the_turn() {
    let mut front = FrontEnd::open([shell("echo ready; exec sleep 1000"), done()]);
    front.prompt("wait").await;
    front.until("output").await;
    front.act(UserActionKind::Interrupt).await;
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "wait"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    output of 1: "ready\n"
    7 call 1 interrupted
    8 worker 1 ended: the run is over
    9 result 130 interrupted
    = interrupted
    "#);
}

#[tokio::test]
async fn quitting_ends_a_session_that_works_and_one_that_rests() {
    let mut front = FrontEnd::open([shell("echo ready; exec sleep 1000"), done()]);
    front.prompt("wait").await;
    front.until("output").await;
    front.act(UserActionKind::Quit).await;
    let said = front.end().await;
    assert!(said.ends_with("result 143 terminated\n= terminated"), "{said}");
    let front = FrontEnd::open([done()]);
    front.act(UserActionKind::Quit).await;
    insta::assert_snapshot!(front.end().await, @r"
    1 worker 1 started
    2 worker 1 ended: the run is over
    3 result 143 terminated
    = terminated
    ");
}

#[tokio::test]
async fn a_front_end_that_is_gone_ends_the_session() {
    let mut front = FrontEnd::open([done()]);
    front.actions = None;
    let said = front.end().await;
    assert!(said.ends_with("result 143 terminated\n= terminated"), "{said}");
}

#[tokio::test]
async fn actions_for_another_session_are_ignored() {
    let front = FrontEnd::open([done()]);
    let other = ConversationId("theirs".to_owned());
    front.act_in(&other, UserActionKind::Prompt { text: "not for you".to_owned() }).await;
    front.act_in(&other, UserActionKind::Quit).await;
    front.prompt("for you").await;
    let said = front.end().await;
    assert!(said.contains("user \"for you\"") && !said.contains("not for you"), "{said}");
    assert!(said.ends_with("= done"), "{said}");
}

#[tokio::test]
async fn words_that_come_meanwhile_join_the_next_message() {
    let mut front = FrontEnd::open([shell("echo ready; until [ -e go ]; do :; done"), done()]);
    front.prompt("first").await;
    front.until("output").await;
    front.prompt("second").await;
    front.prompt(" \n").await;
    // The channel is in order: once the notice is there, the words before it are in.
    front.until("notice empty_message").await;
    let (world, _) = &front.place;
    world.file("go", "");
    let provider = Arc::clone(&front.provider);
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "first"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    output of 1: "ready\n"
    7 notice empty_message: an empty message was not sent
    8 call 1 completed
    9 user "second"
    10 request 2.1
    text "Done."
    11 reply (end_turn)
    12 worker 1 ended: the run is over
    13 result 0 done
    = done
    "#);
    assert_eq!(provider.requests()[1].messages.len(), 3);
}

#[tokio::test]
async fn a_provider_that_fails_ends_the_turn_with_its_code() {
    let front = FrontEnd::open(Vec::new());
    front.prompt("ask").await;
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "ask"
    4 request 1.1
    5 failed: invalid_response
    6 worker 1 ended: the run is over
    7 result 6 provider_error
    = provider_error
    "#);
}

fn network(net: Network) -> UserActionKind {
    UserActionKind::SetRights { change: RightsChange::Network { net, reach: Reach::default() } }
}

#[tokio::test]
async fn rights_change_by_a_new_worker_and_the_answer_comes_when_the_old_one_is_gone() {
    let mut front = FrontEnd::open([shell("sleep 60"), done()]);
    front.prompt("begin").await;
    front.until("call 1: shell_exec").await;
    front.act(network(Network::On)).await;
    front.until("result").await;
    let provider = Arc::clone(&front.provider);
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "begin"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    7 call 1 interrupted
    8 worker 1 ended: ended by signal 15
    9 worker 2 started
    10 rights changed for worker 2: · net on
    11 context from rights
    12 request 2.1
    text "Done."
    13 reply (end_turn)
    14 worker 2 ended: the run is over
    15 result 0 done
    = done
    "#);
    let told = serde_json::to_string(&format!("{:?}", provider.requests().last().unwrap().messages)).unwrap();
    assert!(told.contains("interrupted: policy changed") && told.contains("network: on"), "{told}");
}

#[tokio::test]
async fn a_write_root_that_is_not_there_is_refused_in_words() {
    let mut front = FrontEnd::open([done()]);
    let path = "/nonexistent/x".into();
    front.act(UserActionKind::SetRights { change: RightsChange::AddWrite { path } }).await;
    front.until("notice rights_refused: the rights were not changed: /nonexistent/x does not exist").await;
    front.act(UserActionKind::Quit).await;
    front.end().await;
}

/// A command that does not want to end, with a daemon and open connections: it sends as fast as it can.
fn stubborn(tcp: SocketAddr, udp: SocketAddr) -> String {
    shell(&format!(
        "trap '' TERM HUP INT QUIT
        (setsid bash -c 'exec <&- >&- 2>&-; trap \"\" TERM HUP INT QUIT; echo up > daemon; while :; do sleep 9; done' &)
        until [ -s daemon ]; do :; done
        exec 3<>/dev/tcp/127.0.0.1/{} 4<>/dev/udp/127.0.0.1/{} || exit 1
        while :; do echo x >&3; echo x >&4; done",
        tcp.port(),
        udp.port()
    ))
}

#[tokio::test]
async fn before_the_answer_to_net_off_everything_of_the_old_worker_is_dead() {
    let (listener, datagrams) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    datagrams.set_read_timeout(Some(PATIENCE)).unwrap();
    let command = stubborn(listener.local_addr().unwrap(), datagrams.local_addr().unwrap());
    let mut front = FrontEnd::open_with(Network::On, [command, done()]);
    front.prompt("begin").await;
    front.until("call 1: shell_exec").await;
    // What must end does run: both kinds of bytes arrive, and the daemon is there.
    let arrived = tokio::task::spawn_blocking(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
        datagrams.recv(&mut [0; 2]).unwrap();
        (stream, datagrams)
    });
    let (mut stream, datagrams) = tokio::time::timeout(PATIENCE, arrived).await.unwrap().unwrap();
    let mark = front.place.0.mark();
    let before = marked(mark.as_bytes());
    assert!(before.len() >= 3, "a worker, a command and a daemon: {before:?}");

    front.act(network(Network::Off)).await;
    front.until("rights changed").await;
    let survivors: Vec<_> = before.iter().filter(|pid| alive(**pid)).collect();
    assert!(survivors.is_empty(), "{survivors:?} of {before:?}");
    // What was on its way is read to its end: the other end is closed, and nothing more comes.
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    datagrams.set_nonblocking(true).unwrap();
    while datagrams.recv(&mut [0; 2]).is_ok() {}
    front.until("result").await;
    let late = datagrams.recv(&mut [0; 2]).unwrap_err();
    assert_eq!(late.kind(), std::io::ErrorKind::WouldBlock);
    let seen = front.end().await;
    assert!(seen.contains("call 1 interrupted") && seen.contains("· net off"), "{seen}");
}

/// What the log says of each worker: generation, pid, and the digest of its ruleset.
fn workers(front: &FrontEnd) -> Vec<(u64, u64, String)> {
    let started = front.place.0.log().into_iter().filter(|event| event["type"] == "worker_started");
    let worker = |event: serde_json::Value| {
        let data = &event["data"];
        let number = |name: &str| data[name].as_u64().unwrap();
        (number("generation"), number("pid"), data["ruleset_digest"].as_str().unwrap().to_owned())
    };
    started.map(worker).collect()
}

#[tokio::test]
async fn every_change_gives_a_new_pid_and_a_new_digest_in_the_log() {
    let mut front = FrontEnd::open([done()]);
    let path = front.place.0.outside();
    let (add, remove) =
        (RightsChange::AddWrite { path: (&path).into() }, RightsChange::RemoveWrite { path: (&path).into() });
    let changes = [
        network(Network::On),
        UserActionKind::SetRights { change: add },
        network(Network::Off),
        UserActionKind::SetRights { change: remove },
    ];
    for (generation, change) in (2..).zip(changes) {
        front.act(change).await;
        front.until(&format!("rights changed for worker {generation}")).await;
    }
    let workers = workers(&front);
    assert_eq!(workers.iter().map(|worker| worker.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let pids: BTreeSet<_> = workers.iter().map(|worker| worker.1).collect();
    assert_eq!(pids.len(), 5, "{workers:?}");
    for neighbours in workers.windows(2) {
        assert_ne!(neighbours[0].2, neighbours[1].2, "{workers:?}");
    }
    assert_eq!(workers[0].2, workers[4].2, "the same rights again have the same digest");
    front.act(UserActionKind::Quit).await;
    front.end().await;
}
