use super::*;
use protocol::frontend::AgentAction;

/// Returns a planner without a message, which the user has told to execute an approved plan.
fn with_approved(markdown: &str, change: impl FnOnce(&mut Planning)) -> Script {
    let mut planning = planning(Approver::Person);
    planning.approved = Some(gate::plan::digest(markdown));
    change(&mut planning);
    let mut script = planner_at_rest(planning, false);
    script.input(Input::Op(Op::Act(AgentAction::ExecutePlan { markdown: markdown.to_owned() })));
    script
}

#[test]
fn it_is_executed_and_the_model_is_asked_nothing() {
    let mut script = with_approved(PLAN, |_| ());
    assert_eq!(to_file(&script), [PLAN]);
    script.input(plan_in_file(1));
    assert_eq!((asked_for(&script).len(), begun_executions(&script).len()), (0, 1));
    script.input(executed(1, &[StepStatus::Completed, StepStatus::Completed]));
    assert_eq!(end(&script), Some((EndReason::Done, None)));
    assert!(script.requests().is_empty());
    // The user's next message contains the plan and the report on it as text, because the model made no call for them.
    script.user("thanks");
    let sent = messages(script.requests()[0]);
    assert!(sent.contains("### 1. One") && !sent.contains("tool_result"), "{sent}");
}

#[test]
fn a_step_that_fails_ends_it_or_has_the_planner_revise_it() {
    let mut script = with_approved(PLAN, |_| ());
    script.input(plan_in_file(1)).input(executed(1, &[StepStatus::Completed, StepStatus::Failed]));
    assert_eq!((end(&script).unwrap().0, script.requests().len()), (EndReason::GaveUp, 0));

    let replan = PLAN.replace("## Steps", "## On failure\n\nreplan\n\n## Steps");
    for (rounds, executions) in [(0, 1), (1, 2)] {
        let mut script = with_approved(&replan, |planning| planning.approver = Approver::Flags { rounds });
        script.input(plan_in_file(1)).input(executed(1, &[StepStatus::Completed, StepStatus::Failed]));
        let revised = replan.replace("Do it.", "Do less.");
        script.reply(1, &[writes("b", &revised)], StopReason::ToolUse).input(plan_in_file(2));
        assert_eq!(begun_executions(&script).len(), executions, "{rounds} revisions are approved");
    }
}

#[test]
fn another_text_than_the_approved_one_is_not_executed() {
    let mut script = with_approved(PLAN, |planning| planning.approved = Some("0".repeat(64)));
    script.input(plan_in_file(1));
    assert!(begun_executions(&script).is_empty());
    assert_eq!(end(&script).unwrap().0, EndReason::GaveUp);
}

#[test]
fn what_the_flags_of_the_run_do_not_allow_ends_it_as_denied() {
    let mut script = with_approved(PLAN, |planning| {
        planning.ceiling = only_temp(planning.ceiling.clone());
    });
    script.input(plan_in_file(1));
    assert!(begun_executions(&script).is_empty());
    let (reason, message) = end(&script).unwrap();
    assert!(reason == EndReason::DeniedAtEnd && message.unwrap().contains("writing /p"), "{reason:?}");
    let mut script = with_approved("# P\n", |_| ());
    let (reason, message) = end(&script).unwrap();
    assert!(reason == EndReason::GaveUp && message.unwrap().contains("line"), "{}", script.lines());
}

#[test]
fn what_was_finished_before_is_not_done_again() {
    let steps = Document::parse(PLAN).unwrap().plan().steps.clone();
    let mut script = with_approved(PLAN, |planning| planning.finished = steps[..1].to_vec());
    script.input(plan_in_file(1));
    let account = begun_executions(&script)[0].account();
    assert_eq!((account[0].status, account[1].status), (StepStatus::Completed, StepStatus::Pending));
}

#[test]
fn only_a_planner_at_rest_takes_one() {
    let mut script = with_approved(PLAN, |_| ());
    script.input(Input::Op(Op::Act(AgentAction::ExecutePlan { markdown: PLAN.to_owned() })));
    assert!(script.lines().contains("the plan was not executed: the agent is working"), "{}", script.lines());
    let mut script = Script::new();
    script.ready(1).input(Input::Op(Op::Act(AgentAction::ExecutePlan { markdown: PLAN.to_owned() })));
    assert!(script.lines().contains("this agent cannot make plans"), "{}", script.lines());
}

#[test]
fn an_interruption_ends_it_and_its_result_answers_no_call_of_the_model() {
    let mut script = with_approved(PLAN, |_| ());
    script.interrupt();
    assert_eq!(end(&script).unwrap().0, EndReason::Interrupted);
    script.user("go on");
    assert!(!messages(script.requests()[0]).contains("tool_result"));
}
