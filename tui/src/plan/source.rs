//! Display of a plan's Markdown with every byte visible.
//!
//! An approval is bound to the bytes of the plan, so comments, link targets and unused sections are shown as written;
//! each line only gets a style.

use crate::model::{Look, Part};
use crate::text::SafeText;

/// Returns the lines of a plan, each behind a vertical line and in the style of its Markdown.
pub(crate) fn styled(markdown: &str) -> Vec<Part> {
    let mut parts: Vec<(Look, String)> = Vec::new();
    let mut fence = None;
    for line in markdown.split_inclusive('\n') {
        let look = look_of(line, &mut fence);
        match parts.last_mut() {
            Some((last, text)) if *last == look => text.push_str(line),
            _ => parts.push((look, line.to_owned())),
        }
    }
    parts.into_iter().map(|(look, text)| Part::new(SafeText::exact(&text), look)).collect()
}

type Fence = (char, usize);

fn look_of(line: &str, fence: &mut Option<Fence>) -> Look {
    let text = line.trim();
    let (mark, length) = run(text);
    let is_fence = matches!(mark, '`' | '~') && length >= 3;
    if let Some(open) = *fence {
        // A fence is closed by at least as many of its characters with nothing after them (CommonMark, section 4.5).
        if is_fence && mark == open.0 && length >= open.1 && text.chars().all(|c| c == mark) {
            *fence = None;
        }
        return Look::PlanCode;
    }
    if is_fence {
        *fence = Some((mark, length));
        return Look::PlanCode;
    }
    let after = text.get(length * mark.len_utf8()..).unwrap_or_default();
    if mark == '#' && length <= 6 && (after.is_empty() || after.starts_with(' ')) {
        Look::PlanHeading
    } else if is_item(text) {
        Look::PlanItem
    } else {
        Look::PlanText
    }
}

/// Returns the first character, and the number of times that it occurs in a row.
fn run(text: &str) -> (char, usize) {
    let first = text.chars().next().unwrap_or(' ');
    (first, text.chars().take_while(|c| *c == first).count())
}

fn is_item(text: &str) -> bool {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let numbered = text.get(digits..).filter(|_| digits > 0);
    ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark))
        || numbered.is_some_and(|rest| rest.starts_with(". ") || rest.starts_with(") "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn looks(markdown: &str) -> Vec<(Look, String)> {
        styled(markdown).iter().map(|part| (part.look(), part.text().as_str().to_owned())).collect()
    }

    #[test]
    fn each_kind_of_line_has_its_look() {
        let text =
            "# Title\nWords\nmore\n\n- one\n2. two\n\n```sh\n# no heading\n~~~\n```\n#none\n####### none\n";
        let text = looks(text);
        let text: Vec<_> = text.iter().map(|(look, text)| (*look, text.as_str())).collect();
        assert_eq!(
            text,
            [
                (Look::PlanHeading, "# Title\n"),
                (Look::PlanText, "Words\nmore\n\n"),
                (Look::PlanItem, "- one\n2. two\n"),
                (Look::PlanText, "\n"),
                (Look::PlanCode, "```sh\n# no heading\n~~~\n```\n"),
                (Look::PlanText, "#none\n####### none\n"),
            ]
        );
    }

    proptest! {
        #[test]
        fn nothing_of_a_text_is_left_out(text in "([#`~> \t0-9.*-]|[a-z]|\n|\r|\u{202e}|漢){0,80}") {
            let shown: String = looks(&text).into_iter().map(|(_, text)| text).collect();
            let alone: String = text.split_inclusive('\n').map(|line| SafeText::exact(line).as_str().to_owned()).collect();
            prop_assert_eq!(shown, alone);
        }
    }
}
