//! Tests that the text of approval requests and denials has enough contrast on dark and light terminals.

use protocol::approval::{FileChange, ServerRequest};
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use tui::{Colour, Msg, ThemeName};

use crate::core::{denial, external, network, patch, update};
use crate::plan_cards::params;
use crate::seat::{Seat, start};
use crate::sub_agents::spawn;
use crate::text::read_code;

type Rgb = [u8; 3];

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

/// Minimum contrast of text (WCAG 2.2, success criterion 1.4.3).
const LEAST: f64 = 4.5;

/// The sixteen colours of xterm. Those of most other terminals differ little from them.
const PALETTE: [Rgb; 16] = [
    BLACK,
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    WHITE,
];

/// A terminal's own colours of text and background.
#[derive(Clone, Copy, Debug)]
struct Terminal {
    text: Rgb,
    background: Rgb,
}

const TERMINALS: [Terminal; 2] =
    [Terminal { text: WHITE, background: BLACK }, Terminal { text: BLACK, background: WHITE }];

fn luminance(colour: Rgb) -> f64 {
    let [red, green, blue] = colour.map(|value| {
        let value = f64::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn number(colour: Color) -> Option<usize> {
    use Color::{Black, Blue, Cyan, Gray, Green, Magenta, Red, White, Yellow};
    let named = [Black, Red, Green, Yellow, Blue, Magenta, Cyan, Gray];
    let bright = [
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        White,
    ];
    named.iter().chain(&bright).position(|known| *known == colour)
}

fn rgb(colour: Color, own: Rgb) -> Rgb {
    match colour {
        Color::Reset => own,
        Color::Rgb(red, green, blue) => [red, green, blue],
        Color::Indexed(number @ 232..) => [8 + (number - 232) * 10; 3],
        Color::Indexed(number @ 16..) => {
            [36, 6, 1].map(|part| [0, 95, 135, 175, 215, 255][usize::from((number - 16) / part % 6)])
        }
        colour => PALETTE[number(colour).unwrap_or_else(|| panic!("{colour:?}"))],
    }
}

/// Returns the lowest contrast of a cell on this terminal. Reversing the cell does not change it.
fn drawn(cell: &Cell, terminal: Terminal) -> f64 {
    let background = rgb(cell.bg, terminal.background);
    let mut texts = vec![rgb(cell.fg, terminal.text)];
    if cell.modifier.contains(Modifier::BOLD) {
        // Some terminals draw bold text in the bright variant of its colour.
        texts.extend(number(cell.fg).filter(|number| *number < 8).map(|number| PALETTE[number + 8]));
    }
    if cell.modifier.contains(Modifier::DIM) {
        // Some terminals draw faint text halfway to the background.
        texts = texts.iter().map(|text| [0, 1, 2].map(|n| text[n].midpoint(background[n]))).collect();
    }
    texts.into_iter().map(|text| contrast(text, background)).fold(f64::INFINITY, f64::min)
}

fn is_line(symbol: &str) -> bool {
    symbol.chars().all(|c| c.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&c) && c != '│')
}

/// Checks the contrast of the text in these rows.
fn check(seat: &Seat, rows: impl Iterator<Item = u16>, columns: u16, about: &str) {
    for y in rows {
        for cell in (0..columns).filter_map(|x| seat.buffer().cell((x, y))) {
            for terminal in TERMINALS.into_iter().filter(|_| !is_line(cell.symbol())) {
                let contrast = drawn(cell, terminal);
                assert!(
                    contrast >= LEAST,
                    "{about}, row {y}: {contrast:.1}:1 for {cell:?} on {terminal:?}\n{}",
                    seat.screen()
                );
            }
        }
    }
}

fn seats() -> impl Iterator<Item = Seat> {
    let sizes = [(110, 40), (60, 20), (40, 10)];
    let colours = [Colour::None, Colour::Sixteen, Colour::Indexed, Colour::Exact];
    let of_size = move |size| colours.map(|colour| (size, colour, ThemeName::Dark));
    let themed = colours.map(|colour| ((60, 20), colour, ThemeName::Light));
    let contrasting = colours.map(|colour| ((60, 20), colour, ThemeName::HighContrast));
    sizes.into_iter().flat_map(of_size).chain(themed).chain(contrasting).map(|(size, colour, theme)| {
        let mut start = start(size);
        start.capabilities.colour = colour;
        start.capabilities.theme = Some(theme);
        Seat::from(start)
    })
}

/// Checks the whole screen when the request arrives, and after each of these keys.
fn check_request(mut seat: Seat, request: ServerRequest, keys: &str) {
    let is_plan = matches!(request, ServerRequest::PlanApproval(_));
    seat.ask(1, request);
    read_code(&mut seat);
    let height = seat.buffer().area.height;
    let shown = height - if height >= 16 { 2 } else { 1 };
    let width = seat.buffer().area.width;
    seat.wait(400);
    // A plan has the whole screen from the start.
    let whole = Some("d").filter(|_| !is_plan);
    for key in whole.into_iter().chain(keys.split("")) {
        seat.keys(key);
        check(&seat, 0..shown, width, key);
        check(&seat, shown..=shown, 10, "the word for the mode");
    }
}

#[test]
fn every_text_of_a_request_can_be_read() {
    let diff = "@@ -1,3 +1,3 @@\n fn a() {\n-    1 \u{202e}\n+    2\n }\n";
    for seat in seats() {
        let new = FileChange::Add { content: "a line\nand one without its end".to_owned() };
        let files = [("/home/me/project/src/lib.rs", update(diff)), ("/home/me/project/src/\x1b.rs", new)];
        check_request(seat, ServerRequest::ApplyPatchApproval(patch(&files)), "Gsjje");
    }
    for seat in seats() {
        let command = "cargo test \u{200b} --workspace; ".repeat(40);
        check_request(seat, ServerRequest::ExecCommandApproval(crate::core::exec(&command)), "jGsjj");
    }
    for seat in seats() {
        check_request(seat, ServerRequest::NetworkApproval(network("cargo fetch")), "e");
    }
    for seat in seats() {
        let call = external("{\"q\": \"\u{200b}\"}");
        check_request(seat, ServerRequest::ExternalToolApproval(call), "sjG");
    }
    for seat in seats() {
        check_request(seat, ServerRequest::AgentRightsApproval(spawn("look \u{200b}")), "sjG");
    }
    for seat in seats() {
        let request = ServerRequest::DeniedCommandApproval(crate::core::denied("touch \u{200b} /etc/probe"));
        check_request(seat, request, "j?G?e");
    }
    for seat in seats() {
        let mut plan = params();
        plan.markdown.push_str("```\nlast \u{202e} code\n```\n");
        check_request(seat, ServerRequest::PlanApproval(plan), "jGc2c");
    }
}

#[test]
fn the_word_for_each_mode_can_be_read() {
    for mut seat in seats() {
        let row = seat.buffer().area.height - 1;
        for keys in ["i", ":", "\u{1b}"] {
            check(&seat, row..=row, 8, keys);
            seat.keys(keys);
        }
        seat.press(crossterm::event::KeyCode::Esc);
        check(&seat, row..=row, 8, "NORMAL");
    }
}

#[test]
fn the_word_for_a_planner_can_be_read() {
    for colour in [Colour::None, Colour::Sixteen, Colour::Indexed, Colour::Exact] {
        let mut start = start((60, 20));
        start.capabilities.colour = colour;
        start.activity = protocol::event::Activity::Plan;
        let seat = Seat::from(start);
        assert!(seat.row(18).starts_with(" plan ›") && seat.row(19).contains(" PLAN "), "{}", seat.screen());
        check(&seat, 18..=19, 13, "the word for a planner");
    }
}

#[test]
fn every_text_of_a_denial_can_be_read() {
    for mut seat in seats() {
        seat.call(12, "shell_exec", &serde_json::json!({"command": "touch /etc/probe"}));
        seat.log(denial());
        let screen = seat.screen();
        let first = screen.lines().position(|line| line.contains('✗')).unwrap_or_default();
        let last = screen.lines().position(|line| line.starts_with("──")).unwrap();
        let rows = u16::try_from(first).unwrap()..u16::try_from(last).unwrap();
        check(&seat, rows, seat.buffer().area.width, "a denial");
    }
}

#[test]
fn with_high_contrast_no_text_is_faint_slanted_or_near_its_background() {
    for colour in [Colour::None, Colour::Sixteen, Colour::Indexed, Colour::Exact] {
        let mut start = start((110, 40));
        start.capabilities.colour = colour;
        let mut seat = Seat::from(start);
        seat.send(Msg::Theme(ThemeName::HighContrast));
        seat.stream("Some *words*, `code` and\n\n```rust\nfn main() {} // a remark\n```\n\n");
        seat.call(12, "shell_exec", &serde_json::json!({"command": "touch /etc/probe"}));
        seat.log(denial());
        read_code(&mut seat);
        seat.ask(
            1,
            ServerRequest::ApplyPatchApproval(patch(&[(
                "/home/me/project/src/lib.rs",
                update("@@ -1,3 +1,3 @@\n fn a() {\n-    1\n+    2\n }\n"),
            )])),
        );
        seat.wait(400);
        for cell in &seat.buffer().content {
            let faint = Modifier::DIM | Modifier::ITALIC;
            assert!(
                is_line(cell.symbol()) || !cell.modifier.intersects(faint),
                "{cell:?}\n{}",
                seat.screen()
            );
            for terminal in TERMINALS.into_iter().filter(|_| !is_line(cell.symbol())) {
                assert!(drawn(cell, terminal) >= 7.0, "{cell:?} on {terminal:?}\n{}", seat.screen());
            }
        }
    }
}

#[test]
fn a_light_background_has_light_areas() {
    let mut start = start((60, 20));
    start.capabilities.colour = Colour::Exact;
    let mut seat = Seat::from(start);
    seat.stream("```\ncode\n```\n\n");
    let area = |seat: &Seat| {
        let cell = seat.buffer().content.iter().find(|cell| cell.symbol() == "c" && cell.bg != Color::Reset);
        cell.map(|cell| cell.bg)
    };
    let dark = area(&seat);
    seat.send(Msg::Theme(ThemeName::Light));
    assert_eq!([dark, area(&seat)], [Some(Color::Rgb(0x1f, 0x29, 0x37)), Some(Color::Rgb(0xee, 0xf0, 0xf3))]);
}
