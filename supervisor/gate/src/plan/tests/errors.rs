use protocol::plan::{Acceptance, Plan, PlanRights, PlanStep};

use super::super::{Document, validate};
use super::{fault, with_step};

#[expect(clippy::too_many_lines, reason = "a table of texts and their errors")]
#[test]
fn every_error_names_its_line_and_what_was_expected() {
    let head = "# T\n";
    let tail = "## Steps\n### 1. S\n";
    let sections = |text: &str| format!("{head}{text}\n{tail}");
    let cases = [
        String::new(),
        "text".into(),
        "#\n".into(),
        "## Steps\n### 1. S\n".into(),
        format!("{head}text\n{tail}"),
        format!("{head}{tail}# U\n"),
        head.into(),
        format!("{head}## Steps\n\n"),
        format!("{head}## Steps\ntext\n### 1. S\n"),
        format!("{head}## Steps\n### 2. S\n"),
        format!("{head}{tail}### 3. S\n"),
        format!("{head}## Steps\n### S\n"),
        format!("{head}## Steps\n### 1.\n"),
        format!("{head}## steps\n### 1. S\n"),
        format!("{head}{tail}{tail}"),
        sections("## Rights\n- write: a\n## Rights\n- write: b"),
        sections("## Rights"),
        sections("## Rights\nwrite: a"),
        sections("## Rights\n- read: a"),
        sections("## Rights\n- write"),
        sections("## Rights\n- write:"),
        sections("## Rights\n- write: `  `"),
        sections("## Rights\n- write: a/../b"),
        sections("## Rights\n- write: a\u{202e}b"),
        sections("## Rights\n- network: yes"),
        sections("## Rights\n- network: on\n- network: off"),
        sections("## Rights\n- write: a\n  b"),
        sections("## On failure"),
        sections("## On failure\npanic"),
        sections("## On failure\nstop\nretry"),
        sections("## Context\n```\ncode"),
        sections("## Context\n<!-- a"),
        sections("## Context\n<!-- a --> b"),
        sections("## Context\na\0b"),
        sections("## Context\n- ```\n### 1. hidden\n  ```"),
        with_step("Files:\n"),
        with_step("Files:\n- a\nFiles:\n- b"),
        with_step("Files:\n- ../a"),
        with_step("Files:\n- a\n\ntext"),
        with_step("Acceptance:\n- a\n\nAcceptance:\n- b"),
        with_step("Acceptance:\nNothing."),
        with_step("**Acceptance:**\n- `a`"),
        with_step("#### Acceptance criteria\n- `a`"),
        with_step("  Files:\n- `a`"),
        with_step("Acceptance:\n-"),
        with_step("Acceptance:\n- ``"),
        with_step("Acceptance:\n- ` `"),
        with_step("Acceptance:\n- ```\n  ```"),
        with_step("Acceptance:\n- `a\n  b`"),
        with_step("Acceptance:\n- `a\u{1b}b`"),
        with_step("Acceptance:\n- `a\u{202e}b`"),
        with_step("Acceptance:\n- ```\n  a\n  b\u{200b}\n  ```"),
        with_step("Acceptance:\n- `a`\n#### more"),
    ];
    let shown: Vec<_> = cases.iter().map(|text| fault(text)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#####"
    line 1: expected a title "# …", found no text
    line 1: expected a title "# …", found "text"
    line 1: expected a title after #, found nothing
    line 1: expected a title "# …", found "## Steps"
    line 2: expected a section "## …", found "text"
    line 4: expected only one title, followed by sections "## …", found "# U"
    line 1: expected a section ## Steps, found the end of the file
    line 2: expected a step "### 1. …" below this heading, found none
    line 3: expected a step "### 1. …", found "text"
    line 3: expected "### 1. …", found "### 2. S"
    line 4: expected "### 2. …", found "### 3. S"
    line 3: expected "### 1. …", found "### S"
    line 3: expected a title after ### 1., found nothing
    line 2: expected ## Steps, found "steps"
    line 4: expected one section ## Steps, found a second one
    line 4: expected one section ## Rights, found a second one
    line 2: expected "- write: PATH", "- network: on" or "- server: NAME" below this heading, found nothing
    line 3: expected "- write: PATH", "- network: on" or "- server: NAME", found "write: a"
    line 3: expected one of these kinds of access: write, network, server, tool, found "read"
    line 3: expected "- write: PATH", "- network: on" or "- server: NAME", found "write"
    line 3: expected a path, found an empty text
    line 3: expected a path, found an empty text
    line 3: expected a path without .. components, found "a/../b"
    line 3: expected a path of visible characters, found U+202E
    line 3: expected network: on or network: off, found "yes"
    line 4: expected only one network item, found a second one
    line 4: expected "- write: PATH", "- network: on" or "- server: NAME" on one line, found "b"
    line 2: expected one of these words: stop, retry, replan, found nothing
    line 3: expected one of these words: stop, retry, replan, found "panic"
    line 4: expected one of these words: stop, retry, replan, found "retry"
    line 3: expected a line ``` that closes this fence, found the end of the file
    line 3: expected --> at the end of this comment, found the end of the file
    line 3: expected a new line after -->, found "<!-- a --> b"
    line 3: expected no control character, found U+0000
    line 4: expected code indented at least as far as its fence (2 spaces), found "### 1. hidden"
    line 4: expected an item "- …" below Files:, found none
    line 6: expected only one line Files: in a step, found a second one
    line 5: expected a path without .. components, found "../a"
    line 7: expected an item "- …", Files:, Acceptance: or the next step, found "text"
    line 7: expected only one line Acceptance: in a step, found a second one
    line 4: expected an item "- …" below Acceptance:, found none
    line 4: expected a line with only Acceptance:, not indented, found "**Acceptance:**"
    line 4: expected a line with only Acceptance:, not indented, found "#### Acceptance criteria"
    line 4: expected a line with only Files:, not indented, found "Files:"
    line 5: expected a command or a criterion, found an empty item
    line 5: expected a command, found an empty text
    line 5: expected a command, found an empty text
    line 5: expected a command, found an empty text
    line 5: expected a command on one line or in a fenced block, found a code span of several lines
    line 5: expected no control character, found U+001B
    line 5: expected a command without invisible characters, found U+202E
    line 5: expected a command without invisible characters, found U+200B
    line 6: expected an item "- …", Files:, Acceptance: or the next step, found "#### more"
    "#####);
}

#[test]
fn every_invisible_character_of_a_command_is_named() {
    let ranges = ['\u{200b}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    for c in ranges.into_iter().flatten().chain(['\u{2060}', '\u{feff}', '\u{85}']) {
        let error = fault(&with_step(&format!("Acceptance:\n- `a{c}b`")));
        let end = format!("characters, found U+{:04X}", u32::from(c))
            .replace("characters, found U+0085", "character, found U+0085");
        assert!(error.starts_with("line 5: ") && error.ends_with(&end), "{error}");
    }
}

fn one_step(step: PlanStep) -> Plan {
    Plan { title: "T".into(), steps: vec![step], ..Plan::default() }
}

#[test]
fn a_plan_that_would_be_read_as_another_is_not_written() {
    let step = || PlanStep { title: "S".into(), ..PlanStep::default() };
    let acceptance = |one| one_step(PlanStep { acceptance: vec![one], ..step() });
    let described = |text: &str| one_step(PlanStep { description: text.into(), ..step() });
    let plan = one_step(step());
    let writes = |path: &str| Some(PlanRights { write: vec![path.into()], ..PlanRights::default() });
    let cases = [
        Plan { title: String::new(), ..plan.clone() },
        Plan { title: "a\nb".into(), ..plan.clone() },
        Plan { title: "a ".into(), ..plan.clone() },
        Plan { context: "\na".into(), ..plan.clone() },
        Plan { context: "## Steps".into(), ..plan.clone() },
        Plan { steps: Vec::new(), ..plan.clone() },
        Plan { rights: writes("a/.."), ..plan.clone() },
        Plan { rights: writes("a\n- network: on"), ..plan.clone() },
        described("### 2. more"),
        described("Acceptance:\n- `rm -r .`"),
        described("<!-- a -->"),
        described("a\r"),
        described("```"),
        acceptance(Acceptance::Command("  ".into())),
        acceptance(Acceptance::Command("a\u{7}".into())),
        acceptance(Acceptance::Criterion("`a`".into())),
        acceptance(Acceptance::Criterion("```\na\n```".into())),
        acceptance(Acceptance::Criterion(" a".into())),
        one_step(PlanStep { files: vec![String::new()], ..step() }),
    ];
    let shown: Vec<_> = cases.iter().map(|plan| validate(plan).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#####"
    cannot write the plan: line 1: expected a title after #, found nothing
    cannot write the plan: line 2: expected a section "## …", found "b"
    cannot write the plan: the title cannot be expressed in a plan file
    cannot write the plan: the context cannot be expressed in a plan file
    cannot write the plan: line 4: expected a step "### 1. …" below this heading, found none
    cannot write the plan: line 3: expected a step "### 1. …" below this heading, found none
    cannot write the plan: line 4: expected a path without .. components, found "a/.."
    cannot write the plan: the rights cannot be expressed in a plan file
    cannot write the plan: the number of steps cannot be expressed in a plan file
    cannot write the plan: the description of step 1 cannot be expressed in a plan file
    cannot write the plan: the description of step 1 cannot be expressed in a plan file
    cannot write the plan: the description of step 1 cannot be expressed in a plan file
    cannot write the plan: line 6: expected a line ``` that closes this fence, found the end of the file
    cannot write the plan: line 8: expected a command, found an empty text
    cannot write the plan: line 8: expected no control character, found U+0007
    cannot write the plan: the acceptance criteria of step 1 cannot be expressed in a plan file
    cannot write the plan: the acceptance criteria of step 1 cannot be expressed in a plan file
    cannot write the plan: the acceptance criteria of step 1 cannot be expressed in a plan file
    cannot write the plan: line 8: expected a path, found an empty text
    "#####);
    assert_eq!(validate(&plan), Ok(()));
    assert_eq!(Document::of(&plan).unwrap().source(), "# T\n\n## Steps\n\n### 1. S\n");
}
