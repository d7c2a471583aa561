use std::fmt::Write;

use insta::assert_snapshot;
use proptest::prelude::*;

use serde_json::value::RawValue;

use crate::activity::Activity;
use crate::tools::{ExternalCall, ExternalTool, Invocation, Registry, ToolDefinition};

#[test]
fn arguments_become_calls() {
    let table = [
        ("read_file", r#"{"path":"a"}"#),
        ("read_file", r#"{"limit":3,"path":"/a b/ü","offset":2}"#),
        ("list_directory", r#"{"path":".","depth":2}"#),
        ("search_files", r#"{"pattern":"a|b"}"#),
        ("search_files", r#"{"pattern":"x","path":"src","glob":"*.rs"}"#),
        ("write_file", r#"{"path":"a","content":""}"#),
        ("edit_file", r#"{"path":"a","old_string":"b","new_string":""}"#),
        ("edit_file", r#"{"path":"a","old_string":"b","new_string":"c","replace_all":true}"#),
        (
            "edit_file",
            r#"{"path":"a","edits":[{"old_string":"b","new_string":"c"},{"old_string":"d","new_string":"e","replace_all":true}]}"#,
        ),
        ("shell_exec", r#"{"command":"ls"}"#),
        ("shell_exec", r#"{"command":"ls","access":"read","network":false,"cwd":"src","timeout_s":5}"#),
        ("shell_exec", r#"{"command":"ls","access":"write","network":true}"#),
        ("shell_exec", r#"{"command":"ls","access":null,"network":null,"cwd":null,"timeout_s":null}"#),
        ("shell_exec", r#"{"command":"ls","timeout_s":18446744073709551615}"#),
    ];
    let registry = Registry::for_activity(Activity::Execute);
    let mut seen = String::new();
    for (name, input) in table {
        let Invocation::Worker(call) = registry.parse(name, input).unwrap() else { panic!("{name}") };
        writeln!(seen, "{call:?}").unwrap();
    }
    assert_snapshot!(seen, @r#"
    ReadFile(ReadFile { path: "a", offset: None, limit: None, inside: false })
    ReadFile(ReadFile { path: "/a b/ü", offset: Some(2), limit: Some(3), inside: false })
    ListDirectory(ListDirectory { path: ".", depth: Some(2) })
    SearchFiles(SearchFiles { pattern: "a|b", path: None, glob: None, inside: false })
    SearchFiles(SearchFiles { pattern: "x", path: Some("src"), glob: Some("*.rs"), inside: false })
    WriteFile(WriteFile { path: "a", content: "" })
    EditFile(EditFile { path: "a", edits: [Edit { old_string: "b", new_string: "", replace_all: false }] })
    EditFile(EditFile { path: "a", edits: [Edit { old_string: "b", new_string: "c", replace_all: true }] })
    EditFile(EditFile { path: "a", edits: [Edit { old_string: "b", new_string: "c", replace_all: false }, Edit { old_string: "d", new_string: "e", replace_all: true }] })
    ShellExec(ShellExec { command: "ls", access: Standing, network: None, cwd: None, timeout_ms: None })
    ShellExec(ShellExec { command: "ls", access: Read, network: Some(Off), cwd: Some("src"), timeout_ms: Some(5000) })
    ShellExec(ShellExec { command: "ls", access: Write, network: Some(On), cwd: None, timeout_ms: None })
    ShellExec(ShellExec { command: "ls", access: Standing, network: None, cwd: None, timeout_ms: None })
    ShellExec(ShellExec { command: "ls", access: Standing, network: None, cwd: None, timeout_ms: Some(18446744073709551615) })
    "#);
}

/// Tools with invalid arguments: the name, and the arguments.
const MISFITS: &[(&str, &str)] = &[
    ("", "{}"),
    ("Read_file", r#"{"path":"a"}"#),
    ("read_file", ""),
    ("read_file", "null"),
    ("read_file", r#"["a"]"#),
    ("read_file", r#"{"path":"a""#),
    ("read_file", r#"{"path":"a"} x"#),
    ("read_file", "{}"),
    ("read_file", r#"{"path":null}"#),
    ("read_file", r#"{"path":""}"#),
    ("read_file", r#"{"path":"a\u0000b"}"#),
    ("read_file", r#"{"path":"a","offset":0}"#),
    ("read_file", r#"{"path":"a","offset":-1}"#),
    ("read_file", r#"{"path":"a","offset":"2"}"#),
    ("read_file", r#"{"path":"a","offset":2.5}"#),
    ("read_file", r#"{"path":"a","path":"b"}"#),
    ("read_file", r#"{"path":"a","lines":3}"#),
    ("list_directory", r#"{"path":".","depth":4294967296}"#),
    ("search_files", r#"{"pattern":""}"#),
    ("write_file", r#"{"path":"a"}"#),
    ("edit_file", r#"{"path":"a"}"#),
    ("edit_file", r#"{"path":"a","old_string":"b"}"#),
    ("edit_file", r#"{"path":"a","old_string":"b","new_string":"b"}"#),
    ("edit_file", r#"{"path":"a","old_string":"","new_string":"b"}"#),
    ("edit_file", r#"{"path":"a","edits":[]}"#),
    ("edit_file", r#"{"path":"a","edits":[{"old_string":"b"}]}"#),
    ("edit_file", r#"{"path":"a","old_string":"b","new_string":"c","edits":[]}"#),
    ("shell_exec", r#"{"command":"ls","access":"all"}"#),
    ("shell_exec", r#"{"command":"ls","network":"on"}"#),
    ("shell_exec", r#"{"command":"a\u0000b"}"#),
    ("shell_exec", r#"{"command":["ls"]}"#),
    ("shell_exec", r#"{"command":"ls","timeout_s":0}"#),
];

#[test]
fn misfits_say_where_what_and_what_was_expected() {
    let registry = Registry::for_activity(Activity::Execute);
    let mut seen = String::new();
    for (name, input) in MISFITS {
        writeln!(seen, "{input}\n    {}", registry.parse(name, input).unwrap_err()).unwrap();
    }
    assert_snapshot!(seen, @r#"
    {}
        there is no tool named ``; the tools are: read_file, list_directory, search_files, write_file, edit_file, shell_exec
    {"path":"a"}
        there is no tool named `Read_file`; the tools are: read_file, list_directory, search_files, write_file, edit_file, shell_exec

        `read_file` was not run: got no JSON object (EOF while parsing a value), expected one with the arguments {path, offset?, limit?}
    null
        `read_file` was not run: got no JSON object (invalid type: null, expected a map), expected one with the arguments {path, offset?, limit?}
    ["a"]
        `read_file` was not run: got no JSON object (invalid type: sequence, expected a map), expected one with the arguments {path, offset?, limit?}
    {"path":"a"
        `read_file` was not run: got no JSON object (EOF while parsing an object), expected one with the arguments {path, offset?, limit?}
    {"path":"a"} x
        `read_file` was not run: got no JSON object (trailing characters), expected one with the arguments {path, offset?, limit?}
    {}
        `read_file` was not run: missing field `path`. Its arguments are {path, offset?, limit?}
    {"path":null}
        `read_file` was not run: argument `path`: invalid type: null, expected a string. Its arguments are {path, offset?, limit?}
    {"path":""}
        `read_file` was not run: argument `path`: got an empty text, expected at least one character. Its arguments are {path, offset?, limit?}
    {"path":"a\u0000b"}
        `read_file` was not run: argument `path`: got a NUL character, expected text without. Its arguments are {path, offset?, limit?}
    {"path":"a","offset":0}
        `read_file` was not run: argument `offset`: got 0, expected 1 or more. Its arguments are {path, offset?, limit?}
    {"path":"a","offset":-1}
        `read_file` was not run: argument `offset`: invalid value: integer `-1`, expected a whole number. Its arguments are {path, offset?, limit?}
    {"path":"a","offset":"2"}
        `read_file` was not run: argument `offset`: invalid type: string "2", expected a whole number. Its arguments are {path, offset?, limit?}
    {"path":"a","offset":2.5}
        `read_file` was not run: argument `offset`: invalid type: floating point `2.5`, expected a whole number. Its arguments are {path, offset?, limit?}
    {"path":"a","path":"b"}
        `read_file` was not run: duplicate field `path`. Its arguments are {path, offset?, limit?}
    {"path":"a","lines":3}
        `read_file` was not run: argument `lines`: unknown field `lines`, expected one of `path`, `offset`, `limit`. Its arguments are {path, offset?, limit?}
    {"path":".","depth":4294967296}
        `list_directory` was not run: argument `depth`: invalid value: integer `4294967296`, expected a whole number. Its arguments are {path, depth?}
    {"pattern":""}
        `search_files` was not run: argument `pattern`: got an empty text, expected at least one character. Its arguments are {pattern, path?, glob?}
    {"path":"a"}
        `write_file` was not run: missing field `content`. Its arguments are {path, content}
    {"path":"a"}
        `edit_file` was not run: argument `old_string`: missing, expected with new_string, or edits instead. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"path":"a","old_string":"b"}
        `edit_file` was not run: argument `new_string`: missing, expected together with old_string. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"path":"a","old_string":"b","new_string":"b"}
        `edit_file` was not run: argument `new_string`: got the same text as old_string, expected a different text. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"path":"a","old_string":"","new_string":"b"}
        `edit_file` was not run: argument `old_string`: got an empty text, expected at least one character. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"path":"a","edits":[]}
        `edit_file` was not run: argument `edits`: got an empty list, expected at least one {old_string, new_string}. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"path":"a","edits":[{"old_string":"b"}]}
        `edit_file` was not run: argument `edits[0]`: missing field `new_string`. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"path":"a","old_string":"b","new_string":"c","edits":[]}
        `edit_file` was not run: argument `edits`: got edits together with old_string, new_string or replace_all, expected only one form. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}
    {"command":"ls","access":"all"}
        `shell_exec` was not run: argument `access`: unknown variant `all`, expected one of `standing`, `read`, `write`. Its arguments are {command, access?, network?, cwd?, timeout_s?}
    {"command":"ls","network":"on"}
        `shell_exec` was not run: argument `network`: invalid type: string "on", expected a boolean. Its arguments are {command, access?, network?, cwd?, timeout_s?}
    {"command":"a\u0000b"}
        `shell_exec` was not run: argument `command`: got a NUL character, expected text without. Its arguments are {command, access?, network?, cwd?, timeout_s?}
    {"command":["ls"]}
        `shell_exec` was not run: argument `command`: invalid type: sequence, expected a string. Its arguments are {command, access?, network?, cwd?, timeout_s?}
    {"command":"ls","timeout_s":0}
        `shell_exec` was not run: argument `timeout_s`: got 0, expected 1 or more. Its arguments are {command, access?, network?, cwd?, timeout_s?}
    "#);
}

fn registry() -> Registry {
    let input_schema = r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}"#;
    let definition = ToolDefinition {
        name: format!("{}__search", "docs").into(),
        description: "Searches.".to_owned().into(),
        input_schema: RawValue::from_string(input_schema.to_owned()).unwrap(),
    };
    let tool = ExternalTool::new("docs".to_owned(), "search".to_owned(), definition);
    Registry::for_activity(Activity::Execute).with(vec![Box::new(tool)]).unwrap()
}

#[test]
fn a_call_of_an_external_tool_keeps_its_arguments_byte_for_byte() {
    let json = "{\n \"q\" : 1.0e2, \"unknown\":[null ] }";
    let external = ExternalCall {
        server: "docs".to_owned(),
        tool: "search".to_owned(),
        json: json.to_owned(),
        guest: None,
    };
    assert_eq!(registry().parse("docs__search", json), Ok(Invocation::External(external)));
}

#[test]
fn arguments_of_an_external_tool_that_are_no_object_are_told() {
    for json in ["", "null", "[1]", r#""x""#, r#"{"q":}"#, "{} {}"] {
        let error = registry().parse("docs__search", json).unwrap_err().to_string();
        assert!(error.starts_with("`docs__search` was not run: got no JSON object ("), "{error}");
        assert!(error.ends_with("expected one with the arguments {q}"), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_call_or_an_error(name in 0..6usize, input in "\\PC*") {
        let registry = Registry::for_activity(Activity::Execute);
        let name = registry.definitions()[name].name.clone();
        if let Err(error) = registry.parse(&name, &input) {
            prop_assert!(error.to_string().contains(" arguments "), "{error}");
        }
    }

    #[test]
    fn any_object_is_a_call_or_an_error(
        name in 0..6usize,
        fields in proptest::collection::vec(
            ("path|content|edits|command|access|depth|offset", "null|1|-1|1e99|\"\"|\"a\"|\\[\\]|\\{\\}|true"), 0..5),
    ) {
        let registry = Registry::for_activity(Activity::Execute);
        let fields: Vec<_> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let input = format!("{{{}}}", fields.join(","));
        if let Err(error) = registry.parse(&registry.definitions()[name].name, &input) {
            prop_assert!(error.to_string().contains(" arguments "), "{error}");
        }
    }
}
