use protocol::event::NoticeCode;
use protocol::frontend::AgentAction;
use protocol::plan::{Acceptance, Plan, PlanStep};

use super::*;

fn edit(id: u64, markdown: &str) -> Input {
    Input::Op(Op::Act(AgentAction::EditPlan { id: ApprovalId(id), markdown: markdown.to_owned() }))
}

fn revise(id: u64, change: impl FnOnce(&mut Plan)) -> Input {
    let mut plan = Document::parse(PLAN).unwrap().plan().clone();
    change(&mut plan);
    Input::Op(Op::Act(AgentAction::RevisePlan { id: ApprovalId(id), plan: Box::new(plan) }))
}

/// Returns the last notice that a plan cannot be parsed.
fn not_read(script: &Script) -> Option<&str> {
    script.effects.iter().rev().find_map(|effect| match effect {
        Effect::Log { kind: EventKind::Notice { code: NoticeCode::PlanNotRead, message }, .. } => {
            Some(message.as_str())
        }
        _ => None,
    })
}

#[test]
fn an_edit_voids_the_question_and_asks_about_its_own_bytes() {
    let mut script = asked();
    let edited = PLAN.replace("Do it.", "Do it well.");
    script.input(edit(1, "# Nothing\n"));
    assert_eq!(to_file(&script).len(), 1, "{}", script.lines());
    script.input(edit(7, &edited));
    assert_eq!(to_file(&script).len(), 1, "no such request");
    script.input(edit(1, &edited));
    assert_eq!(to_file(&script), [PLAN, edited.as_str()]);
    script.input(decide_plan(1, ReviewDecision::Approved, None));
    assert!(begun_executions(&script).is_empty(), "the old question is over");
    script.input(plan_in_file(1));
    let digests = asked_for(&script);
    assert_ne!(digests[0], digests[1]);
    script.input(decide_plan(2, ReviewDecision::Approved, Some(digests[0].clone())));
    assert!(begun_executions(&script).is_empty(), "the digest of the bytes before");
    let mut script = asked();
    script.input(edit(1, &edited)).input(plan_in_file(1));
    script.input(decide_plan(2, ReviewDecision::Approved, None));
    assert_eq!(begun_executions(&script)[0].digest(), gate::plan::digest(&edited));
}

fn asked_with(extra: &str) -> Script {
    let mut script = planner(planning(Approver::Person), true);
    script.reply(1, &[writes("a", &[PLAN, extra].concat())], StopReason::ToolUse).input(plan_in_file(1));
    script
}

#[test]
fn fields_are_written_by_the_printer_and_all_other_bytes_stay() {
    let extra = "\n## Anything else\n<!-- mine -->\n*  untouched\n";
    let mut script = asked_with(extra);
    script.input(revise(1, |plan| {
        plan.steps.swap(0, 1);
        plan.steps[0].acceptance.push(Acceptance::Command("make three".to_owned()));
        plan.steps.push(PlanStep { title: "Three".to_owned(), ..PlanStep::default() });
    }));
    let written = to_file(&script)[1].to_owned();
    assert!(written.ends_with(extra), "{written}");
    let titles = Document::parse(&written).unwrap();
    let titles: Vec<_> = titles.plan().steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["Two", "One", "Three"]);
    script.input(decide_plan(1, ReviewDecision::Approved, None));
    assert!(begun_executions(&script).is_empty(), "the question about the bytes before is over");
    script.input(plan_in_file(1)).input(decide_plan(2, ReviewDecision::Approved, None));
    assert_eq!(begun_executions(&script)[0].digest(), gate::plan::digest(&written));
}

#[test]
fn fields_that_cannot_be_written_leave_the_plan_and_the_question() {
    type Change = (&'static str, fn(&mut Plan));
    let cases: [Change; 3] = [
        ("line", |plan| plan.steps[1].description = "### 9. A step\n".to_owned()),
        ("line", |plan| plan.steps.clear()),
        ("the title of step 1", |plan| plan.steps[0].title = " One ".to_owned()),
    ];
    for (why, change) in cases {
        let mut script = asked_with("");
        script.input(revise(1, change));
        assert!(not_read(&script).unwrap().contains(why), "{:?}", not_read(&script));
        assert_eq!(to_file(&script).len(), 1);
        script.input(decide_plan(1, ReviewDecision::Approved, None));
        assert_eq!(begun_executions(&script).len(), 1, "the question is still open");
    }
    let mut script = asked_with("");
    script.input(revise(7, |plan| plan.title.push('!')));
    assert_eq!(to_file(&script).len(), 1, "no such request");
}
