//! Alerts with fixed texts for an absent person: bell, notification (OSC 9), window title (OSC 2).

use tui::Reason;

/// Restores the original title from the terminal's stack, and saves it again for the UI's end (XTWINOPS 23, 22).
pub(super) const END_CALL: &[u8] = b"\x1b[23;0t\x1b[22;0t";

pub(super) fn call(reason: Reason) -> Vec<u8> {
    let words = reason.as_str();
    format!("\x07\x1b]9;{words}\x1b\\\x1b]2;{words}\x1b\\").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_rings_notifies_and_changes_the_title() {
        let call = String::from_utf8(call(Reason::Approval)).unwrap();
        assert_eq!(
            call.escape_debug().to_string(),
            r"\u{7}\u{1b}]9;Bailiwick: an approval waits for you\u{1b}\\\u{1b}]2;Bailiwick: an approval waits for you\u{1b}\\"
        );
    }
}
