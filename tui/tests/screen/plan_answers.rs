//! Tests of answers to a plan that neither approve nor deny it as it is: comments on its steps, and edits of its text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use ipc::id::ApprovalId;
use protocol::approval::ReviewDecision;
use protocol::event::{EventKind, NoticeCode};
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserActionKind};
use tui::{Action, Msg};

use crate::core::logged;
use crate::plan_cards::{MARKDOWN, answered, ask, asked, params, step};
use crate::seat::Seat;

pub(crate) fn by(agent: &str, kind: EventKind) -> Msg {
    let UiEventKind::Logged(mut event) = logged(kind) else { panic!("an event") };
    event.agent = agent.into();
    let kind = UiEventKind::Logged(event);
    Msg::Core(UiEvent { conversation_id: "c".into(), agent: agent.into(), kind })
}

fn denied(message: &str) -> Vec<UserActionKind> {
    answered(ReviewDecision::Denied { message: Some(message.to_owned()) })
}

#[test]
fn comments_on_several_steps_are_one_denial() {
    let mut seat = asked((80, 24), params());
    seat.keys("c");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    no, with comments on the steps: the planner revises the plan, and asks again
      0 the plan
    ▸ 1 Reproduce it
      2 Mend the lexer

















    Enter comment  j/k or a number: choose  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("s");
    assert_eq!(seat.told(), [], "there is no comment yet");
    seat.keys("2\nuse a fuzzer, y n\n0cshorter, please");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    no, with comments on the steps: the planner revises the plan, and asks again
    ▸ 0 the plan
      1 Reproduce it
      2 Mend the lexer
    │ use a fuzzer, y n















    on the plan › shorter, please
    Enter save the comment  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    // Esc leaves the page and keeps the comments, however often it is pressed.
    seat.press(KeyCode::Esc);
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains("comment… (2)"), "{}", seat.screen());
    seat.keys("ck");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    no, with comments on the steps: the planner revises the plan, and asks again
    ▸ 0 the plan
    │ shorter, please
      1 Reproduce it
      2 Mend the lexer
    │ use a fuzzer, y n















    s no, with 2 comments  Enter comment  j/k or a number: choose  Esc back
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    assert_eq!(seat.told(), []);
    seat.keys("s");
    assert_eq!(
        seat.told(),
        denied("On the plan: shorter, please\nOn step 2 (Mend the lexer): use a fuzzer, y n")
    );
}

#[test]
fn comments_stay_when_the_plan_is_edited_and_only_then() {
    let revised = |seat: &mut Seat, steps| {
        let kind = UiEventKind::ApprovalClosed { id: ApprovalId(1) };
        seat.send(Msg::Core(UiEvent { conversation_id: "c".into(), agent: "1.1".into(), kind }));
        let mut params = params();
        params.plan.steps = steps;
        ask(seat, 2, params);
        seat.wait(400);
    };
    let steps = params().plan.steps;
    let commented = || {
        let mut seat = asked((80, 24), params());
        seat.keys("c2\nuse a fuzzer\n");
        seat.press(KeyCode::Esc);
        seat
    };
    let edited = || {
        let mut seat = commented();
        seat.keys("iK\nFirst\ns");
        assert!(matches!(&seat.told()[..], [UserActionKind::Agent(AgentAction::RevisePlan { .. })]));
        seat
    };
    let mut seat = edited();
    revised(&mut seat, vec![steps[1].clone(), steps[0].clone()]);
    assert!(seat.screen().contains("comment… (1)"), "{}", seat.screen());
    seat.keys("cs");
    let [UserActionKind::Answer { answer, .. }] = &seat.told()[..] else { panic!("an answer") };
    assert!(format!("{answer:?}").contains("On step 1 (Mend the lexer): use a fuzzer"), "{answer:?}");
    let mut seat = edited();
    revised(&mut seat, vec![steps[0].clone()]);
    assert!(seat.screen().contains("! 1 comment was removed with its step"), "{}", seat.screen());
    assert!(!seat.screen().contains("(1)"), "{}", seat.screen());
    let mut seat = commented();
    revised(&mut seat, steps);
    assert!(!seat.screen().contains("(1)"), "{}", seat.screen());
}

#[test]
fn the_chosen_step_is_in_sight_however_many_there_are() {
    let mut long = params();
    long.plan.steps = (1..=200).map(|n| step(&format!("Title {n}"), &[], vec![])).collect();
    for size in [(80, 24), (40, 10)] {
        let mut seat = asked(size, long.clone());
        seat.keys("c137\nthis one\n");
        for (keys, chosen) in [("", 137), ("k", 136), ("G", 200), ("g", 0), ("j", 1)] {
            seat.keys(keys);
            let mark = if chosen == 0 {
                "▸ 0 the plan".to_owned()
            } else {
                format!("▸ {chosen} Title {chosen}")
            };
            assert!(seat.screen().contains(&mark), "{keys}\n{}", seat.screen());
        }
        seat.keys("s");
        assert_eq!(seat.told(), denied("On step 137 (Title 137): this one"));
    }
}

#[test]
fn keys_that_came_together_send_and_edit_nothing() {
    for pasted in ["cs", "v", "c2"] {
        let mut seat = asked((80, 24), params());
        for c in pasted.chars() {
            seat.send(Msg::KeyOfMany(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
        assert_eq!(seat.actions, [], "{pasted:?}");
        assert!(!seat.screen().contains("▸"), "{pasted:?}\n{}", seat.screen());
    }
}

#[test]
fn a_plan_is_edited_elsewhere_and_comes_back() {
    let edit = Action::EditPlan { agent: "1.1".into(), id: ApprovalId(1), markdown: MARKDOWN.to_owned() };
    let back = |edited| Msg::PlanEdited { agent: "1.1".into(), id: ApprovalId(1), edited };
    let mut seat = asked((80, 24), params());
    seat.keys("v");
    assert_eq!(std::mem::take(&mut seat.actions), [edit]);
    seat.send(back(Ok(Some("# Other\n".to_owned()))));
    let kind =
        UserActionKind::Agent(AgentAction::EditPlan { id: ApprovalId(1), markdown: "# Other\n".to_owned() });
    assert_eq!(std::mem::take(&mut seat.actions), [Action::User("1.1".into(), kind)]);
    assert!(seat.screen().contains("Execute this plan?"), "the request stays until the core closes it");
    // A text that the supervisor rejects is reported above the request, and is opened again by the editor.
    let code = NoticeCode::PlanNotRead;
    let message = "the plan was not changed: line 1: expected a section ## Steps".to_owned();
    seat.send(by("1.1", EventKind::Notice { code, message }));
    assert!(seat.screen().contains("line 1: expected"), "{}", seat.screen());
    seat.keys("v");
    let again = Action::EditPlan { agent: "1.1".into(), id: ApprovalId(1), markdown: "# Other\n".to_owned() };
    assert_eq!(std::mem::take(&mut seat.actions), [again]);
    for (edited, said) in [
        (Ok(None), "the plan is unchanged"),
        (Err("the editor ended with exit status 1".to_owned()), "the editor ended with exit status 1"),
    ] {
        let mut seat = asked((80, 24), params());
        seat.send(back(edited));
        assert_eq!(seat.told(), []);
        seat.keys("n");
        assert!(seat.screen().contains(said), "{}", seat.screen());
    }
    seat.keys("n");
    seat.actions.clear();
    seat.send(back(Ok(Some("late".to_owned()))));
    assert_eq!(seat.actions, []);
    assert!(seat.screen().contains("no longer waits for your approval"), "{}", seat.screen());
}

#[test]
fn edit_plan_can_be_typed_as_well() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":edit-plan\n");
    assert!(seat.screen().contains("no plan waits for your approval"), "{}", seat.screen());
    seat.keys(":edit-pla");
    ask(&mut seat, 1, params());
    // A request that arrives while the person is typing does not interrupt the typing.
    seat.keys("n\n");
    assert!(matches!(&seat.actions[..], [Action::EditPlan { .. }]), "{:?}", seat.actions);
}
