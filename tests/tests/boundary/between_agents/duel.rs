//! Runs a victim's program as the command of one agent, and an attacker's program as the command of another.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of_agents, shell};
use tests::{Finished, World, wait_until};

/// Programs of the victim and of the attacker.
const PROGRAMS: [(&str, &str); 2] =
    [("victim.py", include_str!("victim.py")), ("attack.py", include_str!("attack.py"))];

/// Command that starts a container with separate processes, shared memory and terminals. Its process ids differ from
/// those in the full tier.
const CONTAINER: [&str; 5] = ["unshare", "-Urmpf", "--mount-proc", "bash", "-c"];
const OWN_DEVICES: &str = "echo 20000 > /proc/sys/kernel/ns_last_pid && mount -t tmpfs -o size=64m shm /dev/shm && \
    mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && exec \"$@\"";

/// Machine on which a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Host,
    Container,
}

/// Relation of the attacker to the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    ReaderBelowItsParent,
    ReaderBesideAWriter,
    WriterBesideAWriter,
    /// As `ReaderBesideAWriter`, but both agents use the network of the host.
    ReaderBesideAWriterWithTheNetwork,
}

pub(crate) struct Duel {
    /// For each of the attacker's actions, the error number, or 0 for success.
    pub(crate) tried: BTreeMap<String, i32>,
    /// The victim's resources, with the data that an attacker needs to find them.
    pub(crate) facts: Value,
    pub(crate) kept: Value,
}

impl Duel {
    pub(crate) fn is_harmed(&self) -> bool {
        let mut unharmed = json!({
            "signals": [], "connected": [false, false, false, false], "names": [], "file": "kept", "mode": "0o100644",
            "temp": ["kept", false], "segment": "kept", "semaphore": 0, "messages": 4, "typed": false,
            "secret": "kept in memory",
        });
        unharmed["memory"] = if self.kept["memory"].is_null() { Value::Null } else { "kept".into() };
        self.kept != unharmed
    }
}

/// Returns the JSON in the line that begins with this word.
fn said(text: &str, word: &str) -> Value {
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{word}: {text}"))).unwrap()
}

fn results(tried: Value) -> BTreeMap<String, i32> {
    serde_json::from_value(tried).unwrap()
}

fn facts(world: &World) -> Value {
    serde_json::from_str(&world.read("a/facts")).unwrap()
}

pub(crate) fn has_containers() -> bool {
    let [unshare, arguments @ .., bash, _] = CONTAINER;
    Finished::of(Command::new(unshare).args(arguments).args([bash, "-c", OWN_DEVICES, bash, "true"])).code
        == 0
}

/// Creates the directories of the victim and of the attacker in the project.
fn lay_out(world: &World) {
    for (name, text) in PROGRAMS {
        world.file(name, text);
    }
    for name in ["a", "b"] {
        let directory = world.project().join(name);
        fs::create_dir(&directory).unwrap();
        world.give(&directory);
    }
}

/// Creates a file with its whole content at once, because another process waits for the file.
fn make(world: &World, name: &str, text: &str) {
    let whole = world.file(&format!("{name}.tmp"), text);
    fs::rename(whole, world.project().join(name)).unwrap();
}

/// Runs victim and attacker without any sandbox.
pub(crate) fn unconfined(world: &World) -> Duel {
    lay_out(world);
    let temps = ["temp", "own"].map(|name| {
        let place = world.project().join(name);
        fs::create_dir(&place).unwrap();
        world.give(&place);
        place
    });
    let [victims, own] = &temps;
    let program = |name: &str| {
        let mut command = world.command("python3");
        command.arg(world.project().join(name)).current_dir(world.project()).arg("a");
        command
    };
    let mut victim = program("victim.py");
    std::os::unix::process::CommandExt::process_group(&mut victim, 0);
    let victim = victim.env("TMPDIR", victims).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the victim is ready", || world.project().join("a/pid").exists());
    let mut attack = program("attack.py");
    attack.arg(victim.id().to_string()).arg(victims).env("TMPDIR", own);
    let attack = Finished::of(&mut attack);
    make(world, "end", "");
    let victim: Finished = victim.wait_with_output().unwrap().into();
    assert_eq!(attack.code, 0, "{}", attack.stderr);
    Duel {
        tried: results(said(&attack.stdout, "tried ")),
        facts: facts(world),
        kept: said(&victim.stdout, "kept "),
    }
}

/// Runs victim and attacker as commands of two agents of one session.
pub(crate) fn confined(world: &World, machine: Machine, relation: Relation) -> Duel {
    lay_out(world);
    let (server, victim, adversary) = model(relation);
    let net = if relation == Relation::ReaderBesideAWriterWithTheNetwork { "on" } else { "off" };
    let mut session = on(machine, world, &world.exec(&server, &["--mode", "auto", "--net", net]));
    let session = session.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = number_in(machine, world.pid_in("a/pid"));
    make(world, "go", &format!("{pid} {}", temp_with_secret(world).display()));
    let tried = output_of(world, adversary);
    make(world, "end", "");
    let session: Finished = session.wait_with_output().unwrap().into();
    assert_eq!(session.code, 0, "{}\n{}", session.stdout, session.stderr);
    Duel {
        tried: results(said(&tried, "tried ")),
        facts: facts(world),
        kept: said(&output_of(world, victim), "kept "),
    }
}

/// Returns the session's model server, the id of the victim's agent, and the id of the attacker's agent.
fn model(relation: Relation) -> (ReplayServer, &'static str, &'static str) {
    let attack = "until [ -e go ]; do sleep 0.01; done; python3 attack.py a $(cat go)";
    let keep = "python3 victim.py a";
    let spawn = |input: Value| ("spawn_agent", input);
    let reader = || spawn(json!({"task": "attack"}));
    let writer = || spawn(json!({"task": "keep", "write": ["a"]}));
    let (first, victim, adversary) = match relation {
        Relation::ReaderBelowItsParent => {
            (vec![("shell_exec", json!({ "command": keep })), reader()], "1", "1.1")
        }
        Relation::ReaderBesideAWriter => (vec![writer(), reader()], "1.1", "1.2"),
        Relation::WriterBesideAWriter => {
            (vec![writer(), spawn(json!({"task": "attack", "write": ["b"]}))], "1.1", "1.2")
        }
        Relation::ReaderBesideAWriterWithTheNetwork => {
            let writer = spawn(json!({"task": "keep", "write": ["a"], "network": true}));
            (vec![writer, spawn(json!({"task": "attack", "network": true}))], "1.1", "1.2")
        }
    };
    let tasks = [("attack", attack), ("keep", keep)];
    let tasks = tasks.map(|(task, command)| (task.to_owned(), vec![shell(command), done()]));
    (model_of_agents([calls(&first), done()], tasks), victim, adversary)
}

fn on(machine: Machine, world: &World, command: &Command) -> Command {
    let mut words = vec![];
    if machine == Machine::Container {
        words.extend(CONTAINER.map(Into::into));
        words.extend([OWN_DEVICES, "bash"].map(Into::into));
    }
    words.push(command.get_program().to_owned());
    words.extend(command.get_args().map(ToOwned::to_owned));
    let mut wrapped = world.command(&words[0]);
    wrapped.args(&words[1..]);
    for (name, value) in command.get_envs() {
        value.map(|value| wrapped.env(name, value));
    }
    wrapped
}

/// Returns the number by which the attacker knows a process: its pid on the host, or its pid in the container.
fn number_in(machine: Machine, pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    let level = usize::from(machine == Machine::Container);
    numbers.split_whitespace().nth(level).unwrap().to_owned()
}

/// Returns the path of the victim's private temp directory on the host.
fn temp_with_secret(world: &World) -> PathBuf {
    let mut temps = world.temps().into_iter();
    temps.find(|temp| temp.join("secret").exists()).unwrap()
}

fn output_of(world: &World, agent: &str) -> String {
    let mut output = None;
    wait_until(&format!("the command of agent {agent} is over"), || {
        let is_it = |event: &&Value| {
            let (kind, call) = (&event["type"], &event["data"]["tool_use"]);
            event["agent"] == agent && kind == "tool_call_finished" && call == "toolu_0"
        };
        output = world.log().iter().find(is_it).map(|event| event["data"]["content"].to_string());
        output.is_some()
    });
    serde_json::from_str(&output.unwrap()).unwrap()
}
