use ipc::confinement::TierChoice;
use ipc::id::{ApprovalId, EventId, GrantId};
use ipc::rights::{Network, Reach};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::*;
use super::golden;
use crate::approval::ApprovalMode;
use crate::event::{Activity, RewindScope};
use crate::server_prompt::WantedPrompt;

fn read(method: &str, params: &str) -> Result<ClientRequest, ErrorObject> {
    let params = RawValue::from_string(params.to_owned()).unwrap();
    ClientRequest::read(method, Some(&params))
}

fn reads(json: &str, request: &ClientRequest) {
    #[derive(Deserialize)]
    struct Line<'a> {
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    let Line { method, params } = serde_json::from_str(json).unwrap();
    assert_eq!(ClientRequest::read(method, Some(params)).as_ref(), Ok(request));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list")]
fn each_request_has_its_shape() {
    let conversation = || ConversationParams { conversation_id: "c".into() };
    let client = Some(ClientInfo { name: "e".to_owned(), version: Some("1".to_owned()) });
    let hello = InitializeParams { client, notifications: Some(NotificationForm::Generic) };
    let text = SendUserMessageParams {
        conversation_id: "c".into(),
        text: "hi".to_owned(),
        images: vec![],
        reads: false,
    };
    let reach = Some(Reach { host: true, ..Reach::default() });
    let net = |reach| SetNetParams { conversation_id: "c".into(), net: Network::On, reach };
    let mode = SetModeParams { conversation_id: "c".into(), mode: ApprovalMode::Auto };
    let revoke = RevokeGrantParams { conversation_id: "c".into(), grant_id: GrantId(3) };
    for (request, json) in [
        (
            ClientRequest::Initialize(hello),
            r#"{"method":"initialize","params":{"client":{"name":"e","version":"1"},"notifications":"generic"}}"#,
        ),
        (ClientRequest::Initialize(InitializeParams::default()), r#"{"method":"initialize","params":{}}"#),
        (
            ClientRequest::SendUserMessage(text.clone()),
            r#"{"method":"sendUserMessage","params":{"conversation_id":"c","text":"hi"}}"#,
        ),
        (
            ClientRequest::Interrupt(conversation()),
            r#"{"method":"interrupt","params":{"conversation_id":"c"}}"#,
        ),
        (
            ClientRequest::SetNet(net(None)),
            r#"{"method":"setNet","params":{"conversation_id":"c","net":"on"}}"#,
        ),
        (
            ClientRequest::SetNet(net(reach)),
            concat!(
                r#"{"method":"setNet","params":{"conversation_id":"c","net":"on","#,
                r#""reach":{"host":true,"lan":false,"link_local":false,"metadata":false}}}"#
            ),
        ),
        (
            ClientRequest::SetMode(mode),
            r#"{"method":"setMode","params":{"conversation_id":"c","mode":"auto"}}"#,
        ),
        (
            ClientRequest::RevokeGrant(revoke),
            r#"{"method":"revokeGrant","params":{"conversation_id":"c","grant_id":3}}"#,
        ),
        (ClientRequest::Compact(conversation()), r#"{"method":"compact","params":{"conversation_id":"c"}}"#),
        (
            ClientRequest::CloseConversation(conversation()),
            r#"{"method":"closeConversation","params":{"conversation_id":"c"}}"#,
        ),
        (
            ClientRequest::StartPlan(StartPlanParams {
                conversation_id: "c".into(),
                text: "mend it".to_owned(),
            }),
            r#"{"method":"startPlan","params":{"conversation_id":"c","text":"mend it"}}"#,
        ),
        (
            ClientRequest::ListPrompts(conversation()),
            r#"{"method":"listPrompts","params":{"conversation_id":"c"}}"#,
        ),
        (
            ClientRequest::ListCommands(conversation()),
            r#"{"method":"listCommands","params":{"conversation_id":"c"}}"#,
        ),
        (
            ClientRequest::GetCommand(GetCommandParams {
                conversation_id: "c".into(),
                name: "fix".to_owned(),
                arguments: "it".to_owned(),
            }),
            r#"{"method":"getCommand","params":{"conversation_id":"c","name":"fix","arguments":"it"}}"#,
        ),
        (
            ClientRequest::SendUserMessage(SendUserMessageParams { reads: true, ..text.clone() }),
            r#"{"method":"sendUserMessage","params":{"conversation_id":"c","text":"hi","reads":true}}"#,
        ),
        (
            ClientRequest::GetPrompt(GetPromptParams {
                conversation_id: "c".into(),
                prompt: WantedPrompt {
                    server: "docs".to_owned(),
                    name: "greet".to_owned(),
                    arguments: [("who".to_owned(), "Ada".to_owned())].into(),
                },
            }),
            concat!(
                r#"{"method":"getPrompt","params":{"conversation_id":"c","#,
                r#""prompt":{"server":"docs","name":"greet","arguments":{"who":"Ada"}}}}"#
            ),
        ),
        (
            ClientRequest::EditPlan(EditPlanParams {
                conversation_id: "c".into(),
                agent: "1.2".into(),
                id: ApprovalId(3),
                markdown: "# P\n".to_owned(),
            }),
            r##"{"method":"editPlan","params":{"conversation_id":"c","agent":"1.2","id":3,"markdown":"# P\n"}}"##,
        ),
        (
            ClientRequest::AskTogether(AskTogetherParams {
                conversation_id: "c".into(),
                agent: "1".into(),
                id: ApprovalId(3),
            }),
            r#"{"method":"askTogether","params":{"conversation_id":"c","agent":"1","id":3}}"#,
        ),
        (
            ClientRequest::Rewind(RewindParams {
                conversation_id: "c".into(),
                to: Some(EventId(7)),
                scope: RewindScope::Conversation,
                files: vec![],
                digest: None,
            }),
            r#"{"method":"rewind","params":{"conversation_id":"c","to":7,"scope":"conversation"}}"#,
        ),
        (ClientRequest::Shutdown(ShutdownParams {}), r#"{"method":"shutdown","params":{}}"#),
    ] {
        reads(json, &request);
    }
}

#[test]
fn a_new_conversation_has_its_shape() {
    let bare = NewConversationParams { cwd: "/p".into(), ..NewConversationParams::default() };
    reads(r#"{"method":"newConversation","params":{"cwd":"/p"}}"#, &ClientRequest::NewConversation(bare));
    let full = NewConversationParams {
        cwd: b"/p\xff".to_vec().into(),
        mode: Some(ApprovalMode::Ask),
        activity: Some(Activity::Plan),
        resume: Some("01a2".to_owned()),
        fork: true,
        net: Some(Network::On),
        reach: Some(Reach::default()),
        model: Some("m".to_owned()),
        provider: Some("openai".to_owned()),
        base_url: Some("http://127.0.0.1:1/x".to_owned()),
        write: vec!["/w".into()],
        sockets: vec!["/s".into()],
        hide: vec!["h".into()],
        env: vec!["CI".to_owned()],
        tier: Some(TierChoice::Floor),
        allow_degraded: Some(true),
        baseline: Some(BaselineWord::Mine),
        approval_timeout_s: Some(2),
        max_steps: Some(3),
        max_tokens: Some(4),
        max_usd: "2.5".parse().ok(),
    };
    reads(
        concat!(
            r#"{"method":"newConversation","params":{"cwd":{"base64":"L3D/"},"mode":"ask","activity":"plan","resume":"01a2","#,
            r#""fork":true,"net":"on","#,
            r#""reach":{"host":false,"lan":false,"link_local":false,"metadata":false},"model":"m","#,
            r#""provider":"openai","base_url":"http://127.0.0.1:1/x","write":["/w"],"sockets":["/s"],"hide":["h"],"env":["CI"],"tier":"floor","#,
            r#""allow_degraded":true,"baseline":"mine","approval_timeout_s":2,"max_steps":3,"max_tokens":4,"max_usd":2.5}}"#
        ),
        &ClientRequest::NewConversation(full),
    );
}

#[test]
fn each_result_has_its_shape() {
    let capabilities = Capabilities {
        client_requests: vec!["a".to_owned()],
        server_requests: vec![],
        modes: ApprovalMode::ALL.into(),
        notifications: NotificationForm::Typed,
        max_line_bytes: 7,
    };
    let hello =
        InitializeResponse { version: "0.1.0".to_owned(), protocol: 1, event_schema: 5, capabilities };
    golden(
        &hello,
        concat!(
            r#"{"version":"0.1.0","protocol":1,"event_schema":5,"capabilities":{"client_requests":["a"],"#,
            r#""server_requests":[],"modes":["ask","auto","deny"],"notifications":"typed","max_line_bytes":7}}"#
        ),
    );
    golden(&NewConversationResponse { conversation_id: "c".into() }, r#"{"conversation_id":"c"}"#);
    golden(&Accepted {}, "{}");
    golden(
        &ErrorWord::NoSuchConversation.because("x"),
        r#"{"code":-32002,"message":"x","data":{"word":"no_such_conversation"}}"#,
    );
}

const WORDS: [ErrorWord; 17] = [
    ErrorWord::ParseError,
    ErrorWord::InvalidRequest,
    ErrorWord::MethodNotFound,
    ErrorWord::InvalidParams,
    ErrorWord::InternalError,
    ErrorWord::NotInitialised,
    ErrorWord::AlreadyInitialised,
    ErrorWord::NoSuchConversation,
    ErrorWord::ProjectRefused,
    ErrorWord::OptionRefused,
    ErrorWord::SandboxUnavailable,
    ErrorWord::NoKey,
    ErrorWord::ProviderRefused,
    ErrorWord::Busy,
    ErrorWord::ShuttingDown,
    ErrorWord::Occupied,
    ErrorWord::NoSuchAgent,
];

#[test]
fn every_error_has_a_number_of_its_own() {
    let codes: std::collections::BTreeSet<_> = WORDS.iter().map(|word| word.code()).collect();
    assert_eq!(codes.len(), WORDS.len());
    let own = codes.iter().filter(|code| **code >= -32099 && **code <= -32000);
    assert_eq!(own.count(), WORDS.len() - 5, "JSON-RPC leaves -32000 to -32099 to servers");
}

#[test]
fn parameters_that_do_not_fit_say_where() {
    for (method, params, wanted) in [
        (SEND_USER_MESSAGE_METHOD, r#"{"text":"x"}"#, "missing field `conversation_id`"),
        (SEND_USER_MESSAGE_METHOD, r#"{"conversation_id":"c","text":5}"#, "text: invalid type: integer `5`"),
        (INTERRUPT_METHOD, "{}", "missing field `conversation_id`"),
        (CLOSE_CONVERSATION_METHOD, r#"{"conversation_id":7}"#, "conversation_id: invalid type"),
        (SET_NET_METHOD, r#"{"conversation_id":"c","net":true}"#, "net: "),
        (SET_MODE_METHOD, r#"{"conversation_id":"c","mode":"yolo"}"#, "mode: unknown variant `yolo`"),
        (REVOKE_GRANT_METHOD, r#"{"conversation_id":"c"}"#, "missing field `grant_id`"),
        (NEW_CONVERSATION_METHOD, "{}", "missing field `cwd`"),
        (NEW_CONVERSATION_METHOD, r#"{"cwd":"/p","api_key":"x"}"#, "unknown field `api_key`"),
        (NEW_CONVERSATION_METHOD, r#"{"cwd":"/p","write":["/a",7]}"#, "write[1]: invalid type"),
        (NEW_CONVERSATION_METHOD, r#"{"cwd":"/p","cwd":"/q"}"#, "duplicate field `cwd`"),
        (SHUTDOWN_METHOD, r#"{"now":true}"#, "unknown field `now`"),
        (SHUTDOWN_METHOD, "[]", "by position"),
    ] {
        let error = read(method, params).unwrap_err();
        assert_eq!(error.data.word, ErrorWord::InvalidParams, "{method} {params}");
        assert!(error.message.contains(wanted), "{method} {params}: {}", error.message);
    }
    let error = read("nothing", "{}").unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-32601, "there is no method \"nothing\""));
    assert_eq!(ClientRequest::read(SHUTDOWN_METHOD, None), Ok(ClientRequest::Shutdown(ShutdownParams {})));
}
