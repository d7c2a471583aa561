//! Lines about tool calls, such as `→ edit src/app.py +3 -1`, then ` ✓ edit src/app.py +3 -1 after 5 ms`.

use std::io::stderr;

use protocol::event::ToolCallStatus;
use tui::cut;

use crate::process::tty;

/// Width in columns that is assumed if standard error is no terminal.
const COLUMNS: usize = 160;

/// Returns the width in columns of a line on standard error.
pub(super) fn columns() -> usize {
    tty::columns(&stderr()).unwrap_or(COLUMNS)
}

pub(super) fn beginning(call: &str, columns: usize) -> String {
    cut(&format!("→ {call}"), columns)
}

/// Returns the line for the end of a call, with the first line of a failed call's result. Other code prints denials.
pub(super) fn ending(
    call: &str,
    status: ToolCallStatus,
    duration_ms: u64,
    content: &str,
    columns: usize,
) -> String {
    let after = format!("after {duration_ms} ms");
    let first = content.lines().map(str::trim).find(|line| !line.is_empty());
    // The words after the call are more important than the end of a long command.
    let call = cut(call, columns / 2);
    match (status, first) {
        (ToolCallStatus::Completed, _) => cut(&format!("  ✓ {call} {after}"), columns),
        // The cause of a failure is not cut, even if a narrow terminal breaks the line.
        (ToolCallStatus::Failed | ToolCallStatus::Interrupted, Some(line)) => {
            cut(&format!("  ✗ {call} {status} {after}: {line}"), columns.max(COLUMNS))
        }
        _ => cut(&format!("  ✗ {call} {status} {after}"), columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_names_its_call_and_the_cause_of_a_failure() {
        use ToolCallStatus::{Completed, Denied, Failed, Interrupted};
        let of = |status, content| ending("run make", status, 3, content, COLUMNS);
        assert_eq!(of(Completed, "out\n[exit code 0, 3 ms]"), "  ✓ run make after 3 ms");
        assert_eq!(
            of(Failed, "\n  bash: x: command not found\nmore"),
            "  ✗ run make failed after 3 ms: bash: x: command not found"
        );
        assert_eq!(of(Failed, " \n"), "  ✗ run make failed after 3 ms");
        assert_eq!(of(Denied, "blocked by the kernel"), "  ✗ run make denied after 3 ms");
        assert_eq!(of(Interrupted, ""), "  ✗ run make interrupted after 3 ms");
    }

    #[test]
    fn both_lines_fit_and_an_ending_keeps_its_end() {
        let long = format!("run {}", "ü漢".repeat(200));
        let (first, last) = (beginning(&long, 40), ending(&long, ToolCallStatus::Completed, 12, "", 40));
        assert!(first.starts_with("→ run ü漢") && first.ends_with('…'), "{first}");
        assert!(last.ends_with("… after 12 ms"), "{last}");
        let failed = ending(&long, ToolCallStatus::Failed, 1, "no such file or directory", 40);
        assert!(failed.ends_with("failed after 1 ms: no such file or directory"), "{failed}");
        for line in [first, last] {
            assert!(ratatui::text::Line::from(line.as_str()).width() <= 40, "{line}");
        }
    }
}
