//! Tests of a sandbox with the network off.

use ipc::confinement::Tier;

use crate::common::place::{errors, in_tier_as_each_user, text};
use crate::run::in_full;

/// Script that looks up `localhost` for this machine's families only, serves at all addresses, and tries to get out.
const LOOKED_UP: &str = "import socket as s
print(s.getaddrinfo('localhost', 80, s.AF_INET, s.SOCK_STREAM, 0, s.AI_ADDRCONFIG)[0][4][0])
server = s.create_server(('', 0))
for place in '127.0.0.1', '198.18.0.1', '198.19.255.254':
    s.create_connection((place, server.getsockname()[1])).close()
    print(server.accept()[1][0])
for place in '192.0.2.1', '198.20.0.1', '198.17.255.255':
    print(s.socket(s.AF_INET, s.SOCK_DGRAM).connect_ex((place, 9)))";

#[test]
fn a_private_network_has_an_address_that_counts_and_leads_nowhere() {
    in_full(|place| {
        let output = place.sandbox(&[]).args(["python3", "-c", LOOKED_UP]).output().unwrap();
        let expected = "127.0.0.1\n127.0.0.1\n198.18.0.1\n198.18.0.1\n101\n101\n101\n";
        assert_eq!(text(&output).replace("198.19.255.254", "198.18.0.1"), expected, "{}", errors(&output));
    });
}

/// Tests a start on a machine whose loopback device is down. Any address can be bound there, so that each counts as one
/// of this machine, and the start's attempt to reach the network fails otherwise than usual.
#[test]
fn where_loopback_never_was_up_the_floor_starts() {
    in_tier_as_each_user(Tier::Floor, |place| {
        let sandbox = place.path("sandbox-exec").display().to_string();
        let alone = |program: &[&str]| {
            let mut command = place.command("unshare");
            command.args(["--map-root-user", "--net"]).args(program).output().unwrap()
        };
        if !alone(&["true"]).status.success() {
            return eprintln!("skipped: this machine refuses namespaces");
        }
        let reach = "import socket; print(socket.socket(type=2).connect_ex(('192.0.2.1', 9)))";
        for net in ["off", "on"] {
            let output =
                alone(&[&sandbox, "--tier", "floor", "--net", net, "--", "/usr/bin/python3", "-c", reach]);
            assert!(output.status.success(), "{net}: {}", errors(&output));
            assert_ne!(text(&output), "0\n", "{net}");
        }
        let told = alone(&[&sandbox, "--tier", "floor", "--", &sandbox, "--self-test"]);
        assert!(text(&told).contains("reach the network"), "{}", errors(&told));
        assert!(!text(&told).contains("\"denied\":false"), "{}", text(&told));
    });
}
