//! Tests of processes, signals, descriptors and the environment of a confined program.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use common::place::{Place, as_each_user, errors, text};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn outcomes(output: &str) -> Vec<(String, bool, i64)> {
    let outcome = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let act = value["act"].as_str().unwrap().to_owned();
        (act, value["denied"].as_bool().unwrap(), value["errno"].as_i64().unwrap())
    };
    output.lines().map(outcome).collect()
}

fn self_test(place: &Place, flags: &[&str]) -> Vec<(String, bool, i64)> {
    let output = place.sandbox(flags).arg(place.path("sandbox-exec")).arg("--self-test").output().unwrap();
    outcomes(&text(&output))
}

#[test]
fn every_act_of_the_self_test_is_denied() {
    as_each_user(|place| {
        let all = self_test(place, &[]);
        assert_eq!(all.len(), 19);
        for (act, denied, errno) in all {
            let expected = match act.as_str() {
                "use io_uring" => Errno::ENOSYS,
                "write the home" | "write /proc/self/comm" if place.full() => Errno::EROFS,
                "open /dev/tty" if place.full() => Errno::ENXIO,
                "reach the network" | "reach the network over IPv6" => Errno::ENETUNREACH,
                "open the kernel's log" if place.full() => Errno::ENOENT,
                _ if act.starts_with("write ") || act.starts_with("open /dev") => Errno::EACCES,
                "open the kernel's log" | "read the parent's environment" => Errno::EACCES,
                _ => Errno::EPERM,
            };
            assert_eq!((denied, errno), (true, expected as i64), "{act}");
        }
    });
}

#[test]
fn the_self_test_succeeds_unconfined() {
    as_each_user(|place| {
        let output = place.command(place.path("sandbox-exec")).arg("--self-test").output().unwrap();
        let all = outcomes(&text(&output));
        for act in ["write the home", "write /proc/self/comm", "reach the network"] {
            assert!(all.iter().any(|(found, _, errno)| found == act && *errno == 0), "{act}: {all:?}");
        }
    });
}

#[test]
fn the_self_test_reaches_an_abstract_socket_unconfined_alone() {
    let name = format!("self-test-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let arguments = ["--self-test", "--self-test-abstract", &name];
    let reached = |output: &str| {
        let acts = outcomes(output).into_iter();
        acts.filter(|(act, ..)| act == "reach an abstract unix socket").map(|(_, denied, _)| denied).collect()
    };
    as_each_user(|place| {
        let program = place.path("sandbox-exec");
        let free = text(&place.command(&program).args(arguments).output().unwrap());
        let confined = text(&place.sandbox(&[]).arg(&program).args(arguments).output().unwrap());
        let found: [Vec<bool>; 2] = [reached(&free), reached(&confined)];
        assert_eq!(found, [vec![false], vec![true]]);
    });
}

#[test]
fn what_is_opened_does_not_take_the_place_of_a_closed_standard_stream() {
    as_each_user(|place| {
        let sandbox = place.sandbox(&[]);
        let mut closed = place.command("/bin/sh");
        closed
            .args(["-c", "exec \"$0\" \"$@\" <&- 2>&-"])
            .arg(sandbox.get_program())
            .args(sandbox.get_args());
        let output = closed.args(["/bin/readlink", "/proc/self/fd/0", "/proc/self/fd/2"]).output().unwrap();
        assert_eq!(text(&output), "/dev/null\n/dev/null\n");
    });
}

/// Tests that the program may run on the same processors as the process that starts sandbox-exec, although at the start
/// sandbox-exec moves its child to another processor.
#[test]
fn a_program_may_run_where_whoever_started_it_may() {
    const ASK: [&str; 3] = ["/bin/grep", "Cpus_allowed:", "/proc/self/status"];
    as_each_user(|place| {
        for bounds in [&[][..], &["/usr/bin/taskset", "-c", "0"]] {
            let sandbox = place.sandbox(&[]);
            let within: Vec<_> = bounds.iter().map(std::ffi::OsStr::new).collect();
            let confined = [&[sandbox.get_program()][..], &sandbox.get_args().collect::<Vec<_>>()].concat();
            let asked = |program: &[&std::ffi::OsStr]| {
                let line = [&within[..], program, &ASK.map(std::ffi::OsStr::new)].concat();
                text(&place.command(line[0]).args(&line[1..]).output().unwrap())
            };
            assert_eq!(asked(&confined), asked(&[]));
        }
    });
}

#[test]
fn the_network_opens_a_way_out_and_nothing_else() {
    as_each_user(|place| {
        let allowed: Vec<_> = self_test(place, &["--net", "on"])
            .into_iter()
            .filter_map(|(act, denied, _)| (!denied && !act.ends_with("IPv6")).then_some(act))
            .collect();
        assert_eq!(allowed, ["reach the network"]);
    });
}

#[test]
fn inherited_descriptors_do_not_get_through() {
    as_each_user(|place| {
        let sandbox = place.path("sandbox-exec").display().to_string();
        let script = format!("exec 9< keep; exec {sandbox} -- /bin/bash -c 'cat <&9'");
        let output = place.unconfined(&script);
        assert!(errors(&output).contains("9: Bad file descriptor"), "{}", errors(&output));
        assert_eq!(text(&place.unconfined("exec 9< keep; exec /bin/bash -c 'cat <&9'")), "mine");
    });
}

#[test]
fn the_environment_holds_no_credential() {
    as_each_user(|place| {
        let script = "env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/$PPID/environ";
        let run = |flags: &[&str]| {
            let mut command = place.sandbox(flags);
            command
                .args(["/bin/bash", "-c", script])
                .env("ANTHROPIC_API_KEY", "CANARY")
                .env("SSH_AUTH_SOCK", "/s");
            text(&command.output().unwrap())
        };
        let plain = run(&[]);
        assert!(!plain.contains("CANARY") && !plain.contains("SSH_AUTH_SOCK"), "{plain}");
        assert!(plain.contains("PATH=") && plain.contains("HOME="));
        assert!(run(&["--env", "ANTHROPIC_API_KEY"]).contains("ANTHROPIC_API_KEY=CANARY"));
        assert!(run(&["--env", "MINE=yes"]).contains("MINE=yes"));
    });
}

#[test]
fn no_capability_is_left_and_none_can_come() {
    as_each_user(|place| {
        let output =
            place.confined(&[], "grep -E '^(Cap(Prm|Eff|Amb|Inh)|NoNewPrivs|Seccomp):' /proc/self/status");
        let none = "0000000000000000";
        let expected = format!(
            "CapInh:\t{none}\nCapPrm:\t{none}\nCapEff:\t{none}\nCapAmb:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n"
        );
        assert_eq!(text(&output), expected);
    });
}

fn assert_gone(place: &Place, named: &str) {
    let mut words = named.split_whitespace();
    let namespace = words.next().unwrap();
    let pids: Vec<_> = words.map(|pid| Pid::from_raw(pid.parse().unwrap())).collect();
    assert!(namespace.starts_with("pid:[") && pids.len() == 2, "{named}");
    if place.full() {
        let own = |entry: std::fs::DirEntry| {
            let link = std::fs::read_link(entry.path().join("ns/pid"));
            link.is_ok_and(|link| link.as_os_str() == namespace)
        };
        assert!(!std::fs::read_dir("/proc").unwrap().any(|entry| own(entry.unwrap())), "{namespace} lives");
    } else {
        for pid in pids {
            assert_eq!(kill(pid, None), Err(Errno::ESRCH), "{pid} lives");
        }
    }
}

const NAMESPACE: &str = "echo -n $(readlink /proc/self/ns/pid)' '";

/// Script that starts one daemon in a new session and one that ignores signals, and prints their pids.
const DAEMONS: &str = "(setsid bash -c 'trap \"\" TERM HUP INT; echo $$; exec sleep 1000 > /dev/null' &) ; \
                       setsid bash -c 'echo $$; exec sleep 1000 > /dev/null' & ";

#[test]
fn a_daemon_does_not_outlive_the_program() {
    as_each_user(|place| {
        let script = format!("{DAEMONS} until [ $(wc -l < pids) -eq 2 ]; do :; done; cat pids");
        let script = format!("{NAMESPACE}; exec 8>&1; exec > pids; {script} >&8");
        let output = place.confined(&[], &script);
        assert_gone(place, &text(&output));
    });
}

#[test]
fn a_process_that_keeps_forking_away_is_caught() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        eprintln!("skipped: needs /usr/bin/python3");
        return;
    }
    let script = "import os\nif os.fork() == 0:\n  while True:\n    if os.fork(): os._exit(0)\n";
    as_each_user(|place| {
        let mut command = place.sandbox(&[]);
        let mut child =
            command.args(["/usr/bin/python3", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        // Every process of the chain holds the pipe: its end is the chain's end.
        let mut rest = vec![];
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    });
}

fn start(
    place: &Place,
    flags: &[&str],
    script: &str,
) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut command = place.sandbox(flags);
    let mut child = command.args(["/bin/bash", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    (child, output, line)
}

#[test]
fn termination_ends_everything_and_says_by_which_signal() {
    as_each_user(|place| {
        for signal in [Signal::SIGTERM, Signal::SIGHUP] {
            let (mut child, mut output, line) = start(
                place,
                &[],
                &format!("{NAMESPACE}; setsid sleep 1000 & echo $! $$; trap '' TERM HUP; wait"),
            );
            kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            output.read_to_end(&mut vec![]).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(128 + signal as i32));
            assert_gone(place, &line);
        }
    });
}

#[test]
fn an_interrupt_goes_to_the_program() {
    as_each_user(|place| {
        let (mut child, ..) = start(place, &[], "trap 'exit 9' INT; echo ready; while :; do sleep 1; done");
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(9));
    });
}

#[test]
fn the_parents_death_leaves_nothing() {
    as_each_user(|place| {
        let sandbox = place.path("sandbox-exec").display().to_string();
        let tier = if place.full() { "full" } else { "floor" };
        let inner = "setsid sleep 1000 & echo $! $$; wait";
        let script = format!("{sandbox} --tier {tier} --die-with-parent -- /bin/bash -c '{inner}' & wait");
        let mut parent =
            place.command("/bin/bash").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        parent.kill().unwrap();
        assert_eq!(parent.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));
        output.read_to_end(&mut vec![]).unwrap();
        // Both held the pipe to their end; the broker reaps them before it ends itself.
        for pid in line.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())) {
            while !place.full() && kill(pid, None).is_ok() {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn the_brokers_death_ends_the_program() {
    as_each_user(|place| {
        let (mut child, mut output, _) = start(place, &[], "echo ready; exec sleep 1000");
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_end(&mut vec![]).unwrap();
    });
}

#[test]
fn the_broker_keeps_no_pipe_of_the_program_open() {
    as_each_user(|place| {
        let mut command = place.sandbox(&[]);
        command.args(["/bin/bash", "-c", "exec 1>&-; read line; exit 5"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Ends although the program still runs: it waits for a line.
        child.stdout.take().unwrap().read_to_end(&mut vec![]).unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(5));
    });
}

#[test]
fn set_id_bits_cannot_be_set() {
    as_each_user(|place| {
        for script in ["chmod u+s keep", "chmod g+s keep", "chmod 6755 keep", "chmod u+s .", "chmod 6755 ."] {
            let output = place.confined(&[], script);
            assert!(errors(&output).contains("Operation not permitted"), "{script}: {}", errors(&output));
            assert!(place.unconfined(script).status.success(), "{script}");
            place.unconfined("chmod ug-s keep .");
        }
        assert!(place.confined(&[], "chmod 755 keep").status.success());
    });
}

#[test]
fn a_directory_may_give_its_files_its_group() {
    as_each_user(|place| {
        for script in [
            "chmod g+s .",
            "mkdir -m 2775 n",
            "mkdir m; chmod 2755 m; mkdir m/o",
            "install -d -m 2770 i",
            "touch m/f && cp -a m copied",
            "tar cf packed.tar m && mkdir unpacked && tar xpf packed.tar -C unpacked",
            "git init -q --shared=group shared && cd shared && touch x && git add x && \
             git -c user.name=a -c user.email=a@example.org commit -qm x && git checkout -qb a/b",
        ] {
            let output = place.confined(&[], script);
            assert!(output.status.success(), "{script}: {}", errors(&output));
        }
        let modes = place.confined(&[], "stat -c %a . m m/o i copied unpacked/m shared/.git/refs/heads/a");
        assert!(text(&modes).lines().all(|mode| mode.starts_with('2')), "{}", text(&modes));
        let outside = place.confined(&[], "chmod g+s ../home");
        assert!(!outside.status.success(), "{}", errors(&outside));
    });
}

#[test]
fn a_program_may_trace_its_own_children() {
    if !std::path::Path::new("/usr/bin/strace").exists() {
        eprintln!("skipped: needs strace");
        return;
    }
    as_each_user(|place| {
        let output = place.confined(&[], "strace -f -o /dev/null /bin/true && echo traced");
        assert_eq!(text(&output), "traced\n", "{}", errors(&output));
    });
}

#[test]
fn help_goes_to_standard_output() {
    as_each_user(|place| {
        let output = place.command(place.path("sandbox-exec")).arg("--help").output().unwrap();
        assert!(output.status.success());
        assert!(text(&output).starts_with("usage: sandbox-exec"));
    });
}
