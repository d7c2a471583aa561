//! Tests that valid requests with random changes are rejected, or reach neither the network nor files.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{CountedPrompts, understand};
use super::{bounds, facts, read, usual};
use crate::provider::ProviderKind;

/// Collects the paths of all objects with rules. Arguments and schemas have no rules, because they belong to the tools.
fn listed(value: &Value, at: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match value {
        Value::Object(members) => {
            found.push(at.clone());
            for (name, value) in members {
                let is_free = matches!(name.as_str(), "input_schema" | "parameters")
                    || name == "input" && members.get("type") == Some(&json!("tool_use"));
                if !is_free {
                    at.push(Step::Member(name.clone()));
                    listed(value, at, found);
                    at.pop();
                }
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                at.push(Step::Element(index));
                listed(value, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

#[derive(Clone, Debug)]
enum Step {
    Member(String),
    Element(usize),
}

fn object_at<'a>(value: &'a mut Value, steps: &[Step]) -> &'a mut Map<String, Value> {
    let mut at = value;
    for step in steps {
        at = match step {
            Step::Member(name) => &mut at[name.as_str()],
            Step::Element(index) => &mut at[*index],
        };
    }
    at.as_object_mut().expect("an object")
}

fn kinds() -> impl Strategy<Value = ProviderKind> {
    prop::sample::select(ProviderKind::ALL.to_vec())
}

fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"type": "url", "url": "https://x.example"}])),
        Just(json!({"type": "web_search_20250305", "name": "web_search"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn an_unknown_member_is_refused_wherever_it_stands(
        kind in kinds(), place in any::<prop::sample::Index>(), name in "[a-z_]{1,12}", value in odd(),
    ) {
        let mut body = usual(kind);
        let mut found = Vec::new();
        listed(&body, &mut Vec::new(), &mut found);
        let members = object_at(&mut body, &found[place.index(found.len())]);
        let name = format!("zz_{name}");
        members.insert(name.clone(), value);
        let why = read(kind, &body.to_string()).expect_err("an unknown member");
        prop_assert!(why.contains(&name), "{}", why);
    }

    #[test]
    fn a_member_that_stands_twice_is_refused_wherever_it_stands(
        kind in kinds(), place in any::<prop::sample::Index>(), member in any::<prop::sample::Index>(),
    ) {
        let mut body = usual(kind);
        let mut found = Vec::new();
        listed(&body, &mut Vec::new(), &mut found);
        let members = object_at(&mut body, &found[place.index(found.len())]);
        prop_assume!(!members.is_empty());
        let (name, value) = members.iter().nth(member.index(members.len())).expect("a member");
        let twice = format!("\"{name}\":{value}");
        members.insert("zz_mark".to_owned(), json!(1));
        let text = body.to_string().replace("\"zz_mark\":1", &twice);
        prop_assert!(read(kind, &text).expect_err("twice").contains("twice"));
    }

    #[test]
    fn an_odd_value_is_refused_or_brings_nothing_along(
        kind in kinds(), place in any::<prop::sample::Index>(), member in any::<prop::sample::Index>(), value in odd(),
    ) {
        let mut body = usual(kind);
        let mut found = Vec::new();
        listed(&body, &mut Vec::new(), &mut found);
        let members = object_at(&mut body, &found[place.index(found.len())]);
        prop_assume!(!members.is_empty());
        let name = members.keys().nth(member.index(members.len())).expect("a member").clone();
        // The arguments of a tool are not a part of the API.
        prop_assume!(name != "input" || kind != ProviderKind::Anthropic);
        members.insert(name, value);
        if let Ok(sent) = read(kind, &body.to_string()) {
            let sent = sent.to_string();
            for reach in ["https://", "\"url\":", "web_search", "file_id"] {
                let ours = reach == "\"url\":" && sent.contains("\"url\":\"data:image/");
                prop_assert!(ours || !sent.contains(reach), "{}", sent);
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(kind in kinds(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(understand(kind, &bytes, &bounds(&facts), &CountedPrompts::default()).is_err());
    }
}
