//! A path as a model means it: the short names of shells and browsers lead to the places that they stand for.
//!
//! Taken as it is, `~/notes` would make a directory `~` in the project, and whoever tidies that up types `rm -rf ~`. A name of this kind
//! that is meant literally begins with `./`.

use std::path::Path;

/// The path that a text means; or the reason why that is not certain, and what to write instead.
pub(super) fn meant_path(text: &str, home: Option<&Path>) -> Result<String, String> {
    if let Some(rest) = ["~", "$HOME", "${HOME}"].iter().find_map(|name| rest_of(text, name)) {
        return match home {
            Some(home) => Ok(format!("{}{rest}", home.display())),
            None => Err(unclear(text, "the path of the home directory")),
        };
    }
    if let Some(url) = text.strip_prefix("file:") {
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
    if text.starts_with('~') && text.contains('/') {
        return Err(unclear(text, "the path of that home directory"));
    }
    Ok(text.to_owned())
}

/// Characters that follow a name that is a whole component.
fn rest_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if the first component is a variable of the shell, as variables of the environment are written.
fn is_variable(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    let Some(name) = first.strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn unclear(text: &str, instead: &str) -> String {
    format!(
        "got {text:?}, which only a shell resolves; write {instead}, or `./` before a file that is called so"
    )
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
        ] {
            let why = meant(text).expect_err(text);
            assert!(why.contains(text) && why.contains("./"), "{why}");
        }
        assert!(meant_path("~/x", None).is_err());
    }
}
