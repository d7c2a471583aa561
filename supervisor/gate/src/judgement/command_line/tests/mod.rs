//! Tests of the commands that a prefix covers and, above all, of commands that no prefix may cover.

mod bash;
mod hostile;
mod offered;
mod typed;

use super::covers;

fn prefixes(texts: &[&str]) -> Vec<Vec<String>> {
    texts.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn a_list_is_covered_where_every_part_is() {
    let given = prefixes(&["cargo test", "git status", "tail", "echo", "cd", "true", "./x"]);
    for command in [
        "cargo test",
        "  cargo test  ",
        "\n\ncargo test\n",
        "cargo\ttest -p a",
        "cargo test --workspace --features=a,b -- --nocapture name::of::test",
        "cargo 'test'",
        "cargo test 'it'\"'\"'s' \"a  b\" \"\" ''",
        "cargo test --filter=\"a|b\" 'x;y' '$(z)' '`' '\\' '*' '~' '{a,b}' '#' '>' '<('",
        "cargo test HEAD~1 HEAD^ HEAD^^~2 @ - -- / % + , : a=b a:b",
        "cargo test 2>&1 | tail -50",
        "cargo test -- --nocapture 2>&1",
        "cargo test -- 2>&1",
        "git status --porcelain=v1 -z",
        "cargo test 2>/dev/null",
        "cargo test > /dev/null 2>&1",
        "cargo test &>/dev/null && echo ok || echo no",
        "cargo test </dev/null",
        "cargo test >/dev/null --lib  2>  /dev/null",
        "cargo test; git status;",
        "cargo test &&\n\n  git status\necho done\n",
        "cargo test |\ntail",
        "cargo test | tail | cargo test\ncargo test 2>&1",
        "cargo test | tail | tail 'a\n;|' \n\n\tcd x\n",
        "cargo test 'two\nlines'",
        "git status \"ünïcödé – “x” 😀\"",
        "cd x && cargo test",
        "./x && true",
        "./x; cd y",
    ] {
        assert!(covers(&given, command), "{command:?}");
    }
}

#[test]
fn a_prefix_is_compared_by_whole_words() {
    let given = prefixes(&["cargo test", "./run"]);
    for command in [
        "cargo testx",
        "cargo",
        "cargo -q test",
        "cargo t est",
        "xcargo test",
        "./run.sh",
        "run",
        ".//run",
        "/cargo test",
    ] {
        assert!(!covers(&given, command), "{command:?}");
    }
}

#[test]
fn one_part_that_is_not_covered_uncovers_all() {
    let given = prefixes(&["cargo test", "echo"]);
    for command in [
        "cargo test; ls",
        "ls; cargo test",
        "echo a | ls | echo b",
        "cargo test && echo a || ls",
        "echo a\nls",
    ] {
        assert!(!covers(&given, command), "{command:?}");
    }
}

#[test]
fn an_empty_prefix_and_an_empty_command_cover_nothing() {
    assert!(!covers(&[], "cargo test"));
    assert!(!covers(&[vec![]], "cargo test"));
    assert!(!covers(&[vec![String::new()]], "cargo test"));
    for command in ["", " ", "\n", ";", "''", "\"\"", "' '"] {
        assert!(!covers(&[vec![]], command) && !covers(&[vec![String::new()]], command), "{command:?}");
    }
}

#[test]
fn after_a_change_of_directory_a_relative_program_is_another_one() {
    let given = prefixes(&["cd", "./run", "sub/run", "/bin/run", "run"]);
    assert!(covers(&given, "cd x && run && /bin/run"));
    assert!(covers(&given, "./run && sub/run && cd x"));
    assert!(!covers(&given, "cd x && ./run"));
    assert!(!covers(&given, "run; cd x; run; sub/run"));
}

#[test]
fn directories_are_entered_and_never_left() {
    let given = prefixes(&["cd", "cargo test"]);
    assert!(covers(&given, "cd a/b && cd 'c d' && cargo test"));
    for directory in [
        "", " -", " --", " -P a", " ..", " ../x", " a/../..", " /", " /tmp/x", " a b", " ''", " ./..",
        " '/tmp'", " .",
    ] {
        assert!(!covers(&given, &format!("cd{directory} && cargo test")), "{directory:?}");
        assert!(!covers(&given, &format!("cargo test; cd{directory}")), "{directory:?}");
    }
}

#[test]
fn what_the_shell_does_itself_is_covered_by_no_prefix() {
    for (prefix, command) in [
        ("eval", "eval ls"),
        (".", ". x"),
        ("source x", "source x"),
        ("exec", "exec ls"),
        ("command", "command ls"),
        ("builtin", "builtin cd /"),
        ("hash", "hash -p evil cargo"),
        ("alias", "alias a=b"),
        ("set", "set -k"),
        ("printf", "printf %n PATH"),
        ("printf", "printf -v PATH x"),
        ("read", "read PATH"),
        ("test", "test -v 'a[$(id)]'"),
        ("unset", "unset 'a[$(id)]'"),
        ("export", "export PATH=x"),
        ("jobs", "jobs -x ls"),
        ("compgen", "compgen -C ls"),
        ("trap", "trap ls EXIT"),
        ("enable", "enable -f x y"),
        ("time", "time ls"),
        ("coproc", "coproc ls"),
        ("A=b", "A=b ls"),
        ("A=b ls", "A=b ls"),
        ("!", "! ls"),
        ("if", "if ls"),
        ("%1", "%1"),
        ("-x", "-x"),
    ] {
        assert!(!covers(&prefixes(&[prefix]), command), "{command:?}");
    }
}

#[test]
fn every_builtin_is_either_harmless_or_never_covered() {
    let listed = std::process::Command::new("bash")
        .args(["--noprofile", "--norc", "-c", "compgen -b; compgen -k"])
        .output();
    let listed = String::from_utf8(listed.expect("bash is there").stdout).expect("names");
    assert!(listed.lines().count() > 60, "{listed}");
    for name in listed.lines() {
        let harmless = super::shell::HARMLESS.contains(&name);
        assert_eq!(super::shell::is_part_of_it(name), !harmless, "{name}");
    }
}

#[test]
fn length_and_count_are_bounded() {
    let given = prefixes(&["a"]);
    let parts = |count| vec!["a"; count].join(" && ");
    assert!(covers(&given, &parts(64)));
    assert!(!covers(&given, &parts(65)));
    assert!(covers(&given, &format!("a {}", "x".repeat(8 * 1024 - 2))));
    assert!(!covers(&given, &format!("a {}", "x".repeat(8 * 1024 - 1))));
}
