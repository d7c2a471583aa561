//! Runs a guest in a thread. The test plays the supervisor, and the guest starts a scripted server.

use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ipc::id::Generation;
use ipc::mcp::{
    McpAnswer, McpCommand, McpContent, McpDescription, McpFailure, McpOrder, McpReport, McpRequest, McpResult,
};
use ipc::pipe::{FrameReader, Outgoing};
use tokio::runtime::Builder;
use worker::mcp::{McpError, Patience, serve};

/// Time limit beyond all limits that are tested, so that a guest that blocks fails its test.
const LIMIT: Duration = Duration::from_mins(1);

/// Short time limits, for tests that wait until a limit is reached.
pub const SHORT: Patience = Patience {
    handshake: Duration::from_secs(1),
    listing: Duration::from_secs(1),
    request: Duration::from_secs(1),
    total: Duration::from_secs(3),
    grace: Duration::from_millis(200),
};

pub struct Guest {
    socket: Option<UnixStream>,
    reports: FrameReader<UnixStream, McpReport>,
    thread: Option<JoinHandle<Result<(), McpError>>>,
}

#[derive(Debug)]
pub struct Described {
    pub tools: Vec<String>,
    pub description: McpDescription,
}

pub fn fake(behaviour: &[&str]) -> McpCommand {
    McpCommand {
        program: env!("CARGO_BIN_EXE_fake-mcp-server").to_owned(),
        arguments: behaviour.iter().map(|&word| word.to_owned()).collect(),
    }
}

pub fn call(arguments: &str) -> McpRequest {
    McpRequest::CallTool { tool: "echo".to_owned(), arguments: arguments.to_owned() }
}

impl Guest {
    pub fn new(behaviour: &str) -> Self {
        Self::with(fake(&[behaviour]), Patience::default())
    }

    pub fn with(command: McpCommand, patience: Patience) -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let thread = thread::spawn(move || {
            theirs.set_nonblocking(true).unwrap();
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (reader, writer) = tokio::net::UnixStream::from_std(theirs).unwrap().into_split();
                serve(reader, writer, patience).await
            })
        });
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let reports = FrameReader::new(socket.try_clone().unwrap(), Generation(0));
        let mut guest = Self { socket: Some(socket), reports, thread: Some(thread) };
        guest.order(McpOrder::Start(command));
        assert_eq!(guest.report(), McpReport::Ready);
        guest
    }

    pub fn serving(behaviour: &str) -> Self {
        let mut guest = Self::new(behaviour);
        guest.described();
        guest
    }

    pub fn serving_with(behaviour: &str, patience: Patience) -> Self {
        let mut guest = Self::with(fake(&[behaviour]), patience);
        guest.described();
        guest
    }

    pub fn order(&self, order: McpOrder) {
        Outgoing::new(self.socket.as_ref().unwrap(), Generation(0)).send(&order).unwrap();
    }

    pub fn request(&self, request: u64, what: McpRequest) {
        self.order(McpOrder::Request { request, what });
    }

    pub fn answer(&self, question: u64, answer: McpAnswer) {
        self.order(McpOrder::Answer { question, answer });
    }

    pub fn report(&mut self) -> McpReport {
        self.reports.receive().unwrap().expect("the guest ended")
    }

    pub fn described(&mut self) -> Described {
        let mut tools = Vec::new();
        loop {
            match self.report() {
                McpReport::Tool(tool) => tools.push(tool.name),
                McpReport::Prompt(_) => {}
                McpReport::Described(description) => return Described { tools, description },
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the outcome of a request. Panics unless the guest's next report is this outcome.
    pub fn done(&mut self, request: u64) -> Result<McpResult, McpFailure> {
        match self.report() {
            McpReport::Done { request: found, outcome } if found == request => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// Calls the scripted server, and returns the text of the result.
    pub fn call(&mut self, request: u64, arguments: &str) -> String {
        self.request(request, call(arguments));
        words(self.done(request))
    }

    /// Returns the failure of a server that has answered no request.
    pub fn gone(&mut self) -> McpFailure {
        loop {
            match self.report() {
                McpReport::Gone(failure) => {
                    assert!(self.reports.receive().unwrap().is_none(), "a report after the last one");
                    return failure;
                }
                McpReport::Tool(_) | McpReport::Prompt(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the failure of an open request. The server must then be reported as gone, with the same failure.
    pub fn gone_in(&mut self, request: u64) -> McpFailure {
        let failure = self.done(request).unwrap_err();
        assert_eq!(self.gone(), failure);
        failure
    }

    pub fn broken_in(&mut self, request: u64) -> String {
        broken(self.gone_in(request))
    }

    /// Waits for a guest that ends by itself, and returns the guest's result.
    pub fn reports_end(&mut self) -> Result<(), McpError> {
        self.thread.take().unwrap().join().unwrap()
    }

    pub fn end(mut self) {
        drop(self.socket.take());
        self.reports = FrameReader::new(UnixStream::pair().unwrap().0, Generation(0));
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

pub fn broken(failure: McpFailure) -> String {
    match failure {
        McpFailure::Broken(words) => words,
        other => panic!("{other:?}"),
    }
}

pub fn words(outcome: Result<McpResult, McpFailure>) -> String {
    let result = outcome.unwrap();
    match result.content.as_slice() {
        [McpContent::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    }
}
