use std::sync::Arc;

use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::{ExternalTool, GuestTool, Registry, Tool};
use ipc::form::{FieldKind, FormField};
use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::mcp::{McpAnswer, McpForm};
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::{ApprovalMode, AskKind, FormValue, FormValues, ReviewDecision, ServerAccess};
use protocol::event::DecidedBy;
use protocol::frontend::Op;

use super::approvals::ask_config;
use super::script::{Script, call, with_net};
use super::served::{answered, called, definition, external, search, served};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect, FormAsked, Input};

fn serving(config: AgentConfig) -> Script {
    let mut script = called(config, &[search("a")]);
    script.input(external(1, ReviewDecision::Approved)).lines();
    script
}

fn covered(config: AgentConfig) -> Script {
    let guest = GuestTool {
        rights: Rights { write: Vec::new(), ..config.standing.rights().clone() },
        access: ServerAccess::default(),
        definition: "d".to_owned(),
        always: false,
    };
    let tool = ExternalTool::new("docs".to_owned(), "look".to_owned(), definition("docs__look"));
    let tools: Vec<Box<dyn Tool>> = vec![Box::new(tool.confined(guest))];
    let tools = Registry::for_activity(Activity::Execute).with(tools).unwrap();
    let mut script = Script::with(AgentConfig { tools: Arc::new(tools), ..config });
    script.ready(1).user("go").lines();
    script.reply(1, &[call("a", "docs__look", "{}")], StopReason::ToolUse);
    script
}

fn field(name: &str) -> FormField {
    let kind = FieldKind::YesNo { default: None };
    FormField { name: name.to_owned(), title: None, about: String::new(), required: true, kind }
}

fn filled() -> ReviewDecision {
    ReviewDecision::Filled { values: FormValues::from([("go".to_owned(), FormValue::YesNo(true))]) }
}

fn sent() -> McpAnswer {
    McpAnswer::Accepted(r#"{"go":true}"#.to_owned())
}

fn form_asked(id: u64, call: u64) -> Input {
    asks_for(id, call, "Go on?", McpForm::Fields(vec![field("go")]))
}

fn asks_for(id: u64, call: u64, message: &str, form: McpForm) -> Input {
    let asked = FormAsked { id, call: CallId(call), message: message.to_owned(), form };
    Input::FormAsked(asked)
}

fn form(id: u64, decision: ReviewDecision) -> Input {
    Input::Op(Op::Answer { id: ApprovalId(id), kind: AskKind::Form, decision, digest: None })
}

fn form_answers(script: &Script) -> Vec<(u64, McpAnswer)> {
    let answer = |effect: &Effect| match effect {
        Effect::AnswerForm { id, answer } => Some((*id, answer.clone())),
        _ => None,
    };
    script.effects.iter().filter_map(answer).collect()
}

#[test]
fn each_answer_reaches_its_own_question_once() {
    let mut script = serving(ask_config());
    script.input(form_asked(1, 1)).input(form_asked(2, 1)).input(form_asked(3, 1));
    assert_eq!(form_answers(&script), []);
    script.input(form(3, filled())).input(form(2, ReviewDecision::DENIED));
    // Neither a second answer nor an answer without a form has an effect. An answer of another kind cancels.
    script.input(form(3, ReviewDecision::DENIED)).input(form(9, filled()));
    assert_eq!(form_answers(&script), [(2, sent()), (1, McpAnswer::Declined)]);
    let (id, decision) = (ApprovalId(4), ReviewDecision::Approved);
    script.decide(Op::Answer { id, kind: AskKind::ExternalTool, decision, digest: None });
    assert_eq!(form_answers(&script)[2..], [(3, McpAnswer::Cancelled)]);
    script.input(form_asked(4, 1)).input(form(5, ReviewDecision::Cancelled));
    script.input(form_asked(5, 1)).input(Input::Lapsed {
        id: ApprovalId(6),
        by: DecidedBy::Deadline,
        cause: "late".to_owned(),
    });
    script.input(form(6, filled()));
    let cancelled = [(4, McpAnswer::Cancelled), (5, McpAnswer::Cancelled)];
    assert_eq!(form_answers(&script)[3..], cancelled);
    // The answer lacks a value of the form.
    script.input(form_asked(6, 1)).input(form(7, ReviewDecision::Filled { values: FormValues::new() }));
    assert_eq!(form_answers(&script)[5..], [(6, McpAnswer::Cancelled)]);
    script.input(served(1, answered("done")));
    assert!(script.lines().contains("finished 1 a Completed \"done\""));
}

#[test]
fn a_question_ends_with_its_call_the_turn_and_a_change_of_access() {
    let cancelled = [(1, McpAnswer::Cancelled)];
    let mut script = serving(ask_config());
    script.input(form_asked(1, 1)).input(served(1, answered("done")));
    assert_eq!(form_answers(&script), cancelled);
    script.input(form(2, filled()));
    assert_eq!(form_answers(&script), cancelled, "an answer after the end of the call goes nowhere");
    script.input(form_asked(2, 1));
    assert_eq!(form_answers(&script)[1..], [(2, McpAnswer::Cancelled)], "the call has ended");
    let mut script = serving(ask_config());
    script.input(form_asked(1, 1)).interrupt();
    assert_eq!(form_answers(&script), cancelled);
    let mut config = ask_config();
    config.standing = with_net(config.standing, Network::On);
    let mut script = serving(config);
    script.input(form_asked(1, 1)).set_rights(RightsChange::Network { net: Network::Off, reach: None });
    assert_eq!(form_answers(&script), cancelled);
    let mut script = serving(ask_config());
    script.input(form_asked(1, 1)).input(form(2, ReviewDecision::Abort));
    assert_eq!(form_answers(&script), cancelled);
    assert!(script.lines().contains("cancel call 1"));
}

#[test]
fn a_question_that_may_not_be_asked_is_declined_and_told() {
    let form = || McpForm::Fields(vec![field("go")]);
    let declined = |script: &mut Script| {
        assert_eq!(form_answers(script), [(1, McpAnswer::Declined)]);
        assert!(!script.lines().contains("ask 2"));
    };
    for (message, form, why) in [
        ("Go on?", McpForm::Fields(vec![field("api_key")]), "seems to ask for a secret"),
        ("Enter your password", form(), "seems to ask for a secret"),
        ("Go on?", McpForm::Page, "a web page"),
        ("Go on?", McpForm::Unshown("a field of a kind".to_owned()), "cannot be shown: a field of a kind"),
    ] {
        let mut script = serving(ask_config());
        script.input(asks_for(1, 1, message, form));
        let told = |effect: &Effect| format!("{effect:?}").contains(why);
        assert!(script.effects.iter().any(told), "{why}");
        declined(&mut script);
    }
}

#[test]
fn an_agent_whose_calls_run_unasked_may_have_its_server_ask() {
    let standing = |mode| ask_config().standing.with_mode(mode);
    let silent = ApprovalSettings { answerer: false, ..ApprovalSettings::default() };
    let sub_agent = || AgentConfig { id: AgentId::from("1.2"), ..ask_config() };
    for (config, asks) in [
        (ask_config(), true),
        (AgentConfig { standing: standing(ApprovalMode::Auto), ..ask_config() }, true),
        (sub_agent(), true),
        (AgentConfig { standing: standing(ApprovalMode::Deny), ..ask_config() }, false),
        (AgentConfig { approvals: silent.clone(), ..ask_config() }, false),
        (AgentConfig { approvals: silent, ..sub_agent() }, false),
    ] {
        let mut script = covered(config);
        script.input(form_asked(1, 1));
        let is_form = |effect: &Effect| matches!(effect, Effect::RequestApproval { request, .. } if request.kind() == AskKind::Form);
        assert_eq!(script.effects.iter().any(is_form), asks, "{}", script.lines());
        assert_eq!(form_answers(&script).is_empty(), asks);
    }
}
