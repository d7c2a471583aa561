mod begins;
mod changes;
mod earlier;
mod edits;
mod servers;

use std::sync::Arc;
use std::time::Duration;

use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::plan::Document;
use gate::tools::{Kit, PlanTool, Registry, ServedCall};
use gate::{ApprovalMode, Change};
use ipc::id::{ApprovalId, CallId};
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{
    EndReason, EventKind, StepAccount, SubAgentResult, SubAgentStatus, TokenUsage, ToolCallStatus,
};
use protocol::frontend::Op;
use protocol::plan::{OnFailure, StepStatus};
use serde_json::json;

use super::script::{Script, call, command, config, file, messages, only_temp, standing, text, with_net};
use crate::conversation::{AssistantBlock, StopReason};
use crate::core::{
    AgentConfig, Approver, Effect, Execution, Input, PLAN_FILE, Planning, Purpose, ServedOutcome,
};

fn ran(code: i32) -> ipc::message::CallOutcome {
    command(code, "")
}

const PLAN: &str =
    "# P\n\n## Steps\n\n### 1. One\n\nAcceptance:\n- `make one`\n- `make two`\n\n### 2. Two\n\nDo it.\n";

fn planning(approver: Approver) -> Planning {
    Planning {
        ceiling: standing(),
        approver,
        on_failure: OnFailure::Stop,
        retries: 1,
        acceptance_timeout: Duration::from_secs(9),
        finished: Vec::new(),
        approved: None,
        servers: Arc::default(),
    }
}

fn tools(activity: Activity, plan: PlanTool) -> Arc<Registry> {
    Arc::new(Registry::for_kit(
        activity,
        Kit { writes: true, fetches: false, delegates: false, plan: Some(plan) },
    ))
}

fn planner(planning: Planning, answerer: bool) -> Script {
    let mut script = planner_at_rest(planning, answerer);
    script.user("plan");
    script
}

fn planner_at_rest(planning: Planning, answerer: bool) -> Script {
    let mut script = Script::with(AgentConfig {
        standing: only_temp(standing()).with_mode(ApprovalMode::Deny),
        tools: tools(Activity::Plan, PlanTool::Write),
        approvals: ApprovalSettings { answerer, ..ApprovalSettings::default() },
        activity: Activity::Plan,
        planning: Some(planning),
        ..config()
    });
    script.ready(1);
    script
}

fn writes(id: &str, markdown: &str) -> AssistantBlock {
    call(id, "write_plan", &json!({ "markdown": markdown }).to_string())
}

fn reports(id: &str, step: u32, status: &str, note: Option<&str>) -> AssistantBlock {
    call(id, "update_step", &json!({ "step": step, "status": status, "note": note }).to_string())
}

fn plan_in_file(call: u64) -> Input {
    plan_in_file_creating(call, json!([]))
}

fn plan_in_file_creating(call: u64, to_create: serde_json::Value) -> Input {
    let answer = json!({"path": "/state/plans/1.md", "to_create": to_create});
    let outcome = ServedOutcome::Answered(answer.to_string());
    Input::Served { call: CallId(call), outcome, duration_ms: 1 }
}

fn decide_plan(id: u64, decision: ReviewDecision, digest: Option<String>) -> Input {
    Input::Op(Op::Answer { id: ApprovalId(id), kind: AskKind::Plan, decision, digest })
}

fn to_file(script: &Script) -> Vec<&str> {
    let text = |effect| match effect {
        &Effect::Serve { served: ServedCall::Supervisor(ref call), .. } if call.tool == PLAN_FILE => {
            Some(call.json.as_str())
        }
        _ => None,
    };
    script.effects.iter().filter_map(text).collect()
}

fn asked_for(script: &Script) -> Vec<String> {
    let digest = |effect: &Effect| match effect {
        Effect::RequestApproval { request, .. } => Some(request.digest().to_owned()),
        _ => None,
    };
    script.effects.iter().filter_map(digest).collect()
}

fn begun_executions(script: &Script) -> Vec<Arc<Execution>> {
    let begun = |effect: &Effect| match effect {
        Effect::SpawnAgent { agent, .. } => match &agent.purpose {
            Purpose::Executor(execution) => Some(Arc::clone(execution)),
            Purpose::Task(_) | Purpose::Planner(_) => None,
        },
        _ => None,
    };
    script.effects.iter().filter_map(begun).collect()
}

fn outcome_of(script: &Script, call: u64) -> Option<(ToolCallStatus, String)> {
    script.effects.iter().find_map(|effect| match effect {
        Effect::Log { kind: EventKind::ToolCallFinished { call: of, status, content, .. }, .. }
            if of.0 == call =>
        {
            Some((*status, content.clone()))
        }
        _ => None,
    })
}

fn steps(script: &Script) -> Vec<(u32, StepStatus, usize)> {
    let step = |effect: &Effect| match effect {
        Effect::Log { kind: EventKind::PlanStepStatus(status), .. } => {
            Some((status.step, status.to, status.acceptance.len()))
        }
        _ => None,
    };
    script.effects.iter().filter_map(step).collect()
}

fn dispatched(script: &Script) -> Vec<u64> {
    let sent = |effect: &Effect| match effect {
        Effect::Dispatch { call, .. } => Some(call.0),
        _ => None,
    };
    script.effects.iter().filter_map(sent).collect()
}

fn end(script: &Script) -> Option<(EndReason, Option<String>)> {
    script.effects.iter().rev().find_map(|effect| match effect {
        Effect::Finish(end) => Some((end.reason, end.message.clone())),
        _ => None,
    })
}

fn executed(call: u64, statuses: &[StepStatus]) -> Input {
    execution_ended(call, (SubAgentStatus::Done, None), statuses)
}

fn execution_ended(
    call: u64,
    (status, message): (SubAgentStatus, Option<&str>),
    statuses: &[StepStatus],
) -> Input {
    let step = |(step, status): (u32, &StepStatus)| StepAccount {
        step,
        title: "T".to_owned(),
        status: *status,
        note: None,
        acceptance: vec![],
        files: vec![],
    };
    let report = SubAgentResult {
        agent: "1.1".into(),
        call: Some(CallId(call)),
        status,
        message: message.map(str::to_owned),
        files: vec![],
        unseen: None,
        denials: 0,
        denied: vec![],
        steps: 1,
        usage: TokenUsage::default(),
        cost_usd: None,
        duration_ms: 1,
        plan: (1..).zip(statuses).map(step).collect(),
        text: String::new(),
    };
    Input::AgentFinished { call: CallId(call), report: Box::new(report) }
}

fn asked() -> Script {
    let mut script = planner(planning(Approver::Person), true);
    script.reply(1, &[writes("a", PLAN)], StopReason::ToolUse).input(plan_in_file(1));
    script
}

#[test]
fn a_plan_is_in_its_file_before_anybody_is_asked_and_executed_only_after_the_answer() {
    let mut script = planner(planning(Approver::Person), true);
    script.reply(1, &[writes("a", PLAN)], StopReason::ToolUse);
    assert_eq!((to_file(&script), asked_for(&script).len()), (vec![PLAN], 0));
    script.input(plan_in_file(1));
    assert_eq!((asked_for(&script).len(), begun_executions(&script).len()), (1, 0));
    let digest = asked_for(&script).pop();
    script.input(decide_plan(1, ReviewDecision::Approved, digest));
    let [execution] = &begun_executions(&script)[..] else { panic!("{}", script.lines()) };
    assert_eq!(execution.digest(), gate::plan::digest(PLAN));
    script.input(executed(1, &[StepStatus::Completed, StepStatus::Skipped]));
    assert_eq!(outcome_of(&script, 1).unwrap().0, ToolCallStatus::Completed);
    script.reply(2, &[text("Done.")], StopReason::EndTurn);
    assert_eq!(end(&script), Some((EndReason::Done, None)));
}

#[test]
fn what_is_no_approval_of_exactly_this_plan_executes_nothing() {
    for (decision, digest) in [
        (ReviewDecision::DENIED, None),
        (ReviewDecision::Abort, None),
        (ReviewDecision::Approved, Some("another".to_owned())),
        (ReviewDecision::ApprovedForSession { scope: protocol::approval::SessionScope::Exact }, None),
    ] {
        let mut script = asked();
        script.input(decide_plan(1, decision.clone(), digest));
        assert_eq!(outcome_of(&script, 1).unwrap().0, ToolCallStatus::Denied, "{decision:?}");
        assert!(begun_executions(&script).is_empty());
    }
    let mut script = asked();
    script.exec(1, ReviewDecision::Approved);
    assert!(begun_executions(&script).is_empty(), "an answer to another kind of request");
}

#[test]
fn what_cannot_be_read_or_given_goes_back_at_once() {
    let asks = |root: &str| PLAN.replace("## Steps", &format!("## Rights\n\n- write: {root}\n\n## Steps"));
    for (markdown, ends_as, word) in [
        ("# P\n".to_owned(), ToolCallStatus::Failed, "line"),
        // Access that no approval can give is denied. The result names the path.
        (asks("/"), ToolCallStatus::Denied, "write: /"),
        (asks(".git/hooks"), ToolCallStatus::Denied, "write: .git/hooks"),
    ] {
        let mut script = planner(planning(Approver::Person), true);
        script.reply(1, &[writes("a", &markdown)], StopReason::ToolUse);
        let (status, content) = outcome_of(&script, 1).unwrap();
        assert!(status == ends_as && content.contains(word), "{content}");
        assert!(to_file(&script).is_empty());
    }
}

#[test]
fn flags_approve_so_many_plans_and_nothing_beyond_themselves() {
    let mut script = planner(planning(Approver::Flags { rounds: 1 }), false);
    script.reply(1, &[writes("a", PLAN)], StopReason::ToolUse).input(plan_in_file(1));
    assert_eq!((asked_for(&script).len(), begun_executions(&script).len()), (0, 1));
    script.input(executed(1, &[StepStatus::Failed, StepStatus::Pending]));
    script.reply(2, &[writes("b", PLAN)], StopReason::ToolUse).input(plan_in_file(2));
    assert_eq!(
        (outcome_of(&script, 2).unwrap().0, begun_executions(&script).len()),
        (ToolCallStatus::Denied, 1)
    );
    script.reply(3, &[text("No.")], StopReason::EndTurn);
    let (reason, message) = end(&script).unwrap();
    assert_eq!(reason, EndReason::GaveUp, "{message:?}");

    let mut narrow = planning(Approver::Flags { rounds: 3 });
    narrow.ceiling = only_temp(narrow.ceiling);
    let mut script = planner(narrow, false);
    script.reply(1, &[writes("a", PLAN)], StopReason::ToolUse).input(plan_in_file(1));
    assert!(outcome_of(&script, 1).unwrap().1.contains("/p"), "the difference is named");
    script.reply(2, &[text("No.")], StopReason::EndTurn);
    assert_eq!(end(&script).unwrap().0, EndReason::DeniedAtEnd);
}

#[test]
fn a_revised_plan_keeps_what_is_finished() {
    let replan = PLAN.replace("## Steps", "## On failure\n\nreplan\n\n## Steps");
    let mut script = planner(planning(Approver::Flags { rounds: 5 }), false);
    script.reply(1, &[writes("a", &replan)], StopReason::ToolUse).input(plan_in_file(1));
    script.input(executed(1, &[StepStatus::Completed, StepStatus::Failed]));
    script.reply(2, &[writes("b", &replan.replace("make two", "true"))], StopReason::ToolUse);
    assert_eq!(outcome_of(&script, 2).unwrap().0, ToolCallStatus::Failed, "the first step is another one");
    script.reply(3, &[writes("c", &replan.replace("Do it.", "Do less."))], StopReason::ToolUse);
    script.input(plan_in_file(3));
    let statuses =
        |execution: &Execution| execution.account().iter().map(|step| step.status).collect::<Vec<_>>();
    assert_eq!(statuses(&begun_executions(&script)[1]), [StepStatus::Completed, StepStatus::Pending]);
}

#[test]
fn the_network_that_is_turned_off_while_a_plan_is_made_is_not_given() {
    let mut online = planning(Approver::Flags { rounds: 1 });
    online.ceiling = with_net(online.ceiling, Network::On);
    let wants = PLAN.replace("## Steps", "## Rights\n\n- network: on\n\n## Steps");
    for off in [false, true] {
        let mut script = planner(online.clone(), false);
        if off {
            let change = RightsChange::Network { net: Network::Off, reach: None };
            script.input(Input::TakenBack(Change::Rights(change)));
        }
        script.reply(1, &[writes("a", &wants)], StopReason::ToolUse).input(plan_in_file(1));
        assert_eq!(begun_executions(&script).is_empty(), off);
    }
}

#[test]
fn a_question_about_rights_that_are_taken_back_is_over() {
    let wants = PLAN.replace("## Steps", "## Rights\n\n- network: on\n- write: /srv/x/y\n\n## Steps");
    let off = || Change::Rights(RightsChange::Network { net: Network::Off, reach: None });
    let removed = |path: &str| Change::Rights(RightsChange::RemoveWrite { path: path.into() });
    for (change, is_over) in [
        (off(), true),
        (removed("/srv/x"), true),
        (Change::Mode(ApprovalMode::Deny), true),
        (removed("/srv/other"), false),
        (Change::Mode(ApprovalMode::Auto), false),
    ] {
        let mut online = planning(Approver::Person);
        let mut rights = online.ceiling.rights().clone();
        rights.net = Network::On;
        rights.write.push("/srv/x".into());
        online.ceiling.set_rights(rights);
        let mut script = planner(online.clone(), true);
        script.reply(1, &[writes("a", &wants)], StopReason::ToolUse).input(plan_in_file(1));
        assert_eq!(asked_for(&script).len(), 1, "{}", script.lines());
        script.input(Input::TakenBack(change.clone())).input(decide_plan(1, ReviewDecision::Approved, None));
        assert_eq!(begun_executions(&script).is_empty(), is_over, "{change:?}");
        // If the access is withdrawn while the plan is written to its file, the request shows the remaining access.
        let mut script = planner(online, true);
        script.reply(1, &[writes("a", &wants)], StopReason::ToolUse);
        script.input(Input::TakenBack(change.clone())).input(plan_in_file(1));
        script.input(decide_plan(1, ReviewDecision::Approved, None));
        let net = script.effects.iter().find_map(|effect| match effect {
            Effect::SpawnAgent { agent, .. } => Some(agent.rights.net.clone()),
            _ => None,
        });
        let expected =
            if is_over { [None, Some(Network::Off)] } else { [Some(Network::On), Some(Network::On)] };
        assert!(expected.contains(&net), "{change:?}: {net:?}");
    }
}

fn executor(on_failure: OnFailure) -> Script {
    let plan = Document::parse(PLAN).unwrap().plan().clone();
    let planning = Planning { on_failure, ..planning(Approver::Person) };
    let mut script = Script::with(AgentConfig {
        tools: tools(Activity::Execute, PlanTool::Report),
        execution: Some(Execution::new(&plan, &planning)),
        id: "1.1".into(),
        ..config()
    });
    script.ready(1).user("execute");
    script
}

#[test]
fn a_step_is_completed_when_its_commands_pass_and_they_run_one_after_the_other() {
    let mut script = executor(OnFailure::Stop);
    let after = call("b", "read_file", r#"{"path":"x"}"#);
    script.reply(1, &[reports("a", 1, "completed", None), after], StopReason::ToolUse);
    assert_eq!(dispatched(&script), [3], "the first command alone; what the model called next waits");
    script.outcome(3, ran(0));
    assert_eq!(dispatched(&script), [3, 4]);
    assert!(steps(&script).is_empty());
    script.outcome(4, ran(0));
    assert_eq!(steps(&script), [(1, StepStatus::Completed, 2)]);
    assert_eq!(outcome_of(&script, 1).unwrap().0, ToolCallStatus::Completed);
    assert_eq!(dispatched(&script), [3, 4, 2]);
    script.outcome(2, file("x\n"));
    let results = script.last_messages();
    assert!(!results.contains("acceptance-1"), "the model has results of its own calls alone: {results}");
}

#[test]
fn a_failed_step_ends_execution_and_nothing_else_runs() {
    let mut script = executor(OnFailure::Stop);
    let more = call("b", "shell_exec", r#"{"command":"make more"}"#);
    script.reply(1, &[reports("a", 1, "completed", Some("fine")), more], StopReason::ToolUse);
    script.outcome(3, ran(2)).outcome(4, ran(0));
    assert_eq!(steps(&script), [(1, StepStatus::Failed, 2)]);
    let (status, told) = outcome_of(&script, 1).unwrap();
    assert!(status == ToolCallStatus::Failed && told.contains("exit status 2"), "{told}");
    assert_eq!(
        (outcome_of(&script, 2).unwrap().0, dispatched(&script)),
        (ToolCallStatus::Failed, vec![3, 4])
    );
    script.reply(2, &[reports("c", 1, "completed", None)], StopReason::ToolUse);
    assert_eq!(steps(&script).len(), 1);
    script.reply(3, &[text("All is well.")], StopReason::EndTurn);
    assert_eq!(end(&script).unwrap().0, EndReason::GaveUp);
}

#[test]
fn a_failed_step_is_tried_again_as_often_as_that_is_allowed() {
    let mut script = executor(OnFailure::Retry);
    for (request, call) in [(1, 1), (2, 4)] {
        script.reply(request, &[reports("a", 1, "completed", None)], StopReason::ToolUse);
        script.outcome(call + 1, ran(1)).outcome(call + 2, ran(0));
    }
    let told = |call| outcome_of(&script, call).unwrap().1;
    assert!(told(1).contains("1 of 1 tries left") && told(4).contains("execution ends"), "{}", told(1));
}

#[test]
fn steps_are_reported_in_their_order_and_a_finished_one_stays() {
    let mut script = executor(OnFailure::Stop);
    for (request, block, fits) in [
        (1, reports("a", 2, "in_progress", None), false),
        (2, reports("b", 3, "skipped", Some("why")), false),
        (3, reports("c", 1, "skipped", Some("why")), true),
        (4, reports("d", 2, "completed", None), true),
        (5, reports("e", 2, "pending", None), false),
    ] {
        script.reply(request, &[block], StopReason::ToolUse);
        let done = outcome_of(&script, request).unwrap().0 == ToolCallStatus::Completed;
        assert_eq!(done, fits, "{:?}", outcome_of(&script, request));
    }
    script.reply(6, &[text("Done.")], StopReason::EndTurn);
    assert_eq!(end(&script).unwrap().0, EndReason::Done);
}

#[test]
fn what_has_not_begun_of_an_interrupted_claim_never_begins() {
    let mut script = executor(OnFailure::Stop);
    script.reply(1, &[reports("a", 1, "completed", None)], StopReason::ToolUse);
    let narrower = Rights { write: vec!["/tmp/bw-1".into()], ..standing().rights().clone() };
    script.input(Input::Narrowed { rights: narrower }).ready(2);
    assert_eq!(dispatched(&script), [2], "the second command waited");
    assert_eq!(outcome_of(&script, 1).unwrap().0, ToolCallStatus::Interrupted);
    assert!(steps(&script).is_empty());
    // The executor can report the step again. All acceptance commands run again.
    script.reply(2, &[reports("b", 1, "completed", None)], StopReason::ToolUse);
    script.outcome(5, ran(0)).outcome(6, ran(0));
    assert_eq!(steps(&script), [(1, StepStatus::Completed, 2)]);
}

#[test]
fn a_plan_after_an_executed_one_begins_anew_and_one_after_a_failed_one_may() {
    let other = PLAN.replace("# P", "# Q").replace("One", "Other");
    for (statuses, next, expected) in [
        ([StepStatus::Completed, StepStatus::Completed], PLAN, 0),
        ([StepStatus::Completed, StepStatus::Failed], PLAN, 1),
        ([StepStatus::Completed, StepStatus::Failed], other.as_str(), 0),
    ] {
        let mut script = planner(planning(Approver::Flags { rounds: 5 }), false);
        script
            .reply(1, &[writes("a", PLAN)], StopReason::ToolUse)
            .input(plan_in_file(1))
            .input(executed(1, &statuses));
        script.reply(2, &[text("So far.")], StopReason::EndTurn).user("go on");
        script.reply(3, &[writes("b", next)], StopReason::ToolUse).input(plan_in_file(2));
        let account = begun_executions(&script)[1].account();
        let done = account.iter().filter(|step| step.status == StepStatus::Completed).count();
        assert_eq!(done, expected, "{statuses:?}");
    }
}

#[test]
fn an_execution_that_never_began_leaves_what_was_finished() {
    let replan = PLAN.replace("## Steps", "## On failure\n\nreplan\n\n## Steps");
    let mut script = planner(planning(Approver::Flags { rounds: 5 }), false);
    script.reply(1, &[writes("a", &replan)], StopReason::ToolUse).input(plan_in_file(1));
    script.input(executed(1, &[StepStatus::Completed, StepStatus::Failed]));
    script
        .reply(2, &[writes("b", &replan)], StopReason::ToolUse)
        .input(plan_in_file(2))
        .input(executed(2, &[]));
    script.reply(3, &[writes("c", &replan)], StopReason::ToolUse).input(plan_in_file(3));
    let account = begun_executions(&script)[2].account();
    assert_eq!(account[0].status, StepStatus::Completed);
}

#[test]
fn a_claim_that_is_interrupted_has_a_result_and_no_status() {
    let mut script = executor(OnFailure::Stop);
    script.reply(1, &[reports("a", 1, "completed", None)], StopReason::ToolUse).interrupt();
    assert!(steps(&script).is_empty());
    assert_eq!(outcome_of(&script, 1).unwrap().0, ToolCallStatus::Interrupted);
    assert_eq!(outcome_of(&script, 2).unwrap().0, ToolCallStatus::Interrupted);
    assert_eq!(end(&script).unwrap().0, EndReason::Interrupted);
}
