//! Lines of a file that a change affects, with some lines around them.

use crate::effect::{FileEffect, FileState};
use crate::tool::Change;

/// Maximum total size in bytes of the old and the new text of a change.
const MOST: usize = 64 << 10;

/// Number of unchanged lines before and after the changed ones, if a file is not shown whole.
const AROUND: usize = 3;

impl FileEffect {
    /// Returns the old and the new text, whole or around the changed lines; `None` if they are too long or not text.
    pub fn change(&self) -> Option<Change> {
        let text = |state: &FileState| String::from_utf8(state.bytes.clone()).ok();
        let old = match &self.old {
            Some(state) => Some(text(state)?),
            None => None,
        };
        let new = match &self.new {
            Some(state) => text(state)?,
            None => String::new(),
        };
        let is_short = |change: &Change| change.length() <= MOST;
        let whole = Change { first_line: 1, old, new };
        if is_short(&whole) { Some(whole) } else { whole.differing().filter(is_short) }
    }
}

impl Change {
    /// Returns the total size of both texts in bytes.
    pub fn length(&self) -> usize {
        self.old.as_ref().map_or(0, String::len) + self.new.len()
    }

    fn differing(&self) -> Option<Self> {
        let old: Vec<_> = self.old.as_ref()?.split_inclusive('\n').collect();
        let new: Vec<_> = self.new.split_inclusive('\n').collect();
        let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let rest = old.iter().skip(before).rev().zip(new.iter().skip(before).rev());
        let after = rest.take_while(|(old, new)| old == new).count();
        let (from, left_out) = (before.saturating_sub(AROUND), after.saturating_sub(AROUND));
        let part = |lines: &[&str]| Some(lines.get(from..lines.len().checked_sub(left_out)?)?.concat());
        Some(Self { first_line: u64::try_from(from).ok()? + 1, old: Some(part(&old)?), new: part(&new)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn effect(old: Option<&[u8]>, new: Option<&[u8]>) -> FileEffect {
        let state = |bytes: &[u8]| FileState { bytes: bytes.to_vec(), mode: 0o644 };
        FileEffect { path: "/p/f".into(), old: old.map(state), new: new.map(state), replacements: 0 }
    }

    fn of(old: &str, new: &str) -> Option<Change> {
        effect(Some(old.as_bytes()), Some(new.as_bytes())).change()
    }

    #[test]
    fn a_short_file_is_told_whole() {
        let change = Change { first_line: 1, old: Some("a\nb".to_owned()), new: "a\nc".to_owned() };
        assert_eq!(of("a\nb", "a\nc"), Some(change));
        let made = Change { first_line: 1, old: None, new: "x".to_owned() };
        assert_eq!(effect(None, Some(b"x")).change(), Some(made));
        let removed = Change { first_line: 1, old: Some("x".to_owned()), new: String::new() };
        assert_eq!(effect(Some(b"x"), None).change(), Some(removed));
    }

    #[test]
    fn of_a_long_file_the_lines_that_differ_are_told_with_some_around() {
        let lines = |changed: &str| -> String {
            (1..=20_000)
                .map(|n| if n == 9_000 { changed.to_owned() } else { format!("line {n}\n") })
                .collect()
        };
        let change = of(&lines("old\n"), &lines("new\nmore\n")).unwrap();
        assert_eq!(change.first_line, 8_997);
        let around =
            |changed| format!("line 8997\nline 8998\nline 8999\n{changed}line 9001\nline 9002\nline 9003\n");
        assert_eq!((change.old, change.new), (Some(around("old\n")), around("new\nmore\n")));
    }

    #[test]
    fn what_is_too_long_or_no_text_is_left_out() {
        let long = "x\n".repeat(MOST);
        assert_eq!(of(&long, &"y\n".repeat(MOST)), None);
        assert_eq!(effect(None, Some(long.as_bytes())).change(), None);
        assert_eq!(effect(Some(b"a"), Some(b"\xff")).change(), None);
        assert_eq!(effect(Some(b"\xff"), Some(b"a")).change(), None);
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_equal(old in lines(), new in lines()) {
            let whole = Change { first_line: 1, old: Some(old.concat()), new: new.concat() };
            let part = whole.differing().unwrap();
            let from = usize::try_from(part.first_line).unwrap() - 1;
            let (part_old, part_new) = (part.old.unwrap(), part.new);
            let before = old[..from].concat();
            prop_assert_eq!(&before, &new[..from].concat());
            let after = whole.old.as_ref().unwrap().strip_prefix(&(before.clone() + &part_old)).unwrap();
            prop_assert_eq!(before + &part_new + after, whole.new);
        }
    }

    fn lines() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("[ab]{0,2}\n", 0..20)
    }
}
