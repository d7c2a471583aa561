//! What bash does itself.

/// Words that begin or end something in the grammar, bash(1) "RESERVED WORDS".
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while", "{", "}",
];

/// The builtins of bash 5.3 but for those in [`HARMLESS`]: they set variables (`printf -v`, `printf %n`, `read`), name other
/// programs (`hash -p`, `alias`), or evaluate text, if only as a subscript (`unset 'a[$(…)]'`); what the words after
/// them mean is not certain any more.
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

/// Builtins that a prefix may name: they print, signal, or change the directory.
pub(super) const HARMLESS: &[&str] = &["cd", "echo", "false", "kill", "pwd", "true", "type"];

/// True for a word of bash's grammar.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether the shell does it itself.
pub(super) fn is_done_by_it(program: &str) -> bool {
    RESERVED.contains(&program) || BUILTINS.contains(&program) || HARMLESS.contains(&program)
}

/// Whether a word in the place of a program is the shell's own business rather than the name of a program: no prefix covers it.
pub(super) fn is_part_of_it(program: &str) -> bool {
    RESERVED.contains(&program) || BUILTINS.contains(&program) || !is_name(program)
}

/// The name or path of a program: no assignment, no job, no option.
fn is_name(program: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+@,".contains(c);
    program.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c))
        && program.chars().all(is_plain)
}
