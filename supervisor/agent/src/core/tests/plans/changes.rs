//! Tests of the files that are recorded as changed by each step of a plan.

use super::*;
use crate::core::tests::script::written;

fn looked(call: u64, outcome: ServedOutcome) -> Input {
    Input::Served { call: CallId(call), outcome, duration_ms: 1 }
}

fn changed(script: &Script) -> Vec<(StepStatus, Vec<String>)> {
    let files = |effect: &Effect| match effect {
        Effect::Log { kind: EventKind::PlanStepStatus(status), .. } => {
            Some((status.to, status.files.iter().map(ToString::to_string).collect()))
        }
        _ => None,
    };
    script.effects.iter().filter_map(files).collect()
}

fn found(files: &str) -> ServedOutcome {
    ServedOutcome::Answered(files.to_owned())
}

fn begun() -> Script {
    let mut script = executor(OnFailure::Stop);
    script.looks = false;
    script.reply(1, &[reports("a", 1, "in_progress", None)], StopReason::ToolUse);
    assert!(steps(&script).is_empty(), "the project is looked at first");
    script.input(looked(1, found("[]")));
    script
}

#[test]
fn a_step_has_its_status_after_its_commands_ran_and_the_project_was_looked_at() {
    let mut script = begun();
    script.reply(2, &[reports("b", 1, "completed", None)], StopReason::ToolUse);
    script.outcome(3, ran(0)).outcome(4, ran(0));
    assert_eq!(steps(&script).len(), 1);
    script.input(looked(2, found(r#"["/p/a","/p/b"]"#)));
    let of_both = vec!["/p/a".to_owned(), "/p/b".to_owned()];
    assert_eq!(changed(&script), [(StepStatus::InProgress, vec![]), (StepStatus::Completed, of_both)]);
    let account = script.agent.execution().unwrap().account();
    assert_eq!(account[0].files.len(), 2);
}

#[test]
fn where_nobody_can_look_the_files_of_file_tools_count() {
    for outcome in [
        ServedOutcome::Failed("no".to_owned()),
        ServedOutcome::Unserved("nobody".to_owned()),
        ServedOutcome::Late(Duration::from_secs(1)),
        found("no list"),
    ] {
        let mut script = begun();
        let edit = call("b", "write_file", r#"{"path":"x","content":"1"}"#);
        script.reply(2, &[edit], StopReason::ToolUse).outcome(2, written("/p/x", 1));
        script
            .reply(3, &[reports("c", 1, "failed", Some("n"))], StopReason::ToolUse)
            .input(looked(3, outcome));
        assert_eq!(changed(&script)[1], (StepStatus::Failed, vec!["/p/x".to_owned()]));
    }
}

#[test]
fn an_interruption_while_the_project_is_looked_at_leaves_no_status() {
    let mut script = begun();
    script.reply(2, &[reports("b", 1, "skipped", Some("n"))], StopReason::ToolUse).interrupt();
    assert_eq!((steps(&script).len(), outcome_of(&script, 2).unwrap().0), (1, ToolCallStatus::Interrupted));
    script.input(looked(2, found("[]")));
    assert_eq!(steps(&script).len(), 1);
}
