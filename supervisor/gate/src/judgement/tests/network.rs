use ipc::confinement::Tier;
use ipc::tool::CommandExit;

use super::likely::{ended, first, shell};
use super::{auto, online};
use crate::judgement::{StandingRights, denied};

#[test]
fn refused_network() {
    let table = [
        ("curl: (6) Could not resolve host: example.org", "example.org"),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", "h"),
        (
            "warning: spurious network error: [6] Couldn't resolve host name (Could not resolve host: index.crates.io)",
            "index.crates.io",
        ),
        ("wget: unable to resolve host address ‘x.org’", "x.org"),
        (
            "npm error code EAI_AGAIN\nnpm error getaddrinfo EAI_AGAIN registry.npmjs.org",
            "registry.npmjs.org",
        ),
        ("ssh: Could not resolve hostname h: Temporary failure in name resolution", "h"),
        ("connect: Network is unreachable", "the network"),
        ("  File \"socket.py\", line 9\nPermissionError: [Errno 13] Permission denied", "the network"),
    ];
    for (output, address) in table {
        let result = ended(CommandExit::Code(1), output);
        let denials = denied::likely(&auto(), &shell("x"), &result);
        let denial = denials.first().unwrap_or_else(|| panic!("{output}"));
        assert_eq!(denial.grant.as_deref(), Some("--net on"));
        assert_eq!(denial.object.to_string(), address, "{output}");
        assert_eq!(denied::likely(&online(auto()), &shell("x"), &result), [], "{output}");
    }
}

#[test]
fn a_socket_that_may_not_be_made_is_a_matter_of_the_network_only_without_a_broker() {
    let unmediated = StandingRights { tier: Tier::FloorUnmediated, ..auto() };
    for output in [
        "ping: socket: Operation not permitted",
        "  File \"socket.py\", line 9\nPermissionError: [Errno 1] Operation not permitted",
    ] {
        let result = ended(CommandExit::Code(1), output);
        let granted = |standing: &StandingRights| {
            let denials = denied::likely(standing, &shell("x"), &result);
            denials.into_iter().find_map(|denial| denial.grant)
        };
        assert_eq!(granted(&unmediated).as_deref(), Some("--net on"), "{output}");
        assert_eq!(granted(&auto()), None, "{output}");
    }
}

/// Tests that a failed `sendmsg` is not taken for a denied network: with a broker, passing a descriptor gives EPERM.
#[test]
fn a_message_that_could_not_be_sent_is_no_matter_of_the_network() {
    let lines = [
        "sendmsg: Operation not permitted",
        "foot: failed to pass a descriptor: sendmsg: Operation not permitted",
        "ssh: mm_send_fd: sendmsg(3): Operation not permitted",
        "wayland: sendmsg on the display socket: Operation not permitted",
        "send to control socket: Operation not permitted",
        "  File \"socket.py\", line 9, in send_fds\n    return sock.sendmsg(buffers)\nPermissionError: [Errno 1] \
         Operation not permitted",
    ];
    for tier in [Tier::Full, Tier::Floor] {
        let standing = auto().seen_in(tier);
        for line in lines {
            assert_eq!(first(&standing, &shell("x"), line), None, "{tier}: {line}");
        }
    }
    let unmediated = auto().seen_in(Tier::FloorUnmediated);
    assert!(first(&unmediated, &shell("x"), lines[5]).is_some(), "there nobody can make one");
}

#[test]
fn a_refused_connection_says_whose_loopback_it_was() {
    let said = |standing: &StandingRights, exit, output: &str| {
        denied::connection_hint(standing, &ended(exit, output))
    };
    let (full, floor) = (auto().seen_in(Tier::Full), auto().seen_in(Tier::FloorUnmediated));
    let refused = "curl: (7) Failed to connect to localhost port 5432: Connection refused";
    assert!(
        said(&full, CommandExit::Code(7), refused).is_some_and(|hint| hint.contains("none of the machine's"))
    );
    assert_eq!(said(&full, CommandExit::Code(0), refused), None, "the command did not mind");
    assert_eq!(said(&full, CommandExit::Code(7), "no such luck"), None);
    assert_eq!(said(&floor, CommandExit::Code(7), refused), None, "there it is the machine's, and denied");
    assert_eq!(said(&online(full), CommandExit::Code(7), refused), None, "the loopback is the machine's");
}
