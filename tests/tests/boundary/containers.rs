//! Tests machines like containers, made of namespaces and mounts, with the read-only and masked paths and the limits of
//! a container engine. Tests with real containers are in `tests/containers/`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::process::Command;

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, shell};
use tests::world::{KEY, tool_results};
use tests::{Finished, Programs, User, World, skip};

/// Imitated machine: its namespaces, and the shell commands that prepare it.
struct Machine {
    namespaces: &'static [&'static str],
    prepare: String,
}

/// Arguments of unshare(1) for the namespaces that every container has.
const CONTAINER: &[&str] = &["-Urmpf", "--mount-proc"];

/// Commands that mount the file systems that every container has.
const OWN: &str =
    "mount -t tmpfs -o size=64m shm /dev/shm && mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts";

/// Commands that mask paths in `/proc` as runc does: files, directories, and read-only paths.
const MASKED: &str = "for name in kcore keys timer_list; do \
        [ ! -e /proc/$name ] || mount --bind /dev/null /proc/$name || exit 9; done && \
    for name in bus fs irq sys; do \
        mount --bind /proc/$name /proc/$name && mount -o remount,bind,ro /proc/$name || exit 9; done";

impl Machine {
    fn new(namespaces: &'static [&'static str], prepare: impl Into<String>) -> Self {
        Self { namespaces, prepare: prepare.into() }
    }

    /// Returns a machine whose root is read-only, except for the project and Bailiwick's directories. The shell
    /// commands `then` prepare the machine further.
    fn read_only(world: &World, then: &str) -> Self {
        let kept = [world.project(), world.own()].map(|place| place.display().to_string());
        let kept = kept.map(|place| format!("mount --bind {place} {place}")).join(" && ");
        Self::new(&["-Urm"], format!("{kept} && mount -o remount,bind,ro / && {then}"))
    }

    fn run(&self, world: &World, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
        let prepared = format!("{} && exec \"$@\"", self.prepare);
        let mut unshare = world.command("unshare");
        unshare.args(self.namespaces).args(["bash", "-c", &prepared, "bash"]);
        unshare.arg(Programs::get().path(program)).args(arguments);
        unshare.env("ANTHROPIC_API_KEY", KEY).envs(variables.iter().copied());
        Finished::of(&mut unshare)
    }

    fn exec(&self, world: &World, server: &ReplayServer, variables: &[(&str, &str)]) -> Finished {
        let (project, url) = (world.project().display().to_string(), server.base_url());
        let arguments = ["exec", "--mode", "auto", "-C", &project, "--base-url", &url, "do it"];
        self.run(world, "bailiwick", &arguments, variables)
    }

    fn sandbox(&self, world: &World, script: &str) -> Finished {
        let project = world.project().display().to_string();
        self.run(world, "bailiwick", &["sandbox", "-C", &project, "--", "bash", "-c", script], &[])
    }

    fn doctor(&self, world: &World, code: i32) -> Value {
        let run = self.run(world, "bailiwick", &["doctor", "--json"], &[]).expect(code);
        serde_json::from_str(&run.stdout).unwrap()
    }
}

fn no_namespaces() -> bool {
    Finished::of(Command::new("unshare").args(CONTAINER).arg("true")).code != 0
}

macro_rules! needs_namespaces {
    () => {
        if no_namespaces() {
            skip!("this machine has no user namespaces to make containers of");
        }
    };
}

fn named<'a>(diagnosis: &'a Value, name: &str) -> &'a Value {
    let checks = diagnosis["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null)
}

/// Returns a model server that repairs a bug and runs a test again.
fn repair() -> ReplayServer {
    let mend = ("edit_file", json!({"path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"}));
    model_of([shell("sh sum.sh 1 2"), calls(&[mend]), shell("sh sum.sh 1 2"), done()])
}

fn with_a_bug(user: User) -> World {
    let world = World::new(user);
    world.file("sum.sh", "echo sum $(($1 - $2)) > \"$TMPDIR/sum\" && cat \"$TMPDIR/sum\"\n");
    world
}

/// Checks that the bug is repaired, and that the commands ran.
fn check_repaired(world: &World, server: &ReplayServer, run: &Finished) {
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let told = |request| tool_results(server, request)[0]["content"].to_string();
    assert!(told(1).contains("sum -1") && told(3).contains("sum 3"), "{} {}", told(1), told(3));
    assert!(world.read("sum.sh").contains("$1 + $2"));
}

/// Tests a masked `/proc`. Since a process there cannot mount another one (`mount_too_revealing` of the kernel), there
/// is no full tier.
#[test]
fn a_masked_proc_leaves_the_floor_which_says_why_and_works() {
    needs_namespaces!();
    for user in User::all() {
        let world = with_a_bug(user);
        let machine = Machine::new(CONTAINER, format!("{OWN} && {MASKED}"));
        let diagnosis = machine.doctor(&world, 0);
        let tier = json!({"tested": "floor", "runs_start_in": "floor", "no_full_tier": "cannot mount /proc (EPERM)"});
        assert_eq!(diagnosis["tier"], tier, "{user:?}");
        assert_eq!(named(&diagnosis, "self-test")["state"], "ok", "{user:?}");
        let remedy = named(&diagnosis, "tier")["remedy"].as_str().unwrap();
        assert!(remedy.contains("systempaths=unconfined"), "{remedy}");
        let server = repair();
        let run = machine.exec(&world, &server, &[]);
        check_repaired(&world, &server, &run);
        // With an unmasked /proc, the reason for the floor tier is gone.
        let unmasked = Machine::new(CONTAINER, OWN).doctor(&world, 0);
        assert!(!unmasked["tier"].to_string().contains("/proc"), "{}", unmasked["tier"]);
    }
}

#[test]
fn without_certificate_authorities_those_that_we_bring_are_used() {
    needs_namespaces!();
    let world = World::new(User::Myself);
    let machine = Machine::new(
        &["-Urm"],
        "for place in /etc/ssl /etc/pki /etc/ca-certificates /usr/share/ca-certificates; do \
             if [ -d $place ]; then mount -t tmpfs none $place || exit 9; fi; done",
    );
    let diagnosis = machine.doctor(&world, 0);
    let found = json!("none on this system: Bailiwick uses its own");
    assert_eq!(
        (&named(&diagnosis, "ca certs")["state"], &named(&diagnosis, "ca certs")["found"]),
        (&json!("ok"), &found)
    );
    // The run gets as far as the TLS handshake.
    world.configure("[retries]\nattempts = 1\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let first = std::thread::spawn(move || {
        let mut byte = [0];
        listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
        byte[0]
    });
    let project = world.project().display().to_string();
    machine.run(&world, "bailiwick", &["exec", "-C", &project, "--base-url", &url, "do it"], &[]).expect(6);
    assert_eq!(first.join().unwrap(), 22, "a TLS record of the handshake");
}

/// Tests a user without an entry in the user database and without a home, as with `docker run --user 4242`.
#[test]
fn whom_no_file_of_users_names_and_who_has_no_home_works() {
    needs_namespaces!();
    for user in User::all() {
        let world = with_a_bug(user);
        world.file("empty", "");
        let empty = world.project().join("empty").display().to_string();
        let nobody = Machine::new(
            &["-Urm"],
            format!(
                "mount --bind {empty} /etc/passwd && mount --bind {empty} /etc/group && \
                 set -- unshare -U --map-user=4242 --map-group=4242 \"$@\""
            ),
        );
        let run = nobody.sandbox(&world, "whoami || id");
        assert_eq!((run.code, run.stdout.as_str()), (0, "uid=4242 gid=4242 groups=4242\n"), "{}", run.stderr);
        let server = repair();
        let run = nobody.exec(&world, &server, &[("HOME", "")]);
        check_repaired(&world, &server, &run);
        // Bailiwick's own files need a writable directory.
        let server = repair();
        let run = nobody.exec(&world, &server, &[("HOME", ""), ("BAILIWICK_HOME", "")]).expect(2);
        assert_eq!(server.connections(), 0);
        insta::allow_duplicates! { insta::assert_snapshot!(run.stderr, @"bailiwick: neither BAILIWICK_HOME nor HOME is an absolute path; set BAILIWICK_HOME to a directory of your own"); }
    }
}

#[test]
fn a_read_only_root_with_a_temp_works() {
    needs_namespaces!();
    for user in User::all() {
        let world = with_a_bug(user);
        // A writable cache directory suffices.
        for mount in [
            "mount -t tmpfs none /tmp",
            "mount -t tmpfs -o noexec none /tmp",
            "mount -t tmpfs -o ro none /tmp",
        ] {
            let machine =
                Machine::read_only(&world, &format!("! touch {}/x && {mount}", world.root().display()));
            world.file("sum.sh", "echo sum $(($1 - $2)) > \"$TMPDIR/sum\" && cat \"$TMPDIR/sum\"\n");
            let server = repair();
            let run = machine.exec(&world, &server, &[]);
            check_repaired(&world, &server, &run);
        }
    }
}

#[test]
fn a_read_only_root_without_a_temp_is_refused_and_says_what_to_do() {
    needs_namespaces!();
    for user in User::all() {
        let world = with_a_bug(user);
        let cache = world.own().join("cache");
        fs::create_dir(&cache).unwrap();
        let then = format!("mount -t tmpfs -o ro none /tmp && mount -t tmpfs -o ro none {}", cache.display());
        let machine = Machine::read_only(&world, &then);
        let server = repair();
        let run = machine.exec(&world, &server, &[]).expect(5);
        assert_eq!(server.connections(), 0, "no model is asked");
        insta::allow_duplicates! { insta::assert_snapshot!(run.stderr, @r"
        bailiwick: cannot make a private temp directory: /tmp/bailiwick-0: Read-only file system (os error 30) [no-sandbox]
          hint: set TMPDIR to a directory that you can write; a container with a read-only root needs such a directory: docker run --tmpfs /tmp:exec
        "); }
        assert_eq!(machine.sandbox(&world, "echo ran").expect(5).stdout, "");
        let sandbox = machine.doctor(&world, 5);
        let (found, next) = (&named(&sandbox, "sandbox")["found"], &named(&sandbox, "sandbox")["remedy"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(found.as_str().unwrap(), @"no sandbox works here: cannot make a private temp directory: /tmp: read-only filesystem or storage medium");
            insta::assert_snapshot!(next.as_str().unwrap(), @"set TMPDIR to a directory that you can write; a container with a read-only root needs such a directory: docker run --tmpfs /tmp:exec");
        }
        // The error message suffices.
        let temp = world.own().display().to_string();
        let server = repair();
        let run = machine.exec(&world, &server, &[("TMPDIR", &temp)]);
        check_repaired(&world, &server, &run);
        // `bailiwick sandbox` needs no home.
        let project = world.project().display().to_string();
        let arguments = ["--write", &project, "-C", &project, "--", "sh", "-c", "echo x > f && cat f"];
        assert_eq!(machine.run(&world, "sandbox-exec", &arguments, &[]).expect(0).stdout, "x\n");
    }
}

#[test]
fn who_fills_a_small_shared_memory_gets_an_error_and_goes_on() {
    needs_namespaces!();
    for user in User::all() {
        let world = World::new(user);
        let machine = Machine::new(CONTAINER, format!("{OWN} && {MASKED}"));
        let server = model_of([
            shell("head -c 100M /dev/zero > /dev/shm/all"),
            shell("python3 -c 'import multiprocessing as m; m.Lock()'"),
            shell("echo on > f && cat f"),
            shell("rm /dev/shm/all && python3 -c 'import multiprocessing as m; m.Lock(); print(\"locks\")'"),
            done(),
        ]);
        let run = machine.exec(&world, &server, &[]);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        let told = |request| tool_results(&server, request)[0]["content"].to_string();
        assert!(
            told(1).contains("No space left on device") && !told(1).contains("blocked by"),
            "{}",
            told(1)
        );
        assert!(
            told(2).contains("No space left on device") && !told(2).contains("blocked by"),
            "{}",
            told(2)
        );
        assert!(told(3).contains("on") && told(4).contains("locks"), "{} {}", told(3), told(4));
    }
}

/// Tests root without capabilities, as with `docker run --cap-drop ALL --security-opt no-new-privileges`.
#[test]
fn a_root_without_capabilities_works() {
    let bare = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "env"];
    if Finished::of(Command::new("setpriv").args(bare).arg("true")).code != 0 {
        skip!("uid 0 with capabilities gives its own away");
    }
    let world = with_a_bug(User::Myself);
    let server = repair();
    let mut command = world.command("setpriv");
    command.args(bare).arg(Programs::get().path("bailiwick"));
    command.args(["exec", "--mode", "auto", "--base-url", &server.base_url(), "do it", "-C"]);
    let run = Finished::of(command.arg(world.project()).env("ANTHROPIC_API_KEY", KEY));
    check_repaired(&world, &server, &run);
}

/// Returns a machine with a running session. On request, the session writes a file in shared memory, and at the end
/// copies that file's content into the project.
fn with_a_session(world: &World, tier: &str) -> Machine {
    let bailiwick = Programs::get().path("bailiwick").display().to_string();
    let project = world.project().display().to_string();
    let session = "echo > ready; read < go; echo theirs > /dev/shm/segment; echo > made; \
                   read < end; cat /dev/shm/segment > kept; echo > over";
    let fifos = ["ready", "go", "made", "end", "over"].map(|name| format!("{project}/{name}")).join(" ");
    let begin = format!(
        "mkfifo {fifos} && {{ {bailiwick} sandbox -C {project} --tier {tier} -- bash -c '{session}' & }} && read < {project}/ready"
    );
    Machine::new(CONTAINER, format!("{OWN} && {begin}"))
}

/// Runs a command next to the session of [`with_a_session`], in the same tier, after that session has written into
/// shared memory.
fn beside_a_session(world: &World, tier: &str, command: &str) -> Finished {
    let project = world.project().display().to_string();
    let command = format!("echo > go; read < made; {command}; echo > end; read < over");
    let arguments = ["sandbox", "-C", &project, "--tier", tier, "--", "bash", "-c", &command];
    let run = with_a_session(world, tier).run(world, "bailiwick", &arguments, &[]);
    assert_eq!(world.read("kept"), "theirs\n", "{}{}", run.stdout, run.stderr);
    run
}

#[test]
fn shared_memory_and_terminals_are_one_agents_at_a_time() {
    needs_namespaces!();
    let terminal = "python3 -c 'import os; os.openpty(); print(\"mine\")'";
    let memory = "echo mine > /dev/shm/new; cat /dev/shm/new";
    for user in User::all() {
        for attack in [
            "cat /dev/shm/segment",
            "echo mine > /dev/shm/segment",
            "rm /dev/shm/segment",
            "mv /dev/shm/segment /dev/shm/gone",
            memory,
            terminal,
        ] {
            let world = World::new(user);
            let run = beside_a_session(&world, "floor", attack);
            assert_eq!(run.stdout, "", "{user:?}: {attack}: {}", run.stderr);
            assert!(run.stderr.contains("ermission denied"), "{user:?}: {attack}: {}", run.stderr);
        }
        // In the full tier each sandbox has its own shared memory.
        let world = World::new(user);
        if Machine::new(CONTAINER, OWN).sandbox(&world, "true").code == 0
            && Machine::new(CONTAINER, OWN).doctor(&world, 0)["tier"]["tested"] == "full"
        {
            let run = beside_a_session(&world, "full", &format!("ls /dev/shm; {memory}; {terminal}"));
            assert_eq!(run.stdout, "mine\nmine\n", "{user:?}: {}", run.stderr);
        } else {
            eprintln!("skipped: no full tier in a container here");
        }
    }
}

#[test]
fn doctor_says_that_another_agent_has_them() {
    needs_namespaces!();
    for user in User::all() {
        let world = World::new(user);
        let said = |machine: Machine| {
            let run = machine.run(&world, "bailiwick", &["doctor", "--tier", "floor"], &[]);
            run.stdout.matches("not granted: another agent has it").count()
        };
        assert_eq!(said(Machine::new(CONTAINER, OWN)), 0);
        assert_eq!(said(with_a_session(&world, "floor")), 2, "{user:?}");
    }
}
