//! Resolves paths of a model that use short forms of shells and browsers, such as `~`.
//!
//! Taken literally, `~/notes` would create a directory `~` in the project, and a person who removes it might type
//! `rm -rf ~`. A literal name of this kind begins with `./`.

use std::path::Path;

/// Returns the path that a model means. The error says why the meaning is uncertain, and what to write instead.
pub(super) fn meant_path(text: &str, home: Option<&Path>) -> Result<String, String> {
    if let Some(rest) = ["~", "$HOME", "${HOME}"].iter().find_map(|name| rest_of(text, name)) {
        return match home {
            Some(home) => Ok(format!("{}{rest}", home.display())),
            None => Err(unclear(text, "the path of the home directory")),
        };
    }
    if let Some(url) = without_scheme(text, "file") {
        let path = url.strip_prefix("//localhost").or_else(|| url.strip_prefix("//")).unwrap_or(url);
        return if path.starts_with('/') && !path.contains('%') {
            Ok(path.to_owned())
        } else {
            Err(unclear(text, "the path without `file:` and without escapes"))
        };
    }
    if is_variable(text) {
        return Err(unclear(text, "the path that the variable stands for (the environment names TMPDIR)"));
    }
    if text.starts_with("$(") || text.starts_with('`') {
        return Err(unclear(text, "the path that the command prints"));
    }
    if is_address(text) {
        return Err(format!(
            "got {text:?}, an address; fetch it by a command, or write `./` before a file of that name"
        ));
    }
    if is_quoted(text) {
        return Err(format!(
            "got {text:?}; write the path without quotes, or `./` before a file of that name"
        ));
    }
    if text.ends_with(['\n', '\r']) {
        return Err(format!("got {text:?}; write the path without the line end"));
    }
    if text.starts_with('~') && text.contains('/') {
        return Err(unclear(text, "the path of that home directory"));
    }
    Ok(text.to_owned())
}

fn rest_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the text after `scheme`, which may be in upper or lower case (RFC 3986, 3.1); `None` for another scheme.
fn without_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let (name, rest) = text.split_once(':')?;
    name.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// True if the first component is a shell variable.
fn is_variable(text: &str) -> bool {
    let of_a_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if let Some(braced) = text.strip_prefix("${") {
        // `${NAME}`, and `${NAME:-else}`, whose other half may have slashes.
        let rest = braced.trim_start_matches(of_a_name);
        return rest.len() < braced.len() && rest.starts_with(['}', ':', '-', '=', '?', '+', '%', '#', '/']);
    }
    let first = text.split('/').next().unwrap_or_default();
    first.strip_prefix('$').is_some_and(|name| !name.is_empty() && name.chars().all(of_a_name))
}

/// True for an address with a scheme and a host. Taken as a path, it would create a directory with the scheme's name.
fn is_address(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// True if quotes, which a shell removes, enclose the whole text.
fn is_quoted(text: &str) -> bool {
    let within = |quote| text.strip_prefix(quote).is_some_and(|rest| rest.ends_with(quote));
    within('"') || within('\'')
}

fn unclear(text: &str, instead: &str) -> String {
    format!("got {text:?}, which only a shell resolves; write {instead}, or `./` before a file of that name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_lead_to_the_place_that_is_meant() {
        let meant = |text| meant_path(text, Some(Path::new("/home/me")));
        for (text, expected) in [
            ("~", "/home/me"),
            ("~/notes.txt", "/home/me/notes.txt"),
            ("$HOME/a", "/home/me/a"),
            ("${HOME}/a", "/home/me/a"),
            ("file:///tmp/u.py", "/tmp/u.py"),
            ("file://localhost/tmp/u.py", "/tmp/u.py"),
            ("file:/tmp/u.py", "/tmp/u.py"),
            ("./~/x", "./~/x"),
            ("./$HOME/x", "./$HOME/x"),
            ("a/~/x", "a/~/x"),
            ("~lock.docx", "~lock.docx"),
            ("$id.tsx", "$id.tsx"),
            ("$lang/index.tsx", "$lang/index.tsx"),
            ("FILE:///tmp/u.py", "/tmp/u.py"),
            ("${HOME}", "/home/me"),
            ("${id}.tsx", "${id}.tsx"),
            ("a:b/c", "a:b/c"),
            ("a b://c", "a b://c"),
            ("$HOMES", "$HOMES/"),
            ("", ""),
        ] {
            let is_refused = text == "$HOMES";
            assert_eq!(meant(text).ok(), Some(expected.to_owned()).filter(|_| !is_refused), "{text}");
        }
        for text in [
            "$TMPDIR/x",
            "${TMPDIR}",
            "$XDG_CONFIG_HOME/a",
            "~root/x",
            "file:a",
            "file:///a%20b",
            "file://host/x",
            "~+/x",
            "$PWD/x",
            "${TMPDIR:-/tmp}/x",
            "${XDG_CACHE_HOME-~/.cache}/x",
            "${HOME%/}/x",
            "$(pwd)/x",
            "$(git rev-parse --show-toplevel)/x",
            "`pwd`/x",
            "https://example.com/x",
            "vscode-remote://wsl/home/me/x",
            "sftp://host/x",
        ] {
            let why = meant(text).expect_err(text);
            assert!(why.contains(text) && why.contains("./"), "{why}");
        }
        assert!(meant_path("~/x", None).is_err());
        for (text, instead) in [
            ("'notes.txt'", "without quotes"),
            ("\"~/a b\"", "without quotes"),
            ("'/etc/hosts'", "without quotes"),
            ("notes.txt\n", "without the line end"),
            ("/tmp/x\r\n", "without the line end"),
            ("src/\r", "without the line end"),
        ] {
            assert!(meant(text).is_err_and(|why| why.contains(instead)), "{text:?}");
        }
        for literal in ["it's", "'", "\"a\".txt", "./'a'", "a\nb"] {
            assert_eq!(meant(literal).as_deref(), Ok(literal));
        }
    }
}
