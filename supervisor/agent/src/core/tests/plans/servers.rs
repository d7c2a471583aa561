//! Tests of MCP servers that a plan lists: they are shown, may be called, and can be taken back.

use gate::tools::{
    ExternalCall, ExternalTool, GuestTool, OfferedServer, PlannedServer, Tool, ToolDefinition,
};
use ipc::rights::Hosts;
use protocol::approval::ServerAccess;
use protocol::plan::PlanRights;
use serde_json::value::RawValue;

use super::*;

/// Returns an MCP tool whose server gets a variable and may connect to one host.
fn search() -> ExternalTool {
    let net = Network::Hosts(Hosts::new(["a.example".parse().unwrap()]).unwrap());
    let access =
        ServerAccess { net: net.clone(), variables: vec!["TOKEN".to_owned()], ..ServerAccess::default() };
    let definition = ToolDefinition {
        name: "docs__search".into(),
        description: "A tool of the tests.".into(),
        input_schema: RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap(),
    };
    let guest = GuestTool {
        rights: Rights { net, ..Rights::default() },
        access,
        definition: "d".to_owned(),
        always: false,
    };
    ExternalTool::new("docs".to_owned(), "search".to_owned(), definition).confined(guest)
}

fn offered() -> OfferedServer {
    let tool = search().offered().unwrap();
    OfferedServer { name: "docs".to_owned(), access: tool.guest.access.clone(), tools: vec![tool] }
}

fn listing(servers: &[&str]) -> PlanRights {
    PlanRights { servers: servers.iter().map(|name| (*name).to_owned()).collect(), ..PlanRights::default() }
}

/// Returns an executor of a plan that lists these servers, after a call of the server's tool.
fn called(servers: &[&str]) -> Script {
    let planned = PlannedServer::of(Some(&listing(servers)), &[offered()]).unwrap();
    let plan = Document::parse(PLAN).unwrap().plan().clone();
    let execution = Execution::new(&plan, &planning(Approver::Person)).calling(planned);
    let tools =
        tools(Activity::Execute, PlanTool::Report).extended(vec![Box::new(search()) as Box<dyn Tool>]);
    let mut script = Script::with(AgentConfig {
        id: "1.1".into(),
        tools: Arc::new(tools),
        execution: Some(execution),
        ..config()
    });
    script.ready(1).user("execute it");
    script.reply(1, &[call("a", "docs__search", r#"{"q":"x"}"#)], StopReason::ToolUse);
    script
}

fn external_calls(script: &Script) -> Vec<&ExternalCall> {
    let made = |effect| match effect {
        &Effect::Serve { served: ServedCall::External(ref call), .. } => Some(call),
        _ => None,
    };
    script.effects.iter().filter_map(made).collect()
}

#[test]
fn an_execution_calls_the_servers_of_its_plan_and_no_others() {
    let script = called(&["docs"]);
    assert_eq!(external_calls(&script).len(), 1, "{}", called(&["docs"]).lines());
    let script = called(&[]);
    assert!(external_calls(&script).is_empty());
    let (status, text) = outcome_of(&script, 1).unwrap();
    assert_eq!(status, ToolCallStatus::Denied);
    assert!(text.contains("the approved plan does not list this server"), "{text}");
}

#[test]
fn what_the_user_takes_back_ends_calls_of_servers_that_may_do_it() {
    let path = || "/p/src".into();
    for (change, ends) in [
        (Change::Mode(ApprovalMode::Deny), true),
        (Change::Mode(ApprovalMode::Auto), false),
        (Change::Rights(RightsChange::Network { net: Network::Off, reach: None }), true),
        (Change::Rights(RightsChange::Network { net: Network::On, reach: None }), false),
        (Change::Rights(RightsChange::RemoveWrite { path: path() }), false),
    ] {
        let mut script = called(&["docs"]);
        script.input(Input::TakenBack(change.clone()));
        let ended = outcome_of(&script, 1).map(|(status, _)| status);
        assert_eq!(ended, ends.then_some(ToolCallStatus::Interrupted), "{change:?}");
        if ends {
            script.reply(2, &[call("b", "docs__search", "{}")], StopReason::ToolUse);
            assert_eq!(outcome_of(&script, 2).unwrap().0, ToolCallStatus::Denied, "{change:?}");
        }
    }
}

#[test]
fn the_digest_of_a_plan_covers_the_servers_that_it_lists() {
    let plan = PLAN.replace("## Steps", "## Rights\n- server: docs\n\n## Steps");
    let asked = |server: OfferedServer| {
        let planning = Planning { servers: Arc::from([server]), ..planning(Approver::Person) };
        let mut script = planner(planning, true);
        script.reply(1, &[writes("a", &plan)], StopReason::ToolUse).input(plan_in_file(1));
        script
    };
    let mut script = asked(offered());
    let mut other = offered();
    other.tools[0].guest =
        Arc::new(GuestTool { definition: "e".to_owned(), ..(*other.tools[0].guest).clone() });
    assert_ne!(asked_for(&script), asked_for(&asked(other)));
    let digest = asked_for(&script).pop();
    script.input(decide_plan(1, ReviewDecision::Approved, digest));
    let [execution] = &begun_executions(&script)[..] else { panic!("{}", script.lines()) };
    let made = called(&["docs"]);
    assert!(execution.lists(external_calls(&made)[0]));
    // Without the server the plan is not written.
    let mut without = planner(planning(Approver::Person), true);
    without.reply(1, &[writes("a", &plan)], StopReason::ToolUse);
    let (status, text) = outcome_of(&without, 1).unwrap();
    assert!(status == ToolCallStatus::Denied && text.contains("server: docs does not exist"), "{text}");
}
