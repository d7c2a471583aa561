use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::form::{FieldKind, FormChoice, FormField};
use ipc::id::{AgentId, ApprovalId, CallId, GrantId};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::rights::{Execution, Grant, HostRule, Hosts, NamedRoot, Network, Reach, Rights, RightsSummary};
use ipc::tool::Access;
use proptest::prelude::*;

use super::*;
use crate::event::Recorded;
use crate::frontend::Op;
use crate::plan::{Acceptance, Plan, PlanStep};

fn grant() -> Grant {
    Grant { write: vec!["/p/a".into()], ..Grant::default() }
}

fn rights() -> Recorded<RightsSummary> {
    let read = vec![NamedRoot::Path("/".into())];
    RightsSummary { read, ..RightsSummary::default() }.into()
}

fn patch() -> ApplyPatchApprovalParams {
    let changes = [
        (WirePath::from("/p/a"), FileChange::Add { content: "one\n".to_owned() }),
        ("/p/b".into(), FileChange::Delete { content: "two\n".to_owned() }),
        (
            b"/p/\xff".to_vec().into(),
            FileChange::Update { unified_diff: "@@ -1 +1 @@\n".to_owned(), move_path: Some("/p/d".into()) },
        ),
    ];
    ApplyPatchApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        file_changes: FileChanges(changes.into()),
        digest: "ab".to_owned(),
        grant: grant(),
        rights: rights(),
        timeout_ms: 1000,
        reason: Some("because".to_owned()),
        grant_root: Some("/p".into()),
        with: Vec::new(),
        more: 0,
        turn: None,
        in_part: false,
        texts: std::sync::Arc::default(),
    }
}

fn in_part() -> ReviewDecision {
    let files = vec![
        FilePart::Hunks { path: "/p/a".into(), hunks: vec![1, 3] },
        FilePart::Text { path: b"/p/\xff".to_vec().into(), text: "x\n".to_owned() },
    ];
    ReviewDecision::ApprovedInPart { part: ChangePart { files, digest: "cd".to_owned() } }
}

fn asked() -> AskedCommand {
    AskedCommand {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        command: ["bash", "-c", "echo \"a  b\" | sh"].map(str::to_owned).into(),
        cwd: "/p".into(),
        environment: vec![],
        access: Access::Standing,
        digest: "ab".to_owned(),
        grant: grant(),
        rights: rights(),
        timeout_ms: 1000,
        reason: Some("because".to_owned()),
    }
}

fn exec() -> ExecCommandApprovalParams {
    let environment = vec![("A".to_owned(), "b".into())];
    let asked = AskedCommand { environment, access: Access::Write, ..asked() };
    let prefix = Some(vec!["echo".to_owned()]);
    ExecCommandApprovalParams::new(
        asked,
        Some(Network::On),
        prefix,
        Vec::new(),
        Some("/p".into()),
        None,
        None,
    )
}

fn denied() -> DeniedCommandApprovalParams {
    let denial = Denial {
        layer: Layer::Landlock,
        operation: Operation::Write,
        object: Object::Path("/p/a".into()),
        program: None,
        missing_right: MissingRight::write(&"/p/a".into()).into(),
        grant: Some("--write /p/a".to_owned()),
        grade: Grade::Proved,
        errno: Some(13),
    };
    let asked = AskedCommand { reason: None, ..asked() };
    DeniedCommandApprovalParams::new(asked, None, denial, Some("/p/a".into()), None)
}

fn network() -> NetworkApprovalParams {
    let grant = Grant { net: Network::On, ..Grant::default() };
    NetworkApprovalParams::new(AskedCommand { grant, ..asked() }, None, Vec::new())
}

fn host() -> HostApprovalParams {
    let host: HostRule = "docs.example:8443".parse().unwrap();
    let net = Hosts::new([host.clone()]).map_or(Network::Off, Network::Hosts);
    HostApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        command: "curl -sS https://docs.example:8443".to_owned(),
        program: "curl".to_owned(),
        host,
        digest: "ab".to_owned(),
        grant: Grant { write: vec![], net, reach: Reach::default(), ..Grant::default() },
        rights: rights(),
        timeout_ms: 1000,
        reason: Some("because".to_owned()),
    }
}

fn external() -> ExternalToolApprovalParams {
    ExternalToolApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        server: "docs".to_owned(),
        tool: "search".to_owned(),
        json: r#"{"q": "é"}"#.to_owned(),
        access: Some(ServerAccess { variables: vec!["TOKEN".to_owned()], ..ServerAccess::default() }),
        definition: Some("cd".to_owned()),
        digest: "ab".to_owned(),
        timeout_ms: 1000,
        reason: Some("because".to_owned()),
    }
}

fn fetch() -> FetchApprovalParams {
    let hosts = "docs.example".parse::<HostRule>().unwrap().into();
    FetchApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        url: "https://docs.example/a?q=1".to_owned(),
        host: "docs.example".to_owned(),
        digest: "ab".to_owned(),
        grant: Grant {
            write: vec![],
            net: Network::Hosts(hosts),
            reach: Reach::default(),
            ..Grant::default()
        },
        timeout_ms: 1000,
        reason: Some("because".to_owned()),
    }
}

fn agent() -> AgentRightsApprovalParams {
    let rights = Rights {
        read: vec!["/".into()],
        write: vec!["/p/src".into(), "/t".into()],
        net: Network::On,
        exec: Execution::Allowed,
        ..Rights::default()
    };
    AgentRightsApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        task: "fix the é test".to_owned(),
        role: None,
        access: AgentAccess::Write,
        write: vec!["/p/src".into()],
        network: Network::On,
        rights,
        grant: Grant { write: vec!["/p/src".into()], net: Network::On, ..Grant::default() },
        servers: Vec::new(),
        digest: "ab".to_owned(),
        timeout_ms: 1000,
        reason: Some("because".to_owned()),
        turn: None,
    }
}

fn plan() -> PlanApprovalParams {
    let AgentRightsApprovalParams { rights, grant, .. } = agent();
    let step = PlanStep {
        title: "One".to_owned(),
        acceptance: vec![Acceptance::Command("make".to_owned())],
        ..PlanStep::default()
    };
    PlanApprovalParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        path: "/s/p.md".into(),
        markdown: "# P\n".to_owned(),
        plan: Plan { title: "P".to_owned(), steps: vec![step], ..Plan::default() },
        finished: vec![],
        rights,
        caches: None,
        to_create: vec![],
        grant,
        network_refused: true,
        servers: Vec::new(),
        confirms_commands: false,
        digest: "ab".to_owned(),
        timeout_ms: 1000,
        reason: None,
    }
}

fn golden(request: ServerRequest, json: &str) {
    assert_eq!(serde_json::to_string(&request).unwrap(), json);
    assert_eq!(serde_json::from_str::<ServerRequest>(json).unwrap(), request);
}

#[test]
fn a_patch_request_has_its_shape() {
    golden(
        ServerRequest::ApplyPatchApproval(patch()),
        concat!(
            r#"{"method":"applyPatchApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""file_changes":{"/p/a":{"add":{"content":"one\n"}},"/p/b":{"delete":{"content":"two\n"}},"#,
            r#""base64:L3Av/w==":{"update":{"unified_diff":"@@ -1 +1 @@\n","move_path":"/p/d"}}},"digest":"ab","#,
            r#""grant":{"write":["/p/a"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""rights":{"net":"off","hidden":0,"protected":0},"timeout_ms":1000,"reason":"because","grant_root":"/p"}}"#
        ),
    );
    let bare = ApplyPatchApprovalParams { reason: None, grant_root: None, ..patch() };
    let json = serde_json::to_string(&ServerRequest::ApplyPatchApproval(bare.clone())).unwrap();
    assert!(!json.contains("reason") && !json.contains("grant_root") && !json.contains("null"), "{json}");
    assert_eq!(
        serde_json::from_str::<ServerRequest>(&json).unwrap(),
        ServerRequest::ApplyPatchApproval(bare)
    );
}

#[test]
fn a_command_request_has_its_shape() {
    golden(
        ServerRequest::ExecCommandApproval(exec()),
        concat!(
            r#"{"method":"execCommandApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""command":["bash","-c","echo \"a  b\" | sh"],"cwd":"/p","environment":[["A","b"]],"access":"write","#,
            r#""network":"on","digest":"ab","#,
            r#""grant":{"write":["/p/a"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""rights":{"net":"off","hidden":0,"protected":0},"timeout_ms":1000,"reason":"because","prefix":["echo"],"grant_root":"/p"}}"#
        ),
    );
    let bare = ExecCommandApprovalParams {
        network: None,
        reason: None,
        prefix: None,
        parts: Vec::new(),
        grant_root: None,
        environment: vec![],
        ..exec()
    };
    golden(
        ServerRequest::ExecCommandApproval(bare),
        concat!(
            r#"{"method":"execCommandApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""command":["bash","-c","echo \"a  b\" | sh"],"cwd":"/p","environment":[],"access":"write","digest":"ab","#,
            r#""grant":{"write":["/p/a"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""rights":{"net":"off","hidden":0,"protected":0},"timeout_ms":1000}}"#
        ),
    );
}

#[test]
fn a_request_after_a_denial_has_its_shape() {
    golden(
        ServerRequest::DeniedCommandApproval(denied()),
        concat!(
            r#"{"method":"deniedCommandApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""command":["bash","-c","echo \"a  b\" | sh"],"cwd":"/p","environment":[],"access":"standing","digest":"ab","#,
            r#""grant":{"write":["/p/a"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""rights":{"net":"off","hidden":0,"protected":0},"timeout_ms":1000,"#,
            r#""denial":{"layer":"landlock","operation":"write","object":{"path":"/p/a"},"#,
            r#""missing_right":{"type":"write","path":"/p/a"},"grant":"--write /p/a","grade":"proved","errno":13},"#,
            r#""grant_root":"/p/a"}}"#
        ),
    );
}

#[test]
fn a_network_request_has_its_shape() {
    golden(
        ServerRequest::NetworkApproval(network()),
        concat!(
            r#"{"method":"networkApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""command":["bash","-c","echo \"a  b\" | sh"],"cwd":"/p","environment":[],"access":"standing","digest":"ab","#,
            r#""grant":{"write":[],"net":"on","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""rights":{"net":"off","hidden":0,"protected":0},"timeout_ms":1000,"reason":"because"}}"#
        ),
    );
}

fn form() -> ServerFormParams {
    let ExternalToolApprovalParams { server, tool, access, .. } = external();
    let field = |name: &str, kind| FormField {
        name: name.to_owned(),
        title: None,
        about: String::new(),
        required: true,
        kind,
    };
    let choices = vec![FormChoice { value: "x".to_owned(), title: Some("The x".to_owned()) }];
    let [least, most, default] = [Some("1".to_owned()), None, None];
    ServerFormParams {
        conversation_id: "s".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        server,
        tool,
        access,
        message: "Which one?".to_owned(),
        fields: vec![
            field("a", FieldKind::Choice { choices, default: None }),
            field("b", FieldKind::Number { whole: true, least, most, default }),
        ],
        digest: "ab".to_owned(),
        timeout_ms: 1000,
        reason: None,
    }
}

#[test]
fn a_request_for_a_form_has_its_shape() {
    golden(
        ServerRequest::ServerForm(form()),
        concat!(
            r#"{"method":"serverForm","params":{"conversation_id":"s","agent":"1","call_id":7,"server":"docs","#,
            r#""tool":"search","access":{"read":[],"write":[],"net":"off","variables":["TOKEN"]},"#,
            r#""message":"Which one?","fields":[{"name":"a","title":null,"about":"","required":true,"#,
            r#""kind":{"choice":{"choices":[{"value":"x","title":"The x"}],"default":null}}},"#,
            r#"{"name":"b","title":null,"about":"","required":true,"#,
            r#""kind":{"number":{"whole":true,"least":"1","most":null,"default":null}}}],"#,
            r#""digest":"ab","timeout_ms":1000}}"#
        ),
    );
}

#[test]
fn values_are_those_of_an_approved_form_alone() {
    let json = r#"{"decision":"approved","values":{"a":"x","b":3,"c":true,"d":0.5}}"#;
    let decision: ReviewDecision = serde_json::from_str(json).unwrap();
    let ReviewDecision::Filled { values } = &decision else { panic!("{decision:?}") };
    assert_eq!(values["b"], FormValue::Number(3.into()));
    assert_eq!(serde_json::to_string(&decision).unwrap(), json);
    let cancelled = r#"{"decision":"cancelled"}"#;
    assert_eq!(serde_json::from_str::<ReviewDecision>(cancelled).unwrap(), ReviewDecision::Cancelled);
    for bad in [
        r#"{"decision":"denied","values":{}}"#,
        r#"{"decision":"cancelled","values":{}}"#,
        r#"{"decision":"cancelled","message":"m"}"#,
        r#"{"decision":"approved","values":{"a":[1]}}"#,
        r#"{"decision":"approved","values":{"a":{}}}"#,
        r#"{"decision":"approved","values":{"a":null}}"#,
        r#"{"decision":"approved_for_session","values":{}}"#,
    ] {
        assert!(serde_json::from_str::<ReviewDecision>(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_request_for_a_host_has_its_shape() {
    golden(
        ServerRequest::HostApproval(host()),
        concat!(
            r#"{"method":"hostApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""command":"curl -sS https://docs.example:8443","program":"curl","host":"docs.example:8443","digest":"ab","#,
            r#""grant":{"write":[],"net":{"hosts":["docs.example:8443"]},"#,
            r#""reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""rights":{"net":"off","hidden":0,"protected":0},"timeout_ms":1000,"reason":"because"}}"#
        ),
    );
}

#[test]
fn a_request_for_an_external_tool_has_its_shape() {
    golden(
        ServerRequest::ExternalToolApproval(external()),
        concat!(
            r#"{"method":"externalToolApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""server":"docs","tool":"search","json":"{\"q\": \"é\"}","#,
            r#""access":{"read":[],"write":[],"net":"off","variables":["TOKEN"]},"definition":"cd","#,
            r#""digest":"ab","timeout_ms":1000,"reason":"because"}}"#
        ),
    );
}

#[test]
fn a_request_for_a_page_has_its_shape() {
    golden(
        ServerRequest::FetchApproval(fetch()),
        concat!(
            r#"{"method":"fetchApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""url":"https://docs.example/a?q=1","host":"docs.example","digest":"ab","#,
            r#""grant":{"write":[],"net":{"hosts":["docs.example"]},"#,
            r#""reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""timeout_ms":1000,"reason":"because"}}"#
        ),
    );
}

#[test]
fn a_request_for_the_rights_of_a_sub_agent_has_its_shape() {
    golden(
        ServerRequest::AgentRightsApproval(agent()),
        concat!(
            r#"{"method":"agentRightsApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"#,
            r#""task":"fix the é test","access":"write","write":["/p/src"],"network":"on","#,
            r#""rights":{"read":["/"],"hidden":[],"write":["/p/src","/t"],"protected":[],"net":"on","#,
            r#""reach":{"host":false,"lan":false,"link_local":false,"metadata":false},"sockets":[],"exec":"allowed","#,
            r#""limits":{"timeout_ms":600000,"output_bytes":65536}},"#,
            r#""grant":{"write":["/p/src"],"net":"on","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"#,
            r#""digest":"ab","timeout_ms":1000,"reason":"because"}}"#
        ),
    );
}

#[test]
fn a_request_for_the_execution_of_a_plan_has_its_shape() {
    golden(
        ServerRequest::PlanApproval(plan()),
        concat!(
            r##"{"method":"planApproval","params":{"conversation_id":"s","agent":"1","call_id":7,"##,
            r##""path":"/s/p.md","markdown":"# P\n","plan":{"title":"P","steps":[{"title":"One","##,
            r##""acceptance":[{"type":"command","text":"make"}]}]},"##,
            r##""rights":{"read":["/"],"hidden":[],"write":["/p/src","/t"],"protected":[],"net":"on","##,
            r##""reach":{"host":false,"lan":false,"link_local":false,"metadata":false},"sockets":[],"exec":"allowed","##,
            r##""limits":{"timeout_ms":600000,"output_bytes":65536}},"##,
            r##""grant":{"write":["/p/src"],"net":"on","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"##,
            r##""network_refused":true,"digest":"ab","timeout_ms":1000}}"##
        ),
    );
}

#[test]
fn the_session_is_required_and_nothing_unknown_passes() {
    for request in [
        ServerRequest::ApplyPatchApproval(patch()),
        ServerRequest::ExecCommandApproval(exec()),
        ServerRequest::DeniedCommandApproval(denied()),
        ServerRequest::NetworkApproval(network()),
        ServerRequest::HostApproval(host()),
        ServerRequest::ExternalToolApproval(external()),
        ServerRequest::ServerForm(form()),
        ServerRequest::FetchApproval(fetch()),
        ServerRequest::AgentRightsApproval(agent()),
        ServerRequest::PlanApproval(plan()),
    ] {
        let json = serde_json::to_string(&request).unwrap();
        let nameless = json.replace(r#""conversation_id":"s","#, "");
        let error = serde_json::from_str::<ServerRequest>(&nameless).unwrap_err().to_string();
        assert!(error.contains("conversation_id"), "{error}");
        let more = json.replace(r#""timeout_ms""#, r#""sudo":true,"timeout_ms""#);
        let error = serde_json::from_str::<ServerRequest>(&more).unwrap_err().to_string();
        assert!(error.contains("sudo"), "{error}");
    }
}

#[test]
fn each_kind_has_a_request_and_a_response_of_its_own() {
    let requests = [
        ServerRequest::ApplyPatchApproval(patch()),
        ServerRequest::ExecCommandApproval(exec()),
        ServerRequest::DeniedCommandApproval(denied()),
        ServerRequest::NetworkApproval(network()),
        ServerRequest::HostApproval(host()),
        ServerRequest::ExternalToolApproval(external()),
        ServerRequest::ServerForm(form()),
        ServerRequest::FetchApproval(fetch()),
        ServerRequest::AgentRightsApproval(agent()),
        ServerRequest::PlanApproval(plan()),
    ];
    assert!(requests.iter().map(ServerRequest::kind).eq(AskKind::ALL.iter().copied()));
    assert!(requests.iter().map(ServerRequest::method).eq(SERVER_METHODS.iter().copied()));
    let id = ApprovalId(3);
    for request in requests {
        let answer = request.read_answer(r#"{"decision":"abort","digest":"ab"}"#).unwrap();
        assert_eq!(answer, request.answer(ReviewDecision::Abort));
        let (decision, digest) = (ReviewDecision::Abort, Some("ab".to_owned()));
        assert_eq!(answer.into_op(id), Ok(Op::Answer { id, kind: request.kind(), decision, digest }));
    }
    let failed = ApprovalAnswer::Failed { cause: "none".to_owned() };
    assert_eq!(failed.into_op(id), Err("none".to_owned()));
}

#[test]
fn a_path_of_a_change_is_absolute_and_stands_once() {
    let change = r#"{"add":{"content":""}}"#;
    for json in [
        format!(r#"{{"a":{change}}}"#),
        format!(r#"{{"base64:!":{change}}}"#),
        format!(r#"{{"base64:Lw":{change}}}"#),
        format!(r#"{{"/a":{change},"/a":{change}}}"#),
        format!(r#"{{"/a":{change},"base64:L2E=":{change}}}"#),
        format!(r#"{{"/a\u0000":{change}}}"#),
        r#"{"/a":{"add":{}}}"#.to_owned(),
    ] {
        assert!(serde_json::from_str::<FileChanges>(&json).is_err(), "{json}");
    }
}

#[test]
fn each_decision_has_one_form() {
    let exact = ReviewDecision::ApprovedForSession { scope: SessionScope::Exact };
    let scoped = |scope| ReviewDecision::ApprovedForSession { scope };
    let words = || vec!["cargo".to_owned(), "test".to_owned()];
    for (decision, json) in [
        (ReviewDecision::Approved, r#"{"decision":"approved"}"#),
        (exact.clone(), r#"{"decision":"approved_for_session","scope":{"type":"exact"}}"#),
        (
            scoped(SessionScope::CommandPrefix(words())),
            r#"{"decision":"approved_for_session","scope":{"type":"command_prefix","value":["cargo","test"]}}"#,
        ),
        (
            scoped(SessionScope::PathPattern("src/**".to_owned())),
            r#"{"decision":"approved_for_session","scope":{"type":"path_pattern","value":"src/**"}}"#,
        ),
        (
            scoped(SessionScope::GrantRoot),
            r#"{"decision":"approved_for_session","scope":{"type":"grant_root"}}"#,
        ),
        (scoped(SessionScope::Network), r#"{"decision":"approved_for_session","scope":{"type":"network"}}"#),
        (
            in_part(),
            concat!(
                r#"{"decision":"approved_in_part","part":{"files":[{"path":"/p/a","hunks":[1,3]},"#,
                r#"{"path":{"base64":"L3Av/w=="},"text":"x\n"}],"digest":"cd"}}"#
            ),
        ),
        (ReviewDecision::DENIED, r#"{"decision":"denied"}"#),
        (
            ReviewDecision::Denied { message: Some("no".to_owned()) },
            r#"{"decision":"denied","message":"no"}"#,
        ),
        (ReviewDecision::Abort, r#"{"decision":"abort"}"#),
    ] {
        assert_eq!(serde_json::to_string(&decision).unwrap(), json);
        assert_eq!(serde_json::from_str::<ReviewDecision>(json).unwrap(), decision);
        let response = ExecCommandApprovalResponse { decision: decision.clone(), digest: None };
        assert_eq!(serde_json::to_string(&response).unwrap(), json);
        let bound = ApplyPatchApprovalResponse { decision, digest: Some("ab".to_owned()) };
        let json = json.strip_suffix('}').unwrap().to_owned() + r#","digest":"ab"}"#;
        assert_eq!(serde_json::to_string(&bound).unwrap(), json);
        assert_eq!(serde_json::from_str::<ApplyPatchApprovalResponse>(&json).unwrap(), bound);
    }
    let plain = r#"{"decision":"approved_for_session"}"#;
    assert_eq!(serde_json::from_str::<ReviewDecision>(plain).unwrap(), exact);
}

#[test]
fn what_is_no_decision_is_none() {
    for json in [
        "null",
        "true",
        r#"{"decision":"approved_in_part"}"#,
        r#"{"decision":"approved_in_part","part":{"files":[]}}"#,
        r#"{"decision":"approved_in_part","part":{"files":[],"digest":"ab","more":1}}"#,
        r#"{"decision":"approved_in_part","part":{"files":[],"digest":"ab"},"message":"x"}"#,
        r#"{"decision":"approved_in_part","part":{"files":[],"digest":"ab"},"scope":{"type":"exact"}}"#,
        r#"{"decision":"approved_in_part","part":{"files":[],"digest":"ab"},"values":{}}"#,
        r#"{"decision":"approved","part":{"files":[],"digest":"ab"}}"#,
        r#"{"decision":"denied","part":{"files":[],"digest":"ab"}}"#,
        "\"approved\"",
        "[]",
        "{}",
        r#"{"decision":null}"#,
        r#"{"decision":true}"#,
        r#"{"decision":"Approved"}"#,
        r#"{"decision":"approve"}"#,
        r#"{"decision":"approved","scope":{"type":"exact"}}"#,
        r#"{"decision":"denied","scope":{"type":"exact"}}"#,
        r#"{"decision":"approved","message":"go"}"#,
        r#"{"decision":"abort","message":"go"}"#,
        r#"{"decision":"approved_for_session","message":"go"}"#,
        r#"{"decision":"approved_for_session","scope":{"type":"everything"}}"#,
        r#"{"decision":"approved_for_session","scope":{"type":"command_prefix"}}"#,
        r#"{"decision":"approved_for_session","scope":{"type":"command_prefix","value":"cargo"}}"#,
        r#"{"decision":"approved","yes":1}"#,
        r#"{"decision":"approved","decision":"denied"}"#,
    ] {
        assert!(serde_json::from_str::<NetworkApprovalResponse>(json).is_err(), "{json}");
    }
}

#[test]
fn a_grant_of_the_session_is_listed() {
    let grant = Grant { write: vec!["/p".into()], ..Grant::default() };
    let reach = r#"{"host":false,"lan":false,"link_local":false,"metadata":false}"#;
    let value = format!(r#","grant":{{"write":["/p"],"net":"off","reach":{reach}}}"#);
    let sentence = Recorded::Unstructured("write /p".to_owned());
    for (grant, json, line) in [
        (Some(grant.into()), value.as_str(), "write /p"),
        (None, "", "write the files that match"),
        (Some(sentence), r#","grant":"write /p""#, "write /p"),
    ] {
        let grant = SessionGrant { id: GrantId(1), covers: "x".to_owned(), grant };
        let json = format!(r#"{{"id":1,"covers":"x"{json}}}"#);
        assert_eq!(serde_json::to_string(&grant).unwrap(), json);
        assert_eq!(serde_json::from_str::<SessionGrant>(&json).unwrap(), grant);
        assert_eq!(grant.given(), line);
    }
}

proptest! {
    #[test]
    fn any_path_and_content_survive(name in proptest::collection::vec(1u8.., 0..20), content in ".*") {
        let path = WirePath::from([b"/", name.as_slice()].concat());
        let changes = FileChanges([(path, FileChange::Add { content })].into());
        let json = serde_json::to_string(&changes).unwrap();
        prop_assert_eq!(serde_json::from_str::<FileChanges>(&json).unwrap(), changes);
    }
}
