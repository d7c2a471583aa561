//! Recognises failures that more access would not prevent, and advises what would.

use ipc::confinement::Tier;
use ipc::tool::{CommandExit, CommandResult};

use crate::judgement::StandingRights;

struct Advice {
    /// Returns true if the failure can occur with this access.
    holds: fn(&StandingRights) -> bool,
    /// Groups of lower-case words. One line of the output must contain all words of one group.
    lines: &'static [&'static [&'static str]],
    /// Words of which the command or the output must contain one. If empty, `lines` alone decides.
    of: &'static [&'static str],
    says: &'static str,
}

const ADVICE: &[Advice] = &[
    Advice {
        holds: is_root,
        lines: &[&["operation not permitted"], &["eperm"]],
        of: &[
            "chown",
            "change ownership",
            "changing ownership",
            "setting ownership",
            "chgrp",
            "can't set user=",
            "preserve ownership",
            "install -o",
            "--owner",
        ],
        says: "Files keep the owner that they are made with: root cannot give files away in the sandbox. Leave owners out \
               (tar --no-same-owner, cp --no-preserve=ownership, rsync --no-owner --no-group, install without -o), or have \
               Bailiwick run as the user who is to own the files.",
    },
    Advice {
        holds: is_root,
        lines: &[
            &["operation not permitted", "set groups"],
            &["operation not permitted", "set user"],
            &["operation not permitted", "setgroups"],
            &["operation not permitted", "setuid"],
            &["operation not permitted", "setgid"],
            &["operation not permitted", "setresuid"],
            &["operation not permitted", "initgroups"],
            &["operation not permitted", "seteuid"],
            &["setpriv:", "operation not permitted"],
            &["operation not permitted", "set gid"],
            &["operation not permitted", "set uid"],
            &["operation not permitted", "root gid"],
            &["operation not permitted", "failed switching to"],
            &["run mysqld as root"],
            &["run elasticsearch as root"],
            &["makepkg as root is not allowed"],
            &["su: system error"],
            &["su: cannot set"],
            &["sudo:", "no new privileges"],
            &["initdb", "cannot be run as root"],
            &["\"root\" execution of the postgresql server is not permitted"],
        ],
        of: &[],
        says: "No command in the sandbox can become another user, not even as root. A program that refuses to run as root needs \
               Bailiwick to be run as the user that the program wants.",
    },
    Advice {
        holds: |standing| standing.tier != Tier::Full,
        lines: &[
            &["unix_listener: cannot bind to path", "operation not permitted"],
            &["error binding socket", "operation not permitted"],
            &["gpg-agent", "operation not permitted"],
            &["keyring", "operation not permitted"],
            &["can't connect to the agent"],
            &["can't connect to the gpg-agent"],
            &["ipc connect call failed"],
            &["couldn't bind", "operation not permitted"],
        ],
        of: &[],
        says: "In the floor tier, a program that hides its memory, such as a key agent, cannot bind or connect sockets, and cannot \
               change the mode or time of a file: Bailiwick cannot see what such a program asks for. In the full tier such a \
               program can (--tier full; `bailiwick doctor` says what the machine lacks for the full tier).",
    },
    Advice {
        holds: |standing| !standing.is_fixed,
        lines: &[
            &["could not open a connection to your authentication agent"],
            &["error connecting to agent"],
        ],
        of: &[],
        says: "The user's ssh agent is out of reach until the user allows its socket: with :allow socket PATH in the terminal, or \
               --socket PATH at the start.",
    },
    Advice {
        holds: |standing| standing.tier != Tier::Full,
        lines: &[
            &["accessdeniedexception", "/tmp/"],
            &["java.io", "/tmp/", "permission denied"],
            &["tempfilehelper"],
            &["java.io.tmpdir"],
        ],
        of: &[],
        says: "Java does not look at $TMPDIR: JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=$TMPDIR makes it use the directory that can be \
               written here.",
    },
    Advice {
        holds: |_| true,
        lines: &[
            &["failed to create", "user data dir"],
            &["cannot create default profile directory"],
            &["profile cannot be loaded"],
            &["no usable sandbox"],
            &["suid sandbox helper"],
            &["failed to move to new namespace"],
            &["running as root without --no-sandbox"],
            &["/dev/shm", "chrome"],
            &["creating shared memory in /dev/shm"],
            &["crashpad", "operation not permitted"],
        ],
        of: &[],
        says: "A browser wants a profile that it can write, and makes namespaces and shared memory of its own, which the \
               sandbox denies: chromium --headless --no-sandbox --disable-dev-shm-usage --user-data-dir=$TMPDIR/profile; firefox --headless \
               --profile $TMPDIR/profile, with MOZ_DISABLE_CONTENT_SANDBOX=1.",
    },
];

fn is_root(standing: &StandingRights) -> bool {
    standing.machine.is_of_root()
}

impl Advice {
    fn fits(&self, standing: &StandingRights, lines: &[String], command: &str) -> bool {
        let says =
            |line: &String| self.lines.iter().any(|words| words.iter().all(|word| line.contains(word)));
        let is_of = |word: &&str| command.contains(*word) || lines.iter().any(|line| line.contains(*word));
        (self.holds)(standing) && lines.iter().any(says) && (self.of.is_empty() || self.of.iter().any(is_of))
    }
}

/// Lower-case phrases by which programs report a missing environment variable.
const MISSING: &[&str] = &[
    "unbound variable",
    "parameter not set",
    "parameter null or not set",
    "not set",
    "must be set",
    "keyerror",
    "is required",
    "is missing",
    "not defined",
    "undefined",
    "no such environment variable",
    "environment variable not found",
    "fetch environment variable",
    "key not found",
];

/// Parts of the names of variables that contain credentials. Users are never advised to pass these.
const CREDENTIALS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE"];

/// Returns advice on a failed command, for causes that more access would not prevent.
pub fn advice(standing: &StandingRights, command: &str, result: &CommandResult) -> Vec<String> {
    if result.exit == CommandExit::Code(0) {
        return Vec::new();
    }
    let text = || [&result.head, &result.tail].into_iter().flat_map(|text| text.lines());
    let lines: Vec<_> = text().map(str::to_ascii_lowercase).collect();
    let command = command.to_ascii_lowercase();
    let advice = ADVICE.iter().filter(|advice| advice.fits(standing, &lines, &command));
    let mut all: Vec<_> = advice.map(|advice| format!("({})", advice.says)).collect();
    all.extend(text().find_map(|line| left_out(standing, line)).map(|name| {
        format!(
            "({name} is set in the user's environment, and not passed to commands. The user can pass it with --env {name}.)"
        )
    }));
    all
}

/// Returns the missing environment variable of a line, if the user has it and it seems to be no credential.
fn left_out<'a>(standing: &StandingRights, line: &'a str) -> Option<&'a str> {
    let lower = line.to_ascii_lowercase();
    MISSING.iter().any(|words| lower.contains(words)).then_some(())?;
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain = |name: &str| !CREDENTIALS.iter().any(|part| name.to_ascii_uppercase().contains(part));
    line.split(|c| !of_a_name(c)).find(|word| is_plain(word) && standing.machine.has_variable(word))
}
