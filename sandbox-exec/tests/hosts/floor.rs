//! Tests of hosts in the floor tier, which are sockets on loopback: redirections, and other processes' connections.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use ipc::place::Place as Whose;
use ipc::refusal::{Act, Target};

use crate::gateway::{echo, in_floor, pair, run, start};

/// Script that prints the ports of the broker's sockets for a host and for the resolver, then waits for a line.
const AT: &str = "c = open_to(('a.example', 443))
u = s.socket(type=s.SOCK_DGRAM)
u.connect((SERVER, 53))
print(c.getpeername()[1], u.getpeername()[1], flush=True)
sys.stdin.readline()
";

fn ports(said: &str) -> [u16; 2] {
    let ports: Vec<u16> = said.split(' ').map(|port| port.parse().unwrap()).collect();
    ports.try_into().unwrap()
}

#[test]
fn strangers_are_turned_away() {
    in_floor(|place| {
        let (gateway, theirs) = pair();
        let mut running = start(place, "a.example", &format!("{AT}print(talk(('a.example', 443)))"), theirs);
        let echo = echo(gateway);
        let [host, resolver] = ports(&running.hear());
        for _ in 0..3 {
            let mut stranger = TcpStream::connect(("127.0.0.1", host)).unwrap();
            let _reset = stranger.write_all(b"stranger");
            assert!(!matches!(stranger.read(&mut [0; 9]), Ok(1..)));
        }
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let question = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01";
        stranger.send_to(question, ("127.0.0.1", resolver)).unwrap();
        assert!(stranger.recv(&mut [0; 600]).is_err());
        for address in ["127.0.0.1", "127.0.0.2", "0.0.0.0"] {
            assert!(UdpSocket::bind((address, resolver)).is_err(), "{address}");
        }
        running.tell("");
        assert_eq!(running.finish().said, "b'hi'\n");
        assert_eq!(echo.join().unwrap().len(), 2);
    });
}

#[test]
fn only_addresses_of_hosts_lead_there() {
    in_floor(|place| {
        let (gateway, theirs) = pair();
        let (echo, script) = (echo(gateway), format!("{AT}print(end(host), end(host))"));
        let end = "def end(port):
    try:
        c = open_to(('127.0.0.1', port))
        c.sendall(b'x')
        return c.recv(1)
    except ConnectionResetError: return 'reset'
";
        let script = script.replace("print(c.get", "host = c.getpeername()[1]\nprint(c.get");
        let mut running = start(place, "a.example", &format!("{end}{script}"), theirs);
        let [host, resolver] = ports(&running.hear());
        let other = run(
            place,
            "a.example",
            &format!(
                "say(lambda: open_to(('127.0.0.1', {host})))
udp = s.socket(type=s.SOCK_DGRAM)
say(lambda: udp.connect(('127.0.0.1', {resolver})))
say(lambda: udp.sendto(question('a.example'), ('127.0.0.1', {resolver})))"
            ),
        );
        assert_eq!(other.said, "ECONNREFUSED\nECONNREFUSED\nECONNREFUSED\n");
        assert_eq!(other.arrivals, []);
        let refused: Vec<_> =
            other.refused.into_iter().map(|refused| (refused.act, refused.object)).collect();
        let at = |port| Target::Internet(([127, 0, 0, 1], port).into(), Whose::Host);
        let expected = [(Act::Connect, at(host)), (Act::Connect, at(resolver)), (Act::Send, at(resolver))];
        assert_eq!(refused, expected);
        running.tell("");
        assert_eq!(running.finish().said, "reset reset\n");
        assert_eq!(echo.join().unwrap().len(), 1);
    });
}

#[test]
fn no_program_takes_the_ports_of_its_broker() {
    in_floor(|place| {
        let script = format!(
            "{}
host, resolver = c.getpeername()[1], u.getpeername()[1]
for style, port in (s.SOCK_STREAM, host), (s.SOCK_DGRAM, resolver):
    for ip in '127.0.0.1', '0.0.0.0', '127.0.0.2':
        for option in 0, s.SO_REUSEADDR, s.SO_REUSEPORT:
            t = s.socket(type=style)
            try:
                if option: t.setsockopt(s.SOL_SOCKET, option, 1)
                t.bind((ip, port))
                t.listen() if style == s.SOCK_STREAM else None
                print(style, ip, option) if style == s.SOCK_DGRAM or ip != '127.0.0.2' else None
            except OSError: pass
print(talk(('a.example', 443)))",
            AT.replace("sys.stdin.readline()", "")
        );
        let ran = run(place, "a.example", &script);
        assert_eq!(ran.said.lines().skip(1).collect::<Vec<_>>(), ["b'hi'"]);
    });
}

#[test]
fn no_other_server_is_asked_for_names() {
    in_floor(|place| {
        let script = "udp = s.socket(type=s.SOCK_DGRAM)
for to in ('8.8.8.8', 53), (SERVER, 54), (SERVER, 853), ('198.18.0.2', 53):
    say(lambda: udp.connect(to))
    say(lambda: udp.sendto(question('a.example'), to))
    say(lambda: udp.sendmsg([question('a.example')], [], 0, to))
say(lambda: s.socket().connect((SERVER, 53)))
udp.settimeout(20)
udp.sendto(question('a.example'), (SERVER, 53))
print(udp.recv(600)[-4:] == s.inet_aton('198.19.0.1'))";
        let ran = run(place, "a.example", script);
        let said: Vec<_> = ran.said.lines().collect();
        assert!(said[..13].iter().all(|said| matches!(*said, "ENETUNREACH" | "ECONNREFUSED")), "{said:?}");
        assert_eq!(said[13..], ["True"]);
        let asked = |refused: &ipc::refusal::Refusal| matches!(&refused.object, Target::Internet(to, _) if to.ip().to_string() == "8.8.8.8");
        assert!(ran.refused.iter().any(asked), "{:?}", ran.refused);
    });
}

#[test]
fn a_socket_that_was_led_once_is_judged_again() {
    in_floor(|place| {
        let script = "a, b, c = map(s.gethostbyname, ('a.example', 'b.example', 'c.example'))
import ctypes
libc = ctypes.CDLL(None)
def dissolve(t): libc.connect(t.fileno(), bytes(16), 16)
t = s.socket()
t.connect((a, 443))
say(lambda: t.connect((b, 443)))
dissolve(t)
say(lambda: t.connect((c, 443)))
say(lambda: t.connect(('8.8.8.8', 443)))
t.connect((b, 443))
t.sendall(b'x')
t.shutdown(s.SHUT_WR)
print(t.recv(9))
u = s.socket(type=s.SOCK_DGRAM)
u.connect((SERVER, 53))
say(lambda: u.connect((a, 443)))
dissolve(u)
say(lambda: u.connect(('8.8.8.8', 53)))
say(lambda: u.send(b'x'))";
        let ran = run(place, "a.example,b.example", script);
        let expected = "EISCONN\nECONNREFUSED\nENETUNREACH\nb'x'\nECONNREFUSED\nENETUNREACH\nEDESTADDRREQ\n";
        assert_eq!(ran.said, expected);
        let last = ran.arrivals.last().unwrap();
        assert_eq!(last.name.as_str(), "b.example");
        assert!(ran.arrivals.iter().all(|arrival| arrival.port == 443));
    });
}

#[test]
fn a_race_for_the_address_reaches_nobody() {
    in_floor(|place| {
        let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        stranger.set_nonblocking(true).unwrap();
        let port = stranger.local_addr().unwrap().port();
        let script = format!(
            "import ctypes, threading
libc = ctypes.CDLL(None)
ip = s.gethostbyname('a.example')
def bytes_of(ip, port): return struct.pack('=H', s.AF_INET) + struct.pack('>H', port) + s.inet_aton(ip) + bytes(8)
both = bytes_of(ip, 443), bytes_of('127.0.0.1', {port})
buffer = ctypes.create_string_buffer(16)
end = False
def write():
    while not end:
        for one in both: ctypes.memmove(buffer, one, 16)
threading.Thread(target=write).start()
for _ in range(500):
    t = s.socket()
    t.setblocking(False)
    libc.connect(t.fileno(), buffer, 16)
    t.close()
end = True"
        );
        let ran = run(place, "a.example", &script);
        assert!(stranger.accept().is_err());
        assert!(!ran.arrivals.is_empty(), "the host is reached in between");
    });
}

/// Tests that a program's datagram socket receives nothing from a process outside, but answers from the resolver.
#[test]
fn datagrams_of_strangers_are_not_heard() {
    in_floor(|place| {
        let (_gateway, theirs) = pair();
        let script = "u = s.socket(type=s.SOCK_DGRAM)
u.bind(('127.0.0.1', 0))
print(u.getsockname()[1], flush=True)
sys.stdin.readline()
u.setblocking(False)
say(lambda: u.recv(9))
u.settimeout(20)
u.sendto(question('a.example'), (SERVER, 53))
print(len(u.recv(600)))";
        let mut running = start(place, "a.example", script, theirs);
        let port: u16 = running.hear().parse().unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"stranger", ("127.0.0.1", port)).unwrap();
        running.tell("");
        assert_eq!(running.finish().said, "EAGAIN\n43\n");
    });
}
