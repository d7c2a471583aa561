//! Words that determine what programs do. They decide which prefixes to offer, never what a prefix covers.

use std::path::Path;

/// Shells. If the first argument is a script, they run that script; otherwise they could run anything.
const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "csh", "tcsh", "pwsh", "nu"];

/// Interpreters. They run a file, or code in an option.
const INTERPRETERS: &[&str] = &["python", "pypy", "perl", "ruby", "node", "lua", "luajit", "php", "Rscript"];

/// Programs that run other programs, evaluate text or connect to other machines, perhaps by an option (`find -exec`,
/// `tar --to-command`, `sed e`). A prefix with them covers more than it seems to.
const EVALUATORS: &[&str] = &[
    "env",
    "sudo",
    "doas",
    "su",
    "runuser",
    "setpriv",
    "xargs",
    "parallel",
    "nohup",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "timeout",
    "stdbuf",
    "unbuffer",
    "setsid",
    "script",
    "scriptreplay",
    "flock",
    "watch",
    "entr",
    "chroot",
    "unshare",
    "nsenter",
    "bwrap",
    "firejail",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "strace",
    "ltrace",
    "gdb",
    "lldb",
    "perf",
    "valgrind",
    "rr",
    "busybox",
    "toybox",
    "find",
    "fd",
    "fdfind",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "nano",
    "less",
    "more",
    "man",
    "tar",
    "bsdtar",
    "zip",
    "rsync",
    "ssh",
    "scp",
    "sftp",
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "openssl",
    "gpg",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "pipx",
    "deno",
    "tsx",
    "ts-node",
    "osascript",
    "expect",
    "tclsh",
    "wish",
    "m4",
    "bc",
    "dc",
    "jshell",
    "ghci",
    "runghc",
    "irb",
    "psql",
    "mysql",
    "sqlite",
    "screen",
    "tmux",
    "git-shell",
    "direnv",
    "mise",
    "asdf",
    "nix",
    "nix-shell",
    "guix",
    "sandbox-exec",
    "bailiwick",
    "time",
    "run-parts",
    "start-stop-daemon",
    "ld.so",
];

/// Python modules that are separate programs.
const MODULES: &[&str] =
    &["pytest", "unittest", "mypy", "ruff", "black", "isort", "flake8", "pylint", "tox", "nox"];

/// Programs with subcommands, and the subcommands to offer: none that only runs other programs. After a `+` the next
/// word belongs to the subcommand: `npm run lint`.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "add",
            "bench",
            "build",
            "check",
            "clippy",
            "doc",
            "fetch",
            "fix",
            "fmt",
            "generate-lockfile",
            "insta+",
            "llvm-cov",
            "metadata",
            "nextest+",
            "remove",
            "run",
            "test",
            "tree",
            "update",
        ],
    ),
    (
        "git",
        &[
            "add",
            "blame",
            "branch",
            "checkout",
            "cherry-pick",
            "clean",
            "commit",
            "describe",
            "diff",
            "fetch",
            "log",
            "ls-files",
            "merge",
            "mv",
            "pull",
            "push",
            "reset",
            "restore",
            "rev-parse",
            "revert",
            "rm",
            "show",
            "stash",
            "status",
            "switch",
            "tag",
            "worktree+",
        ],
    ),
    ("go", &["build", "fmt", "get", "list", "mod+", "test", "vet"]),
    ("npm", &["audit", "ci", "install", "ls", "outdated", "run+", "test"]),
    ("pnpm", &["audit", "install", "ls", "outdated", "run+", "test"]),
    ("yarn", &["audit", "install", "list", "outdated", "run+", "test"]),
    ("bun", &["install", "run+", "test"]),
    ("pip", &["check", "download", "freeze", "install", "list", "show"]),
    ("uv", &["add", "lock", "pip+", "remove", "sync", "tree"]),
    ("poetry", &["add", "build", "check", "install", "lock", "remove", "show", "update"]),
    ("ruff", &["check", "format"]),
    ("bundle", &["check", "install", "list"]),
    ("mix", &["compile", "deps.get", "format", "test"]),
    ("dotnet", &["build", "format", "restore", "test"]),
    ("mvn", &["compile", "package", "test", "verify"]),
    ("gradle", &["build", "check", "test"]),
    ("swift", &["build", "test"]),
    ("zig", &["build", "fmt", "test"]),
    ("terraform", &["fmt", "plan", "validate"]),
    ("rustup", &["show", "target+", "component+"]),
];

/// Programs with one purpose. Their name alone is offered as a prefix.
const PLAIN: &[&str] = &[
    "pytest",
    "mypy",
    "black",
    "isort",
    "flake8",
    "pylint",
    "eslint",
    "prettier",
    "tsc",
    "jest",
    "vitest",
    "mocha",
    "rustfmt",
    "gofmt",
    "clang-format",
    "clang-tidy",
    "ctest",
    "shellcheck",
    "mkdir",
    "touch",
    "tox",
    "nox",
    "phpunit",
    "rspec",
    "rubocop",
];

/// Programs that take their tasks from a file, but could run anything by an option. Their name alone is not offered.
const BARE: &[&str] =
    &["make", "gmake", "ninja", "just", "rake", "cmake", "ant", "task", "bazel", "meson", "scons"];

/// Returns the first words of a command, as far as they determine what it does; `None` if no prefix is specific enough.
pub(super) fn telling(words: &[String]) -> Option<&[String]> {
    let (program, rest) = words.split_first()?;
    let name = family(program);
    let first = rest.first().map_or("", String::as_str);
    let count = if EVALUATORS.contains(&name) {
        return None;
    } else if is_interpreter(name) {
        return script(words).map(|count| &words[..count]);
    } else if let Some((_, known)) = SUBCOMMANDS.iter().find(|(tool, _)| *tool == name) {
        subcommand(known, rest)?
    } else if PLAIN.contains(&name) {
        1
    } else if BARE.contains(&name) && (first.is_empty() || first.starts_with('-')) {
        return None;
    } else {
        words.len()
    };
    words.get(..count)
}

/// Returns the number of words up to the subcommand, with the program; `None` if the subcommand is not in `known`.
fn subcommand(known: &[&str], rest: &[String]) -> Option<usize> {
    let mut words = rest.iter().map(String::as_str);
    let first = words.next()?;
    let entry = known.iter().find(|known| known.trim_end_matches('+') == first)?;
    if !entry.ends_with('+') {
        return Some(2);
    }
    words.next().filter(|second| !second.starts_with('-')).map(|_| 3)
}

/// Returns the number of words up to an interpreter's script; `None` if an option determines what runs.
fn script(words: &[String]) -> Option<usize> {
    match words.get(1)?.as_str() {
        "-m" if family(words.first()?) == "python" => {
            let module = words.get(2)?;
            MODULES.contains(&module.as_str()).then_some(3)
        }
        option if option.starts_with(['-', '+']) => None,
        _ => Some(2),
    }
}

pub(super) fn runs_anything(prefix: &[String]) -> bool {
    let Some(program) = prefix.first() else { return false };
    let name = family(program);
    EVALUATORS.contains(&name)
        || (is_interpreter(name) && script(prefix).is_none())
        || (BARE.contains(&name) && prefix.len() == 1)
}

pub(super) fn has_subcommands(program: &str) -> bool {
    SUBCOMMANDS.iter().any(|(tool, _)| *tool == family(program))
}

fn is_interpreter(name: &str) -> bool {
    SHELLS.contains(&name) || INTERPRETERS.contains(&name)
}

/// Returns the name of a program without directory and version: `python` for `/usr/bin/python3.12`.
fn family(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if bare.is_empty() { name } else { bare }
}
