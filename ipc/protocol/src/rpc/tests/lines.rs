use proptest::prelude::*;

use super::super::{Line, Lines, MAX_LINE};

fn whole(text: &str) -> Line {
    Line::Whole(text.as_bytes().to_vec())
}

#[test]
fn blank_lines_are_none_and_a_cut_one_is_not_taken() {
    let mut lines = Lines::default();
    assert_eq!(lines.push(b"\n \t\r\na"), []);
    assert_eq!(lines.push(b"b\r\nc"), [whole("ab\r")]);
    assert_eq!(lines.end(), Some(Line::Cut));
    assert_eq!(lines.end(), None);
}

#[test]
fn a_line_over_the_bound_is_passed_over_and_the_next_one_counts() {
    let mut lines = Lines::default();
    let most = vec![b'x'; MAX_LINE];
    assert_eq!(lines.push(&most), []);
    assert_eq!(lines.push(b"\n"), [Line::Whole(most.clone())]);
    assert_eq!(lines.push(&most), []);
    assert_eq!(lines.push(b"y"), []);
    assert_eq!(lines.push(&most), []);
    assert_eq!(lines.push(b"\nnext\n"), [Line::TooLong, whole("next")]);
    assert!(lines.open.capacity() < MAX_LINE, "what was passed over is not kept");
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_the_bytes_come(
        text in "[ab\n]{0,40}", cuts in proptest::collection::vec(0usize..40, 0..6),
    ) {
        let expected: Vec<_> = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).collect();
        let expected: Vec<_> = expected.into_iter().filter(|line| !line.is_empty()).map(whole).collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let mut lines = Lines::default();
        let pieces = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]);
        let got: Vec<_> = pieces.flat_map(|piece| lines.push(piece)).collect();
        prop_assert_eq!(got, expected);
    }
}
