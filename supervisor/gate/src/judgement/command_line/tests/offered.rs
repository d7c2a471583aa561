use super::super::{begins_a_part, covers, offered_parts, offered_prefix};

fn offered(command: &str) -> Option<String> {
    let words = offered_prefix(command)?;
    assert!(covers(std::slice::from_ref(&words), command), "{command:?} {words:?}");
    Some(words.join(" "))
}

#[test]
fn the_words_that_say_what_a_command_does_are_offered() {
    for (command, prefix) in [
        ("cargo test --workspace", "cargo test"),
        ("cargo nextest run -p x", "cargo nextest run"),
        ("cargo test -p a && cargo test -p b", "cargo test"),
        ("cargo test 2>&1", "cargo test"),
        ("git commit -m 'a message'", "git commit"),
        ("npm run lint -- --fix", "npm run lint"),
        ("/usr/bin/git status", "/usr/bin/git status"),
        ("pytest -q tests/a.py", "pytest"),
        ("python3.12 setup.py build", "python3.12 setup.py"),
        ("python -m pytest -q", "python -m pytest"),
        ("bash ./build.sh --fast", "bash ./build.sh"),
        ("make test", "make test"),
        ("./gradlew build", "./gradlew build"),
        ("rm -rf target", "rm -rf target"),
        ("mkdir -p a/b", "mkdir"),
        ("echo a", "echo a"),
    ] {
        assert_eq!(offered(command).as_deref(), Some(prefix), "{command:?}");
    }
}

#[test]
fn nothing_is_offered_where_a_prefix_would_say_too_little() {
    for command in [
        "bash",
        "bash -c 'cargo test'",
        "sh -x a.sh",
        "env A=b cargo test",
        "sudo cargo test",
        "xargs rm",
        "eval cargo test",
        "exec cargo test",
        "source x",
        ". x",
        "command cargo test",
        "builtin cd",
        "find . -name x",
        "find . -exec rm x",
        "python",
        "python -c pass",
        "/usr/bin/python3 -c pass",
        "python -m code",
        "perl -e 1",
        "node -e 1",
        "node --eval x",
        "awk 1 x",
        "sed -i s/a/b/ x",
        "ssh host ls",
        "make",
        "make -f x",
        "timeout 5 cargo test",
        "nohup x",
        "npx x",
        "npm exec x",
        "docker run x",
        "tar xf x",
        "curl https://x.example/",
        "git -c core.pager=x log",
        "git rebase -x ls",
        "git bisect run x",
        "git submodule foreach ls",
        "cargo",
        "cargo +nightly test",
        "npm run",
        "npm run --silent",
        "cargo test | tail -5",
        "cd x && cargo test",
        "cargo test && cargo build",
        "cargo test $(x)",
        "grep 'a b' c",
        "",
    ] {
        assert_eq!(offered(command), None, "{command:?}");
    }
}

#[test]
fn the_parts_of_a_compound_command_are_offered_where_no_single_prefix_covers_it() {
    let parts =
        |command: &str| offered_parts(command).iter().map(|words| words.join(" ")).collect::<Vec<_>>();
    assert_eq!(parts("cargo fmt --all && cargo test -q; cargo test -p x"), ["cargo fmt", "cargo test"]);
    assert_eq!(parts("cd sub && npm test"), ["cd sub", "npm test"]);
    assert_eq!(parts("npm test || true"), ["npm test", "true"]);
    for command in [
        "cargo test && sudo rm x",
        "export A=1 && npm test",
        "set -e; npm test",
        "npm test; exit",
        "source ./x; npm test",
        "trap 'rm x' EXIT; npm test",
        "cd .. && npm test",
        "alias npm=rm; npm test",
        "set -o pipefail; npm test",
        "umask 077 && npm test",
        "unset CI; npm test",
        "shopt -s globstar; npm test",
        "declare -x A=1; npm test",
        "pushd sub && npm test; popd",
        "CI=1 npm test && npm run lint",
        "(npm test); npm run lint",
        "time npm test; npm run lint",
        "if true; then npm test; fi",
        "f() { npm test; }; f",
        "npm test & wait",
        "cargo test",
        "cargo test -p a && cargo test -p b",
        "sudo x; eval y",
        "cargo fmt && $X",
        "a > b && c",
    ] {
        assert!(parts(command).is_empty(), "{command:?}: {:?}", parts(command));
    }
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(begins_a_part(&words("cargo test"), "cargo fmt && cargo test -q"));
    assert!(!begins_a_part(&words("cargo test"), "cargo fmt && echo cargo test"));
    assert!(!begins_a_part(&[], "cargo fmt") && !begins_a_part(&words("cargo"), "cargo fmt && $X"));
}
