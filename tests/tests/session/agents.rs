//! Tests agents of one process: each worker has its own access, temp directory and environment, and agents of one
//! session do not influence each other.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use boundary::monitor::{
    GuestLog, PrivateTemp, Programs, Spawner, StartError, Temps, Worker, WorkerEvent, WorkerSpec,
};
use boundary::policy::levels::LevelPlaces;
use boundary::policy::{Environments, HiddenInodes};
use ipc::confinement::{Confinement, Environment, Tier};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Work};
use ipc::path::WirePath;
use ipc::rights::Rights;
use ipc::tool::{Access, ShellExec, ToolCall, ToolOutput};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::frontend::{AgentAction, UserActionKind};
use supervisor::journal::session;
use tests::replies::{calls, done, shell};
use tests::session::{Beginning, FrontEnd};
use tests::{User, World, tier, without_durations};
use tokio::sync::mpsc::Receiver;

struct Session {
    world: World,
    temps: Temps,
    programs: Programs,
    spawner: Spawner,
    environments: Environments,
    tier: Tier,
}

struct Agent {
    temp: PrivateTemp,
    worker: Worker,
    events: Receiver<WorkerEvent>,
    calls: CallId,
}

impl Session {
    fn new(tier: Tier) -> Self {
        let world = World::new(User::Myself);
        fs::create_dir(world.own().join("locks")).unwrap();
        let caches = world.own().join("caches");
        fs::create_dir(&caches).unwrap();
        let temps = Temps::open(&world.own().join("cache"), false).unwrap();
        let ours = tests::Programs::get();
        let programs =
            Programs { sandbox_exec: ours.path("sandbox-exec"), worker: ours.path("bailiwick-worker") };
        let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default()).unwrap();
        let places = Some(LevelPlaces::new(caches, None));
        let environments = Environments { places, ..Environments::new(Environment::default()) };
        Self { world, temps, programs, spawner, environments, tier }
    }

    /// Starts an agent that may write these directories and its temp directory.
    async fn agent(&self, write: &[PathBuf]) -> Agent {
        self.started(write).await.unwrap()
    }

    async fn started(&self, write: &[PathBuf]) -> Result<Agent, StartError> {
        let temp = PrivateTemp::create(&self.temps, &self.world.own().join("locks")).unwrap();
        let own = WirePath::from(temp.path());
        let rights = Rights {
            read: vec!["/".into()],
            hidden: vec![self.temps.path().into()],
            write: write.iter().map(WirePath::from).chain([own.clone()]).collect(),
            ..Rights::default()
        };
        let rights = rights.normalised();
        let confinement = Confinement {
            temp: Some(own),
            tier: tier::choice(self.tier),
            ..Confinement::new(rights, self.world.project().into())
        };
        let confinement = self.environments.at_level(confinement, None);
        let (agent, generation) = (AgentId::root(), Generation(1));
        let program = self.programs.worker.clone();
        let spec = WorkerSpec {
            agent,
            generation,
            confinement,
            program,
            leftovers: None,
            guests: GuestLog::default(),
        };
        let (worker, events) = Worker::start(&self.spawner, spec).await?;
        Ok(Agent { temp, worker, events, calls: CallId::default() })
    }
}

impl Agent {
    /// Runs a command of this agent, and returns its output.
    async fn shell(&mut self, command: &str) -> String {
        self.calls = self.calls.next();
        let call = ToolCall::ShellExec(ShellExec {
            command: command.to_owned(),
            access: Access::Standing,
            network: None,
            cwd: None,
            timeout_ms: None,
        });
        self.worker.calls().call(self.calls, Work::Run(call));
        loop {
            match self.events.recv().await.unwrap() {
                WorkerEvent::Outcome { outcome: CallOutcome::Done(ToolOutput::Command(result)), .. } => {
                    return result.head;
                }
                WorkerEvent::Output { .. } | WorkerEvent::Refused(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn environment(&mut self) -> BTreeMap<String, String> {
        let printed = self.shell("env").await;
        let pairs = printed.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    async fn end(mut self) {
        self.worker.kill();
        while self.events.recv().await.is_some() {}
    }
}

#[tokio::test]
async fn each_has_the_environment_of_its_rights() {
    for tier in tier::all() {
        let session = Session::new(tier);
        let caches = session.world.own().join("caches");
        let mut writer = session.agent(&[session.world.project()]).await;
        let mut reader = session.agent(&[]).await;
        let (of_writer, of_reader) = (writer.environment().await, reader.environment().await);
        let place = Path::new(&of_writer["GOCACHE"]);
        assert!(place.starts_with(&caches) && place.is_absolute(), "{tier}: {place:?}");
        assert_eq!(of_reader["GOCACHE"], format!("{}/caches/go-build", of_reader["TMPDIR"]), "{tier}");
        assert_eq!(
            of_writer["TMPDIR"] == of_reader["TMPDIR"],
            tier == Tier::Full,
            "each has a /tmp of its own"
        );
        // Control: this process has a variable that agents do not get.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        for environment in [&of_writer, &of_reader] {
            assert!(!environment.contains_key("CARGO_PKG_NAME"), "{environment:?}");
        }
        let fill = "mkdir -p \"$GOCACHE\" && echo kept > \"$GOCACHE/x\" && cat \"$GOCACHE/x\"";
        for agent in [&mut writer, &mut reader] {
            assert_eq!(agent.shell(fill).await, "kept\n", "{tier}");
        }
        let poison = format!("echo poison > {}/x", place.display());
        let tried = reader.shell(&poison).await;
        assert!(tried.contains("denied") || tried.contains("Read-only"), "{tier}: {tried}");
        assert_eq!(fs::read_to_string(place.join("x")).unwrap(), "kept\n");
        writer.end().await;
        reader.end().await;
    }
}

#[tokio::test]
async fn neither_reaches_the_temp_of_the_other_one() {
    for tier in tier::all() {
        let session = Session::new(tier);
        let project = [session.world.project()];
        let (mut one, mut other) = (session.agent(&project).await, session.agent(&project).await);
        assert_eq!(one.shell("echo mine > $TMPDIR/secret; cat $TMPDIR/secret").await, "mine\n");
        let there = one.temp.path().display().to_string();
        for attack in [
            format!("cat {there}/secret"),
            format!("echo changed > {there}/secret"),
            format!("echo new > {there}/new"),
            format!("rm {there}/secret"),
            format!("ln {there}/secret taken"),
            format!("ls {there}/.."),
            format!("chmod 700 {there}/.."),
        ] {
            let tried = other.shell(&format!("{attack} && echo done")).await;
            assert!(!tried.contains("done") && !tried.contains("mine"), "{tier}: {attack}: {tried}");
        }
        assert_eq!(one.shell("cat $TMPDIR/secret; ls $TMPDIR").await, "mine\nsecret\n", "{tier}");
        assert_eq!(
            fs::read_to_string(one.temp.path().join("secret")).unwrap(),
            "mine\n",
            "outside it is there"
        );
        one.end().await;
        other.end().await;
    }
}

/// Tests a parent that replaces a sub-agent's write root by a link. Running commands keep their access, and the next
/// worker cannot start.
#[tokio::test]
async fn a_write_root_that_is_swapped_for_a_link_gives_nothing_behind_it() {
    for tier in tier::all() {
        for behind in ["outside", "project/other"] {
            let session = Session::new(tier);
            let root = session.world.project().join("root");
            let behind = session.world.root().join(behind);
            for directory in [&root, &behind] {
                fs::create_dir(directory).unwrap();
            }
            fs::write(behind.join("kept"), "kept").unwrap();
            let mut parent = session.agent(&[session.world.project()]).await;
            let mut child = session.agent(std::slice::from_ref(&root)).await;
            assert_eq!(child.shell("echo own > root/own; cat root/own").await, "own\n", "{tier}");
            let swap = format!("mv root moved && ln -s {} root && echo swapped", behind.display());
            assert_eq!(parent.shell(&swap).await, "swapped\n", "{tier}");
            let attack = "echo lost > root/kept; echo lost > root/new; rm root/kept; mv root/kept root/gone";
            let tried = child.shell(attack).await;
            assert_eq!(tried.lines().count(), 4, "{tier}: {tried}");
            child.end().await;
            assert!(
                session.started(std::slice::from_ref(&root)).await.is_err(),
                "{tier}: the next generation"
            );
            assert_eq!(fs::read_to_string(behind.join("kept")).unwrap(), "kept", "{tier}");
            assert_eq!(fs::read_dir(&behind).unwrap().count(), 1, "{tier}");
            parent.end().await;
        }
    }
}

/// Returns a call of a read-only command. Several agents can run read-only commands at the same time.
fn looks(command: &str) -> String {
    calls(&[("shell_exec", serde_json::json!({ "command": command, "access": "read" }))])
}

/// Returns the replies for three agents. The second is interrupted in its first call, and the third's worker is killed.
fn script(agent: &str) -> Vec<String> {
    let wait = "echo here; until [ -e go ]; do sleep 0.01; done";
    match agent {
        "1" => vec![
            shell("echo mine > $TMPDIR/x; cat $TMPDIR/x"),
            looks(wait),
            shell("ls $TMPDIR; cat $TMPDIR/x"),
            done(),
        ],
        "2" => vec![looks("echo here; exec sleep 1000"), done()],
        _ => vec![
            shell("echo theirs > $TMPDIR/x"),
            looks("echo here; exec sleep 1000"),
            shell("cat $TMPDIR/x"),
            done(),
        ],
    }
}

/// Returns the requests of each agent of a session, with `TEMP` in place of its temp directory.
async fn requests_of(tier: Tier, agents: &[&str]) -> Vec<Vec<String>> {
    let beginning = Beginning { tier: tier::choice(tier), ..Beginning::default() };
    let parts = agents.iter().map(|agent| (AgentId::from(*agent), script(agent))).collect();
    let mut front = FrontEnd::open_several(&beginning, parts);
    for agent in agents {
        let task = format!("the task of agent {agent}");
        front
            .act_of(
                &AgentId::from(*agent),
                UserActionKind::Agent(AgentAction::Prompt { text: task, images: vec![] }),
            )
            .await;
    }
    // All agents work at the same time.
    for _ in agents {
        front.until("\"here\\n\"").await;
    }
    if agents.contains(&"2") {
        front.act_of(&"2".into(), UserActionKind::Agent(AgentAction::Interrupt)).await;
    }
    if agents.contains(&"3") {
        let log = front.world.log();
        let of_third =
            |event: &&serde_json::Value| event["agent"] == "3" && event["type"] == "worker_started";
        let pid = log.iter().find(of_third).unwrap()["data"]["pid"].as_i64().unwrap();
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
        front.until("worker 1 ended: ").await;
    }
    front.world.file("go", "");
    let opened: Vec<_> = front
        .agents
        .iter()
        .map(|agent| (agent.temp.path().to_owned(), Arc::clone(&agent.provider)))
        .collect();
    let project = front.world.project().display().to_string();
    let (seen, world) = front.end_in_world().await;
    assert!(session::load(&world.own().join("state/sessions/ours.jsonl")).unwrap().is_intact(), "{seen}");
    let normal = |text: String, temp: &Path| {
        let text = text.replace(&temp.display().to_string(), "TEMP").replace(&project, "PROJECT");
        // It is random if the broker or the supervisor notices the kill first, and how long a command takes.
        without_durations(&text.replace("ended by signal 9", "ended by signal 15"))
    };
    opened
        .iter()
        .map(|(temp, provider)| {
            provider
                .requests()
                .iter()
                .map(|request| normal(format!("{:?}", request.messages), temp))
                .collect()
        })
        .collect()
}

/// Tests with real workers, in each tier, that agents get the same results next to others as alone.
#[tokio::test]
async fn agents_of_one_session_do_not_notice_each_other() {
    for tier in tier::all() {
        let together = requests_of(tier, &["1", "2", "3"]).await;
        for (agent, requests) in ["1", "2", "3"].iter().zip(&together) {
            let alone = requests_of(tier, &[agent]).await;
            assert_eq!(*requests, alone[0], "{tier}: agent {agent}");
        }
        assert_eq!(together.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1, 4], "{tier}");
        assert!(together[2][2].contains("its worker"), "{tier}: {}", together[2][2]);
    }
}
