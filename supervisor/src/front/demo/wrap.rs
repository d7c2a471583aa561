const WIDTH: usize = 90;

/// Breaks long lines of a text. Existing line ends are kept.
pub(super) fn wrapped(text: &str) -> String {
    text.lines().map(wrapped_line).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str) -> String {
    let (mut wrapped, mut column) = (String::with_capacity(line.len()), 0);
    for word in line.split(' ') {
        let width = word.chars().count();
        if column > 0 {
            let breaks = column + 1 + width > WIDTH;
            wrapped.push(if breaks { '\n' } else { ' ' });
            column = if breaks { 0 } else { column + 1 };
        }
        wrapped.push_str(word);
        column += width;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_nowhere_else() {
        let long = "x".repeat(WIDTH);
        assert_eq!(wrapped(&format!("a b {long} c")), format!("a b\n{long}\nc"));
        assert_eq!(wrapped("a\n\nb  c"), "a\n\nb  c");
    }
}
