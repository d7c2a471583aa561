use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;

use ipc::confinement::BrokerReport;
use ipc::refusal::Target;
use ipc::rights::{Hosts, Network};
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::common::order::{encoded, order, ordered_with, pass};
use crate::common::place::{Place, errors, text};
use crate::gateway::{echo, in_both, in_floor, in_full, pair};

const CLIENT: &str = "import socket as s
c = s.create_connection(('a.example', 443))
c.sendall(b'hi')
c.shutdown(s.SHUT_WR)
print(c.recv(10))";

fn started(place: &Place, tier: &str, flags: &[&str], descriptor: Option<OwnedFd>) -> (i32, String) {
    let mut command = place.command(place.path("sandbox-exec"));
    command.args(["--tier", tier, "--net", "a.example"]).args(flags).args(["--", "true"]);
    if let Some(descriptor) = descriptor {
        pass(&mut command, descriptor, 22);
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap(), errors(&output))
}

#[test]
fn a_list_of_hosts_needs_a_gateway() {
    let flags = ["--gateway-fd", "22"];
    in_both(|place| {
        for tier in if place.full() { ["full", "best"] } else { ["floor"; 2] } {
            let (_gateway, theirs) = pair();
            assert_eq!(started(place, tier, &flags, Some(theirs)), (0, String::new()));
            let message = "sandbox-exec: rights: a network of some hosts needs a gateway: --gateway-fd, a socket for messages\n";
            assert_eq!(started(place, tier, &[], None), (101, message.to_owned()));
            let stream = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
            let others = [stream.unwrap().0, std::fs::File::open("/dev/null").unwrap().into()];
            for other in others {
                assert_eq!(started(place, tier, &flags, Some(other)), (101, message.to_owned()));
            }
        }
    });
}

/// Script that counts and prints the threads of init, the processes, and the network interfaces in the sandbox.
const COUNTED: &str = "import os
threads = len(os.listdir('/proc/1/task'))
processes = sum(name.isdecimal() for name in os.listdir('/proc'))
print(threads, processes, sum(':' in line for line in open('/proc/net/dev')))";

#[test]
fn a_program_without_a_list_has_no_thread_process_or_interface_for_one() {
    in_full(|place| {
        let (_gateway, theirs) = pair();
        let count = |net: &str, descriptor: Option<OwnedFd>| {
            let flags: &[&str] = if descriptor.is_some() { &["--gateway-fd", "22"] } else { &[] };
            let mut command = place.sandbox(&[&["--net", net], flags].concat());
            command.args(["/usr/bin/python3", "-c", COUNTED]);
            if let Some(descriptor) = descriptor {
                pass(&mut command, descriptor, 22);
            }
            let output = command.output().unwrap();
            let printed = text(&output);
            let counts: Vec<i32> = printed.split_whitespace().map(|count| count.parse().unwrap()).collect();
            <[i32; 3]>::try_from(counts).unwrap_or_else(|_| panic!("{}", errors(&output)))
        };
        let [threads, processes, interfaces] = count("off", None);
        assert_eq!(count("a.example", Some(theirs)), [threads + 1, processes, interfaces + 1]);
    });
}

/// Tests the floor tier without a seccomp listener: nobody could accept connections to hosts, so a list is refused.
#[test]
fn the_floor_without_a_listener_of_seccomp_has_no_list() {
    let asked = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let has_flag = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(asked), asked);
    let rule = SeccompRule::new(vec![has_flag.unwrap()]).unwrap();
    let denied = SeccompAction::Errno(libc::EINVAL.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(libc::SYS_seccomp, vec![rule])].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).unwrap();
    let profile: BpfProgram = filter.try_into().unwrap();
    in_floor(|place| {
        let (_gateway, theirs) = pair();
        let mut command = place.sandbox(&["--allow-degraded", "--net", "a.example", "--gateway-fd", "22"]);
        pass(&mut command, theirs, 22);
        let profile = profile.clone();
        let deny = move || seccompiler::apply_filter(&profile).map_err(std::io::Error::other);
        // SAFETY: attaches a filter that was made before.
        unsafe { command.pre_exec(deny) };
        let output = command.arg("true").output().unwrap();
        let why = "sandbox-exec: platform: without a listener of seccomp the floor tier cannot limit the network to some hosts\n";
        assert_eq!((output.status.code(), errors(&output).as_str()), (Some(105), why));
    });
}

#[test]
fn an_order_brings_the_list() {
    in_both(|place| {
        let hosts = Hosts::new(["a.example".parse().unwrap()]).unwrap();
        let mut confinement = order(place);
        confinement.rights.net = Network::Hosts(hosts);
        let rights = encoded(&confinement);
        let (gateway, theirs) = pair();
        let echo = echo(gateway);
        let program = ["/usr/bin/python3", "-c", CLIENT];
        let flags = ["--gateway-fd", "6"];
        let (output, reports) =
            ordered_with(place, &rights, &flags, &program, |command| pass(command, theirs, 6));
        assert_eq!(text(&output), "b'hi'\n", "{}{reports:?}", errors(&output));
        assert_eq!(echo.join().unwrap().len(), 1);
    });
}

#[test]
fn a_connection_beyond_the_list_arrives_where_somebody_may_be_asked() {
    in_both(|place| {
        let hosts = Hosts::new(["b.example".parse().unwrap()]).unwrap();
        let mut confinement = order(place);
        confinement.rights.net = Network::Hosts(hosts);
        for asks in [true, false] {
            confinement.asks_hosts = asks;
            let (gateway, theirs) = pair();
            let echo = echo(gateway);
            let (output, reports) = ordered_with(
                place,
                &encoded(&confinement),
                &["--gateway-fd", "6"],
                &["/usr/bin/python3", "-c", CLIENT],
                |command| pass(command, theirs, 6),
            );
            assert_eq!(text(&output) == "b'hi'\n", asks, "{}", errors(&output));
            assert_eq!(echo.join().unwrap().len(), usize::from(asks));
            let refused = reports.into_iter().filter_map(|report| match report {
                BrokerReport::Refused(refusal) => Some((refusal.object, refusal.errno)),
                _ => None,
            });
            let host = Target::Host { name: "a.example".parse().unwrap(), port: 443 };
            let errno = if asks { libc::ECONNRESET } else { libc::ECONNREFUSED };
            assert_eq!(refused.collect::<Vec<_>>(), [(host, errno)]);
        }
    });
}

#[test]
fn without_the_full_tier_the_best_is_the_floor() {
    in_full(|place| {
        let (gateway, theirs) = pair();
        let echo = echo(gateway);
        let mut command = place.command("unshare");
        let script = "echo 1 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
        command.args(["--user", "--map-root-user", "/bin/bash", "-c", script, "bash"]);
        command.arg(place.path("sandbox-exec"));
        command.args(["--net", "a.example", "--gateway-fd", "22", "--", "/usr/bin/python3", "-c", CLIENT]);
        pass(&mut command, theirs, 22);
        let output = command.output().unwrap();
        assert_eq!(text(&output), "b'hi'\n", "{}", errors(&output));
        drop(command);
        assert_eq!(echo.join().unwrap().len(), 1);
    });
}

#[test]
fn the_files_for_names_are_readable_whatever_is_hidden_beside_them() {
    in_full(|place| {
        for hidden in ["/etc/passwd", "/etc/hosts.deny", "/etc/nsswitch.conf"] {
            let (_gateway, theirs) = pair();
            let mut command = place.sandbox(&["--net", "a.example", "--gateway-fd", "22", "--hide", hidden]);
            command.args(["cat", "/etc/resolv.conf", "/etc/hosts"]);
            pass(&mut command, theirs, 22);
            let output = command.output().unwrap();
            let expected = "nameserver 198.18.0.2\n127.0.0.1 localhost\n::1 localhost\n";
            assert!(text(&output).starts_with(expected), "{hidden}: {}{}", text(&output), errors(&output));
        }
        let (_gateway, theirs) = pair();
        let mut command =
            place.sandbox(&["--net", "a.example", "--gateway-fd", "22", "--hide", "/etc/hosts"]);
        command.args(["cat", "/etc/hosts"]);
        pass(&mut command, theirs, 22);
        assert_eq!(text(&command.output().unwrap()), "");
    });
}
