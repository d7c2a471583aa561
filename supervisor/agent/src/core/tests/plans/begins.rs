//! Tests of the start of a plan's execution, and of executions that never began.

use super::*;

#[test]
fn a_place_to_create_is_asked_for_as_its_directory_and_told_to_the_planner() {
    let plan = PLAN.replace("## Steps", "## Rights\n\n- write: src/new.rs\n\n## Steps");
    let created = json!([{"path": "/p/src/new.rs", "directory": "/p/src"}]);
    let mut script = planner(planning(Approver::Person), true);
    script.reply(1, &[writes("a", &plan)], StopReason::ToolUse).input(plan_in_file_creating(1, created));
    let asked = script.effects.iter().find_map(|effect| match effect {
        Effect::RequestApproval { request, .. } => Some(serde_json::to_value(request).unwrap()),
        _ => None,
    });
    let params = &asked.unwrap()["params"];
    assert_eq!(params["grant"]["write"], json!(["/p/src"]));
    assert_eq!(params["to_create"][0]["path"], "/p/src/new.rs");
    script.input(decide_plan(1, ReviewDecision::DENIED, None));
    let told = outcome_of(&script, 1).unwrap().1;
    assert!(
        told.ends_with("[Rights: /p/src/new.rs does not exist yet: to create it, execution can write the directory /p/src]"),
        "{told}"
    );
}

#[test]
fn another_plan_may_follow_one_whose_execution_never_began_or_crashed() {
    let crashed = (SubAgentStatus::Crashed, Some("no place for it"));
    for (steps, event, finished) in [
        (vec![], "was not started", 0),
        (vec![StepStatus::Completed, StepStatus::InProgress], "was not executed to its end", 1),
    ] {
        let mut script = planner(planning(Approver::Flags { rounds: 1 }), false);
        script.reply(1, &[writes("a", PLAN)], StopReason::ToolUse).input(plan_in_file(1));
        script.input(execution_ended(1, crashed, &steps));
        let told = outcome_of(&script, 1).unwrap().1;
        assert!(
            told.contains(&format!("[the plan {event}: look what went wrong, then call write_plan")),
            "{told}"
        );
        assert!(told.contains(&format!("the first {finished} steps")), "{told}");
        script.reply(2, &[writes("b", PLAN)], StopReason::ToolUse).input(plan_in_file(2));
        // An approval that led to no execution is not used up.
        assert_eq!(begun_executions(&script).len(), if steps.is_empty() { 2 } else { 1 });
    }
}
