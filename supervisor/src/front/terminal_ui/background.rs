//! Finds the terminal's background colour, which selects the theme if no setting does.

use std::env;

use tui::ThemeName;

/// Request for the background colour (OSC 11), then for the terminal's attributes (DA1, ECMA-48 §8.3.24). Every
/// terminal answers the second request, and answers come in order.
pub(super) const QUESTION: &[u8] = b"\x1b]11;?\x1b\\\x1b[c";

/// Maximum size in bytes of the answer with the colour.
const LONGEST: usize = 64;

pub(super) fn can_be_asked() -> bool {
    env::var("TERM").is_ok_and(|term| term != "linux")
}

pub(super) fn of_environment() -> Option<ThemeName> {
    env::var("COLORFGBG").ok().as_deref().and_then(by_numbers)
}

/// Returns the theme from `COLORFGBG`, if it ends with the number of a background colour, 0 to 15; otherwise `None`.
fn by_numbers(value: &str) -> Option<ThemeName> {
    match value.rsplit(';').next()?.parse().ok()? {
        0..=6 | 8 => Some(ThemeName::Dark),
        7 | 9..=15 => Some(ThemeName::Light),
        16_u16.. => None,
    }
}

/// True if the bytes after `ESC ]` may be the beginning of the answer with the colour.
pub(super) fn is_beginning(body: &[u8]) -> bool {
    body.starts_with(b"11;") && body.len() <= LONGEST
}

/// Returns the theme from the answer `11;rgb:ffff/ffff/ffff` with one to four hexadecimal digits for each number
/// (`XParseColor(3)`), or `rgba:` with four numbers. `None` for another text.
pub(super) fn answer(body: &[u8]) -> Option<ThemeName> {
    let text = std::str::from_utf8(body).ok()?.strip_prefix("11;")?;
    let numbers = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?;
    let share = |digits: &str| {
        let most = match digits.len() {
            1 => 0xf,
            2 => 0xff,
            3 => 0xfff,
            4 => 0xffff,
            _ => return None,
        };
        Some(u32::from_str_radix(digits, 16).ok()? * 1000 / most)
    };
    let shares = numbers.split('/').map(share).collect::<Option<Vec<_>>>()?;
    let [red, green, blue, ..] = shares[..] else { return None };
    // The brightness weights of red, green and blue (ITU-R BT.601).
    let light = red * 299 + green * 587 + blue * 114;
    Some(if light > 500_000 { ThemeName::Light } else { ThemeName::Dark })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_in_each_of_its_forms() {
        use ThemeName::{Dark, Light};
        let of = |text: &str| answer(text.as_bytes());
        for light in ["11;rgb:ffff/ffff/ffff", "11;rgb:fd/f6/e3", "11;rgba:e/e/e/f", "11;rgb:0000/ffff/0000"]
        {
            assert_eq!(of(light), Some(Light), "{light}");
        }
        for dark in
            ["11;rgb:0000/0000/0000", "11;rgb:28/2c/34", "11;rgb:0000/0000/ffff", "11;rgba:000/000/000/fff"]
        {
            assert_eq!(of(dark), Some(Dark), "{dark}");
        }
        for none in [
            "",
            "11;",
            "11;?",
            "11;rgb:",
            "11;rgb:ff/ff",
            "11;rgb:fffff/0/0",
            "11;rgb:-1/0/0",
            "10;rgb:f/f/f",
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn numbers_of_the_environment_say_whether_the_background_is_light() {
        use ThemeName::{Dark, Light};
        let read = ["15;0", "0;15", "0;default;7", "15;default", "", "7;256", "8"].map(by_numbers);
        assert_eq!(read, [Some(Dark), Some(Light), Some(Light), None, None, None, Some(Dark)]);
    }
}
