//! Tests of starts on machines with fewer features: an older Landlock, or no namespaces.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use ipc::confinement::{BrokerReport, Tier, TierChoice};
use sandbox_exec::platform;

use crate::common::order::{encoded, order, ordered};
use crate::common::place::{Place, as_each_user, errors, in_tier_as_each_user, text};
use crate::run::in_full;

#[test]
fn every_older_landlock_is_enough() {
    in_full(|place| {
        for abi in 1..=9 {
            let output = place.confined(
                &["--landlock-abi", &abi.to_string()],
                "echo x > new && cat new; echo x > /etc/new",
            );
            assert_eq!(text(&output), "x\n", "{abi}: {}", errors(&output));
            assert!(errors(&output).contains("Read-only file system"), "{abi}: {}", errors(&output));
        }
        let output = place.confined(&["--landlock-abi", "0"], "true");
        assert_eq!(output.status.code(), Some(105), "{}", errors(&output));
    });
}

#[test]
fn every_older_landlock_is_enough_for_the_floor() {
    in_tier_as_each_user(Tier::Floor, |place| {
        for abi in 1..=9 {
            let output = place.confined(
                &["--landlock-abi", &abi.to_string()],
                "echo x > new && cat new; chmod 600 new; : > ../home/notes",
            );
            assert_eq!(text(&output), "x\n", "{abi}: {}", errors(&output));
            assert!(errors(&output).contains("Permission denied"), "{abi}: {}", errors(&output));
        }
        let output = place.confined(&["--landlock-abi", "0"], "true");
        assert_eq!(output.status.code(), Some(105), "{}", errors(&output));
    });
}

/// Script that sends signals to the processes `$VICTIM` and `$PPID` in the usual forms, and then to its own child.
const SIGNALS: &str = "for to in $VICTIM $PPID -$VICTIM; do
        for how in -0 -USR1 -STOP -KILL; do kill $how -- $to && echo reached $to; done
    done
    python3 -c 'import os, signal
try: signal.pidfd_send_signal(os.pidfd_open(int(os.environ[\"VICTIM\"])), 9); print(\"reached\")
except PermissionError: pass'
    kill -KILL -1
    sleep 1000 & kill -TERM $!; wait $!; echo $?
    trap 'echo handled' USR1; kill -USR1 $$
    setsid sh -c 'kill -KILL 0'; echo $?";

#[test]
fn below_the_first_scopes_the_broker_bounds_signals() {
    as_each_user(|place| {
        for abi in 1..platform::SCOPES {
            let mut victim = place.command("sleep").arg("1000").process_group(0).spawn().unwrap();
            let flags = ["--landlock-abi", &abi.to_string(), "--env", &format!("VICTIM={}", victim.id())];
            let output = place.confined(&flags, SIGNALS);
            assert_eq!(text(&output), "143\nhandled\n137\n", "{abi}: {}", errors(&output));
            assert!(victim.try_wait().unwrap().is_none(), "{abi}");
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
    });
}

/// Script that connects and sends to the abstract name `$VICTIM`, and then to a name of its own.
const ABSTRACT: &str = "import os, socket
name = '\\0' + os.environ['VICTIM']
for kind, reach in (socket.SOCK_STREAM, 'connect'), (socket.SOCK_DGRAM, 'sendto'):
    s = socket.socket(socket.AF_UNIX, kind)
    try:
        s.connect(name + reach) if reach == 'connect' else s.sendto(b'x', name + reach)
        print('reached')
    except OSError as error:
        print(error.errno)
l = socket.socket(socket.AF_UNIX); l.bind(name + 'own'); l.listen()
c = socket.socket(socket.AF_UNIX); c.connect(name + 'own')
print(l.accept()[0].send(b'xx'))";

#[test]
fn below_the_first_scopes_abstract_sockets_outside_are_not_reached() {
    in_tier_as_each_user(Tier::Floor, |place| {
        let name = place.path("").display().to_string();
        let address = |kind: &str| SocketAddr::from_abstract_name(format!("{name}{kind}")).unwrap();
        let stream = UnixListener::bind_addr(&address("connect")).unwrap();
        let datagrams = UnixDatagram::bind_addr(&address("sendto")).unwrap();
        stream.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let reach = |command: &mut Command| {
            let output = command.args(["python3", "-c", ABSTRACT]).output().unwrap();
            (text(&output), errors(&output), stream.accept().is_ok(), datagrams.recv(&mut [0]).is_ok())
        };
        let unconfined = reach(place.command("/usr/bin/env").env("VICTIM", &name));
        assert_eq!(
            (unconfined.0.as_str(), unconfined.2, unconfined.3),
            ("reached\nreached\n2\n", true, true)
        );
        for abi in 1..platform::SCOPES {
            for net in ["off", "on"] {
                let flags =
                    ["--net", net, "--landlock-abi", &abi.to_string(), "--env", &format!("VICTIM={name}")];
                let confined = reach(&mut place.sandbox(&flags));
                assert_eq!(confined, ("111\n111\n2\n".into(), String::new(), false, false), "{abi}, {net}");
            }
        }
    });
}

fn without_namespaces(place: &Place, flags: &str) -> Output {
    let sandbox = place.path("sandbox-exec").display().to_string();
    let script = format!(
        "exec unshare -Ur /bin/bash -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec {sandbox} {flags} -- /bin/bash -c \"echo \\$\\$\"'"
    );
    place.unconfined(&script)
}

#[test]
fn where_the_machine_refuses_the_best_tier_is_the_floor() {
    in_full(|place| {
        let best = without_namespaces(place, "--tier best");
        assert!(best.status.success(), "{}", errors(&best));
        assert_ne!(text(&best), "2\n", "a pid of its own namespace");
        let full = without_namespaces(place, "--tier full");
        assert_eq!(full.status.code(), Some(106), "{}", errors(&full));
        assert!(errors(&full).contains("namespaces: cannot make namespaces (ENOSPC)"), "{}", errors(&full));
    });
}

/// Tests that the floor tier has all capabilities after the full tier has failed late. A machine with a masked part of
/// `/proc` denies a new `/proc` only after init was cloned.
#[test]
fn what_init_is_refused_leaves_the_floor_all_capabilities() {
    in_full(|place| {
        // A plain user has no capabilities that could be given up too early.
        if place.user().is_some() {
            return;
        }
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: another user's project (needs root)");
            return;
        }
        place.make("anothers/project/file", "mine\n");
        let anothers = place.path("anothers");
        chown(&anothers, Some(12345), Some(12345)).unwrap();
        fs::set_permissions(&anothers, fs::Permissions::from_mode(0o700)).unwrap();
        let sandbox = |tier: &str| {
            let sandbox = place.path("sandbox-exec").display().to_string();
            let script = format!(
                "mount --bind /dev/null /proc/version && cd {}/project && exec {sandbox} --tier {tier} -- /bin/echo started",
                anothers.display()
            );
            place.command("unshare").args(["-m", "/bin/bash", "-c", &script]).output().unwrap()
        };
        let full = sandbox("full");
        assert!(errors(&full).contains("cannot mount /proc (EPERM)"), "{}", errors(&full));
        for tier in ["floor", "best"] {
            let output = sandbox(tier);
            assert_eq!(text(&output), "started\n", "{tier}: {}", errors(&output));
        }
    });
}

#[test]
fn the_report_says_why_it_is_the_floor() {
    in_full(|place| {
        let mut confinement = order(place);
        confinement.tier = TierChoice::Best;
        let (_, reports) = ordered(place, &encoded(&confinement), &["true"]);
        let Some(BrokerReport::Started { ruleset, .. }) = reports.first() else { panic!("{reports:?}") };
        assert_eq!((ruleset.tier, ruleset.missing.as_slice()), (Tier::Full, &[][..]));
        let acts: Vec<_> = ruleset.attempts.iter().map(|attempt| attempt.act.as_str()).collect();
        for act in
            ["write to the read-only tree", "write outside the writable directories", "reach the network"]
        {
            assert!(acts.contains(&act), "{acts:?}");
        }
        assert!(ruleset.attempts.iter().all(|attempt| attempt.denied));
    });
}
