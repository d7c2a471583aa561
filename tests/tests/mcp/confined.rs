//! Tests the access of an MCP server in both tiers, as root and as a plain user.

use std::fmt::Write;
use std::fs;
use std::future::Future;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use boundary::monitor::{McpEvent, McpServerProcess, Programs};
use ipc::confinement::{Identity, Tier};
use ipc::mcp::{McpCommand, McpContent};
use ipc::rights::Network;
use nix::libc::{EACCES, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOENT, EPERM, EROFS};
use protocol::event::GuestEnd;
use protocol::network_words;
use tests::guests::{DescribedServer, ServerRights, confinement};
use tests::{User, World, tier, wait_until};

fn programs() -> Programs {
    let copied = tests::Programs::get();
    Programs { sandbox_exec: copied.path("sandbox-exec"), worker: copied.path("bailiwick-worker") }
}

fn fake(words: &[&str]) -> McpCommand {
    let program = tests::Programs::get().path("fake-mcp-server").display().to_string();
    McpCommand { program, arguments: words.iter().map(|&word| word.to_owned()).collect() }
}

fn on_a_runtime<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// Starts a server with this access. A call of the server's tool carries out the action in `words`.
async fn started(
    world: &World,
    user: User,
    tier: Tier,
    rights: ServerRights,
    words: &[&str],
) -> DescribedServer {
    let store = world.root().join("store");
    fs::create_dir_all(&store).unwrap();
    let identity = (user == User::Plain).then(|| Identity { uid: user.uid(), gid: user.gid() });
    let programs = programs();
    let mut rights = rights;
    rights.read.push(programs.worker.parent().unwrap().to_owned());
    let confined = confinement(&programs, &store, rights, tier::choice(tier), identity);
    DescribedServer::start(&programs, confined, fake(words)).await.unwrap()
}

/// Starts a server, makes it carry out the action in `words`, and returns the text of the result.
fn act(user: User, tier: Tier, world: &World, rights: &ServerRights, words: &[&str]) -> String {
    on_a_runtime(async {
        let words = [&["does"], words].concat();
        let mut server = started(world, user, tier, rights.clone(), &words).await;
        let result = server.call("echo", "{}").await.unwrap();
        server.process.end(GuestEnd::Finished).await.end.unwrap();
        match result.content.as_slice() {
            [McpContent::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        }
    })
}

fn is_denied(said: &str, errors: &[i32]) -> bool {
    errors.iter().any(|errno| said == format!("error {errno}"))
}

fn everywhere(body: impl Fn(User, Tier, World)) {
    for (user, tier) in tier::everywhere() {
        body(user, tier, World::new(user));
    }
}

#[test]
fn a_server_reads_and_writes_only_what_its_table_says() {
    everywhere(|user, tier, world| {
        let said = |rights: &ServerRights, words: &[&str]| act(user, tier, &world, rights, words);
        let (secret, notes) = (world.home().join(".ssh/id_ed25519"), world.home().join("notes"));
        for place in [secret.parent().unwrap(), &notes] {
            fs::create_dir(place).unwrap();
            world.give(place);
        }
        for file in [&secret, &notes.join("one")] {
            fs::write(file, "content").unwrap();
            world.give(file);
        }
        let path = |path: &Path| path.display().to_string();
        let none = ServerRights::default();
        for file in [&secret, &notes.join("one")] {
            let read = said(&none, &["read", &path(file)]);
            assert!(is_denied(&read, &[EACCES, ENOENT]), "{user:?} {tier}: {read}");
        }
        let readable = ServerRights { read: vec![notes.clone()], ..ServerRights::default() };
        assert_eq!(said(&readable, &["read", &path(&notes.join("one"))]), "content");
        let read = said(&readable, &["read", &path(&secret)]);
        assert!(is_denied(&read, &[EACCES, ENOENT]), "{user:?} {tier}: {read}");
        let written = said(&readable, &["write", &path(&notes.join("two"))]);
        assert!(is_denied(&written, &[EACCES, EROFS]), "{user:?} {tier}: {written}");
        assert!(!notes.join("two").exists());
        let writable = ServerRights { write: vec![notes.clone()], ..ServerRights::default() };
        assert_eq!(said(&writable, &["write", &path(&notes.join("two"))]), "written");
        let written = said(&writable, &["write", &path(&world.home().join("x"))]);
        assert!(is_denied(&written, &[EACCES, EROFS, ENOENT]), "{user:?} {tier}: {written}");
        assert_eq!(said(&none, &["environment", "BAILIWICK_HOME"]), "unset");
        assert_eq!(said(&none, &["environment", "HOME"]), path(&world.root().join("store/home")));
    });
}

#[test]
fn a_server_has_no_network_unless_its_table_names_hosts() {
    everywhere(|user, tier, world| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let said = act(user, tier, &world, &ServerRights::default(), &["connect", &address]);
        assert!(
            is_denied(&said, &[EACCES, EPERM, ECONNREFUSED, ENETUNREACH, EHOSTUNREACH]),
            "{user:?} {tier}: {said}"
        );
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "{user:?} {tier}: the listener was reached");
    });
}

#[test]
fn a_server_with_hosts_reaches_no_other_name_or_address() {
    everywhere(|user, tier, world| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let hosts = network_words::hosts(["a.example"]).unwrap();
        let rights = ServerRights { net: Network::Hosts(hosts), ..ServerRights::default() };
        for target in ["other.example:443", "a.example:444", &address] {
            let said = act(user, tier, &world, &rights, &["connect", target]);
            assert!(is_denied(&said, &[ECONNREFUSED, EACCES]), "{user:?} {tier} {target}: {said}");
        }
    });
}

/// Tests actions of a server against its guest. Both have the same confinement, and the guest's socket leads to the
/// supervisor.
#[test]
fn a_server_reaches_nothing_of_its_guest() {
    everywhere(|user, tier, world| {
        let said = |whose: &str| act(user, tier, &world, &ServerRights::default(), &["opens", whose]);
        assert_eq!(said("guest"), "", "{user:?} {tier}");
        let own = said("itself");
        assert!(own.contains("environ fd/0 fd/1"), "{user:?} {tier}: {own}");
    });
}

#[test]
fn a_daemon_of_a_server_ends_with_it() {
    everywhere(|user, tier, world| {
        let beat = world.root().join("store/tmp/beat");
        on_a_runtime(async {
            let words = ["leaves-a-daemon", beat.to_str().unwrap()];
            let mut server = started(&world, user, tier, ServerRights::default(), &words).await;
            server.call("echo", "{}").await.unwrap();
            wait_until("the daemon lives", || fs::metadata(&beat).is_ok());
            let ended = server.process.end(GuestEnd::Finished).await;
            assert!(ended.end.is_ok() && ended.open.is_empty(), "{ended:?}");
        });
        let last = fs::read(&beat).unwrap();
        thread::sleep(Duration::from_millis(300));
        assert_eq!(fs::read(&beat).unwrap(), last, "{user:?} {tier}: the daemon goes on");
    });
}

#[test]
fn a_server_that_dies_leaves_its_requests_open_to_nobody() {
    everywhere(|user, tier, world| {
        on_a_runtime(async {
            let mut server = started(&world, user, tier, ServerRights::default(), &["dies-in-a-call"]).await;
            let failure = server.call("echo", "{}").await.unwrap_err();
            assert!(format!("{failure:?}").contains("out of luck"), "{failure:?}");
            let rest = rest(&mut server.process).await;
            assert!(rest.contains("Gone") && rest.ends_with("Ended(Closed)"), "{rest}");
            assert!(server.process.end(GuestEnd::Finished).await.open.is_empty());
        });
    });
}

/// Returns the descriptions of all further events of a server.
async fn rest(process: &mut McpServerProcess) -> String {
    let mut said = String::new();
    loop {
        let event = process.next().await;
        write!(said, "{event:?}").unwrap();
        if matches!(event, McpEvent::Ended(_)) {
            return said;
        }
    }
}
