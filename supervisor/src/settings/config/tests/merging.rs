use ipc::rights::Network;
use protocol::approval::ApprovalMode;

use super::*;
use crate::settings::config::{ConfigOrigin, Value};

const STEPS: &str = "limits.max_steps";
const SECONDS: &str = "limits.command_timeout_s";

fn shown(effective: &Effective, name: &str) -> String {
    let settled = effective.get(name).unwrap();
    let value = settled.value.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    format!("{value} ({})", settled.origin)
}

fn flag(name: &str, value: Value) -> Layer {
    Layer::default().with(name, Some(value), ConfigOrigin::Flag("--flag"))
}

#[test]
fn the_table_of_single_values() {
    let cases = [
        // Columns: key; values of flag, person and project; trust in the project; result; number of ignored values.
        (STEPS, [None, None, None], false, "none (default)", 0),
        (STEPS, [None, Some(5), None], false, "5 (/c/config.toml:1)", 0),
        (STEPS, [Some(9), Some(5), None], false, "9 (--flag)", 0),
        (STEPS, [None, None, Some(7)], false, "7 (.bailiwick.toml:1)", 0),
        (STEPS, [None, Some(5), Some(7)], true, "5 (/c/config.toml:1)", 0),
        (STEPS, [Some(9), Some(5), Some(7)], false, "7 (.bailiwick.toml:1)", 0),
        (SECONDS, [None, None, Some(60)], false, "60 (.bailiwick.toml:1)", 0),
        (SECONDS, [None, None, Some(6000)], false, "600 (default)", 1),
        (SECONDS, [None, None, Some(6000)], true, "6000 (.bailiwick.toml:1)", 0),
        (SECONDS, [None, Some(700), Some(6000)], true, "700 (/c/config.toml:1)", 0),
        (SECONDS, [None, None, Some(600)], false, "600 (default)", 0),
    ];
    for (key, [by_flag, by_user, by_project], trusted, expected, ignored) in cases {
        let text = |number: u64| format!("{key} = {number}");
        let flags = by_flag.map_or_else(Layer::default, |number| flag(key, Value::Number(number)));
        let of_user = by_user.map_or_else(Layer::default, |number| user(&text(number)));
        let of_project = by_project.map_or_else(Layer::default, |number| project(&text(number)));
        let found = merged(&flags, &of_user, &of_project, trusted);
        assert_eq!(shown(&found, key), expected, "{key} {by_flag:?} {by_user:?} {by_project:?} {trusted}");
        assert_eq!(found.ignored.len(), ignored, "{key} {by_flag:?} {by_user:?} {by_project:?} {trusted}");
    }
}

#[test]
fn a_project_narrows_net_and_mode_whoever_said_otherwise() {
    let on = user("mode = \"auto\"");
    let narrow = project("mode = \"deny\"\nrights.net = \"off\"");
    let found = merged(&flag("rights.net", Value::Network(Network::On)), &on, &narrow, false);
    assert_eq!((found.net(), found.mode()), (Network::Off, ApprovalMode::Deny));
    assert!(found.ignored.is_empty());
    let wide = project("mode = \"auto\"\nmodel = \"big\"");
    let found = merged(&Layer::default(), &Layer::default(), &wide, false);
    assert_eq!(
        (found.net(), found.mode(), found.model()),
        (Network::Off, ApprovalMode::Ask, "claude-opus-5-5")
    );
    assert_eq!(
        found.ignored.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["mode \"auto\"", "model \"big\""]
    );
    let found = merged(&Layer::default(), &Layer::default(), &wide, true);
    assert_eq!((found.net(), found.mode(), found.model()), (Network::Off, ApprovalMode::Auto, "big"));
    assert!(found.ignored.is_empty());
}

#[test]
fn lists_add_up_and_each_element_keeps_its_origin() {
    let flags = Layer::default().with_list("rights.write", ["/f"], &ConfigOrigin::Flag("--write"));
    let of_user = user("rights.write = [\"/u\"]\nrights.hide = [\"a\"]");
    let of_project =
        project("rights.write = [\"/u\", \"/p\"]\nrights.hide = [\"b\"]\nrights.protect = [\"c\"]");
    let found = merged(&flags, &of_user, &of_project, false);
    let list = |name: &str| {
        let value = found.get(name).unwrap().value.clone().unwrap();
        value.elements().iter().map(|one| format!("{one} {}", one.origin)).collect::<Vec<_>>()
    };
    assert_eq!(list("rights.write"), ["\"/f\" --write", "\"/u\" /c/config.toml:1"]);
    assert_eq!(list("rights.hide"), ["\"a\" /c/config.toml:2", "\"b\" .bailiwick.toml:2"]);
    assert_eq!(list("rights.protect"), ["\"c\" .bailiwick.toml:3"]);
    assert_eq!(found.ignored.iter().map(ToString::to_string).collect::<Vec<_>>(), ["rights.write [\"/p\"]"]);
    assert_eq!(merged(&flags, &of_user, &of_project, true).write().len(), 3);
}

#[test]
fn of_a_variable_the_most_binding_setting_holds() {
    let flags = Layer::default().with_list("rights.env", ["A=1", "A=2"], &ConfigOrigin::Flag("--env"));
    let of_user = user("rights.env = [\"A=3\", \"B\", \"C\"]");
    let of_project = project("rights.env = [\"B=x\", \"D\"]");
    let names = |trusted| {
        let found = merged(&flags, &of_user, &of_project, trusted);
        found.env().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(false), "\"A=2\" \"B\" \"C\"");
    assert_eq!(names(true), "\"A=2\" \"B\" \"C\" \"D\"");
}

#[test]
fn the_environment_stands_between_flags_and_the_users_file() {
    let of_user = user("base_url = \"https://u.example\"");
    let said = |value: &str| Some(Value::Text(value.to_owned()));
    let environment =
        Layer::default().with("base_url", said("https://e.example"), ConfigOrigin::Environment("X"));
    let flags =
        Layer::default().with("base_url", said("https://f.example"), ConfigOrigin::Flag("--base-url"));
    let none = Layer::default();
    let found = |flags: &Layer, environment: &Layer| {
        let layers = Layers { flags, environment, user: &of_user, project: &none, trusted: false };
        merge(layers).base_url().unwrap().to_owned()
    };
    assert_eq!(found(&flags, &environment), "https://f.example");
    assert_eq!(found(&none, &environment), "https://e.example");
    assert_eq!(found(&none, &none), "https://u.example");
}

#[test]
fn the_commands_and_tools_that_run_unasked_are_named_with_their_places() {
    let digest = "0f".repeat(32);
    let mine = user(&format!(
        "[approvals]\npreapproved = [\n[\"cargo\", \"test\"],\n[\"make\"]]\ntools = [\"docs/search@{digest}\", \"no grant\"]\n"
    ));
    let found = merged(&Layer::default(), &mine, &Layer::default(), false);
    assert_eq!(
        found.unasked(),
        [
            "commands that begin with cargo test · /c/config.toml:3",
            "commands that begin with make · /c/config.toml:4",
            "search of docs · /c/config.toml:5",
        ]
    );
}
