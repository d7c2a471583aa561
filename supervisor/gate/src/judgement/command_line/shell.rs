//! Reserved words and builtin commands of bash.

/// Reserved words, bash(1) "RESERVED WORDS".
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while", "{", "}",
];

/// The builtins of bash 5.3 except [`HARMLESS`]. They set variables (`printf -v`, `printf %n`, `read`), name other
/// programs (`hash -p`, `alias`), or evaluate text, even as a subscript (`unset 'a[$(…)]'`). So the meaning of the
/// words after them is not certain.
const BUILTINS: &[&str] = &[
    ".",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Builtins that a prefix may begin with: they print, send signals, or change the directory.
pub(super) const HARMLESS: &[&str] = &["cd", "echo", "false", "kill", "pwd", "true", "type"];

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

pub(super) fn is_done_by_it(program: &str) -> bool {
    RESERVED.contains(&program) || BUILTINS.contains(&program) || HARMLESS.contains(&program)
}

/// True for a word that no prefix may begin with: reserved, a builtin that is not harmless, or no program's name.
pub(super) fn is_part_of_it(program: &str) -> bool {
    RESERVED.contains(&program) || BUILTINS.contains(&program) || !is_name(program)
}

/// True for the name or path of a program: neither an assignment nor an option.
fn is_name(program: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+@,".contains(c);
    program.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c))
        && program.chars().all(is_plain)
}
