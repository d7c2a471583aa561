use insta::assert_snapshot;
use serde_json::Value;

use crate::tools::{DuplicateTool, Registry, builtin};

#[test]
fn names_and_arguments_are_the_contract() {
    let definitions = Registry::builtin().definitions();
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
    for definition in Registry::builtin().definitions().iter() {
        let text = definition.input_schema.get();
        let schema: Value = serde_json::from_str(text).unwrap();
        assert_eq!(schema["type"], "object", "WIRE R7");
        assert_eq!(schema["additionalProperties"], false, "{text}");
        for word in ["$schema", "title", "$ref", "$defs", "format", "null", "anyOf", "oneOf"] {
            assert!(!text.contains(&format!("\"{word}\"")), "{word} in {text}");
        }
        let name = definition.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!((1..=128).contains(&name.len()) && name.chars().all(plain), "WIRE R7: {name}");
        assert!(definition.description.len() < 400, "{name} says too much");
    }
}

#[test]
fn schema_of_a_command() {
    let definitions = Registry::builtin().definitions();
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
    let definitions = Registry::builtin().definitions();
    let schema: Value = serde_json::from_str(definitions[4].input_schema.get()).unwrap();
    assert_snapshot!(schema["properties"]["edits"].to_string(), @r#"{"description":"Several replacements in order, all or none, instead of old_string and new_string.","type":"array","items":{"type":"object","properties":{"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"additionalProperties":false,"required":["old_string","new_string"]}}"#);
}

#[test]
fn definitions_are_the_same_bytes_every_time() {
    let text = || {
        let definitions = Registry::builtin().definitions();
        definitions.iter().map(|definition| definition.input_schema.get().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(text(), text());
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let mut tools = builtin();
    tools.extend(builtin().into_iter().skip(2).take(1));
    assert_eq!(Registry::new(tools).err(), Some(DuplicateTool("search_files")));
    assert_eq!(Registry::new(builtin()).unwrap().definitions().len(), 6);
}
