//! Denied writes of a command that exited with 0: `touch /etc/x; true`, `make | tail`.
//!
//! A line counts only if the kernel or the line's own words confirm a write, and if the command does more than show
//! text. Denied reads do not count: a search meets hidden paths and loses nothing.

use ipc::denial::{Denial, Grade, Operation};
use ipc::named::NamedPlace;

use super::message::DenialMessage;

/// Programs that print text of other origin, with such subcommands of `git`; also `cd`, which prints nothing.
pub(super) const SHOWS_TEXT: [&str; 40] = [
    "ag", "awk", "bat", "blame", "cat", "cd", "column", "comm", "cut", "diff", "dmesg", "echo", "egrep",
    "fgrep", "fold", "grep", "head", "hexdump", "jq", "less", "log", "ls", "more", "nl", "od", "printf",
    "rg", "sed", "show", "sort", "strings", "tac", "tail", "tr", "true", "uniq", "wc", "xxd", "zcat",
    "zgrep",
];

/// Words of a shell that can precede the name of a program.
const KEYWORDS: [&str; 10] = ["!", "do", "done", "elif", "else", "fi", "if", "then", "until", "while"];

/// Returns the denial if the command most likely met it, although it exited with 0. The denial is proved only if the
/// kernel denies the repeated access, and the command passes the path to the complaining program.
pub(super) fn despite_success(
    message: &DenialMessage<'_>,
    place: &NamedPlace,
    denial: Denial,
) -> Option<Denial> {
    let is_confirmed = match message.answer(place, denial.operation) {
        Some(_) => denial.grade == Grade::Proved,
        None => message.tells_of_writing(&place.named),
    };
    let holds =
        denial.operation == Operation::Write && is_confirmed && message.is_of_the_command(&place.named);
    if !holds {
        return None;
    }
    let proved = denial.grade == Grade::Proved && message.is_of_an_own_word(&place.named);
    Some(if proved { denial } else { Denial { grade: Grade::Likely, errno: None, ..denial } })
}

/// Returns the programs that a command starts, as far as its text tells: the first word of each part outside of quotes.
pub(super) fn programs_in(command: &str) -> Vec<&str> {
    let mut quote: Option<char> = None;
    let ends_part = |c: char| {
        if let Some(open) = quote {
            quote = quote.filter(|_| c != open);
            return false;
        }
        quote = Some(c).filter(|c| ['\'', '"'].contains(c));
        ";|&\n(){}`".contains(c)
    };
    command.split(ends_part).filter_map(program).collect()
}

/// Returns the program of one part, after keywords and variables (`do LC_ALL=C /bin/ls`); `None` for a part of `2>&1`.
fn program(part: &str) -> Option<&str> {
    let comes_before = |word: &&str| word.contains('=') || KEYWORDS.contains(word);
    let mut words = part.split_whitespace().skip_while(comes_before);
    let first = words.next().filter(|word| word.starts_with(|c: char| !c.is_ascii_digit() && c != '>'))?;
    let name = first.rsplit('/').next().unwrap_or(first);
    if name == "git" { words.find(|word| !word.starts_with('-')) } else { Some(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_command_names_its_program() {
        let table: [(&str, &[&str]); 8] = [
            ("cat x", &["cat"]),
            ("LC_ALL=C /bin/cat 'a; touch x' | tail -3", &["cat", "tail"]),
            ("cd x && make all 2>&1 | tail", &["cd", "make", "tail"]),
            ("cat x &>/dev/null", &["cat"]),
            ("git --no-pager log -1", &["log"]),
            ("grep -E \"a|b\" x || true", &["grep", "true"]),
            ("if true; then touch $f; fi", &["true", "touch"]),
            ("", &[]),
        ];
        for (command, programs) in table {
            assert_eq!(programs_in(command), programs, "{command}");
        }
    }
}
