use insta::assert_snapshot;
use protocol::event::{AssistantMessage, EventKind, ModelChanged, TokenUsage};
use protocol::frontend::UiEventKind;

use crate::seat::{Seat, start};

const SIZES: [(u16, u16); 5] = [(200, 60), (110, 40), (80, 24), (60, 20), (40, 10)];

fn answer(seat: &mut Seat, input: u64) {
    let usage = TokenUsage { input, cache_read: input * 9, output: 912, ..TokenUsage::default() };
    let message = AssistantMessage {
        message_id: "m".to_owned(),
        model: "m".to_owned(),
        content: vec![],
        stop_reason: "end_turn".to_owned(),
        usage,
        estimated: false,
        cost_usd: "0.15".parse().ok(),
    };
    seat.log(EventKind::AssistantMessage(message));
}

fn bar((width, height): (u16, u16), keys: &str) -> String {
    let mut seat = Seat::new(width, height);
    seat.core(crate::core::logged(EventKind::UserMessage { text: "Fix it.".to_owned(), images: vec![] }));
    answer(&mut seat, 1_200);
    seat.keys(keys);
    let screen = seat.screen();
    let above = usize::from(height) - if height >= 16 { 2 } else { 1 };
    screen.lines().skip(above).collect::<Vec<_>>().join("\n")
}

#[test]
fn of_the_first_five_facts_none_disappears_and_the_others_show_as_width_allows() {
    let bars = SIZES.map(|size| bar(size, ""));
    assert_snapshot!(bars.join("\n\n"), @"
    ›
     INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912 · read-only · claude-opus-4-5 · 7% context · $0.15 · project

    ›
     INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912 · read-only · claude-opus-4-5 · 7% context · $0.15

    ›
     INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912 · read-only

    ›
     INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912

     INS EXE·ask·off·↑12.0k↓912/↑12.0k↓912
    ");
}

#[test]
fn numbers_become_sums_before_any_of_them_disappears() {
    let mut seat = Seat::new(40, 10);
    seat.core(crate::core::logged(EventKind::UserMessage { text: "Fix it.".to_owned(), images: vec![] }));
    answer(&mut seat, 120_034);
    assert_snapshot!(seat.row(9), @" INS EXE·ask·off·↑1.2M↓912/↑1.2M↓912");
    seat.keys(":mode auto\n");
    assert_snapshot!(seat.row(9), @" INS EXE·ask→auto·off·1.2M/↑1.2M↓912");
}

#[test]
fn another_model_has_a_window_of_its_own() {
    let mut seat = Seat::new(80, 24);
    seat.core(crate::core::logged(EventKind::UserMessage { text: "Fix it.".to_owned(), images: vec![] }));
    answer(&mut seat, 1_200);
    let mut change = |to: &str, window, new_context| {
        let from = "claude-opus-4-5".to_owned();
        seat.log(EventKind::ModelChanged(ModelChanged { from, to: to.to_owned(), new_context, window }));
        seat.row(23)
    };
    let rows = [
        change("other", Some(16_000), false),
        change("other", Some(16_000), true),
        change("old", None, false),
    ];
    assert_snapshot!(rows.join("\n"), @"
    INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912 · read-only · other
    INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912 · read-only · other
    INSERT  EXECUTE · ask · net off · ↑12.0k ↓912/↑12.0k ↓912 · read-only · old
    ");
}

#[test]
fn the_name_of_the_directory_is_drawn_as_text() {
    let mut start = start((80, 24));
    start.project = "/home/me/\x1b[31mred\u{202e}".into();
    start.model = "a\nb".to_owned();
    let mut seat = Seat::from(start);
    seat.core(UiEventKind::TextDelta { text: "hello".to_owned() });
    assert_snapshot!(seat.row(23), @r" INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · a\u{a}b");
}

#[test]
fn the_branch_is_the_last_of_the_bar_and_cannot_leave_it() {
    let mut seat = Seat::new(110, 40);
    let branch = |name: &str| UiEventKind::Branch { name: Some(name.to_owned()) };
    seat.core(branch("feature/lexer"));
    assert!(seat.row(39).ends_with("claude-opus-4-5 · project · feature/lexer"), "{}", seat.row(39));
    for hostile in ["a\nb", "\u{202e}a", "\x1b[2Ja", &"x".repeat(4000)] {
        seat.core(branch(hostile));
        let row = seat.row(39);
        assert!(row.contains(" · project") && !row.contains(['\u{202e}', '\x1b']), "{row}");
    }
    seat.core(UiEventKind::Branch { name: None });
    assert!(seat.row(39).ends_with(" · project"), "{}", seat.row(39));
}
