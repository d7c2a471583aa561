use proptest::prelude::*;

use super::super::*;

fn refused(line: &str) -> (i64, Option<String>, String) {
    let refused = Incoming::read(line.as_bytes()).unwrap_err();
    let error = ErrorObject::from(&refused);
    (error.code, refused.id.map(|id| id.to_string()), error.message)
}

#[test]
fn each_kind_of_message_is_told_apart() {
    let read = |line: &str| Incoming::read(line.as_bytes()).unwrap();
    let Incoming::Request { id, method, params } =
        read(r#" {"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#)
    else {
        unreachable!()
    };
    assert_eq!((id.as_json(), method.as_str(), params.unwrap().get()), ("1", "m", r#"{"a":1}"#));
    assert!(
        matches!(read(r#"{"jsonrpc":"2.0","method":"m"}"#), Incoming::Notification { method, .. } if method == "m")
    );
    let Incoming::Response { id, outcome: ResponseOutcome::Result(result) } =
        read(r#"{"jsonrpc":"2.0","id":"a\u0062","result":null}"#)
    else {
        unreachable!()
    };
    assert_eq!((id.as_json(), id.text().as_deref(), result.get()), (r#""a\u0062""#, Some("ab"), "null"));
    let error = read(r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"no"}}"#);
    assert!(matches!(error, Incoming::Response { outcome: ResponseOutcome::Error(_), .. }));
}

#[test]
fn an_id_is_kept_as_it_was_written() {
    for id in ["0", "-7", "1.0", "1e3", "123456789012345678901234567890", r#""x""#, r#""\u00e9""#, r#""""#] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let Ok(Incoming::Request { id: kept, .. }) = Incoming::read(line.as_bytes()) else {
            panic!("{line}")
        };
        assert_eq!(kept.as_json(), id);
        assert_eq!(
            success(&kept, &Accepted {}).unwrap(),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        );
    }
}

#[test]
fn what_is_no_json_is_a_parse_error() {
    for line in ["{", "nothing", "{\"jsonrpc\":\"2.0\",", "{} {}", "{\"a\":01}", "'x'", "\u{feff}{}"] {
        let (code, id, message) = refused(line);
        assert_eq!((code, id), (-32700, None), "{line}: {message}");
        assert!(!message.is_empty());
    }
    let error = ErrorObject::from(&Incoming::read(b"{\"jsonrpc\":\"\xff\"}").unwrap_err());
    assert_eq!(error.code, -32700);
    assert!(error.message.contains("UTF-8"), "{}", error.message);
}

#[test]
fn what_is_no_request_is_an_invalid_one_and_keeps_its_id() {
    for (line, id, wanted) in [
        ("[]", None, "batches are not supported"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, None, "batches are not supported"),
        ("5", None, "expected an object"),
        ("null", None, "expected an object"),
        ("{}", None, "jsonrpc"),
        (r#"{"id":1,"method":"m"}"#, Some("1"), "jsonrpc"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Some("1"), "jsonrpc"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, Some("1"), "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, None, "a number or a string"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, None, "a number or a string"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, None, "a number or a string"),
        (r#"{"jsonrpc":"2.0","id":["a"],"result":{}}"#, None, "a number or a string"),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some("7"), "method has to be a string"),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"m","params":5}"#,
            Some("\"x\""),
            "params has to be an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"m","params":null}"#,
            Some("\"x\""),
            "params has to be an object",
        ),
        (r#"{"jsonrpc":"2.0","id":7}"#, Some("7"), "neither method, nor result"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, None, "neither a method"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#, Some("7"), "more than one"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","result":{}}"#, Some("7"), "more than one"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"params":{}}"#, Some("7"), "a response with params"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","sudo":1}"#, Some("7"), "unknown field `sudo`"),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"m"}"#, None, "duplicate field `id`"),
    ] {
        let (code, kept, message) = refused(line);
        assert_eq!((code, kept.as_deref()), (-32600, id), "{line}: {message}");
        assert!(message.contains(wanted), "{line}: {message}");
    }
}

#[test]
fn deep_nesting_is_judged_without_a_stack() {
    let deep = "[".repeat(1 << 20);
    assert_eq!(refused(&deep).0, -32700);
    let whole = format!("{deep}{}", "]".repeat(1 << 20));
    assert_eq!(refused(&whole).0, -32600);
    let inside = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{{"a":{whole}}}}}"#);
    let Ok(Incoming::Request { method, params, .. }) = Incoming::read(inside.as_bytes()) else { panic!() };
    assert_eq!(ClientRequest::read(&method, params.as_deref()).unwrap_err().code, -32602);
}

proptest! {
    #[test]
    fn no_line_is_a_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Incoming::read(&line);
    }

    #[test]
    fn no_members_are_a_panic(
        members in proptest::collection::vec(
            ("jsonrpc|id|method|params|result|error|x", r#""2\.0"|1|null|\{\}|\[\]|"initialize"|true"#), 0..6,
        ),
    ) {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
        let line = format!("{{{}}}", members.join(","));
        match Incoming::read(line.as_bytes()) {
            Ok(Incoming::Request { method, params, .. }) => drop(ClientRequest::read(&method, params.as_deref())),
            Ok(_) => {}
            Err(refused) => prop_assert!(!refused.is_no_json, "{}", line),
        }
    }
}
