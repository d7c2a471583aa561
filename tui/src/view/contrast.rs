//! Tests that all pairs of text and background colours of the themes have enough contrast, exact and among the 256.
//!
//! The terminal's background is assumed to be black or #1e1e1e for the dark theme, white or #fafafa for the light
//! theme, and any of these for high contrast.

use ratatui::style::{Color, Modifier, Style};

use super::theme::{Theme, exact};
use crate::model::{Look, Mode};
use crate::start::{Capabilities, Colour, ThemeName};
use crate::text::{Ground, Ink, Tone};

const DARK: [Color; 2] = [Color::Rgb(0, 0, 0), Color::Rgb(0x1e, 0x1e, 0x1e)];
const LIGHT: [Color; 2] = [Color::Rgb(0xff, 0xff, 0xff), Color::Rgb(0xfa, 0xfa, 0xfa)];

const LOOKS: [Look; 21] = [
    Look::User,
    Look::Assistant,
    Look::Void,
    Look::Thinking,
    Look::Tool,
    Look::ToolFailed,
    Look::Output,
    Look::Code,
    Look::Diff,
    Look::Denial,
    Look::Fact,
    Look::Command,
    Look::Claim,
    Look::Heading,
    Look::Notice,
    Look::Error,
    Look::Turn,
    Look::PlanHeading,
    Look::PlanText,
    Look::PlanItem,
    Look::PlanCode,
];

/// Kinds of text in code.
const SYNTAX: [Ink; 6] = [Ink::Plain, Ink::Comment, Ink::Literal, Ink::Constant, Ink::Keyword, Ink::Name];

/// Kinds of text in prose and in the rows of calls.
const PROSE: [Ink; 5] = [Ink::Plain, Ink::Mark, Ink::Heading, Ink::Failed, Ink::Blocked];

const GROUNDS: [Ground; 7] = [
    Ground::Same,
    Ground::Added,
    Ground::Removed,
    Ground::AddedSign,
    Ground::RemovedSign,
    Ground::AddedWords,
    Ground::RemovedWords,
];

/// Relative luminance of a colour, as defined by WCAG 2.2.
fn luminance(colour: Color) -> f64 {
    let [red, green, blue] = exact(colour).unwrap_or_else(|| panic!("{colour:?}")).map(|value| {
        let value = f64::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: Color, other: Color) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns every style of a theme with a description.
fn styles(theme: Theme) -> Vec<(String, Style)> {
    let mut styles = vec![
        ("dim".to_owned(), theme.dim()),
        ("strong".to_owned(), theme.strong()),
        ("alarm".to_owned(), theme.alarm()),
        ("planner".to_owned(), theme.planner()),
        ("code".to_owned(), theme.code()),
        ("open".to_owned(), theme.open()),
    ];
    for mode in [Mode::Normal, Mode::Insert, Mode::Command] {
        styles.push((format!("{mode:?}"), theme.mode(mode)));
    }
    let mut toned = |look, ink, ground| {
        let tone = Tone::of(ink).on(ground);
        styles.push((format!("{look:?} {tone:?}"), theme.toned(theme.row(look), look, tone)));
    };
    for look in LOOKS {
        for ground in [Ground::None, Ground::Code] {
            for ink in PROSE {
                toned(look, ink, ground);
            }
        }
    }
    for ink in SYNTAX {
        toned(Look::Code, ink, Ground::None);
        toned(Look::PlanCode, ink, Ground::None);
        for ground in GROUNDS {
            toned(Look::Diff, ink, ground);
        }
    }
    styles
}

fn themes() -> impl Iterator<Item = (ThemeName, Colour)> {
    let names = [ThemeName::Dark, ThemeName::Light, ThemeName::HighContrast];
    names.into_iter().flat_map(|name| [Colour::Indexed, Colour::Exact].map(|colour| (name, colour)))
}

fn theme(colour: Colour, theme: Option<ThemeName>) -> Theme {
    Theme::new(Capabilities { colour, theme, size: (80, 24) })
}

#[test]
fn every_pair_of_text_and_background_can_be_read() {
    let mut checked = 0;
    for (name, colour) in themes() {
        let least = if name == ThemeName::HighContrast { 7.0 } else { 4.5 };
        let terminals = match name {
            ThemeName::Dark => DARK.to_vec(),
            ThemeName::Light => LIGHT.to_vec(),
            ThemeName::HighContrast => [DARK, LIGHT].concat(),
        };
        for (about, style) in styles(theme(colour, Some(name))) {
            assert!(
                !style.add_modifier.contains(Modifier::DIM),
                "{name:?} {colour:?}: {about} is faint, which each terminal draws in another way"
            );
            let pairs: Vec<_> = match (style.fg, style.bg) {
                (None, None) => continue,
                (None, Some(_)) => panic!("{about}: the terminal's own text on a background of ours"),
                (Some(text), None) => terminals.iter().map(|ground| (text, *ground)).collect(),
                (Some(text), Some(ground)) => vec![(text, ground)],
            };
            for (text, ground) in pairs {
                let contrast = contrast(text, ground);
                assert!(
                    contrast >= least,
                    "{name:?} {colour:?}: {about} has {contrast:.2}:1, {style:?} on {ground:?}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}

#[test]
fn on_an_unknown_background_text_has_a_colour_of_the_terminal() {
    for colour in [Colour::Indexed, Colour::Exact] {
        for (about, style) in styles(theme(colour, None)) {
            let is_own = matches!(style.fg, None | Some(Color::Red));
            assert!(is_own || style.bg.is_some(), "{about}: {style:?}");
        }
    }
}

#[test]
fn only_what_was_blocked_lost_or_denied_is_red() {
    for (name, colour) in themes().filter(|(name, _)| *name != ThemeName::HighContrast) {
        let theme = theme(colour, Some(name));
        let of = |ink| theme.toned(theme.row(Look::Tool), Look::Tool, Tone::of(ink)).fg;
        let red = theme.row(Look::Error).fg;
        assert!(red.is_some() && of(Ink::Blocked) == red);
        assert_ne!(of(Ink::Failed), red);
        assert_ne!(theme.row(Look::ToolFailed).fg, red);
    }
}
