//! Directory to which relative names in a command's output refer.

use std::path::{Path, PathBuf};

/// Words in commands and programs that change the working directory.
const MOVES: [&str; 11] =
    ["cd", "chdir", "pushd", "popd", "-C", "--chdir", "--directory", "-execdir", "-okdir", "make", "gmake"];

/// Returns the directory to which relative names in the output refer. `None` if the command may change it later.
/// Scripts that change the directory are not recognised.
pub fn start(command: &str, directory: &Path) -> Option<PathBuf> {
    let (start, rest) = first_change(command)
        .map_or((directory.to_owned(), command), |(to, rest)| (directory.join(to), rest));
    let mut words = rest.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c)));
    (!words.any(|word| MOVES.contains(&word))).then_some(start)
}

fn first_change(command: &str) -> Option<(&str, &str)> {
    let rest = command.trim_start().strip_prefix("cd ")?;
    let (word, rest) = rest.split_once("&&").or_else(|| rest.split_once(';'))?;
    let word = word.trim();
    let inner = ['\'', '"'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    let word = inner.unwrap_or(word);
    let plain = !word.is_empty() && word.chars().all(|c| is_plain(c) || (inner.is_some() && c == ' '));
    plain.then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_change_of_directory_is_where_names_begin() {
        for (command, expected) in [
            ("touch x", "/p"),
            ("cd /srv && touch x", "/srv"),
            ("cd sub; touch x; echo abcd", "/p/sub"),
            ("  cd '../a b' ; touch x", "/p/../a b"),
        ] {
            assert_eq!(start(command, Path::new("/p")), Some(expected.into()), "{command}");
        }
    }

    #[test]
    fn where_a_command_may_go_elsewhere_they_begin_anywhere() {
        for command in [
            "(cd /usr/lib; touch ../lib/x)",
            "cd a && cd b && touch x",
            "cd $HOME && touch x",
            "cd \"$(x)\" && y",
            "touch a; pushd b; touch x",
            "env -C /usr/lib touch ../x",
            "env --chdir=/usr touch x",
            "bash -c 'cd /usr; touch x'",
            "make",
            "python3 -c 'import os; os.chdir(\"/usr\"); open(\"x\", \"w\")'",
            "for d in a b; do cd $d; touch ../x; done",
            "find . -execdir touch {} +",
        ] {
            assert_eq!(start(command, Path::new("/p")), None, "{command}");
        }
    }
}
