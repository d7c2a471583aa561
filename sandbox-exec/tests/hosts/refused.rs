use ipc::place::Place as Whose;
use ipc::refusal::{Act, Target};
use nix::libc;

use crate::gateway::{in_both, run};

/// Checks that a Python expression fails with this error, that the denial is reported as `expected`, and that no
/// connection reaches the gateway.
fn check(expression: &str, error: &str, expected: Option<(Act, Target, i32)>) {
    let expected: Vec<_> = expected.into_iter().collect();
    in_both(|place| {
        let script = format!(
            "ip = s.gethostbyname('a.example')\nudp = s.socket(type=s.SOCK_DGRAM)\nsay(lambda: {expression})"
        );
        let ran = run(place, "a.example,b.example:80", &script);
        assert_eq!(ran.said.trim(), error, "{expression}");
        assert_eq!(ran.arrivals, [], "{expression}");
        let refused = ran.refused.into_iter().map(|refused| (refused.act, refused.object, refused.errno));
        assert_eq!(refused.collect::<Vec<_>>(), expected, "{expression}");
    });
}

fn host(port: u16) -> Target {
    Target::Host { name: "a.example".parse().unwrap(), port }
}

fn address(text: &str) -> Target {
    Target::Internet(text.parse().unwrap(), Whose::Elsewhere)
}

#[test]
fn a_name_that_is_not_on_the_list_is_refused_by_its_name() {
    check("open_to(('example', 443))", "no such name", None);
    for name in ["c.example", "x.a.example", "a.example.evil", "xa.example"] {
        let host = Target::Host { name: name.parse().unwrap(), port: 443 };
        let refused = (Act::Connect, host, libc::ECONNREFUSED);
        check(&format!("open_to(('{name}', 443))"), "ECONNREFUSED", Some(refused));
    }
}

#[test]
fn another_port_of_a_host_is_refused_by_its_name() {
    for port in [80, 8443, 53] {
        let refused = (Act::Connect, host(port), libc::ECONNREFUSED);
        check(&format!("open_to(('a.example', {port}))"), "ECONNREFUSED", Some(refused));
    }
    let mapped = "s.socket(s.AF_INET6).connect(('::ffff:' + ip, 80))";
    check(mapped, "ECONNREFUSED", Some((Act::Connect, host(80), libc::ECONNREFUSED)));
    let fast = "s.socket().sendto(b'x', s.MSG_FASTOPEN, (ip, 80))";
    check(fast, "ECONNREFUSED", Some((Act::Send, host(80), libc::ECONNREFUSED)));
}

#[test]
fn datagrams_reach_no_host() {
    check("udp.connect((ip, 443))", "ECONNREFUSED", Some((Act::Connect, host(443), libc::ECONNREFUSED)));
    check("udp.sendto(b'x', (ip, 443))", "ECONNREFUSED", Some((Act::Send, host(443), libc::ECONNREFUSED)));
    check(
        "udp.sendmsg([b'x'], [], 0, (ip, 443))",
        "ECONNREFUSED",
        Some((Act::Send, host(443), libc::ECONNREFUSED)),
    );
}

#[test]
fn an_address_that_stands_for_no_host_is_refused() {
    for to in [
        "198.19.0.2:443",
        "198.19.0.0:443",
        "198.19.255.255:80",
        "198.18.0.2:443",
        "198.18.0.3:53",
        "198.18.255.255:443",
    ] {
        let (ip, port) = to.split_once(':').unwrap();
        let refused = (Act::Connect, address(to), libc::ECONNREFUSED);
        check(&format!("open_to(('{ip}', {port}))"), "ECONNREFUSED", Some(refused));
    }
}

#[test]
fn addresses_elsewhere_stay_unreachable() {
    for ip in ["8.8.8.8", "198.17.255.255", "198.20.0.1", "169.254.169.254", "10.0.0.1"] {
        let to: std::net::SocketAddr = format!("{ip}:443").parse().unwrap();
        let refused = (Act::Connect, Target::Internet(to, Whose::of(to)), libc::ENETUNREACH);
        check(&format!("open_to(('{ip}', 443))"), "ENETUNREACH", Some(refused));
    }
    let to: std::net::SocketAddr = "[2606:4700::1111]:443".parse().unwrap();
    let refused = (Act::Connect, Target::Internet(to, Whose::of(to)), libc::ENETUNREACH);
    check("open_to(('2606:4700::1111', 443))", "ENETUNREACH", Some(refused));
}
