//! Tests that the floor tier grants shared memory and terminals only if no program outside the container reaches them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::process::Output;

use common::place::{Place, errors, in_tier_as_each_user, text};
use ipc::confinement::Tier;

/// Commands that mount a new `/dev/shm` and `/dev/pts`, as a container engine does.
const FRESH: &str =
    "mount -t tmpfs shm /dev/shm && mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts";

const MEMORY: &str = "echo x > /dev/shm/new && cat /dev/shm/new && rm /dev/shm/new";
const TERMINAL: &str = "python3 -c 'import os; os.write(os.openpty()[1], b\"x\"); print(\"x\")'";

/// Runs a script in sandbox-exec in a container's namespaces. `prepare` is a script that runs in the namespaces before.
fn contained(place: &Place, namespaces: &[&str], prepare: &str, flags: &str, script: &str) -> Output {
    let inner = place.path("sandbox-exec");
    let run = format!(
        "{prepare} && {} --tier floor --write . {flags} -- /bin/bash -c \"$1\"; kill $(jobs -p) 2> /dev/null",
        inner.display()
    );
    let mut unshare = place.command("unshare");
    unshare.args(["--user", "--map-root-user", "--mount"]).args(namespaces);
    unshare.args(["/bin/bash", "-c", &run, "bash", script]).output().unwrap()
}

const PID: [&str; 3] = ["--pid", "--fork", "--mount-proc"];

fn as_each_user(test: impl Fn(&Place)) {
    in_tier_as_each_user(Tier::Floor, |place| {
        let probe = contained(place, &PID, FRESH, "", "echo runs");
        if text(&probe) == "runs\n" {
            test(place);
        } else {
            eprintln!("skipped: no container can be made here: {}", errors(&probe));
        }
    });
}

fn is_denied(output: &Output) -> bool {
    text(output).is_empty() && errors(output).contains("ermission denied")
}

#[test]
fn what_is_a_containers_own_is_granted() {
    as_each_user(|place| {
        for script in [MEMORY, TERMINAL] {
            let output = contained(place, &PID, FRESH, "", script);
            assert_eq!(text(&output), "x\n", "{script}: {}", errors(&output));
        }
        let locks = "python3 -c 'import multiprocessing as m; l = m.Lock(); l.acquire(); print(\"x\")'";
        let output = contained(place, &PID, FRESH, "", locks);
        assert_eq!(text(&output), "x\n", "{}", errors(&output));
    });
}

#[test]
fn what_is_older_than_the_container_is_not() {
    as_each_user(|place| {
        for script in [MEMORY, TERMINAL] {
            let output = contained(place, &PID, "true", "", script);
            assert!(is_denied(&output), "{script}: {} {}", text(&output), errors(&output));
        }
    });
}

/// Tests that `/dev/shm` and `/dev/pts` are not granted to a program that sees this machine's processes, and so is in
/// no container. Both directories are new enough to be granted.
#[test]
fn without_a_pid_namespace_nothing_is() {
    as_each_user(|place| {
        for script in [MEMORY, TERMINAL] {
            let output = contained(place, &[], FRESH, "", script);
            assert!(is_denied(&output), "{script}: {} {}", text(&output), errors(&output));
        }
    });
}

#[test]
fn what_another_program_of_the_container_has_there_is_not_given_away() {
    as_each_user(|place| {
        let segment = format!("{FRESH} && echo theirs > /dev/shm/segment");
        for attack in ["cat /dev/shm/segment", "echo mine > /dev/shm/segment", "echo x > /dev/shm/new"] {
            let output = contained(place, &PID, &segment, "", attack);
            assert!(is_denied(&output), "{attack}: {} {}", text(&output), errors(&output));
        }
        let user_at_it = format!(
            "{FRESH} && coproc python3 -c 'import os, signal; p = os.openpty(); print(os.ttyname(p[1]), flush=True); signal.pause()' \
             && read -r name <&\"${{COPROC[0]}}\" && [ $name = /dev/pts/0 ]"
        );
        let attack = "echo a fake card > /dev/pts/0";
        let output = contained(place, &PID, &user_at_it, "", attack);
        assert!(is_denied(&output), "{} {}", text(&output), errors(&output));
        let control = contained(place, &PID, &user_at_it, "--write /dev/pts", &format!("{attack} && echo x"));
        assert_eq!(text(&control), "x\n", "{}", errors(&control));
    });
}

#[test]
fn a_right_by_name_grants_what_is_there() {
    as_each_user(|place| {
        let segment = format!("{FRESH} && echo theirs > /dev/shm/segment");
        let output = contained(place, &PID, &segment, "--write /dev/shm", "cat /dev/shm/segment");
        assert_eq!(text(&output), "theirs\n", "{}", errors(&output));
    });
}

#[test]
fn what_is_hidden_in_it_keeps_all_of_it() {
    as_each_user(|place| {
        let output = contained(place, &PID, FRESH, "--hide /dev/shm/key", MEMORY);
        assert!(is_denied(&output), "{} {}", text(&output), errors(&output));
    });
}

/// Script of two programs in one container. When the second has started, the first creates a file in shared memory.
const TWO: &str = "mkfifo ready go made end && { $0 --tier floor --write . -- /bin/bash -c '\
      echo > ready; read < go; echo theirs > /dev/shm/segment; echo > made; read < end; cat /dev/shm/segment; \
      rm /dev/shm/segment' & } && read < ready && $0 --tier floor --write . -- /bin/bash -c 'echo > go; read < made; '\"$1\"; \
    echo > end; wait";

#[test]
fn one_program_has_it_at_a_time() {
    as_each_user(|place| {
        let two = |attack: &str, then: &str| {
            let inner = place.path("sandbox-exec");
            let script = format!("{FRESH} && {TWO}; {then}");
            let mut unshare = place.command("unshare");
            unshare.args(["--user", "--map-root-user", "--mount"]).args(PID);
            unshare.args(["/bin/bash", "-c", &script]).arg(inner).arg(attack).output().unwrap()
        };
        for attack in [
            "cat /dev/shm/segment",
            "echo mine > /dev/shm/segment",
            "rm /dev/shm/segment",
            "echo mine > /dev/shm/new; cat /dev/shm/new",
            TERMINAL,
        ] {
            let output = two(attack, "");
            assert_eq!(text(&output), "theirs\n", "{attack}: {}", errors(&output));
            assert!(errors(&output).contains("ermission denied"), "{attack}: {}", errors(&output));
            for fifo in ["ready", "go", "made", "end"] {
                std::fs::remove_file(place.path("project").join(fifo)).unwrap();
            }
        }
        // Once it is gone the next one has it.
        let next = format!("$0 --tier floor --write . -- /bin/bash -c \"{MEMORY}\"");
        let output = two("true", &next);
        assert_eq!(text(&output), "theirs\nx\n", "{}", errors(&output));
    });
}
