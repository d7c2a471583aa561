//! Harness for the unconfined gateway program. The test plays the supervisor, the agent's broker, clients and hosts.

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ipc::codec;
use ipc::gateway::{Arrival, GatewayFailure, GatewayOrder, GatewayReport};
use ipc::id::Generation;
use ipc::pipe::{FrameReader, Outgoing};
use ipc::rights::Hosts;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};

/// Time limit of a step, longer than any step takes; a gateway that hangs fails its test.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Gateway {
    pub child: Child,
    broker: Option<OwnedFd>,
    supervisor: Option<UnixStream>,
    reports: FrameReader<UnixStream, GatewayReport>,
}

impl Gateway {
    pub fn new(rules: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick-worker"));
        command.arg("--gateway");
        let mut gateway = Self::start(command);
        gateway.order(rules);
        assert_eq!(gateway.report(), GatewayReport::Ready);
        gateway
    }

    pub fn asking(rules: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick-worker"));
        command.arg("--gateway");
        let mut gateway = Self::start(command);
        gateway.start_with(rules, true);
        assert_eq!(gateway.report(), GatewayReport::Ready);
        gateway
    }

    pub fn start(mut command: Command) -> Self {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (broker, input) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        let (supervisor, output) = UnixStream::pair().unwrap();
        let child =
            command.stdin(input).stdout(OwnedFd::from(output)).stderr(Stdio::piped()).spawn().unwrap();
        supervisor.set_read_timeout(Some(PATIENCE)).unwrap();
        let reports = FrameReader::new(supervisor.try_clone().unwrap(), Generation(0));
        // The descriptors that the child has are closed here with the command.
        drop(command);
        Self { child, broker: Some(broker), supervisor: Some(supervisor), reports }
    }

    pub fn order(&self, rules: &str) {
        self.start_with(rules, false);
    }

    fn start_with(&self, rules: &str, asks: bool) {
        let rules = rules.split(' ').map(|rule| rule.parse().unwrap());
        self.send(&GatewayOrder::Start { hosts: Hosts::new(rules).unwrap(), asks });
    }

    pub fn send(&self, order: &GatewayOrder) {
        Outgoing::new(self.supervisor.as_ref().unwrap(), Generation(0)).send(order).unwrap();
    }

    pub fn write(&self, bytes: &[u8]) {
        self.supervisor.as_ref().unwrap().write_all(bytes).unwrap();
    }

    pub fn report(&mut self) -> GatewayReport {
        self.next_report().expect("the gateway ended")
    }

    pub fn next_report(&mut self) -> Option<GatewayReport> {
        self.reports.receive().ok().flatten()
    }

    /// True if a report can be read now.
    pub fn has_report(&self) -> bool {
        let supervisor = self.supervisor.as_ref().unwrap();
        let mut events = [PollFd::new(supervisor.as_fd(), PollFlags::POLLIN)];
        poll(&mut events, PollTimeout::ZERO).unwrap() == 1
    }

    pub fn failure(&mut self) -> GatewayFailure {
        match self.report() {
            GatewayReport::Failed { failure, .. } => failure,
            other => panic!("{other:?}"),
        }
    }

    pub fn connected(&mut self) -> u64 {
        match self.report() {
            GatewayReport::Connected { connection, .. } => connection,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next report, which must be of a connection's end: the bytes sent and received, and the failure.
    pub fn ended(&mut self) -> (u64, u64, Option<GatewayFailure>) {
        match self.report() {
            GatewayReport::Ended { sent, received, failure, .. } => (sent, received, failure),
            other => panic!("{other:?}"),
        }
    }

    /// Sends bytes and descriptors to the gateway, as the broker does.
    pub fn hand_over(&self, bytes: &[u8], descriptors: &[RawFd]) -> nix::Result<usize> {
        Self::hand_over_on(self.broker.as_ref().unwrap(), bytes, descriptors)
    }

    pub fn hand_over_on(broker: &OwnedFd, bytes: &[u8], descriptors: &[RawFd]) -> nix::Result<usize> {
        let rights = [ControlMessage::ScmRights(descriptors)];
        let rights = if descriptors.is_empty() { &[][..] } else { &rights };
        sendmsg::<()>(broker.as_raw_fd(), &[IoSlice::new(bytes)], rights, MsgFlags::empty(), None)
    }

    pub fn broker(&self) -> OwnedFd {
        self.broker.as_ref().unwrap().try_clone().unwrap()
    }

    /// Returns the client's end of a new connection, whose other end is passed to the gateway.
    pub fn client(&self, name: &str, port: u16) -> TcpStream {
        let (client, accepted) = connection();
        self.hand_over(&arrival(name, port), &[accepted.as_raw_fd()]).unwrap();
        client
    }

    /// True if, within this time, the gateway's socket has space for another message of the broker.
    pub fn takes_another(&self, within: Duration) -> bool {
        let mut room = [PollFd::new(self.broker.as_ref().unwrap().as_fd(), PollFlags::POLLOUT)];
        poll(&mut room, PollTimeout::try_from(within).unwrap()).unwrap() == 1
    }

    pub fn end_arrivals(&mut self) {
        self.broker = None;
    }

    /// Closes the supervisor's end. Returns the gateway's exit status and standard error.
    pub fn end(mut self) -> (ExitStatus, String) {
        self.supervisor.take().unwrap().shutdown(Shutdown::Both).unwrap();
        self.wait()
    }

    pub fn wait(&mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn arrival(name: &str, port: u16) -> Vec<u8> {
    let arrival = Arrival { name: name.parse().unwrap(), port, program: "curl".to_owned() };
    codec::encode(&arrival).unwrap()
}

pub fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    (client, listener.accept().unwrap().0)
}

pub fn host<T: Send + 'static>(
    port: u16,
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (u16, JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        serve(socket)
    });
    (port, thread)
}

pub fn sink(port: u16) -> (u16, JoinHandle<Vec<u8>>) {
    host(port, |mut socket| all(&mut socket).unwrap())
}

pub fn all(socket: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if the peer resets the connection instead of ending it.
pub fn is_reset(socket: &mut TcpStream) -> bool {
    all(socket).is_err_and(|error| error.raw_os_error() == Some(Errno::ECONNRESET as i32))
}
