use protocol::plan::{Acceptance, OnFailure, Plan, PlanStep};

use super::super::Document;

const TEXT: &str = "\
<!-- mine -->
#   Title

<!-- between -->
## Steps
###  1.   First
Text  with   odd spaces

<!-- keep -->
more

Files:
* src/a.rs
  <!-- and this -->
* `src/b.rs`

Acceptance:
+ `x`

### 2. Second

## Anything else
- untouched
";

fn after(change: impl Fn(&mut Plan)) -> String {
    let document = Document::parse(TEXT).unwrap();
    let mut plan = document.plan().clone();
    change(&mut plan);
    let edited = document.with_plan(&plan).unwrap();
    assert_eq!(edited.plan(), &plan);
    similar::TextDiff::from_lines(TEXT, edited.source())
        .iter_all_changes()
        .filter(|change| change.tag() != similar::ChangeTag::Equal)
        .fold(String::new(), |all, change| all + &change.tag().to_string() + change.value())
}

fn step(title: &str) -> PlanStep {
    PlanStep { title: title.into(), ..PlanStep::default() }
}

#[test]
fn only_what_differs_is_written_anew() {
    type Change = (&'static str, fn(&mut Plan));
    let changes: [Change; 11] = [
        ("nothing", |_| ()),
        ("title", |plan| plan.title = "New".into()),
        ("context", |plan| plan.context = "Why.".into()),
        ("rights", |plan| plan.rights = Some(protocol::plan::PlanRights::default())),
        ("word", |plan| plan.on_failure = Some(OnFailure::Retry)),
        ("description", |plan| plan.steps[0].description = "other".into()),
        ("files", |plan| plan.steps[0].files = vec!["c".into()]),
        ("acceptance", |plan| plan.steps[1].acceptance.push(Acceptance::Command("y".into()))),
        ("one before", |plan| plan.steps.insert(0, step("Zeroth"))),
        ("one between", |plan| plan.steps.insert(1, step("Between"))),
        ("one less", |plan| drop(plan.steps.remove(0))),
    ];
    let shown: Vec<_> = changes.iter().map(|(name, change)| format!("[{name}]\n{}", after(change))).collect();
    insta::assert_snapshot!(shown.join(""), @"
    [nothing]
    [title]
    -#   Title
    +#   New
    [context]
    +## Context
    +Why.
    +
    [rights]
    +## Rights
    +- network: off
    +
    [word]
    +## On failure
    +retry
    +
    [description]
    -Text  with   odd spaces
    -
    -more
    +other
    [files]
    -Files:
    -* src/a.rs
    -* `src/b.rs`
    +Files:
    +- `c`
    [acceptance]
    +Acceptance:
    +- `y`
    +
    [one before]
    -###  1.   First
    +### 1. Zeroth
    +
    +###  2.   First
    -### 2. Second
    +### 3. Second
    [one between]
    -### 2. Second
    +### 2. Between
    +
    +### 3. Second
    [one less]
    -###  1.   First
    -Text  with   odd spaces
    -
    -more
    -
    -Files:
    -* src/a.rs
    -* `src/b.rs`
    -Acceptance:
    -+ `x`
    -
    -### 2. Second
    +### 1. Second
    ");
}

const THREE: &str = "\
# P

## Steps
### 1. One
<!-- of one -->
The  first.

### 2. Two

- an item

<!-- of two -->

###  3.  Three
<!-- of three -->

## Anything else
";

#[test]
fn steps_that_are_moved_keep_their_own_text_and_comments() {
    let moved = |change: fn(&mut Plan)| {
        let document = Document::parse(THREE).unwrap();
        let mut plan = document.plan().clone();
        change(&mut plan);
        let edited = document.with_plan(&plan).unwrap();
        assert_eq!(edited.plan(), &plan);
        edited.source().to_owned()
    };
    assert_eq!(
        moved(|plan| plan.steps.rotate_right(1)),
        "# P\n\n## Steps\n###  1.  Three\n<!-- of three -->\n\n### 2. One\n<!-- of one -->\nThe  first.\n\n\
         ### 3. Two\n\n- an item\n\n<!-- of two -->\n\n## Anything else\n"
    );
    assert_eq!(
        moved(|plan| {
            plan.steps.swap(0, 1);
            plan.steps[0].description = "other".into();
            plan.steps.insert(1, step("New"));
        }),
        "# P\n\n## Steps\n### 1. Two\n\nother\n\n<!-- of two -->\n\n### 2. New\n\n### 3. One\n<!-- of one -->\n\
         The  first.\n\n###  4.  Three\n<!-- of three -->\n\n## Anything else\n"
    );
    assert_eq!(
        moved(|plan| {
            plan.steps.insert(0, step("New"));
            plan.steps[2].files = vec!["a".into()];
        }),
        "# P\n\n## Steps\n### 1. New\n\n### 2. One\n<!-- of one -->\nThe  first.\n\n### 3. Two\n\n- an item\n\nFiles:\n- `a`\n\n\
         <!-- of two -->\n\n###  4.  Three\n<!-- of three -->\n\n## Anything else\n"
    );
    let deleted = moved(|plan| {
        plan.steps.swap(0, 2);
        plan.steps.remove(1);
    });
    for comment in ["<!-- of one -->", "<!-- of two -->", "<!-- of three -->"] {
        assert!(deleted.contains(comment), "{deleted}");
    }
}
