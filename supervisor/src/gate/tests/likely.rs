use proptest::prelude::*;

use ipc::denial::Grade;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};

use super::{auto, deny, online};
use crate::gate::{Standing, declared_too_little};

fn shell(command: &str) -> ShellExec {
    ShellExec {
        command: command.to_owned(),
        access: Access::Standing,
        network: None,
        cwd: None,
        timeout_ms: None,
    }
}

fn ended(exit: CommandExit, output: &str) -> CommandResult {
    let (head, tail) = (output.to_owned(), String::new());
    CommandResult { exit, head, omitted_bytes: 0, tail, saved: None, duration_ms: 1 }
}

fn missing(standing: &Standing, command: &str, output: &str) -> Option<String> {
    let denial = standing.likely(&shell(command), &ended(CommandExit::Code(1), output))?;
    assert_eq!(denial.grade, Grade::Likely);
    Some(denial.missing_right)
}

/// Command, output, path.
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
        "/home/me/p/.git/hooks/x, which the user's own programs act on",
    ),
];

#[test]
fn what_programs_say_of_a_write() {
    for (command, output, path) in WRITES {
        let output = format!("some line before\n{output}\nmake: *** [all] Error 1\n");
        assert_eq!(missing(&auto(), command, &output), Some(format!("write {path}")), "{output}");
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
        // A file of the project with mode 000, or not executable.
        ("cat x", "cat: x: Permission denied"),
        ("touch x", "touch: cannot touch 'x': Permission denied"),
        ("./run.sh", "bash: line 1: ./run.sh: Permission denied"),
        ("touch $TMPDIR/x", "touch: cannot touch '/tmp/bw-1/x': Permission denied"),
        // Readable by the rights: whoever refused, it was not the sandbox.
        ("cat /root/x", "cat: /root/x: Permission denied"),
        ("ls /root", "ls: cannot open directory '/root': Permission denied"),
        ("find / -name x", "find: ‘/root’: Permission denied"),
        ("head -1 /var/log/x", "head: cannot open '/var/log/x' for reading: Permission denied"),
        ("/usr/bin/grep x /root/y", "/usr/bin/grep: /root/y: Permission denied"),
        // The program that complains is not what it complains of.
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
fn command_that_succeeded_was_denied_nothing() {
    let output = "touch: cannot touch '/etc/x': Permission denied";
    let likely = |exit| auto().likely(&shell("touch /etc/x"), &ended(exit, output));
    assert_eq!(likely(CommandExit::Code(0)), None);
    assert!(likely(CommandExit::Code(1)).is_some());
    assert!(likely(CommandExit::TimedOut).is_some());
}

#[test]
fn read_only_project_is_a_matter_of_the_mode() {
    let denial = deny().likely(
        &shell("touch x"),
        &ended(CommandExit::Code(1), "touch: cannot touch 'x': Permission denied"),
    );
    let denial = denial.unwrap();
    assert_eq!(
        (denial.missing_right.as_str(), denial.grant.as_deref()),
        ("write /home/me/p/x", Some("--mode auto"))
    );
}

#[test]
fn relative_names_begin_at_the_commands_directory() {
    let output = ended(CommandExit::Code(1), "touch: cannot touch '../x': Permission denied");
    let inside = ShellExec { cwd: Some("src/deep".into()), ..shell("touch ../x") };
    assert_eq!(auto().likely(&inside, &output), None);
    let outside = ShellExec { cwd: Some("/srv/a".into()), ..shell("touch ../x") };
    assert_eq!(auto().likely(&outside, &output).unwrap().missing_right, "write /srv/x");
}

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
        ("ping: socket: Operation not permitted", "the network"),
        ("npm error code EAI_AGAIN\nnpm error getaddrinfo EAI_AGAIN registry.npmjs.org", "the network"),
        ("ssh: Could not resolve hostname h: Temporary failure in name resolution", "h"),
        ("connect: Network is unreachable", "the network"),
        ("  File \"socket.py\", line 9\nPermissionError: [Errno 1] Operation not permitted", "the network"),
    ];
    for (output, address) in table {
        let result = ended(CommandExit::Code(1), output);
        let denial = auto().likely(&shell("x"), &result).unwrap_or_else(|| panic!("{output}"));
        assert_eq!(denial.grant.as_deref(), Some("--net on"));
        assert_eq!(denial.object.to_string(), address, "{output}");
        assert_eq!(online(auto()).likely(&shell("x"), &result), None, "{output}");
    }
}

#[test]
fn command_that_declared_to_read_was_held_to_its_own_word() {
    let declared = ShellExec { access: Access::Read, ..shell("x") };
    for output in ["touch: cannot touch 'x': Permission denied", "curl: (6) Could not resolve host: h"] {
        let result = ended(CommandExit::Code(1), output);
        assert_eq!(auto().likely(&declared, &result), None);
        assert!(declared_too_little(&declared, &result));
        assert!(!declared_too_little(&shell("x"), &result));
    }
    assert!(!declared_too_little(&declared, &ended(CommandExit::Code(1), "no match")));
    assert!(!declared_too_little(&declared, &ended(CommandExit::Code(0), "permission denied")));
}

#[test]
fn tail_of_long_output_is_read_too() {
    let mut result = ended(CommandExit::Code(1), "building\n");
    result.tail = "touch: cannot touch '/etc/x': Permission denied\n".to_owned();
    assert!(auto().likely(&shell("make"), &result).is_some());
}

proptest! {
    #[test]
    fn any_output_is_read_without_a_panic(
        words in proptest::collection::vec(
            "[/a-zé.'\"`‘’: ]{0,8}|Permission denied|: |/etc/x|resolve host: |socket|Operation not permitted|\n", 0..30),
    ) {
        let output = words.concat();
        let result = ended(CommandExit::Code(1), &output);
        for standing in [auto(), deny(), online(auto())] {
            if let Some(denial) = standing.likely(&shell(&output), &result) {
                prop_assert_eq!(denial.grade, Grade::Likely);
            }
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

#[test]
fn a_refused_connection_says_whose_loopback_it_was() {
    use ipc::confinement::Tier;
    let said = |standing: &Standing, exit, output: &str| standing.refused_connection(&ended(exit, output));
    let (full, floor) = (auto().seen_in(Tier::Full), auto());
    let refused = "curl: (7) Failed to connect to localhost port 5432: Connection refused";
    assert!(
        said(&full, CommandExit::Code(7), refused).is_some_and(|hint| hint.contains("none of the machine's"))
    );
    assert_eq!(said(&full, CommandExit::Code(0), refused), None, "the command did not mind");
    assert_eq!(said(&full, CommandExit::Code(7), "no such luck"), None);
    assert_eq!(said(&floor, CommandExit::Code(7), refused), None, "there it is the machine's, and denied");
    assert_eq!(said(&online(full), CommandExit::Code(7), refused), None, "the loopback is the machine's");
}
