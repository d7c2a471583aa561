use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::common::order::pass;
use crate::common::place::{errors, text};
use crate::gateway::{in_both, in_full, pair, run};

#[test]
fn a_server_inside_takes_no_port_of_a_host_and_is_not_reached_by_its_name() {
    in_full(|place| {
        let script = "server = s.create_server(('0.0.0.0', 8443))
inside = open_to(('127.0.0.1', 8443))
server.accept()[0].sendall(b'inside')
print(inside.recv(10))
own = open_to(('198.18.0.1', 8443))
server.accept()[0].sendall(b'own address')
print(own.recv(20))
say(lambda: talk(('a.example', 8443)))
server.settimeout(0)
say(server.accept)
freely = s.socket()
freely.setsockopt(s.IPPROTO_IP, 15, 1)
freely.bind((s.gethostbyname('a.example'), 9443))
freely.listen()
freely.settimeout(0)
say(lambda: talk(('a.example', 9443)))
say(freely.accept)
udp = s.socket(type=s.SOCK_DGRAM)
udp.bind(('198.18.0.1', 0))
s.socket(type=s.SOCK_DGRAM).sendto(b'datagram', udp.getsockname())
print(udp.recv(10))";
        let ran = run(place, "a.example:8443,a.example:9443", script);
        let expected = "b'inside'\nb'own address'\nb'hi'\nEAGAIN\nb'hi'\nEAGAIN\nb'datagram'\n";
        assert_eq!(ran.said, expected);
        assert_eq!((ran.arrivals.len(), ran.refused), (2, vec![]));
    });
}

#[test]
fn the_resolver_cannot_be_replaced() {
    in_full(|place| {
        let script = "say(lambda: s.socket().bind(('127.0.0.1', 53)))
say(lambda: s.socket(type=s.SOCK_DGRAM).bind(('0.0.0.0', 53)))
say(lambda: s.socket(s.AF_INET, s.SOCK_RAW, s.IPPROTO_UDP))
say(lambda: s.socket(s.AF_PACKET, s.SOCK_RAW))
def route():
    kernel = s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)
    kernel.send(struct.pack('=IHHII', 28, 24, 0x405, 1, 0) + struct.pack('=8BI', 2, 0, 0, 0, 254, 3, 0, 1, 0))
    return errno.errorcode[-struct.unpack('=i', kernel.recv(100)[16:20])[0]]
say(route)
say(lambda: open('/etc/resolv.conf', 'w'))
say(lambda: os.replace('/dev/shm', '/etc/hosts'))
print(open('/etc/resolv.conf').read(), end='')
print(open('/etc/hosts').read().splitlines()[:2])";
        let ran = run(place, "a.example", script);
        let expected = "EACCES\nEACCES\nEPERM\nEPERM\nEPERM\nEROFS\nEXDEV\nnameserver 198.18.0.2\n\
                        ['127.0.0.1 localhost', '::1 localhost']\n";
        assert_eq!(ran.said.replace("EBUSY", "EXDEV"), expected);
    });
}

#[test]
fn everything_that_the_network_off_denies_is_denied() {
    in_both(|place| {
        let name = format!("bw-hosts-{}-{:?}", std::process::id(), place.user());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let (_gateway, theirs) = pair();
        let mut command = place.sandbox(&["--net", "a.example", "--gateway-fd", "22"]);
        pass(&mut command, theirs, 22);
        let told =
            command.arg(place.path("sandbox-exec")).args(["--self-test", "--self-test-abstract", &name]);
        let told = told.output().unwrap();
        let acts = text(&told);
        assert!(
            acts.contains("reach the network") && acts.contains("reach an abstract"),
            "{}",
            errors(&told)
        );
        assert!(!acts.contains("\"denied\":false"), "{acts}");
    });
}

#[test]
fn unix_sockets_outside_stay_out_of_reach() {
    in_both(|place| {
        let path = place.path("home/socket");
        let _listener = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let script = format!("say(lambda: s.socket(s.AF_UNIX).connect('{}'))", path.display());
        assert_eq!(run(place, "a.example", &script).said, "EACCES\n");
    });
}

#[test]
fn a_socket_that_was_handed_in_leads_nowhere() {
    in_full(|place| {
        let (_gateway, theirs) = pair();
        let outside = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut command = place.sandbox(&["--net", "a.example", "--gateway-fd", "22"]);
        command.args([
            "/usr/bin/python3",
            "-c",
            "import socket as s
ip = s.gethostbyname('a.example')
for to in (ip, 443), ('198.18.0.2', 53), ('127.0.0.1', 9):
    print(s.socket(fileno=0).connect_ex(to))
    break",
        ]);
        command.stdin(std::process::Stdio::from(std::os::fd::OwnedFd::from(outside)));
        pass(&mut command, theirs, 22);
        let output = command.output().unwrap();
        assert_eq!(text(&output), "13\n", "{}", errors(&output));
    });
}
