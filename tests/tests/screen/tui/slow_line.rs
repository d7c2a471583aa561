//! Tests keys over a slow connection: a timeout decides about a lone escape byte, and partial keys never become text.

use std::thread;
use std::time::Duration;

use super::*;

/// Time between two pieces of one key sequence, longer than any wait after a lone escape byte.
const APART: Duration = Duration::from_millis(300);

/// Time that exceeds the wait for the rest of a sequence.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Key sequences in two pieces, each with the text that the prompt then has.
const CUT: &[(&[u8], &[u8], &str)] = &[
    (b"\x1b[1;5", b"C", ""),
    (b"\x1b[", b"4~", ""),
    (b"\x1b[3", b"~", ""),
    (b"\x1bO", b"F", ""),
    (b"\x1b[97;", b"1u", "a"),
    (b"\x1b]4;1;rgb:ff", b"ff/0000/0000\x07", ""),
    (b"\x1bP>|ter", b"minal 3.1\x1b\\", ""),
    (b"\x1b[?2026;", b"2$y", ""),
    ("\u{e9}".as_bytes().split_at(1).0, "\u{e9}".as_bytes().split_at(1).1, "\u{e9}"),
    ("\u{6f22}".as_bytes().split_at(2).0, "\u{6f22}".as_bytes().split_at(2).1, "\u{6f22}"),
    (b"\x1b[2", b"00~pasted\x1b[201~", "pasted"),
    (b"\x1b[200~pas", b"ted\x1b[201~", "pasted"),
    (b"\x1b[200~pasted\x1b[20", b"1~", "pasted"),
];

/// Beginnings of key sequences whose rest never comes.
const HALVES: &[&[u8]] =
    &[b"\x1b[1;", b"\x1bO", b"\x1b[200", b"\x1b]52;c;bGF0ZQ", b"\xf0\x9f\xa6", b"\x1b[<64;1"];

#[test]
fn an_escape_byte_alone_is_settled_by_time() {
    for remote in [false, true] {
        let (world, server) = (world(), model_of([]));
        let mut command = world.ui(&server, &[]);
        if remote {
            command.env("SSH_TTY", "/dev/pts/0");
        }
        let mut ui = Ui::start(&command, SIZE);
        ui.until_shown("INSERT");
        ui.types(":help\r");
        ui.until_shown(" PAGE ");
        ui.types("\x1b");
        ui.until("the prompt after Esc", |screen| screen.contains("INSERT") && !screen.contains(" PAGE "));
        thread::sleep(APART);
        ui.types("\x1b");
        ui.until("NORMAL after Esc", |screen| screen.contains("NORMAL") && !screen.contains("INSERT"));
        thread::sleep(APART);
        // The escape was a key by itself, so the next keys are not the rest of a sequence.
        ui.types("i");
        ui.until_shown("INSERT");
        ui.types("[D");
        ui.until_shown("[D");
        ui.signal(Signal::SIGTERM);
        assert_eq!(ui.end().code, 143, "remote {remote}");
        assert_eq!(server.requests().len(), 0);
    }
}

#[test]
fn half_of_a_sequence_waits_for_its_rest_and_is_never_text() {
    let (world, server) = (world(), model_of([]));
    let mut ui = Ui::start(&world.ui(&server, &[]), (120, 24));
    ui.until_shown("INSERT");
    let mut expected = String::new();
    for (first, rest, text) in CUT {
        ui.types(".");
        ui.sends(first);
        thread::sleep(APART);
        ui.sends(rest);
        expected.push('.');
        expected.push_str(text);
        ui.until(&format!("{expected} after {first:?}"), |screen| screen.contains(&expected));
    }
    for half in HALVES {
        ui.sends(half);
        thread::sleep(GIVEN_UP);
        ui.types("x");
        expected.push('x');
        ui.until(&format!("{expected} after {half:?}"), |screen| screen.contains(&expected));
    }
    let screen = ui.screen();
    let line = screen.lines().find(|line| line.contains(&expected)).unwrap();
    assert!(line.trim_end().ends_with(&expected) && screen.contains("INSERT"), "{screen}");
    ui.signal(Signal::SIGTERM);
    assert_eq!(ui.end().code, 143);
    assert_eq!(server.requests().len(), 0, "nothing was sent");
}
