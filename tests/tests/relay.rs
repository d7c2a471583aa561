//! `bailiwick relay`: what its clients get, what they cannot do to each other, and who cannot be one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor::replay::{Block, ReplayServer, Reply, Usage, chat, responses, sse};
use tests::replies::{calls, done, model, model_of, serve};
use tests::world::KEY;
use tests::{Finished, User, World, tier};

/// A relay in a world, which ends with this value.
struct Relay {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Relay {
    fn start(world: &World, flags: &[&str]) -> Self {
        let mut command = world.bailiwick(["relay"]);
        command.args(flags).env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", KEY);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// A relay with one client and a socket.
    fn of_one(world: &World, server: &ReplayServer, flags: &[&str]) -> (Self, PathBuf) {
        let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
        let all = [&["--listen", &listen, "--client", "one", "--base-url", &address], flags].concat();
        let mut relay = Self::start(world, &all);
        let (name, base_url) = relay.client();
        assert_eq!(name, "one");
        (relay, PathBuf::from(base_url.strip_prefix("unix:").unwrap()))
    }

    /// The next client that is served.
    fn client(&mut self) -> (String, String) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (name, base_url) = line.trim_end().split_once(' ').unwrap_or_else(|| panic!("{:?}", self.words()));
        (name.to_owned(), base_url.to_owned())
    }

    /// Ends it by a signal; what it said.
    fn end(mut self) -> String {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        let words = self.words();
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
        words
    }

    fn words(&mut self) -> String {
        let mut words = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut words).unwrap();
        words
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of the relay's log.
fn log(world: &World) -> Vec<Value> {
    let place = world.own().join("state/relay");
    let files = fs::read_dir(place).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    files.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

/// A request of the Messages API.
fn usual() -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 100, "stream": true,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})
}

fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nanthropic-version: 2026-10-21\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    )
}

/// Sends a request; the status, and everything that came.
fn post(mut stream: impl Read + Write, path: &str, body: &str) -> (u16, String) {
    stream.write_all(head(path, body.len()).as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    reply(stream)
}

fn reply(mut stream: impl Read) -> (u16, String) {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text)
}

fn ask(socket: &Path, body: &Value) -> (u16, String) {
    post(UnixStream::connect(socket).unwrap(), "/v1/messages", &body.to_string())
}

fn exec(world: &World, base_url: &str, flags: &[&str]) -> Command {
    let mut command = world.bailiwick(["exec", "--output", "stream-json", "--mode", "auto", "--base-url", base_url, "-C"]);
    command.arg(world.project()).args(world.tier_flags()).args(flags).arg("do it");
    command
}

fn unix(socket: &Path) -> String {
    format!("unix:{}", socket.display())
}

#[test]
fn a_bug_is_fixed_behind_a_relay_without_a_key_in_each_dialect() {
    let edit = || Block::tool_use("toolu_1", "edit_file", r#"{"path":"a.txt","old_string":"1","new_string":"2"}"#);
    let said = || Block::text("Done.");
    let of_messages = [sse::message(&[Block::thinking("hm", "s="), edit()], "tool_use", Usage::default()), done()];
    let of_chat = [
        chat::message(&[Block::thinking("hm", ""), edit()], "tool_calls", Usage::default()),
        chat::message(&[said()], "stop", Usage::default()),
    ];
    let of_responses = [
        responses::message(&[Block::thinking("hm", "e"), edit()], "completed", Usage::default()),
        responses::message(&[said()], "completed", Usage::default()),
    ];
    for (provider, model, path, replies) in [
        ("anthropic", "claude-opus-5-5", "/v1/messages", of_messages),
        ("openai", "gpt-5-mini", "/v1/chat/completions", of_chat),
        ("responses", "gpt-5-mini", "/v1/responses", of_responses),
    ] {
        let world = World::new(User::Myself);
        world.file("a.txt", "1\n");
        let server = model_of(replies);
        let (relay, socket) = Relay::of_one(&world, &server, &["--provider", provider]);
        let flags = ["--provider", provider, "--model", model];
        let run = Finished::of(&mut exec(&world, &unix(&socket), &flags)).expect(0);
        assert_eq!(world.read("a.txt"), "2\n", "{provider}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{provider}");
        for request in &requests {
            assert_eq!((&*request.method, &*request.path), ("POST", path));
            let key = request.header("x-api-key").or(request.header("authorization")).unwrap();
            assert!(key.contains(&format!("[{} bytes]", KEY.len())), "{key}");
            assert!(request.header("user-agent").unwrap().starts_with("bailiwick/"));
        }
        assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY));
        let log = log(&world);
        let of: Vec<_> = log.iter().map(|line| (&line["client"], &line["api"], &line["end"], &line["status"])).collect();
        let expected = (json!("one"), json!(provider), json!("complete"), json!(200));
        assert!(of.iter().all(|of| (of.0, of.1, of.2, of.3) == (&expected.0, &expected.1, &expected.2, &expected.3)), "{of:?}");
        assert_eq!(log[0]["usage"], run.events_of("assistant_message")[0]["usage"], "{provider}");
        let words = relay.end();
        assert!(words.contains("one: 2 requests, 0 refused"), "{words}");
        assert!(!socket.exists(), "the socket goes with the relay");
    }
}

#[test]
fn a_refused_request_never_reaches_the_provider_and_names_its_field() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let (_relay, socket) = Relay::of_one(&world, &server, &[]);
    for (name, value) in [
        ("tools", json!([{"type": "web_search_20250305", "name": "web_search"}])),
        ("mcp_servers", json!([])),
        ("container", json!("c")),
        ("stream", json!(false)),
    ] {
        let mut body = usual();
        body[name] = value;
        let (status, text) = ask(&socket, &body);
        assert!(status == 400 && text.contains(name) && text.contains("invalid_request_error"), "{text}");
    }
    let body = usual().to_string();
    let connect = || UnixStream::connect(&socket).unwrap();
    for path in ["/v1/messages?beta=true", "/v1/messages/batches", "/v1/files", "/v1/chat/completions", "/"] {
        assert_eq!(post(connect(), path, &body).0, 404, "{path}");
    }
    let raw = |text: &str| {
        let mut stream = connect();
        stream.write_all(text.as_bytes()).unwrap();
        reply(stream).0
    };
    let length = body.len();
    assert_eq!(raw("GET /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"), 405);
    let with = |more: &str| {
        let head = head("/v1/messages", length);
        raw(&format!("{}{more}\r\n\r\n{body}", head.trim_end()))
    };
    assert_eq!(with("\r\nanthropic-beta: mcp-client-2025-04-04"), 400);
    assert_eq!(with("\r\nanthropic-beta: interleaved-thinking-2025-05-14, mcp-client-2025-04-04"), 400);
    assert_eq!(with("\r\ncontent-encoding: gzip"), 400);
    assert_eq!(with("\r\ncontent-length: 3"), 400);
    let smuggled = format!("0\r\n\r\nPOST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
    let both = head("/v1/messages", smuggled.len());
    assert_eq!(raw(&format!("{}\r\ntransfer-encoding: chunked\r\n\r\n{smuggled}", both.trim_end())), 400);
    assert_eq!(raw(&head("/v1/messages", 40_000_000)), 413);
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    // The control: the same request as it should be.
    assert_eq!(ask(&socket, &usual()).0, 200);
    assert_eq!(server.requests().len(), 1);
    let log = log(&world);
    assert!(log.iter().filter(|line| line["end"] == "refused").count() > 10);
    assert!(log.iter().all(|line| !line.to_string().contains("\"hi\"")), "prompts are not logged");
}

#[test]
fn errors_of_the_provider_go_on_and_tell_nothing_of_the_key_or_the_address() {
    let world = World::new(User::Myself);
    let echo = format!("Incorrect API key provided: {KEY}");
    let server = serve([
        Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "7").header("x-secret", "s"),
        Reply::error(400, "invalid_request_error", &format!("prompt is too long {KEY}")),
        Reply::error(401, "authentication_error", &echo),
        Reply::new(502, "<html>gateway of 127.0.0.1</html>"),
        Reply::new(302, "").header("location", "http://elsewhere.example"),
    ]);
    let (_relay, socket) = Relay::of_one(&world, &server, &[]);
    let (statuses, texts): (Vec<_>, Vec<_>) = (0..5).map(|_| ask(&socket, &usual())).unzip();
    assert_eq!(statuses, [529, 400, 403, 502, 502]);
    assert!(texts[0].contains("retry-after: 7") && texts[0].contains("Overloaded") && !texts[0].contains("x-secret"));
    assert!(texts[1].contains("prompt is too long ***"));
    assert!(texts[2].contains("did not accept the relay's key"));
    let address = server.base_url();
    for text in &texts {
        let host = address.trim_start_matches("http://");
        assert!(!text.contains(KEY) && !text.contains(host) && !text.contains("html"), "{text}");
        assert!(!text.contains("elsewhere"), "{text}");
    }
    assert!(log(&world).iter().all(|line| line["cost_usd"].is_null() && !line.to_string().contains(KEY)));
}

/// A stream that says how long its prompt was, and then nothing more.
fn begun() -> Reply {
    let whole = done();
    let end = whole.find("event: content_block_start").unwrap();
    Reply::sse(whole[..end].to_owned()).then_silence()
}

/// Reads until one of these has come.
fn read_until(stream: &mut UnixStream, wanted: &[&str]) -> String {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !wanted.iter().any(|wanted| text.contains(wanted)) {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "it ended: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    text
}

fn sent(socket: &Path, body: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(head("/v1/messages", body.len()).as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

#[test]
fn a_budget_holds_under_eight_streams_that_hang_up() {
    let world = World::new(User::Myself);
    let server = serve((0..100).map(|_| begun()));
    let (relay, socket) = Relay::of_one(&world, &server, &["--max-usd", "0.1"]);
    let body = usual().to_string();
    let mut waves = 0;
    let refused = loop {
        let mut streams: Vec<_> = (0..8).map(|_| sent(&socket, &body)).collect();
        let heads: Vec<_> = streams.iter_mut().map(|stream| read_until(stream, &["message_start", "\"error\""])).collect();
        let open = heads.iter().filter(|head| head.starts_with("HTTP/1.1 200")).count();
        let now = heads.iter().filter(|head| head.starts_with("HTTP/1.1 429")).count();
        let spent = heads.iter().filter(|head| head.starts_with("HTTP/1.1 402")).count();
        assert_eq!(open + now + spent, 8, "{heads:?}");
        waves += 1;
        if open == 0 {
            break spent;
        }
        assert!(waves > 1 || (now > 0 && open > 1), "some had room, and not all: {heads:?}");
        drop(streams);
        let lines = server.requests().len();
        tests::wait_until("the hang-ups are settled", || {
            log(&world).iter().filter(|line| line["end"] == "hung_up").count() == lines
        });
    };
    assert_eq!(refused, 8);
    let paid: f64 = log(&world).iter().filter_map(|line| line["cost_usd"].as_f64()).sum();
    assert!(paid > 0.05 && paid <= 0.1, "{paid}");
    let (_, text) = ask(&socket, &usual());
    assert!(text.contains("billing_error") && text.contains("its limit is $0.10"), "{text}");
    let words = relay.end();
    assert!(words.contains(&format!("one: {} requests", server.requests().len())), "{words}");
}

#[test]
fn slow_dead_and_flooding_clients_do_not_hold_the_others() {
    let world = World::new(User::Myself);
    let endless = "x".repeat(1 << 20);
    let large = sse::message(&[Block::text(endless)], "end_turn", Usage::default());
    let server = serve([Reply::sse(large.repeat(8)), Reply::sse(done()), Reply::sse(done())]);
    let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
    let flags = ["--listen", &listen, "--client", "bad", "--client", "good", "--base-url", &address];
    let mut relay = Relay::start(&world, &flags);
    let [bad, good] = [relay.client(), relay.client()].map(|(_, base_url)| {
        PathBuf::from(base_url.strip_prefix("unix:").unwrap())
    });
    // One that reads nothing of a large reply.
    let mut deaf = sent(&bad, &usual().to_string());
    read_until(&mut deaf, &["200 OK"]);
    // Some that send a byte and then no more.
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(&bad).unwrap();
            stream.write_all(format!("{}{{", head("/v1/messages", 5_000)).as_bytes()).unwrap();
            stream
        })
        .collect();
    // And a flood; what the queue does not take is refused by the kernel.
    let flood: Vec<_> = (0..200).map_while(|_| connect_at_once(&bad)).collect();
    assert!(flood.len() >= 20, "{}", flood.len());
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(ask(&good, &usual()).0, 200);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(server.requests().len(), 3);
    drop((deaf, slow, flood, relay));
}

/// Connects without waiting for room in the queue.
fn connect_at_once(path: &Path) -> Option<std::os::fd::OwnedFd> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
    use std::os::fd::AsRawFd;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
    connect(socket.as_raw_fd(), &UnixAddr::new(path).unwrap()).ok().map(|()| socket)
}

#[test]
fn a_socket_is_its_clients_alone_and_a_place_of_others_is_not_taken() {
    let world = World::new(User::Myself);
    let server = model_of([]);
    let (relay, socket) = Relay::of_one(&world, &server, &["--socket-mode", "660"]);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o660, 0o710));
    let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
    let flags = ["--listen", &listen, "--client", "one", "--base-url", &address];
    let second = Finished::of(world.bailiwick(["relay"]).args(flags).env("ANTHROPIC_API_KEY", KEY));
    assert_eq!(second.code, 2);
    assert!(second.stderr.contains("another process listens there"), "{}", second.stderr);
    relay.end();
    assert!(!socket.parent().unwrap().exists());
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    fs::write(&socket, "mine").unwrap();
    let third = Finished::of(world.bailiwick(["relay"]).args(flags).env("ANTHROPIC_API_KEY", KEY));
    assert!(third.code == 2 && third.stderr.contains("something else is there"), "{}", third.stderr);
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
}

#[test]
fn an_address_of_this_machine_takes_a_token() {
    let world = World::new(User::Myself);
    world.file("a.txt", "1\n");
    let server = model(&[("edit_file", json!({"path": "a.txt", "old_string": "1", "new_string": "2"}))]);
    let (file, address) = (world.own().join("token").display().to_string(), server.base_url());
    let flags = ["--listen", "127.0.0.1:0", "--client", "one", "--base-url", &address, "--token-file", &file];
    let mut relay = Relay::start(&world, &flags);
    let (_, base_url) = relay.client();
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let connect = || TcpStream::connect(base_url.trim_start_matches("http://")).unwrap();
    let (status, text) = post(connect(), "/v1/messages", &usual().to_string());
    assert!(status == 401 && server.requests().is_empty(), "{text}");
    let mut command = exec(&world, &base_url, &["--model", "claude-opus-5-5"]);
    Finished::of(command.env("ANTHROPIC_API_KEY", &token)).expect(0);
    assert_eq!(world.read("a.txt"), "2\n");
    assert!(server.requests().iter().all(|request| !format!("{:?}", request.headers).contains(&token)));
    let open = [&flags[..6], &[]].concat();
    let refused = Finished::of(world.bailiwick(["relay"]).args(open).env("ANTHROPIC_API_KEY", KEY));
    assert!(refused.code == 2 && refused.stderr.contains("--token-file FILE"), "{}", refused.stderr);
}

#[test]
fn no_command_of_an_agent_reaches_the_relay_in_any_tier() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user).in_tier(tier);
        let server = serve([]);
        let (relay, socket) = Relay::of_one(&world, &server, &[]);
        let probe = tests::Programs::get().path("probe").display().to_string();
        let acts = ["unix-stream", "unix-stream-path", "unix-seqpacket"];
        let line = acts.map(|act| format!("{act} {}", socket.display())).join(" -- ");
        let words: Vec<_> = line.split(' ').collect();
        // The control: outside the same act comes through.
        let outside = Finished::of(world.command(&probe).args(&words));
        assert!(outside.stdout.lines().next().unwrap().contains("\"errno\":0"), "{}", outside.stdout);
        drop(relay);
        let call = calls(&[("shell_exec", json!({"command": format!("{probe} {line} > tried"), "network": true}))]);
        let server = model_of([call, done()]);
        let (_relay, socket) = Relay::of_one(&world, &server, &[]);
        let flags = ["--model", "claude-opus-5-5", "--net", "on", "--reach", "host"];
        Finished::of(&mut exec(&world, &unix(&socket), &flags)).expect(0);
        let tried = world.read("tried");
        assert_eq!(tried.lines().count(), acts.len(), "{tried}");
        for act in tried.lines() {
            let act: Value = serde_json::from_str(act).unwrap();
            let errno = act["errno"].as_i64().unwrap();
            let denied = [nix::libc::EACCES, nix::libc::EPERM, nix::libc::ENOENT].map(i64::from);
            assert!(denied.contains(&errno), "{tier}: {act}");
        }
    }
}

#[test]
fn a_session_does_not_begin_where_an_agent_could_reach_the_relay() {
    let world = World::new(User::Myself);
    let server = serve([]);
    let address = server.base_url();
    let refused = |base_url: &str, flags: &[&str], expected: &str| {
        let run = Finished::of(&mut exec(&world, base_url, flags));
        assert!(run.code == 2 && run.stderr.contains(expected), "{expected}: {} {}", run.code, run.stderr);
    };
    let inside = world.project().join("run");
    let listen = format!("unix:{}", inside.display());
    let mut relay = Relay::start(&world, &["--listen", &listen, "--client", "a", "--base-url", &address]);
    let (_, base_url) = relay.client();
    refused(&base_url, &[], "where an agent may write");
    // A link in the project leads wherever an agent wants it to.
    drop(relay);
    let (relay, socket) = Relay::of_one(&world, &server, &[]);
    let run = world.home().join("run").display().to_string();
    refused(&unix(&socket), &["--write", &run], "where an agent may write");
    let link = world.project().join("link");
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    refused(&unix(&link), &[], "where an agent may write");
    refused("unix:/nowhere/relay.sock", &[], "there is no socket");
    refused("unix:relay.sock", &[], "no relay at");
    refused(&format!("unix:{}", world.root().join("own").display()), &[], "there is no socket");
    drop(relay);
    // Killed, it has left its socket behind.
    assert!(socket.exists());
    refused(&unix(&socket), &[], "Connection refused");
    assert!(server.requests().is_empty());
    // The next relay takes its place.
    let (_relay, again) = Relay::of_one(&world, &server, &[]);
    assert_eq!(again, socket);
}

#[test]
fn a_relay_ends_with_its_caller_and_has_no_relay_behind_it() {
    let world = World::new(User::Myself);
    let server = serve([]);
    let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
    let program = tests::Programs::get().path("bailiwick").display().to_string();
    let script = format!(
        "{program} relay --listen {listen} --client a --base-url {address} 2>said & while [ ! -S home/run/a/relay.sock ]; do sleep 0.05; done; echo up"
    );
    let mut caller = world.command("bash");
    let run = Finished::of(caller.args(["-c", &script]).env("ANTHROPIC_API_KEY", KEY));
    assert!(run.stdout.contains("up"), "{}", run.stderr);
    tests::wait_until("it has ended", || !world.home().join("run/a/relay.sock").exists());
    let flags = ["--listen", &listen, "--client", "a", "--base-url", "unix:/run/other.sock"];
    let behind = Finished::of(world.bailiwick(["relay"]).args(flags).env("ANTHROPIC_API_KEY", KEY));
    assert!(behind.code == 2 && behind.stderr.contains("a relay asks the provider itself"), "{}", behind.stderr);
}
