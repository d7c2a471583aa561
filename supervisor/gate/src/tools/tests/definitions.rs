use insta::assert_snapshot;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::activity::Activity;
use crate::tools::{ExternalTool, Registry, Tool, ToolDefinition, UnfitTool};

#[test]
fn names_and_arguments_are_the_contract() {
    let definitions = Registry::for_activity(Activity::Execute).definitions();
    let signatures: Vec<_> = definitions
        .iter()
        .map(|definition| {
            format!("{}{}", definition.name, crate::tools::typed::signature(&definition.input_schema))
        })
        .collect();
    assert_snapshot!(signatures.join("\n"), @r"
    read_file{path, offset?, limit?}
    list_directory{path, depth?}
    search_files{pattern, path?, glob?}
    write_file{path, content}
    edit_file{path, old_string?, new_string?, replace_all?, edits?}
    shell_exec{command, access?, network?, cwd?, timeout_s?}
    ");
}

#[test]
fn schemas_are_lean_and_closed() {
    for definition in Registry::for_activity(Activity::Execute).definitions().iter() {
        let text = definition.input_schema.get();
        let schema: Value = serde_json::from_str(text).unwrap();
        assert_eq!(schema["type"], "object", "WIRE R7");
        assert_eq!(schema["additionalProperties"], false, "{text}");
        for word in ["$schema", "title", "$ref", "$defs", "format", "null", "anyOf", "oneOf"] {
            assert!(!text.contains(&format!("\"{word}\"")), "{word} in {text}");
        }
        let name = &definition.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!((1..=128).contains(&name.len()) && name.chars().all(plain), "WIRE R7: {name}");
        assert!(definition.description.len() < 400, "{name} says too much");
    }
}

#[test]
fn schema_of_a_command() {
    let definitions = Registry::for_activity(Activity::Execute).definitions();
    let schema: Value = serde_json::from_str(definitions[5].input_schema.get()).unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap(), @r#"
    {
      "type": "object",
      "properties": {
        "command": {
          "description": "Text for bash -c.",
          "type": "string"
        },
        "access": {
          "description": "\"read\" for a command that only reads: it may write nothing but its own TMPDIR and has no network. \"write\" for one that has to change files. Absent means what the rights allow.",
          "type": "string",
          "enum": [
            "standing",
            "read",
            "write"
          ]
        },
        "network": {
          "description": "Whether it needs the network.",
          "type": "boolean"
        },
        "cwd": {
          "description": "Working directory; the project if absent.",
          "type": "string"
        },
        "timeout_s": {
          "description": "Seconds after which it is ended.",
          "type": "integer",
          "minimum": 1
        }
      },
      "additionalProperties": false,
      "required": [
        "command"
      ]
    }
    "#);
}

#[test]
fn schema_of_several_edits() {
    let definitions = Registry::for_activity(Activity::Execute).definitions();
    let schema: Value = serde_json::from_str(definitions[4].input_schema.get()).unwrap();
    assert_snapshot!(schema["properties"]["edits"].to_string(), @r#"{"description":"Several replacements in order, all or none, instead of old_string and new_string.","type":"array","items":{"type":"object","properties":{"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"additionalProperties":false,"required":["old_string","new_string"]}}"#);
}

#[test]
fn definitions_are_the_same_bytes_every_time() {
    let text = || {
        let definitions = Registry::for_activity(Activity::Execute).definitions();
        definitions.iter().map(|definition| definition.input_schema.get().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(text(), text());
}

#[test]
fn while_a_plan_is_made_no_tool_changes_files() {
    let definitions = Registry::for_activity(Activity::Plan).definitions();
    let names: Vec<_> = definitions.iter().map(|definition| &*definition.name).collect();
    assert_eq!(names, ["read_file", "list_directory", "search_files", "shell_exec"]);
}

fn named(name: &str) -> Box<dyn Tool> {
    let (name, input_schema) = (name.to_owned().into(), RawValue::from_string("{}".to_owned()).unwrap());
    let definition = ToolDefinition { name, description: "".into(), input_schema };
    Box::new(ExternalTool::new("docs".to_owned(), "search".to_owned(), definition))
}

#[test]
fn a_tool_of_a_name_that_no_model_could_call_or_that_there_is_already_is_refused() {
    let with = |names: &[&str]| {
        let more = names.iter().map(|name| named(name)).collect();
        Registry::for_activity(Activity::Execute).with(more).map(|registry| registry.definitions().len())
    };
    assert_eq!(with(&["docs__search", "docs__find"]), Ok(8));
    assert_eq!(with(&["search_files"]), Err(UnfitTool::Duplicate("search_files".into())));
    assert_eq!(with(&["a", "a"]), Err(UnfitTool::Duplicate("a".into())));
    for name in ["", "a b", "docs/search", "\u{e9}", &"a".repeat(65)] {
        assert_eq!(with(&[name]), Err(UnfitTool::Name(name.to_owned().into())), "{name}");
    }
}
