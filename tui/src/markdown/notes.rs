//! Numbers of footnotes: `[^1]` is shown as `¹`. Other names in such brackets stay as written.

/// Link address that marks a link as the number of a footnote.
pub(super) const ADDRESS: &str = "^";

const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

pub(super) fn raised(name: &str) -> Option<String> {
    let number = name.strip_prefix('^').filter(|number| (1..=3).contains(&number.len()))?;
    let digit = |digit: char| DIGITS.get(usize::try_from(digit.to_digit(10)?).ok()?).copied();
    number.chars().map(digit).collect()
}

/// Returns the text with the footnote number in front replaced by a raised one; `None` if it begins no footnote.
pub(super) fn begun(text: &str) -> Option<String> {
    let (name, note) = text.strip_prefix('[')?.split_once("]:")?;
    Some([&raised(name)?, ":", note].concat())
}
