//! The gateway's end of the socket, held by the test, and runs of programs whose sandbox has the other end.

use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use ipc::codec;
use ipc::confinement::{BrokerReport, Tier};
use ipc::gateway::{Arrival, MAX_ARRIVAL};
use ipc::id::Generation;
use ipc::pipe::FrameReader;
use ipc::refusal::Refusal;
use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, socketpair,
};
use nix::unistd::pipe2;

use crate::common::order::pass;
use crate::common::place::{Place, as_each_user, in_tier_as_each_user};

/// Functions for the test scripts: `say` prints a result or an error's name, `talk` sends data to a host until all is
/// echoed, `ask` sends a message to a resolver, and `ticks` is the processor time of init so far.
const PRELUDE: &str = "import errno, os, socket as s, struct, sys, time
def say(act):
    try: print(act())
    except s.gaierror as e: print({-2: 'no such name', -5: 'no address', -3: 'failed'}[e.errno])
    except OSError as e: print(errno.errorcode.get(e.errno, e))
def open_to(to):
    return s.create_connection(to, 60)
def talk(to, data=b'hi'):
    c = open_to(to)
    c.sendall(data)
    c.shutdown(s.SHUT_WR)
    got = b''
    while piece := c.recv(1 << 16): got += piece
    return got
def name(text):
    return b''.join(bytes([len(l)]) + l.encode() for l in text.split('.') if l) + b'\\0'
def question(text, kind=1, flags=0x100):
    return struct.pack('>6H', 7, flags, 1, 0, 0, 0) + name(text) + struct.pack('>2H', kind, 1)
SERVER = next(l.split()[1] for l in open('/etc/resolv.conf') if l.startswith('nameserver'))
def ask(message, to=SERVER, wait=20):
    c = s.socket(type=s.SOCK_DGRAM)
    c.settimeout(wait)
    c.connect((to, 53))
    c.send(message)
    return c.recv(600)
def ticks():
    return sum(map(int, open('/proc/1/stat').read().rsplit(') ')[1].split()[11:13]))
";

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) said: String,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) refused: Vec<Refusal>,
}

pub(crate) struct Running {
    child: Child,
    status: File,
}

pub(crate) fn in_full(test: impl Fn(&Place)) {
    in_tier_as_each_user(Tier::Full, test);
}

pub(crate) fn in_floor(test: impl Fn(&Place)) {
    in_tier_as_each_user(Tier::Floor, test);
}

pub(crate) fn in_both(test: impl Fn(&Place)) {
    as_each_user(test);
}

pub(crate) fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

pub(crate) fn receive(gateway: &OwnedFd) -> Option<(Arrival, TcpStream)> {
    let mut bytes = [0; MAX_ARRIVAL];
    let mut space = nix::cmsg_space!([OwnedFd; 1]);
    let mut content = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(gateway.as_raw_fd(), &mut content, Some(&mut space), flags).unwrap();
    let passed = message.cmsgs().unwrap().next();
    let (length, flags) = (message.bytes, message.flags);
    assert!(!flags.intersects(MsgFlags::MSG_CTRUNC | MsgFlags::MSG_TRUNC));
    let Some(ControlMessageOwned::ScmRights(passed)) = passed else {
        assert_eq!(length, 0, "a message without a connection");
        return None;
    };
    let &[number] = &passed[..] else { panic!("{} descriptors", passed.len()) };
    // SAFETY: it has just been received.
    let connection = TcpStream::from(unsafe { OwnedFd::from_raw_fd(number) });
    Some((codec::decode(&bytes[..length]).unwrap(), connection))
}

pub(crate) fn echo(gateway: OwnedFd) -> JoinHandle<Vec<(Arrival, SocketAddr)>> {
    let reflect = |mut connection: TcpStream| {
        let mut all = vec![];
        // A program may be gone.
        let _echoed = connection.read_to_end(&mut all).and_then(|_| connection.write_all(&all));
    };
    thread::spawn(move || {
        let mut arrivals = vec![];
        while let Some((arrival, connection)) = receive(&gateway) {
            arrivals.push((arrival, connection.local_addr().unwrap()));
            thread::spawn(move || reflect(connection));
        }
        arrivals
    })
}

pub(crate) fn start_in(
    place: &Place,
    hosts: &str,
    script: &str,
    gateway: OwnedFd,
    prepare: impl FnOnce(&mut Command),
) -> Running {
    let (status, reports) = pipe2(OFlag::O_CLOEXEC).unwrap();
    let mut command = place.sandbox(&["--net", hosts, "--status-fd", "21", "--gateway-fd", "22"]);
    command.args(["/usr/bin/python3", "-c", &format!("{PRELUDE}{script}")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    pass(&mut command, reports, 21);
    pass(&mut command, gateway, 22);
    prepare(&mut command);
    Running { child: command.spawn().unwrap(), status: status.into() }
}

pub(crate) fn start(place: &Place, hosts: &str, script: &str, gateway: OwnedFd) -> Running {
    start_in(place, hosts, script, gateway, |_| {})
}

pub(crate) fn run(place: &Place, hosts: &str, script: &str) -> Ran {
    let (gateway, theirs) = pair();
    let running = start(place, hosts, script, theirs);
    let echo = echo(gateway);
    let ran = running.finish();
    let arrivals = echo.join().unwrap().into_iter().map(|(arrival, _)| arrival).collect();
    Ran { arrivals, ..ran }
}

impl Running {
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn hear(&mut self) -> String {
        let mut line = vec![];
        let mut byte = [0];
        while byte != *b"\n" {
            if self.child.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 0 {
                let mut why = String::new();
                self.child.stderr.as_mut().unwrap().read_to_string(&mut why).unwrap();
                panic!("it ended: {why}");
            }
            line.extend(byte);
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    pub(crate) fn finish(self) -> Ran {
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}{why}", output.status);
        let mut reports = FrameReader::<_, BrokerReport>::new(self.status, Generation(0));
        let reports = std::iter::from_fn(|| reports.receive().unwrap());
        let refused = reports.filter_map(|report| match report {
            BrokerReport::Refused(refusal) => Some(refusal),
            _ => None,
        });
        Ran { said, arrivals: vec![], refused: refused.collect() }
    }
}
