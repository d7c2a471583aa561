//! Tests of attaching pictures with Ctrl+V, and by their pasted paths.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ipc::image::{Image, MediaType};
use tui::{Action, Msg};

use crate::seat::Seat;

fn image() -> Image {
    Image::new(MediaType::Png, (48, 32), vec![1; 10]).unwrap()
}

fn asked(seat: &mut Seat) -> Vec<Action> {
    std::mem::take(&mut seat.actions)
}

fn paste(seat: &mut Seat, text: &str) -> Vec<Action> {
    seat.send(Msg::Paste(text.to_owned()));
    asked(seat)
}

#[test]
fn the_key_asks_for_the_clipboard_and_a_failure_is_one_line() {
    let mut seat = Seat::new(80, 16);
    seat.ctrl('v');
    assert!(matches!(asked(&mut seat)[..], [Action::AttachClipboard]));
    seat.send(Msg::Attached(Err("the clipboard has no picture; :image PATH attaches a file".to_owned())));
    assert!(
        seat.screen().contains("the clipboard has no picture; :image PATH attaches a file"),
        "{}",
        seat.screen()
    );
    seat.send(Msg::Attached(Ok(image())));
    assert!(seat.screen().contains("48×32"), "{}", seat.screen());
}

#[test]
fn keys_that_come_in_a_burst_start_no_program() {
    let mut seat = Seat::new(80, 16);
    seat.send(Msg::KeyOfMany(KeyEvent::new(KeyCode::Char('v'), KeyModifiers::CONTROL)));
    assert!(asked(&mut seat).is_empty());
}

#[test]
fn a_path_that_is_pasted_is_offered_and_attached_by_the_key_alone() {
    let mut seat = Seat::new(80, 16);
    seat.keys("look at ");
    let found = paste(&mut seat, "'/home/me/a b.png' ");
    let [Action::FindPicture { text, path }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((text.as_str(), path.to_str()), ("'/home/me/a b.png'", Some("/home/me/a b.png")));
    seat.send(Msg::PictureFound { text: text.clone(), image: image() });
    let screen = seat.screen();
    assert!(
        screen.contains("look at '/home/me/a b.png'") && screen.contains("attaches this picture"),
        "{screen}"
    );
    assert!(asked(&mut seat).is_empty(), "nothing is attached yet");
    seat.ctrl('v');
    assert!(asked(&mut seat).is_empty(), "the clipboard is not read");
    let screen = seat.screen();
    assert!(screen.contains("look at") && !screen.contains("b.png"), "{screen}");
    assert!(screen.contains("48×32"), "{screen}");
    seat.ctrl('v');
    assert!(matches!(asked(&mut seat)[..], [Action::AttachClipboard]));
}

#[test]
fn an_offer_ends_with_its_text_or_with_the_next_paste() {
    let mut seat = Seat::new(80, 16);
    paste(&mut seat, "/home/me/a.png");
    seat.send(Msg::PictureFound { text: "/home/me/a.png".to_owned(), image: image() });
    assert!(paste(&mut seat, " and more").is_empty());
    seat.ctrl('v');
    assert!(matches!(asked(&mut seat)[..], [Action::AttachClipboard]));
    for text in ["/home/me/a.txt", "see /home/me/a.png", "a.png", "/a.png\n/b.png"] {
        assert!(paste(&mut seat, text).is_empty(), "{text}");
    }
}
