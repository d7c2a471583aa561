use super::super::{PrefixError, parse_prefix, preview};

fn refusal(text: &str) -> String {
    parse_prefix(text).expect_err(text).to_string()
}

#[test]
fn a_prefix_is_plain_words() {
    assert_eq!(parse_prefix(" cargo \t test "), Ok(vec!["cargo".to_owned(), "test".to_owned()]));
    assert_eq!(parse_prefix("./x a=b HEAD~1").map(|words| words.len()), Ok(3));
    for text in [
        "cargo 'test'",
        "cargo \"test\"",
        "cargo test;",
        "a|b",
        "a &",
        "a > b",
        "a < b",
        "a $x",
        "a `b`",
        "a *",
        "a ?",
        "a [b]",
        "a {b}",
        "a (b)",
        "a #b",
        "a !b",
        "a \\b",
        "a ~",
        "a ~/b",
        "a é",
        "a\nb",
        "a\rb",
        "a\0b",
        "a\u{a0}b",
        "a\u{2028}b",
    ] {
        assert!(matches!(parse_prefix(text), Err(PrefixError::NotPlain(_))), "{text:?}");
    }
    for text in
        ["eval", "exec x", "time x", "if", ".", "source x", "A=b", "%1", "-x", "@", "printf x", "test x"]
    {
        assert!(matches!(parse_prefix(text), Err(PrefixError::Shell(_))), "{text:?}");
    }
    assert_eq!(parse_prefix(" \t "), Err(PrefixError::Empty));
    assert_eq!(parse_prefix(&"a ".repeat(8 * 1024)), Err(PrefixError::TooLong));
}

#[test]
fn a_refusal_says_why() {
    insta::assert_snapshot!(refusal("cargo test; x"), @r#""test;" is not a plain word: a command prefix cannot contain quotes, variables, patterns, operators or redirections"#);
    insta::assert_snapshot!(refusal("eval x"), @r#""eval" is a word of the shell itself, and can change the meaning of the rest of a command"#);
    insta::assert_snapshot!(refusal(""), @"a command prefix needs at least one word: the name of the program");
}

#[test]
fn a_preview_names_the_lines_that_match_and_those_that_still_ask() {
    let preview = |text: &str| preview(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
    insta::assert_snapshot!(preview("cargo test"), @"Matches `cargo test …`, alone or joined by ; && || | or a line break with other allowed commands. Bailiwick still asks for lines with $, backquotes, globs, redirections to files, & or VAR=.");
    assert!(preview("git").ends_with(" Careful: this allows everything that `git` can do."));
    for text in ["python -u", "bash", "env", "find .", "make"] {
        let program = text.split(' ').next().expect("a word");
        let warning = format!(" Careful: `{program}` runs other programs, so this allows any program.");
        assert!(preview(text).ends_with(&warning), "{text}");
    }
    for text in ["python x.py", "git log", "make all", "ls"] {
        assert!(!preview(text).contains("Careful"), "{text}");
    }
    insta::assert_snapshot!(preview("eval"), @r#"Matches nothing: "eval" is a word of the shell itself, and can change the meaning of the rest of a command."#);
}
