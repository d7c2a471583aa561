//! Tests that long, deep and random texts are parsed in time proportional to their length, without a panic.

use proptest::prelude::*;

use super::super::{Document, MOST_BYTES, MOST_STEPS};
use super::{fault, plan, with_step};

fn each(numbers: std::ops::RangeInclusive<usize>, text: impl Fn(usize) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

#[test]
fn limits_are_errors() {
    let long = with_step(&"a\n".repeat(500_000));
    assert_eq!(
        fault(&long),
        format!("line 1: expected a plan of at most 262144 bytes, found {}", long.len())
    );
    let steps = |count: usize| {
        let steps: String = each(1..=count, |number| format!("### {number}. S\n"));
        format!("# T\n## Steps\n{steps}")
    };
    assert_eq!(plan(&steps(MOST_STEPS)).steps.len(), MOST_STEPS);
    assert_eq!(fault(&steps(MOST_STEPS + 1)), "line 203: expected at most 200 steps, found 201");
    assert_eq!(fault(&steps(10_000)), "line 203: expected at most 200 steps, found 10000");
    let commands = |count: usize| with_step(&format!("Acceptance:\n{}", "- `a`\n".repeat(count)));
    assert_eq!(plan(&commands(64)).steps[0].acceptance.len(), 64);
    assert_eq!(fault(&commands(65)), "line 69: expected at most 64 commands in a step, found more");
}

#[test]
fn deep_and_wide_texts_are_read_once() {
    let fill = |piece: &str| piece.repeat((MOST_BYTES - 200) / piece.len());
    let half = |one: &str, other: &str| {
        let count = (MOST_BYTES - 200) / 2;
        one.repeat(count / one.len()) + "x\n" + &other.repeat(count / other.len())
    };
    let nested: String = each(0..=499, |depth| format!("{}- x\n", "  ".repeat(depth)));
    let lists = [
        ">".repeat(10_000),
        "> ".repeat(10_000),
        "- ".repeat(10_000),
        "1. ".repeat(10_000),
        nested,
        fill("`"),
        fill("` `` "),
        fill("<!-- -->\n"),
        fill("~~~\n~~~\n"),
        fill(" "),
        fill("\t\n"),
        fill("*"),
        half("- ", "\n"),
        half("- ", " \n"),
        half(" ", "- x\n"),
        format!("-{}x\n{}y", " ".repeat(100_000), " ".repeat(100_000)),
    ];
    for list in lists {
        for text in [with_step(&list), with_step(&format!("Acceptance:\n- {list}")), list] {
            // Some texts are plans and some are not.
            if let Ok(document) = Document::parse(&text) {
                let plan = document.plan().clone();
                assert_eq!(document.with_plan(&plan).unwrap().source(), text);
            }
        }
    }
}

proptest! {
    #[test]
    fn random_text_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        drop(Document::parse(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn random_lines_are_no_panic_and_stay_as_they_are(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("# T"), Just("## Steps"), Just("### 1. a"), Just("### 2. b"), Just("## Rights"), Just("- write: a"),
                Just("Files:"), Just("Acceptance:"), Just("- `a`"), Just("- ```"), Just("  ```"), Just("```"), Just("~~~~"),
                Just("<!--"), Just("-->"), Just(""), Just("  a"), Just("\t- b"), Just("## On failure"), Just("stop"), Just("## X"),
                Just("<!-- c -->"), Just("## Context"),
            ],
            0..24,
        ),
        crlf in any::<bool>(),
    ) {
        let text = format!("# T\n{}\n## Steps\n### 1. S\n", lines.join("\n"));
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        if let Ok(document) = Document::parse(&text) {
            let same = document.with_plan(document.plan()).unwrap();
            prop_assert_eq!(same.source(), text.as_str());
        }
    }
}
