//! Tests that bash runs only the programs that a covered command names, and with the same words.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;

use super::super::parse::simple_commands;
use super::{covers, prefixes};

const APPROVED: &[&str] = &["cargo test", "git", "b", "echo", "cd d", "true", "kill -l"];

/// Programs that bash finds, including some that no test means to run.
const PROGRAMS: &[&str] =
    &["cargo", "git", "b", "curl", "sh", "env", "sudo", "a", "x", "test", "d", "ls", "tail", "testx", "carg"];

const LOCALES: &[&str] = &["C.UTF-8", "POSIX"];

/// Directory with the only programs that bash finds. Each of them logs its arguments.
struct Stage {
    root: TempDir,
    bash: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let path = std::env::var_os("PATH").expect("a path");
        let found = std::env::split_paths(&path).map(|at| at.join("bash")).find(|file| file.is_file());
        let stage = Self { root, bash: found.expect("bash") };
        fs::create_dir(stage.at("bin")).expect("bin");
        // One file each: the commands of a pipeline write at the same time, and bash writes a line at a time.
        let text = format!(
            "#!{} -p\nprintf '%s\\0' \"$#\" \"${{0##*/}}\" \"$@\" > '{}'/$EPOCHREALTIME.$$\n",
            stage.bash.display(),
            stage.at("log").display()
        );
        // Written by a separate process: a process that another test forks meanwhile would hold the open file, and a
        // file that is open for writing cannot be executed (ETXTBSY).
        let write = "text=$1; shift; for name; do printf %s \"$text\" > \"$name\" && chmod 755 \"$name\" || exit; done";
        let mut writer = Command::new(&stage.bash);
        writer.args(["-c", write, "-", &text]).args(PROGRAMS).current_dir(stage.at("bin"));
        assert!(writer.status().expect("bash").success());
        stage
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs a text in bash. Returns each call of a program, and the names of the files that the text leaves behind.
    fn run(&self, text: &str, locale: &str) -> (Vec<Vec<String>>, Vec<String>) {
        let cwd = self.at("cwd");
        fs::create_dir_all(cwd.join("d")).expect("a directory");
        fs::create_dir_all(self.at("log")).expect("a log");
        let mut bash = Command::new(&self.bash);
        bash.args(["--noprofile", "--norc", "-c", text]).current_dir(&cwd).env_clear();
        bash.env("PATH", self.at("bin")).env("HOME", &cwd).env("LC_ALL", locale);
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().expect("bash runs");
        let log = fs::read_dir(self.at("log")).expect("the log");
        let mut log: Vec<_> = log.map(|entry| entry.expect("an entry").path()).collect();
        log.sort();
        let log: String = log.iter().map(|call| fs::read_to_string(call).expect("a call")).collect();
        fs::remove_dir_all(self.at("log")).expect("an end");
        let left =
            fs::read_dir(&cwd).expect("the directory").map(|entry| entry.expect("an entry").file_name());
        let left = left.map(|name| name.to_string_lossy().into_owned()).collect();
        fs::remove_dir_all(&cwd).expect("an end");
        (calls(&log), left)
    }
}

/// Reads the calls in a log: each is the number of arguments, the name of the program, and the arguments.
fn calls(log: &str) -> Vec<Vec<String>> {
    let mut fields = log.split_terminator('\0').map(str::to_owned);
    let mut calls = Vec::new();
    while let Some(count) = fields.next() {
        let count: usize = count.parse().expect("a count");
        let call: Vec<_> = fields.by_ref().take(count + 1).collect();
        assert_eq!(call.len(), count + 1, "{log:?}");
        calls.push(call);
    }
    calls
}

thread_local! {
    static STAGE: Stage = Stage::new();
}

fn compare(text: &str, locale: &str) -> Result<(), TestCaseError> {
    let approved = prefixes(APPROVED);
    if !covers(&approved, text) {
        return Ok(());
    }
    let mut expected: Vec<_> =
        simple_commands(text).expect("covered").into_iter().map(|one| one.words).collect();
    let (ran, left) = STAGE.with(|stage| stage.run(text, locale));
    prop_assert_eq!(left, ["d"], "{:?}", text);
    for call in &ran {
        prop_assert!(approved.iter().any(|prefix| call.starts_with(prefix)), "{:?} ran {:?}", text, call);
        let position = expected.iter().position(|words| words == call);
        prop_assert!(position.is_some(), "{:?} ran {:?}, not one of {:?}", text, call, expected);
        expected.swap_remove(position.unwrap_or_default());
    }
    // Words that did not run are of the shell itself, or came after a `||`.
    let is_program = |words: &Vec<String>| PROGRAMS.contains(&words[0].as_str());
    prop_assert!(
        text.contains("||") || !expected.iter().any(is_program),
        "{:?} did not run {:?}",
        text,
        expected
    );
    Ok(())
}

/// Generates a covered command: a program or a builtin, with words of every kind.
fn plain_command() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-zA-Z0-9_./:,@%+^][a-zA-Z0-9_./:,@%+=^-]{0,5}",
        "--?[a-z=]{1,5}",
        "'[ -&(-~\n\té“]{0,6}'",
        "\"[ #%-\\[\\]-_a-~\n\té]{0,6}\"",
        "-?[a-z][a-z=-]{0,2}\"[a-z ']{0,3}\"'[a-z;$ ]{0,3}'[a-z]{0,2}",
        "[a-zA-Z0-9]~[0-9]?",
    ];
    let program = select(vec!["cargo test", "git", "b", "echo", "true"]);
    let words = prop::collection::vec((select(vec![" ", "  ", "\t"]), word), 0..4);
    let end = select(vec![
        "",
        "",
        "",
        " ",
        " 2>&1",
        " >/dev/null",
        " 2> /dev/null",
        " &>/dev/null",
        " </dev/null 2>&1",
    ]);
    (program, words, end).prop_map(|(program, words, end)| {
        let words: String = words.into_iter().map(|(blank, word)| blank.to_owned() + &word).collect();
        format!("{program}{words}{end}")
    })
}

fn plain_text() -> impl Strategy<Value = String> {
    let joint = select(vec!["; ", ";", " && ", "&&\n", " | ", "|", "\n", "\n\n\t", ";\n"]);
    (plain_command(), prop::collection::vec((joint, plain_command()), 0..4))
        .prop_map(|(first, rest)| rest.into_iter().fold(first, |text, (joint, next)| text + joint + &next))
}

/// Pieces of generated texts: words, operators and quotes of a shell, complete and incomplete.
const PIECES: &[&str] = &[
    "cargo test",
    "cargo",
    " test",
    "git",
    "b",
    "echo",
    "curl",
    "sh",
    "a",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "'",
    "\"",
    "'a b'",
    "\"a b\"",
    "''",
    "\\",
    "\\\n",
    "$",
    "$(curl)",
    "`curl`",
    "${x}",
    "$x",
    "$'\\x3b'",
    "$\"a\"",
    "$((1))",
    "<(curl)",
    ">x",
    ">>x",
    "> x",
    "<x",
    "2>&1",
    ">/dev/null",
    " 2>/dev/null",
    "<<X\ncurl\nX\n",
    "<<<a",
    "#",
    " # a",
    "{a,b}",
    "{",
    "}",
    "(",
    ")",
    "()",
    "((",
    "))",
    "[[",
    "]]",
    "[",
    "]",
    "*",
    "?",
    "~",
    "~/",
    "!",
    "!!",
    "time ",
    "coproc ",
    "if ",
    "then ",
    "fi",
    "for ",
    "in ",
    "do ",
    "done",
    "case ",
    "esac",
    "function ",
    "select ",
    "A=b",
    "A=b ",
    "A+=b ",
    "PATH=x ",
    "exec ",
    "eval ",
    "command ",
    "builtin ",
    "alias a=curl",
    "hash -p x b",
    "set -k",
    "printf %n PATH",
    "read PATH",
    "cd d",
    "cd d;",
    "unset x",
    "export A=b",
    "declare A=b",
    "test -v 'a[$(curl)]'",
    "let a",
    "%",
    "%1",
    "^",
    "-",
    "--",
    "=",
    "1",
    "2",
    "2>",
    ">&",
    ">&2",
    "\t",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "\u{2028}",
    "\u{3000}",
    "é",
    "\0",
    "\u{1b}",
    "\u{7f}",
    "./x",
    "/",
    "..",
    ".",
    ":",
    "@",
    "@(a)",
    "+",
    ",",
    "-a",
    "--x=y",
    "kill -l",
    "HEAD~1",
    "HEAD^",
    "true",
    "a:~/b",
];

fn fragment() -> impl Strategy<Value = String> {
    select(PIECES).prop_map(str::to_owned)
}

fn mutated() -> impl Strategy<Value = String> {
    let odd = prop_oneof![3 => proptest::char::range(' ', '~').prop_map(String::from), 2 => fragment()];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), odd), 0..4);
    (plain_text(), changes).prop_map(|(text, changes)| {
        let mut chars: Vec<String> = text.chars().map(String::from).collect();
        for (at, replace, odd) in changes {
            let at = at.index(chars.len());
            if replace { chars[at] = odd } else { chars.insert(at, odd) }
        }
        chars.concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn plain_commands_are_covered_and_run_as_they_were_read(text in plain_text(), locale in select(LOCALES)) {
        prop_assert!(covers(&prefixes(APPROVED), &text), "{:?}", text);
        compare(&text, locale)?;
    }

    #[test]
    fn changed_commands_run_nothing_but_what_was_read(text in mutated(), locale in select(LOCALES)) {
        compare(&text, locale)?;
    }

    #[test]
    fn fragments_run_nothing_but_what_was_read(
        head in select(vec!["cargo test", "git ", "b ", ""]),
        pieces in prop::collection::vec(fragment(), 0..8),
        locale in select(LOCALES),
    ) {
        compare(&(head.to_owned() + &pieces.concat()), locale)?;
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in ".{0,200}") {
        let _ = super::super::offered_prefix(&text);
        let _ = super::super::parse_prefix(&text);
        prop_assert!(!covers(&prefixes(&["no such program"]), &text));
    }

    #[test]
    fn what_is_offered_covers_the_command_and_can_be_typed(text in prop_oneof![plain_text(), mutated()]) {
        if let Some(offered) = super::super::offered_prefix(&text) {
            prop_assert_eq!(super::super::parse_prefix(&offered.join(" ")), Ok(offered.clone()));
            prop_assert!(covers(&[offered], &text));
        }
    }
}

/// Tests that the comparison with bash can fail: bash runs more programs if the text is not covered.
#[test]
fn bash_runs_more_where_the_text_is_not_covered() {
    let stage = Stage::new();
    let (ran, left) = stage.run("cargo test $(curl 'a  b') > x; d=curl; $d", "C.UTF-8");
    assert_eq!(ran, [vec!["curl", "a  b"], vec!["cargo", "test"], vec!["curl"]]);
    assert!(left.contains(&"x".to_owned()));
    let (ran, _) = stage.run("printf %n PATH; b", "C.UTF-8");
    assert_eq!(ran, Vec::<Vec<String>>::new());
}
