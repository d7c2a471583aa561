use ipc::plan::{Acceptance, OnFailure, Plan, PlanStep};

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
        ("rights", |plan| plan.rights = Some(ipc::plan::PlanRights::default())),
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
