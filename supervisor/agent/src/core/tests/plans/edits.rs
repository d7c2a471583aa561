use protocol::event::NoticeCode;
use protocol::frontend::AgentAction;
use protocol::plan::{Acceptance, Plan, PlanStep};

use super::*;

impl Script {
    fn edit(&mut self, id: u64, markdown: &str) -> &mut Self {
        self.input(Input::Op(Op::Act(AgentAction::EditPlan {
            id: ApprovalId(id),
            markdown: markdown.to_owned(),
        })))
    }

    fn revise(&mut self, id: u64, change: impl FnOnce(&mut Plan)) -> &mut Self {
        let mut plan = Document::parse(PLAN).unwrap().plan().clone();
        change(&mut plan);
        self.input(Input::Op(Op::Act(AgentAction::RevisePlan { id: ApprovalId(id), plan: Box::new(plan) })))
    }

    /// The last notice about an unreadable plan.
    fn not_read(&self) -> Option<&str> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Log { kind: EventKind::Notice { code: NoticeCode::PlanNotRead, message }, .. } => {
                Some(message.as_str())
            }
            _ => None,
        })
    }
}

#[test]
fn an_edit_voids_the_question_and_asks_about_its_own_bytes() {
    let mut script = asked();
    let edited = PLAN.replace("Do it.", "Do it well.");
    script.edit(1, "# Nothing\n");
    assert_eq!(script.to_file().len(), 1, "{}", script.lines());
    script.edit(7, &edited);
    assert_eq!(script.to_file().len(), 1, "no such request");
    script.edit(1, &edited);
    assert_eq!(script.to_file(), [PLAN, edited.as_str()]);
    script.decide_plan(1, ReviewDecision::Approved, None);
    assert!(script.executions().is_empty(), "the old question is over");
    script.plan_in_file(1);
    let digests = script.asked_for();
    assert_ne!(digests[0], digests[1]);
    script.decide_plan(2, ReviewDecision::Approved, Some(digests[0].clone()));
    assert!(script.executions().is_empty(), "the digest of the bytes before");
    let mut script = asked();
    script.edit(1, &edited).plan_in_file(1);
    script.decide_plan(2, ReviewDecision::Approved, None);
    assert_eq!(script.executions()[0].digest(), gate::plan::digest(&edited));
}

fn asked_with(extra: &str) -> Script {
    let mut script = planner(planning(Approver::Person), true);
    script.reply(1, &[writes("a", &[PLAN, extra].concat())], StopReason::ToolUse).plan_in_file(1);
    script
}

#[test]
fn fields_are_written_by_the_printer_and_all_other_bytes_stay() {
    let extra = "\n## Anything else\n<!-- mine -->\n*  untouched\n";
    let mut script = asked_with(extra);
    script.revise(1, |plan| {
        plan.steps.swap(0, 1);
        plan.steps[0].acceptance.push(Acceptance::Command("make three".to_owned()));
        plan.steps.push(PlanStep { title: "Three".to_owned(), ..PlanStep::default() });
    });
    let written = script.to_file()[1].to_owned();
    assert!(written.ends_with(extra), "{written}");
    let titles = Document::parse(&written).unwrap();
    let titles: Vec<_> = titles.plan().steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["Two", "One", "Three"]);
    script.decide_plan(1, ReviewDecision::Approved, None);
    assert!(script.executions().is_empty(), "the question about the bytes before is over");
    script.plan_in_file(1).decide_plan(2, ReviewDecision::Approved, None);
    assert_eq!(script.executions()[0].digest(), gate::plan::digest(&written));
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
        script.revise(1, change);
        assert!(script.not_read().unwrap().contains(why), "{:?}", script.not_read());
        assert_eq!(script.to_file().len(), 1);
        script.decide_plan(1, ReviewDecision::Approved, None);
        assert_eq!(script.executions().len(), 1, "the question is still open");
    }
    let mut script = asked_with("");
    script.revise(7, |plan| plan.title.push('!'));
    assert_eq!(script.to_file().len(), 1, "no such request");
}
