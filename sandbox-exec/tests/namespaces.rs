//! The full tier: what its namespaces and its tree hold, and what must work in them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Output, Stdio};

use common::order::{order, ordered};
use common::place::{Place, errors, in_tier_as_each_user, text};
use ipc::confinement::{BrokerReport, Confinement, Tier, TierChoice};
use ipc::path::WirePath;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn in_full(test: impl Fn(&Place)) {
    in_tier_as_each_user(Tier::Full, test);
}

/// Runs a script as the supervisor runs a worker: with a private temp directory, and the rights changed.
fn run(place: &Place, change: impl Fn(&mut Confinement), script: &str) -> (Output, Vec<BrokerReport>) {
    let mut confinement = order(place);
    place.make("temp/.keep", "");
    confinement.temp = Some(place.path("temp").into());
    confinement.rights.write.push(place.path("temp").into());
    change(&mut confinement);
    ordered(place, &ipc::codec::encode(&confinement).unwrap(), &["/bin/bash", "-c", script])
}

fn said(place: &Place, change: impl Fn(&mut Confinement), script: &str) -> String {
    let (output, reports) = run(place, change, script);
    assert!(output.status.success(), "{script}: {}{}{reports:?}", text(&output), errors(&output));
    text(&output)
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

#[test]
fn the_hosts_mounts_stay_as_they_are() {
    in_full(|place| {
        let before = mounts();
        let script = "touch a; cat /proc/self/mountinfo";
        let inside = said(place, |_| {}, script);
        assert_eq!(mounts(), before);
        assert!(inside.contains(" /tmp ") && !before.contains(" /tmp "), "{inside}");
        assert!(place.path("project/a").exists());
    });
}

#[test]
fn no_mount_can_be_taken_off_or_made_writable() {
    in_full(|place| {
        for script in [
            "mount -o remount,rw /",
            "mount -o remount,bind,rw /",
            "umount /proc",
            "umount -l /tmp",
            "mount --bind /home /mnt",
            "mount -t tmpfs x /mnt",
            "unshare -Ur true",
            "unshare -m true",
            "echo x > /proc/sys/kernel/hostname",
            "echo x > /dev/new",
            "chmod 777 /dev /",
        ] {
            let (output, _) = run(place, |_| {}, script);
            assert!(!output.status.success(), "{script}: {}", text(&output));
        }
    });
}

#[test]
fn what_is_hidden_has_no_names_sizes_or_targets() {
    in_full(|place| {
        place.make("project/.env", "CANARY-12345");
        place.make("project/deep/secret/name", "CANARY");
        let link = place.path("project/link");
        std::os::unix::fs::symlink("deep/secret/name", &link).unwrap();
        let hide = |order: &mut Confinement| {
            order.rights.hidden = ["project/.env", "project/deep/secret", "project/link", "home/secret"]
                .map(|name| place.path(name).into())
                .into();
        };
        for (script, unconfined) in [
            ("cat .env", "CANARY-12345"),
            ("stat -c %s .env", "12"),
            ("ls deep/secret", "name"),
            ("cat deep/secret/name", "CANARY"),
            ("readlink link", "name"),
            ("chmod 700 deep/secret && ls deep/secret", "name"),
            ("mv deep d2; cat d2/secret/name d2/name", "CANARY"),
            ("mv .env e; cat e", "CANARY"),
            ("ln .env e; cat e", "CANARY"),
            ("rm -rf deep; git init -q .; cat deep/secret/name", "CANARY"),
        ] {
            let (output, _) = run(place, hide, script);
            assert!(!text(&output).contains(unconfined), "{script}: {}", text(&output));
            drop(place.unconfined("mv d2 deep"));
            assert_eq!(
                fs::read_to_string(place.path("project/deep/secret/name")).unwrap(),
                "CANARY",
                "{script}"
            );
            assert_eq!(fs::read_to_string(place.path("project/.env")).unwrap(), "CANARY-12345", "{script}");
        }
        assert_eq!(
            text(&place.unconfined("cat .env; ls deep/secret; readlink link")),
            "CANARY-12345name\ndeep/secret/name\n"
        );
    });
}

#[test]
fn tmp_shared_memory_and_terminals_are_its_own() {
    in_full(|place| {
        let script = "mktemp > /dev/null && echo x > /dev/shm/x && ls /dev/shm && ls /tmp && echo $TMPDIR && \
                      cp /bin/true /tmp/t && /tmp/t && stat -c %a /dev/shm && : < /dev/ptmx && ls /dev/pts";
        let output = said(place, |order| order.rights.net = ipc::rights::Network::Off, script);
        let name = place.path("").file_name().unwrap().to_str().unwrap().to_owned();
        let lines: Vec<_> = output.lines().filter(|line| !line.starts_with("tmp.")).collect();
        assert_eq!(lines, ["x", &name, "/tmp", "1777", "ptmx"], "{output}");
        assert!(!Path::new("/dev/shm/x").exists() && !Path::new("/tmp/t").exists());
        assert!(place.path("temp/t").exists());
    });
}

#[test]
fn a_program_on_a_terminal_of_its_own_works() {
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("skipped: not on this machine: script(1)");
        return;
    }
    in_full(|place| {
        let output = said(place, |_| {}, "script -qec 'tty; echo typed > /dev/tty' /dev/null");
        assert!(output.contains("/dev/pts/0") && output.contains("typed"), "{output}");
    });
}

#[test]
fn no_process_of_the_host_is_visible() {
    in_full(|place| {
        let me = std::process::id();
        let script = format!(
            "ls -d /proc/[0-9]* | wc -l; test -e /proc/{me} || echo unseen; kill -0 {me} || echo safe"
        );
        let output = said(place, |_| {}, &script);
        assert!(output.lines().next().unwrap().parse::<u32>().unwrap() < 8, "{output}");
        assert!(output.ends_with("unseen\nsafe\n"), "{output}");
    });
}

#[test]
fn the_reported_pid_is_the_hosts() {
    in_full(|place| {
        let mut confinement = order(place);
        confinement.environment.pass.push("LC_ALL".into());
        let fifo = "mkfifo up; echo > up; read x < down";
        drop(place.unconfined("rm -f up down; mkfifo down"));
        let encoded = ipc::codec::encode(&confinement).unwrap();
        std::thread::scope(|scope| {
            let done = scope.spawn(|| ordered(place, &encoded, &["/bin/bash", "-c", fifo]));
            drop(place.unconfined("until [ -p up ]; do :; done; cat up"));
            let hosts: Vec<_> = sandboxed_bash(place);
            File::options().write(true).open(place.path("project/down")).unwrap().write_all(b"x\n").unwrap();
            let (_, reports) = done.join().unwrap();
            let Some(BrokerReport::Started { pid, .. }) = reports.first() else { panic!("{reports:?}") };
            assert_eq!(hosts, [*pid]);
        });
    });
}

/// The processes of the host whose working directory is the project and that are number 2 of a namespace.
fn sandboxed_bash(place: &Place) -> Vec<u32> {
    let project = place.path("project");
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let here = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == project);
    let second = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t2"))
    };
    numbers.filter(here).filter(second).collect()
}

#[test]
fn loopback_is_its_own_and_works() {
    if !Path::new("/usr/bin/python3").exists() {
        eprintln!("skipped: needs /usr/bin/python3");
        return;
    }
    in_full(|place| {
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        let script = format!(
            "/usr/bin/python3 -c \"
import socket
s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname())
c.sendall(b'hi')
print(s.accept()[0].recv(2).decode())
try:
    socket.create_connection(('127.0.0.1', {port}))
except ConnectionRefusedError:
    print('refused')
\""
        );
        assert_eq!(said(place, |_| {}, &script), "hi\nrefused\n");
        host.set_nonblocking(true).unwrap();
        assert_eq!(host.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    });
}

#[test]
fn owners_look_right() {
    in_full(|place| {
        let user = fs::metadata(place.path("project")).unwrap().uid();
        let output = said(place, |_| {}, "touch new; stat -c %u new .; id -u; stat -c %u /");
        let root = if user == 0 { 0 } else { 65534 };
        assert_eq!(output, format!("{user}\n{user}\n{user}\n{root}\n"));
        assert_eq!(fs::metadata(place.path("project/new")).unwrap().uid(), user);
    });
}

#[test]
fn root_sees_the_owners_of_others() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: as root, and as another user (needs root)");
        return;
    }
    in_full(|place| {
        if fs::metadata(place.path("project")).unwrap().uid() == 0 {
            std::os::unix::fs::chown(place.path("project/keep"), Some(4321), Some(4321)).unwrap();
            assert_eq!(said(place, |_| {}, "stat -c %u:%g keep"), "4321:4321\n");
        }
    });
}

fn protect_git(place: &Place) -> impl Fn(&mut Confinement) {
    drop(place.unconfined("git init -q . && mkdir -p .git/hooks"));
    let paths = ["project/.git/hooks", "project/.git/config", "project/.envrc"].map(|name| place.path(name));
    move |order| order.rights.protected = paths.clone().map(WirePath::from).into()
}

#[test]
fn what_the_host_runs_later_cannot_be_changed_or_moved_away() {
    in_full(|place| {
        let protect = protect_git(place);
        for (script, error) in [
            ("echo x > .git/hooks/pre-commit", "Read-only file system"),
            ("echo x >> .git/config", "Read-only file system"),
            ("mv .git .g2", "Device or resource busy"),
            ("mv .git/hooks .git/h2", "Device or resource busy"),
            ("rm -f .git/config", "Device or resource busy"),
            ("git config user.name x", "busy"),
            ("chmod 777 .git/hooks", "Read-only file system"),
            ("rm -rf .git", "Device or resource busy"),
        ] {
            let (output, _) = run(place, &protect, script);
            assert!(!output.status.success(), "{script}");
            assert!(errors(&output).contains(error), "{script}: {}", errors(&output));
        }
        assert!(place.path("project/.git/config").exists() && !place.path("project/.envrc").exists());
        assert!(
            place.unconfined("echo x > .git/hooks/pre-commit && mv .git .g2 && mv .g2 .git").status.success()
        );
    });
}

#[test]
fn git_works_beside_what_is_protected() {
    in_full(|place| {
        let protect = protect_git(place);
        drop(place.unconfined("rm -f .git/hooks/*"));
        let script = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b; \
            git add keep; git commit -qm one; git branch b; git checkout -q b; echo x >> keep; git stash -q; git stash pop -q; \
            git commit -qam two; git clone -q . ../project/clone; git -C clone log --oneline | wc -l; git gc -q; \
            git worktree add -q /tmp/tree; git status --porcelain";
        assert_eq!(said(place, &protect, script), "2\n?? clone/\n");
    });
}

#[test]
fn unusual_projects_work() {
    in_full(|place| {
        for name in [&b"project/with space"[..], "project/\u{fc}n\u{ef}".as_bytes(), b"project/\xff\xfe"] {
            let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name);
            let directory = place.path("").join(name);
            fs::create_dir_all(&directory).unwrap();
            std::os::unix::fs::chown(&directory, Some(fs::metadata(place.path("home")).unwrap().uid()), None)
                .unwrap();
            let change = |order: &mut Confinement| {
                let project = order.project.clone();
                order.rights.write.retain(|root| *root != project);
                order.rights.write.push(directory.clone().into());
                order.project = directory.clone().into();
            };
            said(place, change, "echo x > made; mkdir -p a/b; cat made");
            assert!(directory.join("a/b").exists());
        }
    });
}

#[test]
fn a_read_only_project_below_tmp_is_there_and_cannot_be_changed() {
    in_full(|place| {
        let read_only = |order: &mut Confinement| {
            let project = order.project.clone();
            order.rights.write.retain(|root| *root != project);
        };
        assert_eq!(said(place, read_only, "cat keep"), "mine");
        let (output, _) = run(place, read_only, "echo x > keep");
        assert!(errors(&output).contains("Read-only file system"), "{}", errors(&output));
        let (output, _) = run(place, read_only, "chmod 777 keep; touch keep; ls ../home");
        for error in ["changing permissions", "cannot touch", "No such file"] {
            assert!(errors(&output).contains(error), "{}", errors(&output));
        }
    });
}

#[test]
fn a_link_planted_in_the_temp_directory_is_not_followed() {
    in_full(|place| {
        place.make("outside/keep", "");
        let name = place.path("").file_name().unwrap().to_str().unwrap().to_owned();
        place.make("temp/.keep", "");
        std::os::unix::fs::symlink(place.path("outside"), place.path("temp").join(&name)).unwrap();
        assert_eq!(said(place, |_| {}, "cat keep"), "mine");
        assert_eq!(place.contents("outside").len(), 2, "nothing was made there");
    });
}

#[test]
fn a_single_file_may_be_a_write_root() {
    in_full(|place| {
        let only = |order: &mut Confinement| {
            let project = order.project.clone();
            order.rights.write.retain(|root| *root != project);
            order.rights.write.push(place.path("project/keep").into());
        };
        said(place, only, "echo more >> keep");
        assert_eq!(fs::read_to_string(place.path("project/keep")).unwrap(), "minemore\n");
        assert!(!run(place, only, "echo x > other").0.status.success());
    });
}

/// Starts daemons, and waits until all that lives in the sandbox is gone after `end` was done to it.
fn nothing_lives_after(place: &Place, end: impl Fn(Pid)) {
    let script =
        "setsid sleep 1000 & (setsid bash -c 'trap \"\" TERM HUP INT; sleep 1000' &) ; echo ready; wait";
    let mut command = place.sandbox(&[]);
    let mut child = command.args(["/bin/bash", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    end(Pid::from_raw(child.id().cast_signed()));
    // Everything inside holds the pipe: its end is theirs.
    output.read_to_end(&mut vec![]).unwrap();
    child.wait().unwrap();
}

fn child_of(parent: Pid) -> Pid {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
fn killing_the_stub_init_or_the_program_leaves_nothing() {
    in_full(|place| {
        let kill = |pid| kill(pid, Signal::SIGKILL).unwrap();
        nothing_lives_after(place, kill);
        nothing_lives_after(place, |stub| kill(child_of(stub)));
        nothing_lives_after(place, |stub| kill(child_of(child_of(stub))));
    });
}

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

/// Runs a script in a user namespace in which no other can be made.
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

#[test]
fn the_report_says_why_it_is_the_floor() {
    in_full(|place| {
        let mut confinement = order(place);
        confinement.tier = TierChoice::Best;
        let (_, reports) = ordered(place, &ipc::codec::encode(&confinement).unwrap(), &["true"]);
        let Some(BrokerReport::Started { ruleset, .. }) = reports.first() else { panic!("{reports:?}") };
        assert_eq!((ruleset.tier, ruleset.missing.as_slice()), (Tier::Full, &[][..]));
        let acts: Vec<_> = ruleset.attempts.iter().map(|attempt| attempt.act.as_str()).collect();
        for act in ["write to the read-only tree", "write outside the write roots", "reach the network"] {
            assert!(acts.contains(&act), "{acts:?}");
        }
        assert!(ruleset.attempts.iter().all(|attempt| attempt.denied));
    });
}

#[test]
fn another_user_owns_what_the_program_makes() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: as root, and as another user (needs root)");
        return;
    }
    for tier in [Tier::FloorUnmediated, Tier::Full] {
        in_tier_as_each_user(tier, |place| {
            if fs::metadata(place.path("project")).unwrap().uid() != 0 {
                return;
            }
            fs::set_permissions(place.path("project"), fs::Permissions::from_mode(0o777)).unwrap();
            let mut confinement = order(place);
            confinement.identity = Some(ipc::confinement::Identity { uid: 4321, gid: 4322 });
            let script = "touch new; id -u; id -g; id -G; kill -0 $PPID";
            let rights = ipc::codec::encode(&confinement).unwrap();
            let (output, reports) = ordered(place, &rights, &["/bin/bash", "-c", script]);
            assert_eq!(text(&output), "4321\n4322\n4322\n", "{}{reports:?}", errors(&output));
            let made = fs::metadata(place.path("project/new")).unwrap();
            assert_eq!((made.uid(), made.gid()), (4321, 4322));
        });
    }
}
