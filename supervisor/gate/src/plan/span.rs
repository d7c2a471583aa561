/// Returns the code of a text that is one code span, else `None`. Backticks alone are an empty span.
pub(super) fn code(text: &str) -> Option<&str> {
    let marks = text.len() - text.trim_start_matches('`').len();
    if marks == 0 {
        return None;
    }
    if marks == text.len() {
        return Some("");
    }
    let inner = text.get(marks..)?;
    let end = run_of(inner, marks)?;
    if end + marks != inner.len() {
        return None;
    }
    let code = inner.get(..end)?;
    let is_padded = code.starts_with(' ') && code.ends_with(' ') && code.len() > 1;
    if is_padded && !code.trim_matches(' ').is_empty() { code.get(1..code.len() - 1) } else { Some(code) }
}

/// Returns the position of the first run of exactly `marks` backticks.
fn run_of(text: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(begin) = text.get(at..)?.find('`') {
        let begin = at + begin;
        let rest = text.get(begin..)?;
        let length = rest.len() - rest.trim_start_matches('`').len();
        if length == marks {
            return Some(begin);
        }
        at = begin + length;
    }
    None
}

pub(super) fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

pub(super) fn span(code: &str) -> String {
    let marks = "`".repeat(longest_run(code) + 1);
    let touches = code.starts_with('`') || code.ends_with('`');
    let would_lose_spaces =
        code.starts_with(' ') && code.ends_with(' ') && !code.trim_matches(' ').is_empty();
    let pad = if touches || would_lose_spaces { " " } else { "" };
    format!("{marks}{pad}{code}{pad}{marks}")
}
