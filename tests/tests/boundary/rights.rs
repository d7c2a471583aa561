#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipc::confinement::Tier;
use ipc::rights::{Network, RightsChange};
use protocol::frontend::{AgentAction, UserActionKind};
use tests::replies::{done, shell};
use tests::session::{Beginning, FrontEnd, PATIENCE};
use tests::{Programs, again, alive, marked, tier};

fn network(net: Network) -> UserActionKind {
    UserActionKind::Agent(AgentAction::SetRights { change: RightsChange::Network { net, reach: None } })
}

fn add(path: &Path) -> UserActionKind {
    UserActionKind::Agent(AgentAction::SetRights { change: RightsChange::AddWrite { path: path.into() } })
}

fn remove(path: &Path) -> UserActionKind {
    UserActionKind::Agent(AgentAction::SetRights { change: RightsChange::RemoveWrite { path: path.into() } })
}

/// Returns the log's data about each worker: generation, pid, tier, and digest of its ruleset.
fn workers(front: &FrontEnd) -> Vec<(u64, u32, String, String)> {
    let started = front.world.log().into_iter().filter(|event| event["type"] == "worker_started");
    let worker = |event: serde_json::Value| {
        let data = &event["data"];
        let text = |name: &str| data[name].as_str().unwrap().to_owned();
        let pid = u32::try_from(data["pid"].as_u64().unwrap()).unwrap();
        (data["generation"].as_u64().unwrap(), pid, text("tier"), text("ruleset_digest"))
    };
    started.map(worker).collect()
}

#[test]
fn all_of_it_holds_for_another_first_agent() {
    again::with_another_first_agent(module_path!());
}

#[test]
fn all_of_it_holds_for_a_plain_user() {
    again::as_a_plain_user(module_path!());
}

#[tokio::test]
async fn rights_change_by_a_new_worker_and_the_answer_comes_when_the_old_one_is_gone() {
    for tier in tier::all() {
        let beginning = Beginning { tier: tier::choice(tier), ..Beginning::default() };
        let mut front = FrontEnd::open_with(beginning, [shell("sleep 60"), done()]);
        front.prompt("begin").await;
        front.until("call 1: shell_exec").await;
        front.act(network(Network::On)).await;
        front.until("result").await;
        let provider = Arc::clone(&front.provider);
        let seen = front.end().await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(seen, @r#"
            1 worker 1 started
            2 context from environment
            3 user "begin"
            4 request 1.1
            5 reply (tool_use)
            6 call 1: shell_exec
            7 call 1 interrupted
            8 worker 1 ended: ended by signal 15
            9 worker 2 started
            10 rights changed for worker 2: net on
            11 context from rights
            12 request 2.1
            text "Done."
            13 reply (end_turn)
            14 worker 2 ended: the run is over
            15 result 0 done
            = done
            "#);
        }
        let told = format!("{:?}", provider.requests().last().unwrap().messages);
        assert!(
            told.contains(": the access changed; the call was ended") && told.contains("network: on"),
            "{told}"
        );
    }
}

/// Destinations outside of the sandbox to which the command of [`Sinks::besieged`] sends.
struct Sinks {
    tcp: TcpListener,
    udp: UdpSocket,
    /// Unix socket with its path. `None` in the floor tier, which denies the connection.
    unix: Option<(UnixListener, PathBuf)>,
}

impl Sinks {
    fn open(project: &Path, tier: Tier) -> Self {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        udp.set_read_timeout(Some(PATIENCE)).unwrap();
        let path = project.join("socket");
        let unix = (tier == Tier::Full).then(|| (UnixListener::bind(&path).unwrap(), path));
        Self { tcp, udp, unix }
    }

    /// Returns a command that resists its end, with a daemon and open connections that send as fast as possible.
    fn besieged(&self) -> String {
        let connect = self.unix.as_ref().map(|(_, path)| {
            format!(
                "(while :; do {} unix-stream {}; done > /dev/null) &",
                Programs::get().path("probe").display(),
                path.display()
            )
        });
        format!(
            "trap '' TERM HUP INT QUIT
            (setsid bash -c 'exec <&- >&- 2>&-; trap \"\" TERM HUP INT QUIT; echo up > daemon; while :; do sleep 9; done' &)
            until [ -s daemon ]; do :; done
            {}
            exec 3<>/dev/tcp/127.0.0.1/{} 4<>/dev/udp/127.0.0.1/{} || exit 1
            while :; do echo x >&3; echo x >&4; done",
            connect.unwrap_or_default(),
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port()
        )
    }

    /// Waits until data has arrived at each destination. Also returns the accepted TCP connection.
    fn reached(self) -> (Self, std::net::TcpStream) {
        let (mut stream, _) = self.tcp.accept().unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
        self.udp.recv(&mut [0; 2]).unwrap();
        if let Some((unix, _)) = &self.unix {
            unix.accept().unwrap();
        }
        (self, stream)
    }

    fn drain(&self) {
        self.udp.set_nonblocking(true).unwrap();
        while self.udp.recv(&mut [0; 2]).is_ok() {}
        if let Some((unix, _)) = &self.unix {
            unix.set_nonblocking(true).unwrap();
            while unix.accept().is_ok() {}
        }
    }

    /// Checks that no more data arrives at the destinations.
    fn are_silent(&self) {
        let mut late = vec![self.udp.recv(&mut [0; 2]).map(drop)];
        late.extend(self.unix.iter().map(|(unix, _)| unix.accept().map(drop)));
        for late in late {
            assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        }
    }
}

#[tokio::test]
async fn before_the_answer_to_net_off_everything_of_the_old_worker_is_dead() {
    for tier in tier::all() {
        let beginning = Beginning { net: Network::On, tier: tier::choice(tier), ..Beginning::default() };
        // The model's replies are fixed before the world exists, so the command is a script in the project.
        let mut front = FrontEnd::open_with(beginning, [shell(". ./siege"), done()]);
        let sinks = Sinks::open(&front.world.project(), tier);
        front.world.file("siege", sinks.besieged());
        front.prompt("begin").await;
        front.until("call 1: shell_exec").await;
        let reached = tokio::task::spawn_blocking(move || sinks.reached());
        let (sinks, mut stream) = tokio::time::timeout(PATIENCE, reached).await.unwrap().unwrap();
        let mut before = marked(front.world.mark().as_bytes());
        before.extend(workers(&front).iter().map(|worker| worker.1));
        before.sort_unstable();
        before.dedup();
        // Some of the connecting processes have ended already.
        before.retain(|pid| alive(*pid));
        assert!(before.len() >= 3, "{tier}: a worker, a command and a daemon: {before:?}");

        front.act(network(Network::Off)).await;
        front.until("rights changed").await;
        let survivors: Vec<_> = before.iter().filter(|pid| alive(**pid)).collect();
        assert!(survivors.is_empty(), "{tier}: {survivors:?} of {before:?}");
        // Data that was sent before is read. Then the connection must be closed.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        if let Err(error) = stream.read_to_end(&mut Vec::new()) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
        sinks.drain();
        front.until("result").await;
        sinks.are_silent();
        assert!(workers(&front).iter().all(|worker| worker.2 == tier.to_string()), "{:?}", workers(&front));
        let seen = front.end().await;
        assert!(seen.contains("call 1 interrupted") && seen.contains(": net off"), "{seen}");
    }
}

#[tokio::test]
async fn every_change_gives_a_new_pid_and_a_new_digest_in_the_log() {
    for tier in tier::all() {
        let beginning = Beginning { tier: tier::choice(tier), ..Beginning::default() };
        let mut front = FrontEnd::open_with(beginning, [done()]);
        front.until("worker 1 started").await;
        let path = front.world.outside();
        let changes = [network(Network::On), add(&path), network(Network::Off), remove(&path)];
        for (generation, change) in (2..).zip(changes) {
            front.act(change).await;
            front.until(&format!("rights changed for worker {generation}")).await;
        }
        let workers = workers(&front);
        assert_eq!(workers.iter().map(|worker| worker.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        let pids: BTreeSet<_> = workers.iter().map(|worker| worker.1).collect();
        assert_eq!(pids.len(), 5, "{workers:?}");
        assert!(workers.iter().all(|worker| worker.2 == tier.to_string()), "{workers:?}");
        for neighbours in workers.windows(2) {
            assert_ne!(neighbours[0].3, neighbours[1].3, "{workers:?}");
        }
        assert_eq!(workers[0].3, workers[4].3, "the same rights again have the same digest");
        front.act(UserActionKind::Agent(AgentAction::Quit)).await;
        front.end().await;
    }
}

/// Returns a session whose access was changed while the worker's program was missing, the path where the program
/// belongs, and the path to which it was moved.
async fn without_worker(tier: Tier, replies: [String; 2]) -> (FrontEnd, PathBuf, PathBuf) {
    let beginning = Beginning { tier: tier::choice(tier), worker: Some("worker"), ..Beginning::default() };
    let mut front = FrontEnd::open_with(beginning, replies);
    front.until("worker 1 started").await;
    let (worker, away) = (front.world.root().join("worker"), front.world.root().join("away"));
    let first = workers(&front)[0].1;
    fs::rename(&worker, &away).unwrap();
    front.act(network(Network::On)).await;
    front.until("notice no_worker: the access was changed, but no worker could be started with it").await;
    assert!(!alive(first), "{tier}: the old worker does not serve instead");
    (front, worker, away)
}

#[tokio::test]
async fn after_a_change_that_no_worker_comes_of_nothing_runs() {
    for tier in tier::all() {
        let (mut front, worker, away) = without_worker(tier, [shell("echo x > made"), done()]).await;
        // The worker could be started again now, but only a change of access starts one.
        fs::rename(&away, &worker).unwrap();
        front.prompt("begin").await;
        front.until("call 1 interrupted").await;
        front.until("result").await;
        assert!(!front.world.project().join("made").exists(), "{tier}");
        assert_eq!(workers(&front).len(), 1, "{tier}");
        let told = format!("{:?}", front.provider.requests().last().unwrap().messages);
        assert!(told.contains("no worker could be started"), "{told}");
        front.end().await;
    }
}

#[tokio::test]
async fn after_a_change_that_no_worker_comes_of_a_later_one_brings_one() {
    for tier in tier::all() {
        // To repeat the change counts as a change, since no worker has that access, and so does its reversal.
        for net in [Network::On, Network::Off] {
            let (mut front, worker, away) = without_worker(tier, [shell("echo x > made"), done()]).await;
            fs::rename(&away, &worker).unwrap();
            front.act(network(net)).await;
            front.until("rights changed for worker").await;
            front.prompt("begin").await;
            front.until("call 1 completed").await;
            front.end().await;
        }
    }
}
