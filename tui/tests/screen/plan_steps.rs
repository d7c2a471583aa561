//! Tests of editing the steps of a plan in place, and of comparing its versions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use protocol::approval::{PlanApprovalParams, ReviewDecision};
use protocol::event::{EventKind, NoticeCode, PlanAuthor, PlanCreated};
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};
use protocol::plan::{Acceptance, Plan};
use tui::Msg;

use crate::plan_answers::by;
use crate::plan_cards::{MARKDOWN, answered, ask, asked, params, plan, step};
use crate::seat::Seat;

fn saved(seat: &mut Seat) -> Plan {
    let told = seat.told();
    let [UserActionKind::Agent(AgentAction::RevisePlan { id: ApprovalId(1), plan })] = &told[..] else {
        panic!("{told:?}")
    };
    (**plan).clone()
}

#[test]
fn the_steps_are_edited_in_place_and_saved_as_one_change() {
    let mut seat = asked((80, 24), params());
    seat.keys("i");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    the steps of the plan, as you edit them:
      plan  Fix the parser
    ▸ 1   Reproduce it
          text  none
          files tests/lexer.rs
      2   Mend the lexer
          run   cargo test -p lexer
          run   cargo clippy -- -D warnings
          check The docs mention it











    Enter edit  J/K move  a add a step  c add a command  d delete  j/k choose
    Tab next step  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    // The second step becomes the first, gets a text of two lines and a command; a third is added and deleted.
    seat.keys("]K");
    seat.keys("j\nThe lexer");
    seat.send(Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
    seat.keys("drops it.");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    the steps of the plan, as you edit them:
      plan  Fix the parser
      1   Mend the lexer
    ▸     text  none
          files none
          run   cargo test -p lexer
          run   cargo clippy -- -D warnings
          check The docs mention it
      2   Reproduce it
          files tests/lexer.rs









    text › The lexer
           drops it.
    Enter keep it  Alt+Enter new line  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("\nccargo doc\n");
    seat.keys("aMore\nd");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    the steps of the plan, as you edit them:
      plan  Fix the parser
      1   Mend the lexer
          text  The lexer
                drops it.
          run   cargo test -p lexer
          run   cargo clippy -- -D warnings
          check The docs mention it
          run   cargo doc
    ▸ 2   Reproduce it
          text  none
          files tests/lexer.rs








    s save 5 changes  Enter edit  J/K move  a add a step  c add a command  d delete
    u undo  j/k choose  Tab next step  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    assert_eq!(seat.told(), []);
    seat.keys("s");
    let mut expected = plan();
    expected.steps.swap(0, 1);
    "The lexer\ndrops it.".clone_into(&mut expected.steps[0].description);
    expected.steps[0].acceptance.push(Acceptance::Command("cargo doc".to_owned()));
    assert_eq!(saved(&mut seat), expected);
}

#[test]
fn a_plan_with_changes_that_are_not_saved_is_not_approved() {
    let mut seat = asked((80, 60), params());
    seat.keys("G");
    seat.wait(400);
    seat.keys("iJ");
    seat.press(KeyCode::Esc);
    seat.wait(400);
    assert!(seat.screen().contains("i edit (1 change not saved)"), "{}", seat.screen());
    seat.keys("yv");
    assert_eq!(seat.told(), [], "neither the old text is approved nor another one begun");
    seat.keys("iuq");
    seat.wait(400);
    seat.keys("y");
    assert_eq!(seat.told(), answered(ReviewDecision::Approved));
}

#[test]
fn fields_that_cannot_be_written_are_told_and_kept() {
    let mut seat = asked((80, 24), params());
    seat.keys("ij\n### 9. No\ns");
    assert_eq!(saved(&mut seat).steps[0].description, "### 9. No");
    let code = NoticeCode::PlanNotRead;
    let message = "the plan was not changed: cannot write the plan: line 9: expected step 2".to_owned();
    seat.send(by("1.1", EventKind::Notice { code, message }));
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    the steps of the plan, as you edit them:
    ! the plan was not changed: cannot write the plan: line 9: expected step 2
      plan  Fix the parser
      1   Reproduce it
    ▸     text  ### 9. No
          files tests/lexer.rs
      2   Mend the lexer
          run   cargo test -p lexer
          run   cargo clippy -- -D warnings
          check The docs mention it










    s save 1 change  Enter edit  J/K move  a add a step  c add a command  d delete
    u undo  j/k choose  Tab next step  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("\n");
    seat.ctrl('u');
    seat.keys("Yes\ns");
    assert_eq!(saved(&mut seat).steps[0].description, "Yes");
}

#[test]
fn what_was_added_without_text_and_what_is_given_up_is_no_change() {
    let mut seat = asked((80, 24), params());
    for keys in ["ia\n", "c\n", "0d", "\n\n"] {
        seat.keys(keys);
    }
    seat.keys("1aText");
    seat.press(KeyCode::Esc);
    seat.keys("cText");
    seat.press(KeyCode::Esc);
    seat.keys("0\n");
    seat.ctrl('u');
    seat.keys("\n");
    assert!(seat.screen().contains("the title needs text"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    seat.keys("s");
    assert_eq!(seat.told(), []);
    assert!(!seat.screen().contains("save"), "{}", seat.screen());
}

#[test]
fn what_is_chosen_is_in_sight_and_nothing_of_a_plan_looks_like_ours() {
    let mut long = params();
    long.plan.steps = (1..=200).map(|n| step(&format!("Title {n}\u{202e}"), &["f"], vec![])).collect();
    long.plan.steps[3].description = "! an error\n▸ 9   chosen\nplan › typed".to_owned();
    for size in [(80, 24), (40, 10), (60, 20)] {
        let mut seat = asked(size, long.clone());
        seat.keys("i");
        for (keys, chosen) in [("", 1), ("137", 137), ("]", 138), ("[k", 136), ("G", 200), ("K", 199)] {
            seat.keys(keys);
            let screen = seat.screen();
            let marked: Vec<_> = screen.lines().filter(|line| line.starts_with('▸')).collect();
            assert_eq!(marked.len(), 1, "{keys}\n{screen}");
            assert!(keys == "[k" || marked[0].starts_with(&format!("▸ {chosen}")), "{keys}\n{screen}");
        }
        seat.keys("4");
        let screen = seat.screen();
        assert!(!screen.lines().any(|line| line.starts_with('!') || line.starts_with("▸ 9")), "{screen}");
    }
}

#[test]
fn keys_that_came_together_begin_and_save_nothing() {
    let mut seat = asked((80, 24), params());
    let together = |seat: &mut Seat, keys: &str| {
        for c in keys.chars() {
            seat.send(Msg::KeyOfMany(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
    };
    together(&mut seat, "iJs");
    assert_eq!(seat.told(), []);
    seat.wait(400);
    seat.keys("iJ");
    together(&mut seat, "s");
    assert_eq!(seat.told(), []);
}

fn created(author: PlanAuthor, markdown: &str) -> PlanCreated {
    PlanCreated {
        call: CallId(9),
        path: "/state/plans/2026-11-25-101112.md".into(),
        digest: format!("{:08x}00", markdown.len()),
        author,
        markdown: markdown.to_owned(),
        plan: plan(),
    }
}

/// A request with three versions of a plan: two by the planning agent, one by the person.
fn third((width, height): (u16, u16)) -> Seat {
    let mut seat = Seat::new(width, height);
    let second = MARKDOWN.replace("Reproduce it", "Reproduce it with a test");
    let mut last = String::new();
    for (id, author, markdown) in [
        (1, PlanAuthor::Planner, MARKDOWN.to_owned()),
        (2, PlanAuthor::Planner, second.clone()),
        (3, PlanAuthor::Person, second.replace("- The docs mention it\n", "")),
    ] {
        seat.send(by("1.1", EventKind::PlanCreated(Box::new(created(author, &markdown)))));
        if id < 3 {
            continue;
        }
        last = markdown;
    }
    ask(&mut seat, 3, PlanApprovalParams { markdown: last, ..params() });
    seat.wait(400);
    seat
}

#[test]
fn versions_are_compared_below_each_other_and_from_140_columns_on_side_by_side() {
    let mut seat = third((80, 24));
    assert!(seat.screen().contains("= 3 versions"), "{}", seat.screen());
    seat.keys("=");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    versions of the plan:
      1 by the planner · 2 steps · 00000171
    - 2 by the planner · 2 steps · 0000017d
    + 3 by you · 2 steps · 00000167
    from 2 to 3, -1:
    │ 19  Acceptance:
    │ 20  - `cargo test -p lexer`
    │ 21  - `cargo clippy -- -D warnings`
    │ 22 -- The docs mention it












    Esc back  h/l newer side  H/L older side  j/k scroll
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("H");
    assert!(seat.screen().contains("from 1 to 3, +1 -2:"), "{}", seat.screen());
    seat.keys("hh");
    assert!(seat.screen().contains("no difference between 1 and 1"), "{}", seat.screen());
    seat.keys("y");
    assert_eq!(seat.told(), [], "nothing is approved there");
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains("the complete plan"), "{}", seat.screen());
    let mut seat = third((140, 20));
    seat.keys("=H");
    assert_snapshot!(seat.screen(), @r"
     Execute this plan? ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    versions of the plan:
    - 1 by the planner · 2 steps · 00000171
      2 by the planner · 2 steps · 0000017d
    + 3 by you · 2 steps · 00000167
    from 1 to 3, +1 -2:
    │  4  The lexer drops `\r` at the end of a line that is longer than   │  4  The lexer drops `\r` at the end of a line that is longer than
    ↪     the buffer, see **issue 12**.                                   │     the buffer, see **issue 12**.
    │  5                                                                  │  5
    │  6  ## Steps                                                        │  6  ## Steps
    │  7 -### 1. Reproduce it                                             │  7 +### 1. Reproduce it with a test
    │  8  Write a test that fails:                                        │  8  Write a test that fails:
    │  9                                                                  │  9
    │ 10  ```rust                                                         │ 10  ```rust
    │     ⋮
    │ 19  Acceptance:                                                     │ 19  Acceptance:
    │ 20  - `cargo test -p lexer`                                         │ 20  - `cargo test -p lexer`
    │ 21  - `cargo clippy -- -D warnings`                                 │ 21  - `cargo clippy -- -D warnings`
    Esc back  1 more line  h/l newer side  H/L older side  j/k scroll
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    ");
}

#[test]
fn the_view_of_a_plan_compares_its_versions_too() {
    let mut seat = third((80, 24));
    seat.send(Msg::Core(protocol::frontend::UiEvent {
        conversation_id: "c".into(),
        agent: "1.1".into(),
        kind: UiEventKind::ApprovalClosed { id: ApprovalId(3) },
    }));
    seat.keys(":plan\n");
    assert!(seat.screen().contains("= 3 versions"), "{}", seat.screen());
    seat.keys("=");
    assert_snapshot!(seat.screen(), @"
    versions of the plan:
      1 by the planner · 2 steps · 00000171
    - 2 by the planner · 2 steps · 0000017d
    + 3 by you · 2 steps · 00000167
    from 2 to 3, -1:
    │ 19  Acceptance:
    │ 20  - `cargo test -p lexer`
    │ 21  - `cargo clippy -- -D warnings`
    │ 22 -- The docs mention it











    Esc back  h/l newer side  H/L older side  j/k scroll
    ── agent 1 ─────────────────────────────────────────────────────────────────────
    ›
     PLAN VIEW  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("qq");
    assert!(!seat.screen().contains("versions of the plan"), "{}", seat.screen());
}
