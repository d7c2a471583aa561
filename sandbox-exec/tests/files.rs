#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use common::place::{Place, as_each_user, errors, text};

const WRITES: &[(&str, &str)] = &[
    ("create", "echo x > ../home/new"),
    ("append", "echo x >> ../home/notes"),
    ("truncate by opening", ": > ../home/notes"),
    ("truncate by path", "truncate -s 0 ../home/notes"),
    ("remove", "rm -f ../home/notes"),
    ("make a directory", "mkdir ../home/new"),
    ("make a fifo", "mkfifo ../home/new"),
    ("make a symbolic link", "ln -s x ../home/new"),
    ("make a hard link there", "ln keep ../home/new"),
    ("rename away", "mv ../home/notes taken"),
    ("rename in", "mv keep ../home/new"),
    ("rename within", "mv ../home/notes ../home/renamed"),
    ("through a symbolic link", "ln -s ../home/notes link && echo x > link"),
    ("through a directory link", "ln -s ../home dir && echo x > dir/new"),
    ("through /proc/self/cwd", "cd ../home && echo x > /proc/self/cwd/new"),
    ("through /proc/self/root", "echo x > /proc/self/root$PWD/../home/new"),
    ("by reopening a descriptor", "exec 3< ../home/notes && echo x > /proc/self/fd/3"),
    ("through a hard link", "ln ../home/notes here && echo x > here"),
];

#[test]
fn nothing_outside_the_write_roots_changes() {
    as_each_user(|place| {
        for (name, script) in WRITES {
            let before = place.contents("home");
            let output = place.confined(&[], script);
            assert_eq!(place.contents("home"), before, "{name}");
            assert!(!output.status.success(), "{name}");
            let said = errors(&output);
            let errors = ["Permission denied", "Invalid cross-device link", "Read-only file system"];
            let denied = errors[..if place.full() { 3 } else { 2 }].iter().any(|error| said.contains(error));
            assert!(denied, "{name}: {said}");
        }
    });
}

#[test]
fn each_of_these_writes_works_unconfined() {
    for (name, script) in WRITES {
        as_each_user(|place| {
            let before = place.contents("home");
            let output = place.unconfined(script);
            assert!(output.status.success(), "{name}: {}", errors(&output));
            assert_ne!(place.contents("home"), before, "{name}");
        });
    }
}

#[test]
fn everything_inside_a_write_root_works() {
    let script = "set -e; mkdir d; echo x > d/f; mv d/f g; ln g h; ln -s g s; rm h; mkfifo p; truncate -s 9 g; \
                  cp /bin/true t; ./t; chmod 700 t; touch t; : > keep; rmdir d; cat /etc/passwd > /dev/null";
    as_each_user(|place| {
        let output = place.confined(&[], script);
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(place.contents("project/keep")[0].1, "");
    });
}

fn secret(place: &Place) -> String {
    place.path("home/secret").display().to_string()
}

const READS: &[(&str, &str)] = &[
    ("directly", "cat ../home/secret/key"),
    ("by a symbolic link", "ln -s ../home/secret/key link; cat link"),
    ("by a directory link", "ln -s ../home/secret dir; cat dir/key"),
    ("by a hard link", "ln ../home/secret/key hard; cat hard"),
    ("by /proc/self/root", "cat /proc/self/root$PWD/../home/secret/key"),
    ("by the working directory", "cd ../home/secret && cat key"),
    ("by /proc/self/cwd", "cd ../home/secret; cat /proc/self/cwd/key"),
    ("by copying", "cp ../home/secret/key here; cat here"),
    ("by an archiver", "tar cf - -C ../home secret | tr -d '\\0'"),
    ("by moving it here", "mv ../home/secret/key here; cat here"),
    ("by moving its directory here", "mv ../home/secret here; cat here/key"),
];

#[test]
fn hidden_contents_stay_hidden_by_every_way() {
    as_each_user(|place| {
        let hide = secret(place);
        for (name, script) in READS {
            let output = place.confined(&["--hide", &hide], script);
            assert!(!text(&output).contains("CANARY"), "{name}");
        }
        let output = place.confined(&["--hide", &hide], "ls ../home/secret; cat ../home/notes");
        let names = if place.full() { "notes" } else { "key\nnotes" };
        assert_eq!(text(&output), names, "names list in the floor tier, and what lies beside is readable");
        assert_eq!(place.contents("home/secret/key")[0].1, "CANARY");
    });
}

#[test]
fn each_of_these_reads_works_unconfined() {
    for (name, script) in READS {
        as_each_user(|place| assert!(text(&place.unconfined(script)).contains("CANARY"), "{name}"));
    }
}

#[test]
fn a_hidden_file_in_the_project_cannot_be_renamed_into_view() {
    as_each_user(|place| {
        place.make("project/sub/.env", "CANARY");
        place.make("project/lib/code", "code");
        let hide = place.path("project/sub/.env").display().to_string();
        for script in
            ["mv sub new; cat new/.env", "mv sub/.env sub/env; cat sub/env", "mv sub/.env lib/; cat lib/.env"]
        {
            let output = place.confined(&["--hide", &hide], script);
            assert!(!text(&output).contains("CANARY"), "{script}");
            drop(place.unconfined("mv new sub; mv sub/env sub/.env; mv lib/.env sub/"));
        }
        assert_eq!(text(&place.confined(&["--hide", &hide], "cat lib/code")), "code");
        assert_eq!(text(&place.unconfined("mv sub new; cat new/.env")), "CANARY");
    });
}

#[test]
fn what_does_not_exist_yet_is_hidden_when_it_comes() {
    as_each_user(|place| {
        let hide = place.path("home/later/token").display().to_string();
        let fifo = "mkfifo ready; cat ready > /dev/null; cat ../home/later/token";
        let mut running = place.sandbox(&["--hide", &hide]);
        running.args(["/bin/bash", "-c", fifo]).stdout(std::process::Stdio::piped());
        // The attacker waits at the fifo; a process outside makes the file, then opens the fifo.
        let attacker = running.spawn().unwrap();
        let outside = "until [ -p ready ]; do :; done; mkdir ../home/later; echo CANARY > ../home/later/token; \
                       cat ../home/later/token; : > ready";
        assert_eq!(text(&place.unconfined(outside)), "CANARY\n");
        assert_eq!(text(&attacker.wait_with_output().unwrap()), "");
    });
}

#[test]
fn what_is_hidden_stays_so_when_it_is_replaced() {
    as_each_user(|place| {
        let hide = place.path("home/secret/key").display().to_string();
        let fifo = "mkfifo ready; cat ready > /dev/null; cat ../home/secret/key";
        let mut running = place.sandbox(&["--hide", &hide]);
        running.args(["/bin/bash", "-c", fifo]).stdout(std::process::Stdio::piped());
        let attacker = running.spawn().unwrap();
        // As passwd(1) replaces /etc/shadow: the kernel then removes a mask that was mounted on the old one.
        let outside = "until [ -p ready ]; do :; done; cd ../home/secret; echo CANARY > new; mv -f new key; cat key; \
                       : > ../../project/ready";
        assert_eq!(text(&place.unconfined(outside)), "CANARY\n");
        assert_eq!(text(&attacker.wait_with_output().unwrap()), "");
    });
}

#[test]
fn terminals_and_disks_cannot_be_opened_and_the_harmless_devices_can() {
    as_each_user(|place| {
        let script = "cat /dev/null; head -c 1 /dev/zero > /dev/null; head -c 1 /dev/urandom | wc -c; echo > /dev/full";
        let output = place.confined(&[], script);
        assert_eq!(text(&output), "1\n");
        assert!(errors(&output).contains("No space left on device"));
        let denied = "Permission denied";
        for (device, full) in [
            ("/dev/tty", "No such device or address"),
            ("/dev/ptmx", ""),
            ("/dev/pts/ptmx", ""),
            ("/dev/kmsg", "No such file or directory"),
        ] {
            let output = place.confined(&[], &format!(": < {device}"));
            let expected = if place.full() { full } else { denied };
            assert!(errors(&output).contains(expected), "{device}: {}", errors(&output));
            assert_eq!(output.status.success(), expected.is_empty(), "{device}");
        }
    });
}

#[test]
fn proc_and_sys_are_never_writable() {
    as_each_user(|place| {
        let output = place.confined(&[], "echo x > /proc/self/comm");
        let denied = if place.full() { "Read-only file system" } else { "Permission denied" };
        assert!(errors(&output).contains(denied), "{}", errors(&output));
        assert!(place.unconfined("echo x > /proc/self/comm").status.success());
    });
}
