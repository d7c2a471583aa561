use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use ipc::id::{AgentId, ApprovalId, CallId, Generation};
use ipc::message::CallOutcome;
use ipc::rights::{Hosts, Network, RightsChange};
use ipc::tool::{CommandResult, ToolOutput};
use protocol::approval::{ApprovalMode, AskKind, ReviewDecision, SessionScope};
use protocol::event::DecidedBy;
use protocol::frontend::Op;

use super::approvals::{ask_config, asking_with};
use super::script::{Script, command, run, with_net};
use crate::core::{AgentConfig, Effect, HostAsked, HostQuestionId, Input};

fn listed(config: AgentConfig) -> AgentConfig {
    let net = Network::Hosts(Hosts::new(["listed.example".parse().unwrap()]).unwrap());
    AgentConfig { standing: with_net(config.standing, net), ..config }
}

fn running() -> Script {
    let mut script = asking_with(listed(ask_config()), &[run("a", "npm ci"), run("b", "curl")]);
    script.lines();
    script
}

const fn question(number: u64) -> HostQuestionId {
    HostQuestionId { generation: Generation(1), number }
}

fn ended(process: u32) -> CallOutcome {
    let CallOutcome::Done(ToolOutput::Command(result)) = command(1, "reset") else { unreachable!() };
    CallOutcome::Done(ToolOutput::Command(CommandResult { process, ..result }))
}

fn connects(number: u64, process: u32, host: &str) -> Input {
    Input::HostAsked(HostAsked {
        id: question(number),
        call: None,
        process,
        host: host.parse().unwrap(),
        program: "node".to_owned(),
    })
}

fn host(id: u64, decision: ReviewDecision) -> Input {
    Input::Op(Op::Answer { id: ApprovalId(id), kind: AskKind::Host, decision, digest: None })
}

fn answers(script: &Script) -> Vec<(u64, bool)> {
    let answer = |effect: &Effect| match effect {
        Effect::AnswerHost { id, allowed } => Some((id.number, *allowed)),
        _ => None,
    };
    script.effects.iter().filter_map(answer).collect()
}

fn requests_for_hosts(script: &Script) -> usize {
    let is_one = |effect: &&Effect| matches!(effect, Effect::RequestApproval { request, .. } if request.kind() == AskKind::Host);
    script.effects.iter().filter(is_one).count()
}

#[test]
fn each_answer_is_for_its_own_question() {
    let mut script = running();
    script.input(connects(1, 10, "a.example")).input(connects(2, 10, "b.example:80")).input(connects(
        3,
        11,
        "c.example",
    ));
    assert_eq!((requests_for_hosts(&script), answers(&script)), (3, vec![]));
    script.input(host(2, ReviewDecision::Approved)).input(host(1, ReviewDecision::DENIED));
    // Neither a second answer nor an answer without a request has an effect. An answer of another kind denies.
    script.input(host(2, ReviewDecision::DENIED)).input(host(9, ReviewDecision::Approved));
    let (id, decision) = (ApprovalId(3), ReviewDecision::Approved);
    script.decide(Op::Answer { id, kind: AskKind::Denied, decision, digest: None });
    assert_eq!(answers(&script), [(2, true), (1, false), (3, false)]);
    script.input(connects(4, 10, "d.example"));
    script.input(Input::Lapsed { id: ApprovalId(4), by: DecidedBy::Deadline, cause: "late".to_owned() });
    script.input(host(4, ReviewDecision::Approved));
    assert_eq!(answers(&script)[3..], [(4, false)]);
}

#[test]
fn the_end_of_a_command_takes_its_questions_back_and_no_others() {
    let mut script = running();
    script.input(connects(1, 10, "a.example")).input(connects(2, 11, "a.example"));
    script.outcome(1, ended(10));
    assert_eq!(answers(&script), [(1, false)]);
    script.outcome(2, CallOutcome::Cancelled);
    assert_eq!(answers(&script), [(1, false), (2, false)], "no command runs any more");
    let mut script = running();
    script.input(connects(1, 10, "a.example")).interrupt();
    assert_eq!(answers(&script), [(1, false)]);
    let mut script = running();
    script.input(connects(1, 10, "a.example")).net(Network::Off);
    assert_eq!(answers(&script), [(1, false)]);
    script.input(connects(2, 10, "b.example"));
    assert_eq!(answers(&script)[1..], [(2, false)], "the worker is being replaced");
}

#[test]
fn a_host_for_the_session_joins_the_list_when_no_command_runs() {
    let mut script = running();
    let decision = ReviewDecision::ApprovedForSession { scope: SessionScope::Network };
    script.input(connects(1, 10, "a.example")).input(host(1, decision.clone()));
    assert_eq!(answers(&script), [(1, true)]);
    let is_replaced =
        |script: &Script| script.effects.iter().any(|effect| matches!(effect, Effect::ReplaceWorker { .. }));
    script.outcome(1, command(0, "")).input(connects(2, 11, "a.example"));
    assert!(!is_replaced(&script), "the other command goes on");
    assert_eq!((requests_for_hosts(&script), answers(&script)), (1, vec![(1, true), (2, true)]));
    script.outcome(2, command(0, ""));
    assert!(is_replaced(&script));
    let list = script.agent.rights().net.to_string();
    assert!(list.contains("a.example") && list.contains("listed.example"), "{list}");
    // If the person turns the network off before the command ends, the host is not allowed either.
    let mut script = running();
    script.input(connects(1, 10, "a.example")).input(host(1, decision));
    script.set_rights(RightsChange::Network { net: Network::Off, reach: None });
    script.ready(2);
    assert!(script.agent.rights().net.is_off());
}

#[test]
fn whoever_may_not_ask_is_answered_with_no_at_once() {
    let sub_agent = || AgentId::from("1.2");
    let planner = AgentConfig { activity: Activity::Plan, ..listed(ask_config()) };
    let silent = ApprovalSettings { answerer: false, ..ApprovalSettings::default() };
    let standing = |mode| listed(ask_config()).standing.with_mode(mode);
    for config in [
        AgentConfig { id: sub_agent(), ..listed(ask_config()) },
        planner,
        AgentConfig { approvals: silent, ..listed(ask_config()) },
        AgentConfig { standing: standing(ApprovalMode::Auto), ..listed(ask_config()) },
        AgentConfig { standing: standing(ApprovalMode::Deny), ..listed(ask_config()) },
    ] {
        let mut script = asking_with(config, &[run("a", "npm ci")]);
        assert!(!script.agent.asks_hosts());
        script.input(connects(1, 10, "a.example"));
        assert_eq!((requests_for_hosts(&script), answers(&script)), (0, vec![(1, false)]));
    }
    // Nobody is asked about a host that is on the list, or while no command runs.
    let mut script = running();
    assert!(script.agent.asks_hosts());
    script.input(connects(1, 10, "listed.example")).outcome(1, command(0, "")).outcome(2, command(0, ""));
    script.input(connects(2, 10, "a.example"));
    assert_eq!((requests_for_hosts(&script), answers(&script)), (0, vec![(1, false), (2, false)]));
    let one_shot = HostAsked {
        id: question(3),
        call: Some(CallId(9)),
        process: 1,
        host: "a.example".parse().unwrap(),
        program: String::new(),
    };
    script.input(Input::HostAsked(one_shot));
    assert_eq!(answers(&script)[2..], [(3, false)], "that call is not carried out");
}
