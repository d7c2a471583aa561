use std::path::Path;

use super::super::path_pattern::{PathPattern, PatternError};

fn covered(pattern: &str, path: &str) -> bool {
    PathPattern::parse(pattern).expect(pattern).covers(Path::new("/home/me/p"), Path::new(path))
}

#[test]
fn a_pattern_matches_whole_relative_paths() {
    for (pattern, path) in [
        ("src/*.rs", "src/a.rs"),
        ("src/**", "src/a/b.rs"),
        ("src/**/*.rs", "src/b.rs"),
        ("**/*.md", "README.md"),
        ("a?{.rs,.c}", "ab.c"),
        ("a[0-9]", "a7"),
        ("a b/ü", "a b/ü"),
        ("*", ".hidden"),
        (".github/**", ".github/x.yml"),
        // The form in which the terminal UI writes the name of one file.
        ("src/[[]id]/[{]a[}][*][?].ts", "src/[id]/{a}*?.ts"),
    ] {
        assert!(covered(pattern, &format!("/home/me/p/{path}")), "{pattern} {path}");
    }
    for (pattern, path) in [
        ("src/*.rs", "src/a/b.rs"),
        ("*.rs", "src/a.rs"),
        ("src", "src/a.rs"),
        ("src/*.rs", "x/src/a.rs"),
        ("src/?", "src/ab"),
        ("*.RS", "a.rs"),
        ("src/[[]id]/[{]a[}][*][?].ts", "src/i/{a}xy.ts"),
    ] {
        assert!(!covered(pattern, &format!("/home/me/p/{path}")), "{pattern} {path}");
    }
}

#[test]
fn nothing_outside_the_project_is_covered() {
    for path in [
        "/home/me/q/a",
        "/home/me/p2/a",
        "/home/me/p",
        "/home/me/p/",
        "/home/me/p/../q/a",
        "/home/me/p/a/../../q",
        "/home/me/p/..",
        "a",
        "./a",
        "",
        "/",
    ] {
        assert!(!covered("**", path), "{path}");
    }
    let all = PathPattern::parse("**").expect("a pattern");
    assert!(!all.covers(Path::new("p"), Path::new("p/a")));
    assert!(!all.covers(Path::new(""), Path::new("a")));
    assert!(!all.covers(Path::new("/p/../q"), Path::new("/p/../q/a")));
}

#[test]
fn what_the_host_runs_later_is_not_covered_anywhere() {
    for path in [
        ".git",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/hooks/x",
        ".bailiwick.toml",
        "sub/.bailiwick/x",
        ".envrc",
        "sub/.envrc",
        ".vscode/tasks.json",
        ".VSCode/Tasks.json",
        "sub/.vscode/settings.json",
        ".claude/settings.json",
        ".husky/pre-commit",
        ".cargo/config.toml",
        "x.code-workspace",
    ] {
        assert!(!covered("**", &format!("/home/me/p/{path}")), "{path}");
    }
    for path in [".gitignore", "git/config", "vscode/tasks.json", "cargo/config.toml"] {
        assert!(covered("**", &format!("/home/me/p/{path}")), "{path}");
    }
}

#[test]
fn names_that_cannot_be_shown_are_not_covered() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let all = PathPattern::parse("**").expect("a pattern");
    for path in [&b"/p/a\xff"[..], b"/p/a\nb", b"/p/\x1b[2J"] {
        assert!(!all.covers(Path::new("/p"), Path::new(OsStr::from_bytes(path))), "{path:?}");
    }
}

#[test]
fn a_bad_pattern_says_why() {
    let refusal = |text: &str| PathPattern::parse(text).expect_err(text).to_string();
    insta::assert_snapshot!(refusal(""), @"a path pattern cannot be empty");
    insta::assert_snapshot!(refusal("/src/*"), @r#"a path pattern must be relative to the project: "/src/*" is not a relative path"#);
    insta::assert_snapshot!(refusal("src/../*"), @r#"a path pattern cannot contain `.`, `..` or an empty name: "src/../*""#);
    insta::assert_snapshot!(refusal(".git/hooks/*"), @r#"".git/hooks/*" affects your programs outside of the sandbox: Bailiwick asks before each change"#);
    insta::assert_snapshot!(refusal("a\nb"), @r"a path pattern cannot contain '\n'");
    for text in ["~/x", "./a", "a//b", "a/", "a\\b", "a\0", "a\u{2028}", "[a", "{a", ".envrc", "x/.git/*"] {
        assert!(PathPattern::parse(text).is_err(), "{text:?}");
    }
    assert_eq!(PathPattern::parse(&"a".repeat(513)).err(), Some(PatternError::TooLong));
}

#[test]
fn deep_choices_exhaust_nothing() {
    for text in [
        "{".repeat(500),
        "{a,".repeat(170),
        format!("{}{}", "{a,".repeat(120), "}".repeat(120)),
        "**/".repeat(170) + "a",
        "*a".repeat(250),
    ] {
        if let Ok(pattern) = PathPattern::parse(&text) {
            assert!(!pattern.covers(Path::new("/p"), Path::new(&format!("/p/{}", "a/".repeat(1000) + "b"))));
        }
    }
}
