use proptest::prelude::*;

use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer};
use ipc::named::{Asked, Permits};
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};
use libc::{EACCES, EROFS};

use super::{auto, deny, online, open_places};
use crate::judgement::{Machine, StandingRights, denied};

pub(super) fn shell(command: &str) -> ShellExec {
    ShellExec {
        command: command.to_owned(),
        access: Access::Standing,
        network: None,
        cwd: None,
        timeout_ms: None,
    }
}

pub(super) fn ended(exit: CommandExit, output: &str) -> CommandResult {
    let (head, tail) = (output.to_owned(), String::new());
    CommandResult {
        exit,
        head,
        omitted_bytes: 0,
        tail,
        saved: None,
        named: Vec::new(),
        process: 0,
        refused: Vec::new(),
        duration_ms: 1,
    }
}

pub(super) fn all(
    standing: &StandingRights,
    call: &ShellExec,
    exit: CommandExit,
    output: &str,
) -> Vec<Denial> {
    let named = open_places(standing, call, output);
    let denials = denied::likely(standing, call, &CommandResult { named, ..ended(exit, output) });
    assert!(denials.iter().all(|denial| denial.grade == Grade::Likely));
    denials
}

pub(super) fn first(standing: &StandingRights, call: &ShellExec, output: &str) -> Option<Denial> {
    all(standing, call, CommandExit::Code(1), output).into_iter().next()
}

pub(super) fn missing(standing: &StandingRights, command: &str, output: &str) -> Option<String> {
    first(standing, &shell(command), output).map(|denial| denial.missing_right.to_string())
}

pub(super) fn full() -> StandingRights {
    auto().seen_in(Tier::Full)
}

/// Commands that fail to write, each with its output and the path of the denial.
const WRITES: &[(&str, &str, &str)] = &[
    ("touch /etc/x", "touch: cannot touch '/etc/x': Permission denied", "/etc/x"),
    ("touch /etc/x", "touch: cannot touch ‘/etc/x’: Read-only file system", "/etc/x"),
    ("touch ../x", "touch: cannot touch '../x': Permission denied", "/home/me/x"),
    ("mkdir /srv/a", "mkdir: cannot create directory '/srv/a': Permission denied", "/srv/a"),
    ("rm /etc/hosts", "rm: cannot remove '/etc/hosts': Permission denied", "/etc"),
    ("mv a /srv/b", "mv: cannot move 'a' to '/srv/b': Read-only file system", "/srv"),
    ("echo x > /etc/x", "bash: line 1: /etc/x: Permission denied", "/etc/x"),
    ("echo x >>\"/etc/a b\"", "bash: line 1: /etc/a b: Permission denied", "/etc/a b"),
    ("echo x > /etc/x", "/usr/bin/bash: line 1: /etc/x: Read-only file system", "/etc/x"),
    ("echo x > ../x", "/usr/bin/bash: line 1: ../x: Read-only file system", "/home/me/x"),
    ("tee /etc/x", "/usr/bin/tee: /etc/x: Read-only file system", "/etc/x"),
    ("./x", "/etc/x: Read-only file system", "/etc/x"),
    ("cp a /etc/x", "/usr/bin/cp: cannot create regular file '/etc/x': Permission denied", "/etc/x"),
    ("x", "/etc/x: could not write: Permission denied", "/etc/x"),
    ("x | tee /etc/x", "tee: /etc/x: Permission denied", "/etc/x"),
    ("cp a /usr/local", "cp: cannot create regular file '/usr/local/a': Permission denied", "/usr/local/a"),
    (
        "pip install x",
        "PermissionError: [Errno 13] Permission denied: '/usr/lib/python3/x'",
        "/usr/lib/python3/x",
    ),
    (
        "pip install x",
        "ERROR: Could not install: [Errno 30] Read-only file system: '/usr/lib/x'",
        "/usr/lib/x",
    ),
    (
        "npm i -g x",
        "npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules'",
        "/usr/lib/node_modules",
    ),
    ("go build", "open /home/me/.cache/go-build/x: permission denied", "/home/me/.cache/go-build/x"),
    (
        "git config --global a b",
        "error: could not lock config file /home/me/.gitconfig: Permission denied",
        "/home/me/.gitconfig",
    ),
    (
        "cargo b",
        "error: failed to create directory `/home/me/.cargo/git`: Permission denied (os error 13)",
        "/home/me/.cargo/git",
    ),
    (
        "git commit",
        "fatal: cannot write '/home/me/p/.git/hooks/x': Permission denied",
        "/home/me/p/.git/hooks/x, protected by the settings or by Bailiwick",
    ),
];

#[test]
fn what_programs_say_of_a_write() {
    for (command, output, path) in WRITES {
        let output = format!("some line before\n{output}\nmake: *** [all] Error 1\n");
        assert_eq!(missing(&full(), command, &output), Some(format!("write {path}")), "{output}");
        // Landlock never gives EROFS.
        let floor = (!output.contains("Read-only")).then(|| format!("write {path}"));
        assert_eq!(missing(&auto(), command, &output), floor, "{output}");
    }
}

#[test]
fn what_programs_say_of_hidden_files() {
    let table = [
        ("cat ~/.ssh/id", "cat: /home/me/.ssh/id: Permission denied", "/home/me/.ssh/id"),
        ("cat ../.ssh/id", "cat: ../.ssh/id: Permission denied", "/home/me/.ssh/id"),
        ("ls ~/.ssh", "ls: cannot open directory '/home/me/.ssh': Permission denied", "/home/me/.ssh"),
        ("find /home", "find: ‘/home/me/.ssh’: Permission denied", "/home/me/.ssh"),
        ("python x", "PermissionError: [Errno 13] Permission denied: '/etc/shadow'", "/etc/shadow"),
        (". ~/.ssh/rc", "bash: line 1: /home/me/.ssh/rc: Permission denied", "/home/me/.ssh/rc"),
    ];
    for (command, output, path) in table {
        assert_eq!(missing(&auto(), command, output), Some(format!("read {path}")), "{output}");
    }
    let table = [
        ("rm ~/.ssh/id", "rm: cannot remove '/home/me/.ssh/id': Permission denied", "/home/me/.ssh/id"),
        ("echo x >> ~/.ssh/rc", "bash: line 1: /home/me/.ssh/rc: Permission denied", "/home/me/.ssh/rc"),
    ];
    for (command, output, path) in table {
        let command = command.replace('~', "/home/me");
        assert_eq!(missing(&auto(), &command, output), Some(format!("write {path}")), "{output}");
    }
}

#[test]
fn nothing_is_claimed_where_the_rights_cover_the_path_or_no_path_is_named() {
    let table = [
        // A file of the project with mode 000, or without permission to execute.
        ("cat x", "cat: x: Permission denied"),
        ("touch x", "touch: cannot touch 'x': Permission denied"),
        ("./run.sh", "bash: line 1: ./run.sh: Permission denied"),
        ("touch $TMPDIR/x", "touch: cannot touch '/tmp/bw-1/x': Permission denied"),
        // Readable by the rights, so the sandbox did not deny this.
        ("cat /root/x", "cat: /root/x: Permission denied"),
        ("ls /root", "ls: cannot open directory '/root': Permission denied"),
        ("find / -name x", "find: ‘/root’: Permission denied"),
        ("head -1 /var/log/x", "head: cannot open '/var/log/x' for reading: Permission denied"),
        ("/usr/bin/grep x /root/y", "/usr/bin/grep: /root/y: Permission denied"),
        // The complaining program is not the path of the complaint.
        ("echo x > x", "/usr/bin/bash: line 1: x: Read-only file system"),
        ("echo x > x", "/usr/bin/bash: line 1: a b: Permission denied"),
        ("/usr/bin/touch x", "/usr/bin/touch: cannot touch 'x': Permission denied"),
        (". /root/x", "bash: line 1: /root/x: Permission denied"),
        ("x < /root/x", "bash: line 1: /root/x: Permission denied"),
        ("dmesg", "dmesg: read kernel buffer failed: Operation not permitted"),
        ("echo 1 > /proc/sys/x", "bash: line 1: /proc/sys/x: Permission denied"),
        ("chown root x", "chown: changing ownership of 'x': Operation not permitted"),
        // Other failures.
        ("cat /etc/x", "cat: /etc/x: No such file or directory"),
        ("make", "test that permission denied is shown ... FAILED"),
        ("ssh h", "git@github.com: Permission denied (publickey)."),
        ("cargo test", "thread 'main' panicked at src/lib.rs:3:5:\nassertion failed"),
        ("x", ""),
    ];
    for (command, output) in table {
        assert_eq!(missing(&auto(), command, output), None, "{output}");
    }
}

#[test]
fn a_refused_write_is_told_whatever_the_exit_status() {
    let output = "touch: cannot touch '/etc/x': Permission denied";
    for exit in [CommandExit::Code(0), CommandExit::Code(1), CommandExit::TimedOut] {
        assert_eq!(all(&auto(), &shell("touch /etc/x; true"), exit, output).len(), 1, "{exit:?}");
    }
}

/// Commands that only show text of other programs, each with its output.
const SHOWN: &[(&str, &str)] = &[
    ("cat build.log", "touch: cannot touch '/etc/x': Permission denied"),
    ("cd a && LC_ALL=C tail -n 99 build.log 2>&1 | head", "touch: cannot touch '/etc/x': Permission denied"),
    ("grep -hrE 'denied|touch' . | sort", "touch: cannot touch '/etc/x': Permission denied"),
    ("git log -1", "rm: cannot remove '/etc/x': Permission denied"),
    ("cat build.log", "bash: line 1: /etc/x: Permission denied"),
    ("cat log > out", "bash: line 1: /etc/x: Permission denied"),
];

#[test]
fn text_that_a_successful_command_shows_is_no_denial() {
    for (command, output) in SHOWN {
        let told = |exit| all(&auto(), &shell(command), exit, output);
        assert_eq!(told(CommandExit::Code(0)), [], "{command}: {output}");
    }
    // Controls: a program that does more, a redirection, and a complaint of the command's own program.
    for (command, output) in [
        ("make 2>&1 | tail -3", "touch: cannot touch '/etc/x': Permission denied"),
        ("cat log > /etc/x; true", "bash: line 1: /etc/x: Permission denied"),
        ("sed -i s/a/b/ /etc/x; true", "sed: couldn't write /etc/x: Permission denied"),
        ("git config --global a b; true", "error: could not lock config file /etc/x: Permission denied"),
    ] {
        assert_eq!(all(&auto(), &shell(command), CommandExit::Code(0), output).len(), 1, "{command}");
    }
}

#[test]
fn nothing_but_a_write_is_told_of_a_command_that_succeeded() {
    let lines = [
        "cat: /home/me/.ssh/id: Permission denied",
        "find: ‘/home/me/.ssh’: Permission denied",
        "curl: (6) Could not resolve host: example.org",
        "unshare: unshare failed: Operation not permitted",
        "  File \"socket.py\", line 9\nPermissionError: [Errno 13] Permission denied",
    ];
    for line in lines {
        assert_eq!(all(&auto(), &shell("x"), CommandExit::Code(0), line), [], "{line}");
    }
}

#[test]
fn a_line_that_does_not_tell_of_a_write_takes_the_kernels_word() {
    let (call, output) = (shell("x; true"), "PermissionError: [Errno 13] Permission denied: '/etc/x'");
    let told = |write| {
        let mut named = open_places(&auto(), &call, output);
        named[0].asked = Asked { write, ..Asked::default() };
        denied::likely(&auto(), &call, &CommandResult { named, ..ended(CommandExit::Code(0), output) })
    };
    assert_eq!(told(Some(EACCES)).iter().map(|it| it.grade).collect::<Vec<_>>(), [Grade::Likely]);
    for other in [None, Some(0), Some(EROFS)] {
        assert_eq!(told(other), [], "{other:?}");
    }
}

#[test]
fn read_only_project_is_a_matter_of_the_mode() {
    let denial = first(&deny(), &shell("touch x"), "touch: cannot touch 'x': Permission denied").unwrap();
    assert_eq!(
        (denial.missing_right.to_string().as_str(), denial.grant.as_deref()),
        ("write /home/me/p/x", Some("--mode auto"))
    );
}

#[test]
fn relative_names_begin_where_the_command_was() {
    let output = "touch: cannot touch '../x': Permission denied";
    let inside = ShellExec { cwd: Some("src/deep".into()), ..shell("touch ../x") };
    assert_eq!(first(&auto(), &inside, output), None);
    let outside = ShellExec { cwd: Some("/srv/a".into()), ..shell("touch ../x") };
    assert_eq!(first(&auto(), &outside, output).unwrap().missing_right.to_string(), "write /srv/x");
}

#[test]
fn what_plain_permissions_refuse_is_no_denial() {
    type Close = fn(&mut Permits);
    let claims = |output: &str, closed: Close| {
        let call = shell("x");
        let mut named = open_places(&auto(), &call, output);
        for place in &mut named {
            closed(&mut place.permits);
        }
        !denied::likely(&auto(), &call, &CommandResult { named, ..ended(CommandExit::Code(1), output) })
            .is_empty()
    };
    let table: [(&str, Close); 5] = [
        ("touch: cannot touch '/srv/x': Permission denied", |permits| permits.write = false),
        ("rm: cannot remove '/tmp/theirs': Operation not permitted", |permits| permits.remove = false),
        ("chmod: changing permissions of '/srv/x': Operation not permitted", |permits| permits.own = false),
        ("touch: setting times of '/srv/x': Permission denied", |permits| permits.own = false),
        ("cat: /home/me/.ssh/id: Permission denied", |permits| *permits = Permits::default()),
    ];
    for (output, closed) in table {
        assert!(!claims(output, closed), "{output}");
        assert!(claims(output, |_| {}), "the twin: {output}");
    }
    let output = "touch: cannot touch '/srv/x': Permission denied";
    let unseen = ended(CommandExit::Code(1), output);
    assert_eq!(denied::likely(&auto(), &shell("x"), &unseen), [], "nobody looked there");
}

#[test]
fn what_the_machine_mounts_read_only_is_no_denial() {
    let mounts = b"1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /mnt/cd ro - iso9660 b ro\n";
    let on = |tier, output: &str| {
        let machine = Machine::new(mounts, Vec::new(), false);
        first(&StandingRights { machine: machine.into(), ..auto() }.seen_in(tier), &shell("x"), output)
    };
    let said = |path: &str| format!("touch: cannot touch '{path}': Read-only file system");
    assert_eq!(on(Tier::Full, &said("/mnt/cd/x")), None);
    assert!(on(Tier::Full, &said("/mnt/x")).is_some(), "the twin");
    // Landlock gives EACCES, so EROFS comes from the machine.
    assert_eq!(on(Tier::FloorUnmediated, &said("/mnt/x")), None);
    assert!(on(Tier::FloorUnmediated, "touch: cannot touch '/mnt/x': Permission denied").is_some());
}

#[test]
fn what_is_closed_to_the_user_anyway_is_no_denial() {
    let output = "cat: /etc/shadow: Permission denied";
    let machine = Machine::new(b"", vec!["/etc/shadow".into()], false);
    assert_eq!(first(&StandingRights { machine: machine.into(), ..full() }, &shell("x"), output), None);
    assert_eq!(first(&full(), &shell("x"), output).map(|denial| denial.layer), Some(Layer::Mask));
}

#[test]
fn between_file_systems_nothing_is_moved_whoever_holds_them() {
    let output = "ln: failed to create hard link 'a' => '/srv/b': Invalid cross-device link";
    let on = |devices: [u64; 2]| {
        let mut named = open_places(&auto(), &shell("x"), output);
        named.iter_mut().zip(devices).for_each(|(place, device)| place.device = device);
        denied::likely(&auto(), &shell("x"), &CommandResult { named, ..ended(CommandExit::Code(1), output) })
    };
    assert_eq!(on([1, 2]), []);
    assert_eq!(on([1, 1])[0].missing_right.to_string(), "write /srv/b");
}

#[test]
fn set_id_bits_are_refused_by_the_filter_alone() {
    let denial = first(&auto(), &shell("x"), "chmod: changing permissions of 'x': Operation not permitted");
    let denial = denial.unwrap();
    assert_eq!((denial.layer, denial.grant), (Layer::Seccomp, None));
    let owner = "chown: changing ownership of 'x': Operation not permitted";
    assert_eq!(first(&auto(), &shell("x"), owner), None);
}

/// Tests that a change of owner is a denial for root alone, since nobody else can give a file away.
#[test]
fn a_file_that_was_to_be_another_users_is_a_denial_for_root_alone() {
    let output = "chown: changing ownership of '/srv/x': Permission denied";
    assert_eq!(first(&auto(), &shell("x"), output), None);
    let root = StandingRights { machine: Machine::new(b"", Vec::new(), true).into(), ..auto() };
    assert_eq!(first(&root, &shell("x"), output).unwrap().missing_right.to_string(), "write /srv/x");
}

#[test]
fn every_denial_of_an_output_is_told_once() {
    let output = "touch: cannot touch '/etc/a': Permission denied\n\
        touch: cannot touch '/etc/a': Permission denied\n\
        cat: /home/me/.ssh/id: Permission denied\n\
        curl: (6) Could not resolve host: example.org\n";
    let denials = all(&auto(), &shell("x"), CommandExit::Code(1), output);
    let rights: Vec<_> = denials.iter().map(|denial| denial.missing_right.to_string()).collect();
    assert_eq!(rights, ["write /etc/a", "read /home/me/.ssh/id", "network"]);
    let complaint = |n| format!("touch: cannot touch '/srv/{n}/x': Permission denied\n");
    let many = (0..50).map(complaint).collect::<Vec<_>>().concat();
    assert_eq!(all(&auto(), &shell("x"), CommandExit::Code(1), &many).len(), 4);
}

#[test]
fn command_that_declared_to_read_was_held_to_its_own_word() {
    let declared = ShellExec { access: Access::Read, ..shell("x") };
    for output in ["touch: cannot touch 'x': Permission denied", "curl: (6) Could not resolve host: h"] {
        let result = ended(CommandExit::Code(1), output);
        assert_eq!(first(&auto(), &declared, output), None);
        assert!(denied::declared_too_little(&declared, &result));
        assert!(!denied::declared_too_little(&shell("x"), &result));
    }
    assert!(!denied::declared_too_little(&declared, &ended(CommandExit::Code(1), "no match")));
    assert!(!denied::declared_too_little(&declared, &ended(CommandExit::Code(0), "permission denied")));
}

#[test]
fn tail_of_long_output_is_read_too() {
    let mut result = ended(CommandExit::Code(1), "building\n");
    result.tail = "touch: cannot touch '/etc/x': Permission denied\n".to_owned();
    result.named = open_places(&auto(), &shell("make"), &result.tail);
    assert_eq!(denied::likely(&auto(), &shell("make"), &result).len(), 1);
}

proptest! {
    #[test]
    fn any_output_is_read_without_a_panic(
        words in proptest::collection::vec(
            "[/a-zé.'\"`‘’: ]{0,8}|Permission denied|: |/etc/x|resolve host: |socket|Operation not permitted|\n", 0..30),
    ) {
        let output = words.concat();
        for standing in [auto(), deny(), online(auto()), full()] {
            prop_assert!(all(&standing, &shell(&output), CommandExit::Code(1), &output).len() <= 4);
        }
    }
}

#[test]
fn the_program_that_complains_is_not_what_it_complains_of() {
    let lines = [
        "/usr/bin/bash: line 1: my file.txt: Read-only file system",
        "/usr/bin/bash: line 1: a.txt: Read-only file system",
    ];
    for line in lines {
        assert_eq!(missing(&auto(), "echo x > it", line), None, "the project may be written: {line}");
    }
}
