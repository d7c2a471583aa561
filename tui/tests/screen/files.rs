use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::path::WirePath;
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};

use crate::seat::Seat;

fn listed(seat: &mut Seat, names: &[&[u8]], cut: bool) {
    let names = names.iter().map(|name| WirePath::from(name.to_vec())).collect();
    seat.core(UiEventKind::FileNames { names, cut, failed: None });
}

fn above_status(seat: &Seat) -> String {
    let screen = seat.screen();
    let rows: Vec<_> = screen.lines().collect();
    rows[4..rows.len() - 2].join("\n")
}

#[test]
fn an_at_sign_lists_the_files_and_letters_narrow_them() {
    let mut seat = Seat::new(60, 16);
    seat.keys("look at @");
    assert_eq!(seat.told(), [UserActionKind::ListFiles]);
    assert!(seat.screen().contains("listing the files of the project"), "{}", seat.screen());
    listed(&mut seat, &[b"src/driver/main.rs", b"src/main.rs", b"Makefile"], false);
    assert_snapshot!(above_status(&seat), @"
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit



    ▸ Makefile
      src/main.rs
      src/driver/main.rs
    ────────────────────────────────────────────────────────────
    ");
    seat.keys("srm");
    seat.press(KeyCode::Tab);
    seat.keys("and @mak\n");
    assert!(seat.screen().contains("› look at @src/main.rs and @Makefile"), "{}", seat.screen());
    seat.keys("\n");
    let text = "look at @src/main.rs and @Makefile ".to_owned();
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Prompt { text, images: vec![] })]);
}

#[test]
fn the_list_is_closed_by_esc_and_chosen_from_by_arrows() {
    let mut seat = Seat::new(60, 16);
    seat.keys("@");
    listed(&mut seat, &[b"a", b"b", b"c"], false);
    seat.press(KeyCode::Down);
    assert!(seat.screen().contains("▸ b"), "{}", seat.screen());
    seat.press(KeyCode::Up);
    seat.press(KeyCode::Up);
    assert!(seat.screen().contains("▸ c"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    assert!(!seat.screen().contains("▸") && seat.screen().contains(" INSERT "), "{}", seat.screen());
    seat.keys("c");
    assert!(!seat.screen().contains("▸"), "what is closed stays closed");
    seat.keys(" @");
    assert!(seat.screen().contains("▸ a"), "{}", seat.screen());
    seat.keys("zz");
    assert!(seat.screen().contains("no file matches"), "{}", seat.screen());
    seat.told();
    seat.keys("\n");
    let text = "@c @zz".to_owned();
    assert_eq!(
        seat.told(),
        [UserActionKind::Agent(AgentAction::Prompt { text, images: vec![] })],
        "it is a text like any other"
    );
}

#[test]
fn an_address_is_no_file_and_an_old_list_is_asked_for_anew() {
    let mut seat = Seat::new(60, 16);
    seat.keys("me@example.org ");
    assert_eq!(seat.told(), []);
    seat.keys("@");
    assert_eq!(seat.told(), [UserActionKind::ListFiles]);
    listed(&mut seat, &[b"a"], false);
    seat.keys("a @");
    assert_eq!(seat.told(), [], "it is a second old");
    seat.wait(11_000);
    seat.keys("x @");
    assert_eq!(seat.told(), [UserActionKind::ListFiles]);
    assert!(seat.screen().contains("▸ a"), "the old list shows until then");
    let why = "its worker was killed".to_owned();
    seat.core(UiEventKind::FileNames { names: vec![], cut: false, failed: Some(why) });
    assert!(seat.screen().contains("the files cannot be listed: its worker was killed"), "{}", seat.screen());
}

#[test]
fn a_hostile_name_is_shown_as_it_is_and_the_model_is_told_the_true_one() {
    let mut seat = Seat::new(60, 16);
    seat.keys("@");
    listed(&mut seat, &[b"a\x1b[2J\nb", b"c\xe2\x80\xaetxt", b"no\xfftext"], true);
    assert_snapshot!(above_status(&seat), @r"
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit



    ▸ a\u{1b}[2J\u{a}b
      c\u{202e}txt
      the project has more files than these 2
    ────────────────────────────────────────────────────────────
    ");
    seat.keys("\n\n");
    let text = "@\"a\\u001b[2J\\nb\" ".to_owned();
    assert_eq!(
        seat.told().last(),
        Some(&UserActionKind::Agent(AgentAction::Prompt { text, images: vec![] }))
    );
}
