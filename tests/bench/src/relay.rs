//! Benchmark of the relay, next to direct connections: the first byte of a reply, and CPU time per token.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::provider::ProviderKind;
use model::provider::catalogue::{Facts, built_in};
use model::relay::{
    ClientName, ClientSettings, Limits, Listen, MAX_REPLY, Relay, SOCKET_MODE, SOCKET_NAME, Settings,
    SocketSettings,
};
use model::replay::{ReplayServer, Script, sse};
use nix::sys::resource::UsageWho;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::stats::{BenchReport, Measurement, cpu_time, interleaved};
use super::{BenchError, BenchSetup};

const RUNS: usize = 200;
const TOKENS: usize = 20_000;
const STREAMS: usize = 10;

/// Relay on a thread of its own.
struct ServedRelay {
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<Duration, String>>>,
    _directory: tempfile::TempDir,
}

impl ServedRelay {
    fn start(server: &ReplayServer) -> Result<Self, BenchError> {
        let directory = tempfile::Builder::new().prefix("bailiwick-bench-").tempdir()?;
        let socket = directory.path().join("bench").join(SOCKET_NAME);
        let connection =
            ProviderKind::Anthropic.connection(Some(server.base_url()), None, "nothing".to_owned());
        let settings = Settings {
            upstreams: vec![(ProviderKind::Anthropic, connection)],
            facts: Box::new(|model| Facts::of(&built_in(model))),
            models: Vec::new(),
            max_reply: MAX_REPLY,
            log: directory.path().join("log"),
            complain: |_| (),
        };
        let client = ClientSettings {
            name: ClientName::new("bench")?,
            listen: Listen::Socket(SocketSettings { path: socket.clone(), mode: SOCKET_MODE, owner: None }),
            limits: Limits::default(),
        };
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let mut relay = Relay::start(settings).map_err(|error| error.to_string())?;
                relay.add(client).map_err(|error| error.to_string())?;
                let before = cpu_time(UsageWho::RUSAGE_THREAD).map_err(|error| error.to_string())?;
                let _ = ready.send(());
                let _ = stopped.await;
                let after = cpu_time(UsageWho::RUSAGE_THREAD).map_err(|error| error.to_string())?;
                Ok(after.saturating_sub(before))
            })
        });
        is_ready.recv().map_err(|_| "the relay did not start")?;
        Ok(Self { socket, stop: Some(stop), thread: Some(thread), _directory: directory })
    }

    fn end(mut self) -> Result<Duration, BenchError> {
        self.stop.take();
        let thread = self.thread.take().ok_or("ended already")?;
        Ok(thread.join().map_err(|_| "the relay panicked")??)
    }
}

/// Measures the time from a request to the first byte of its reply, on a new connection each time.
pub(super) fn first_byte(_: &BenchSetup) -> Result<BenchReport, BenchError> {
    let script = (0..=2 * RUNS + 2).fold(Script::new(), |script, _| script.reply(words(1)));
    let server = ReplayServer::start(script)?;
    let relay = ServedRelay::start(&server)?;
    let request = request();
    let address = server.base_url().trim_start_matches("http://").to_owned();
    let rows = interleaved(
        RUNS,
        &mut [
            (
                "first byte through the relay",
                Box::new(|| first(UnixStream::connect(&relay.socket)?, &request)),
            ),
            (
                "first byte directly",
                Box::new(|| {
                    let stream = TcpStream::connect(&address)?;
                    stream.set_nodelay(true)?;
                    first(stream, &request)
                }),
            ),
        ],
    )?;
    let more = (rows[0].median - rows[1].median) / 1000.0;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("the relay's part of the first byte, ms (medians)", more, 1.0);
    relay.end()?;
    Ok(report)
}

/// Measures the relay's CPU time per token that it forwards.
pub(super) fn token(_: &BenchSetup) -> Result<BenchReport, BenchError> {
    let mut samples = Vec::new();
    for _ in 0..STREAMS {
        let server = ReplayServer::start(Script::new().reply(words(TOKENS)))?;
        let relay = ServedRelay::start(&server)?;
        let mut stream = UnixStream::connect(&relay.socket)?;
        stream.write_all(&request())?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply)?;
        if !reply.ends_with(b"\r\n0\r\n\r\n") {
            return Err("the reply did not come to its end".into());
        }
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        samples.push(relay.end()?.as_secs_f64() * 1e6 / TOKENS as f64);
    }
    let rows = vec![Measurement::of("CPU per token through the relay", "µs", &samples)];
    let median = rows[0].median;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("CPU per token through the relay, µs", median, 15.0);
    Ok(report)
}

fn words(count: usize) -> String {
    sse::message(&[sse::Block::text("word ".repeat(count))], "end_turn", sse::Usage::default())
}

/// Returns a request as long as the first one of a session. Its header asks the server to close the connection.
fn request() -> Vec<u8> {
    let body = json!({
        "model": "claude-opus-5-5",
        "max_tokens": 1000,
        "stream": true,
        "system": [{"type": "text", "text": "x".repeat(8_000)}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go on"}]}],
    })
    .to_string();
    format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         anthropic-version: 2026-10-21\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn first(mut stream: impl Read + Write, request: &[u8]) -> Result<Duration, BenchError> {
    let began = Instant::now();
    stream.write_all(request)?;
    let mut start = [0; 12];
    stream.read_exact(&mut start)?;
    let took = began.elapsed();
    if !start.ends_with(b" 200") {
        return Err(format!("it answered {:?}", String::from_utf8_lossy(&start)).into());
    }
    // Reads the whole reply, so that the next measurement does not begin while the relay still sends this one.
    stream.read_to_end(&mut Vec::new())?;
    Ok(took)
}
