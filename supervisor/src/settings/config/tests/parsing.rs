use std::time::Duration;

use super::*;
use crate::settings::config::{KEYS, Value};

fn wrong(text: &str) -> String {
    parse(text, Path::new("config.toml"), FileOwner::Users).unwrap_err().to_string()
}

#[test]
fn every_key_is_read_with_its_place() {
    let text = "\
model = \"m\"\neffort = \"low\"\nthinking = \"on\"\ncache_ttl = \"5m\"\nprovider = \"openai\"\nbase_url = \"https://example.org/v1\"\nmode = \"auto\"\ntheme = \"light\"\nkey_modes = \"plain\"\nstatus = \"short\"\nmouse = \"off\"\n\
[rights]\nnet = \"off\"\nreach = [\"host\"]\nwrite = [\n  \"/a\",\n  \"b\",\n]\nsockets = [\"/run/s\"]\nhide = [\".env\"]\nprotect = [\"x\"]\nenv = [\"A\", \"B=1\"]\n\
[limits]\nmax_steps = 3\nmax_tokens = 4\nmax_usd = 0.5\ncontext_tokens = 20000\ntimeout_s = 5\ncommand_timeout_s = 6\noutput_bytes = 2048\nprocesses = 100\nmemory_bytes = 1073741824\n\
[agents]\ndepth = 1\nat_once = 2\nper_turn = 3\nmodels = [\"small\"]\n[plan]\nmodel = \"p\"\nmax_usd = 1\non_failure = \"retry\"\nretries = 1\nacceptance_timeout_s = 9\n[execute]\nmodel = \"e\"\nmax_usd = 2\n[approvals]\ntimeout_s = 60\nconfirm_shell = true\npreapproved = [[\"cargo\", \"test\"]]\ntools = [\"git/log@00\"]\n\
[timeouts]\nconnect_s = 1\nfirst_byte_s = 2\nidle_s = 3\nprogress_s = 4\n[retries]\nattempts = 4\nlongest_wait_s = 5\nbudget_s = 6\n[sessions]\nkeep_days = 90\nkeep_mib = 100\n";
    let layer = user(text);
    for key in KEYS {
        let setting = layer.get(key).unwrap_or_else(|| panic!("{} is not read", key.name));
        assert_eq!(setting.origin.as_str(), "user");
    }
    let write = layer.get(crate::settings::config::Key::named("rights.write").unwrap()).unwrap();
    let lines: Vec<_> = write.value.elements().iter().map(|element| element.origin.to_string()).collect();
    assert_eq!(lines, ["/c/config.toml:16", "/c/config.toml:17"]);
}

#[test]
fn tables_may_be_written_in_every_way_that_toml_has() {
    let expected = user("[limits]\nmax_steps = 3");
    let steps = |layer: &Layer| {
        layer.get(crate::settings::config::Key::named("limits.max_steps").unwrap()).unwrap().value.clone()
    };
    for text in ["limits.max_steps = 3", "limits = { max_steps = 3 }", "[limits]\n\"max_steps\" = 0x3"] {
        assert_eq!(steps(&user(text)), steps(&expected), "{text}");
        assert_eq!(steps(&user(text)), Value::Number(3));
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let text = "modle = \"x\"\nmax_steps = 3\n[right]\n[rights]\nnet = true\nhiden = []\nwrite = [\"a\", 7]\n[limits]\nmax_steps = 0\n\
                timeout = 3\n[limits.more]\n";
    insta::assert_snapshot!(wrong(text), @r#"
    config.toml:1:1: unknown key `modle`; did you mean `model`?
    config.toml:2:1: unknown key `max_steps`; did you mean `limits.max_steps`?
    config.toml:3:2: unknown key `right`; did you mean `rights`?
    config.toml:5:7: `rights.net`: expected "off", or a list of at most 500 hosts, as in ["docs.example", "docs.example:8443", "@npm"]
    config.toml:6:1: unknown key `rights.hiden`; did you mean `rights.hide`?
    config.toml:7:15: `rights.write`: expected a list of at most 500 paths, as in ["a", "/b", "~/c"]
    config.toml:9:13: `limits.max_steps`: expected a number from 1 to 4294967295
    config.toml:10:1: unknown key `limits.timeout`; did you mean `limits.timeout_s`?
    config.toml:11:9: unknown key `limits.more`; `bailiwick config keys` lists them
    "#);
    insta::assert_snapshot!(wrong("model = \"a\n"), @r#"config.toml:1:11: invalid basic string, expected `"`"#);
    insta::assert_snapshot!(wrong("model = \"a\"\nmodel = \"b\""), @r#"config.toml:2:1: duplicate key"#);
    insta::assert_snapshot!(wrong("limits = 3\nrights = [{ net = \"on\" }]\n[[mode]]"), @r#"
    config.toml:1:1: `limits` is a table: expected [limits] on a line of its own
    config.toml:2:1: `rights` is a table: expected [rights] on a line of its own
    config.toml:3:1: `mode`: expected one of "deny", "ask", "auto"
    "#);
    insta::assert_snapshot!(wrong("base_url = \"file:///etc\"\nmodel = \"a\\nb\"\nrights.env = [\"A-B=1\"]\nrights.reach = [\"all\"]"), @r#"
    config.toml:1:12: `base_url`: expected an address that begins with https://, http:// or unix:/, as in "https://…"
    config.toml:2:9: `model`: expected a text of one line, as in "…"
    config.toml:3:15: `rights.env`: expected a list of at most 500 variables, as in ["NAME", "NAME=VALUE"]
    config.toml:4:17: `rights.reach`: expected a list of any of "host", "lan", "link-local", "metadata"
    "#);
}

#[test]
fn a_table_for_one_project_holds_keys_and_names_a_place() {
    let text = "[project.repo]\n[project.\"/a\"]\nmodle = \"x\"\n[project.\"/b\".keys.normal]\n[project.\"/c\".agents.scout]\n\
                [project.\"/d\".project.\"/e\"]\n[project.\"~/f\"]\nlimits.max_steps = 0\n[project.\"/g\".agents]\ndepth = 1\n";
    insta::assert_snapshot!(wrong(text), @r#"
    config.toml:1:10: `project`: expected a table with the project's path, as in [project."/home/me/repo"]
    config.toml:3:1: unknown key `modle`; did you mean `model`?
    config.toml:4:15: `keys` applies to every project: it is not allowed in [project.…]
    config.toml:5:22: `agents.scout` applies to every project: it is not allowed in [project.…]
    config.toml:6:15: `project` applies to every project: it is not allowed in [project.…]
    config.toml:8:20: `limits.max_steps`: expected a number from 1 to 4294967295
    "#);
}

#[test]
fn what_is_wrong_does_not_act_on_a_terminal_and_is_not_endless() {
    let text = format!("\"\\u001b]0;x\\u0007\\u202e{}\" = 1\n", "a".repeat(500));
    let error = wrong(&text);
    assert!(
        !error.contains(|c: char| c.is_control() && c != '\n') && !error.contains('\u{202e}'),
        "{error:?}"
    );
    assert!(error.len() < 400, "{error}");
    let many: Vec<_> = (0..1000).map(|index| format!("unknown_{index} = 1")).collect();
    assert_eq!(wrong(&many.join("\n")).lines().count(), 20);
}

#[test]
fn a_project_that_asks_for_too_much_is_not_obeyed_and_still_narrows() {
    let text = "base_url = \"https://evil.example\"\n[rights]\nnet = \"on\"\nhide = [\"secrets\"]\nwrite = 7\n\
                [limits]\nmax_steps = 5\n[keys.normal]\nhelp = \"z\"\n[models.m]\ncontext = 1\n";
    let layer = project(text);
    let lines: Vec<_> = layer.void.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    .bailiwick.toml:1: ignored: `base_url` is allowed only in your own config.toml
    .bailiwick.toml:3: ignored: a project cannot turn the network on (use --net on)
    .bailiwick.toml:5: ignored: `rights.write`: expected a list of at most 500 paths, as in ["a", "/b", "~/c"]
    .bailiwick.toml:8: ignored: `keys` is allowed only in your own config.toml
    .bailiwick.toml:10: ignored: `models` is allowed only in your own config.toml
    "#);
    let trusted = merged(&Layer::default(), &Layer::default(), &layer, true);
    assert_eq!((trusted.base_url(), trusted.net()), (None, ipc::rights::Network::Off));
    assert!(trusted.write().is_empty() && trusted.bindings.is_empty() && trusted.models.is_empty());
    assert_eq!((trusted.hide().len(), trusted.run_limits().max_steps), (1, Some(5)));
}

#[test]
fn a_narrowing_of_a_project_that_cannot_be_read_is_an_error() {
    for text in [
        "rights.net = \"of\"",
        "rights.hide = \"secrets\"",
        "rights.hiden = [\"secrets\"]",
        "limits.max_steps = 0",
        "mode = \"readonly\"",
        "rights.hide = [",
    ] {
        assert!(parse(text, Path::new(".bailiwick.toml"), FileOwner::Projects).is_err(), "{text}");
    }
    // In the person's own file, each of these lines is an error instead.
    assert!(parse("rights.net = \"on\"", Path::new("config.toml"), FileOwner::Users).is_err());
}

#[test]
fn keys_of_the_terminal_ui_may_move_and_never_collide() {
    let layer = user("[keys.normal]\nhelp = \"f2\"\n[keys.approval]\ndeny = [\"x\", \"n\"]\n");
    let lines: Vec<_> = layer.bindings.iter().map(|binding| binding.origin.to_string()).collect();
    assert_eq!(
        lines,
        ["/c/config.toml:4", "/c/config.toml:2"].map(str::to_owned).into_iter().rev().collect::<Vec<_>>()
    );
    let keymap = merged(&Layer::default(), &layer, &Layer::default(), false).keymap().unwrap();
    assert_eq!(keymap.keys(tui::commands::KeyMode::Approval, tui::commands::Command::Deny), ["x", "n"]);
    for (text, place, what) in [
        (
            "[keys.approval]\nabort = \"z\"\napprove_once = \"enter\"",
            ":3:1: ",
            "this key is easily pressed by accident",
        ),
        (
            "[keys.approval]\napprove_session = [\"space\"]",
            ":2:1: ",
            "this key is easily pressed by accident",
        ),
        ("[keys.approval]\nabort = \"z\"\napprove_once = \"n\"", ":3:1: ", "would do both"),
        ("[keys.approval]\nfly = \"z\"", ":2:1: ", "no command is called \"fly\""),
        ("[keys.normal]\nhelp = \"hyper-z\"", ":2:1: ", "is not a key"),
        ("[keys.normal]\nhelp = 3", ":2:1: ", "expected a key, or a list of keys"),
        ("[keys.visual]\nhelp = \"z\"", ":1:7: ", "not a mode of the terminal UI"),
        ("keys = 3", ":1:1: ", "is a table"),
    ] {
        let error = wrong(text);
        assert!(error.contains(place) && error.contains(what), "{text}: {error}");
    }
}

#[test]
fn the_users_word_on_a_model_holds_and_the_catalogues_where_there_is_none() {
    let facts = |text: &str| merged(&Layer::default(), &user(text), &Layer::default(), false).facts();
    let known = facts("model = \"claude-opus-5-5\"");
    let text = "model = \"claude-opus-5-5\"\n[models.\"claude-*\"]\ncontext = 200_000\nimages = false\n\
                [models.\"claude-opus-5-5\"]\ncontext = 300_000\n";
    let said = facts(text);
    assert_eq!((said.context, said.images), (300_000, false));
    assert_eq!((said.prices, said.effort), (known.prices, known.effort));
    assert!(facts("model = \"x\"").prices.is_none());
    let priced = facts("model = \"x\"\n[models]\nx = { prices = { input = 3, output = 15.0 } }");
    assert_eq!(priced.prices.map(|prices| prices.rates.cache_read.to_string()).as_deref(), Some("3"));
}

#[test]
fn what_is_wrong_with_a_model_is_told_with_its_place() {
    insta::assert_snapshot!(wrong("[models.m]\nwindow = 3\ncontext = -1\nprices = { input = 3 }\neffort = [\"huge\"]\n[models]\nn = 3"), @r#"
    config.toml:2:1: `models.m.window`: unknown; a model has api, api_version, context, max_output, prices, thinking, effort, images
    config.toml:3:1: `models.m.context`: expected a number of tokens
    config.toml:4:1: `models.m.prices`: expected { input = …, output = … } in US dollars for a million tokens, with cache_read, cache_write_5m, cache_write_1h where they differ from input, long_prompt = { above = TOKENS, input = …, … } where long prompts cost more, and nothing else
    config.toml:5:1: `models.m.effort`: expected a list out of "low", "medium", "high", "xhigh", "max"
    config.toml:7:1: `models.n` is a table: expected [models.n]
    "#);
}

#[test]
fn an_amount_is_read_exactly() {
    let limit =
        |text: &str| merged(&Layer::default(), &user(text), &Layer::default(), false).run_limits().max_usd;
    assert_eq!(limit("limits.max_usd = 0.1"), "0.1".parse().ok());
    assert_eq!(limit("limits.max_usd = 3"), "3".parse().ok());
    for bad in ["0", "-1", "nan", "1e-13", "\"1\""] {
        let error = wrong(&format!("limits.max_usd = {bad}"));
        assert!(error.ends_with("expected an amount in US dollars above 0, as in 2.50"), "{error}");
    }
}

#[test]
fn the_time_of_a_run_may_be_a_fraction_of_a_second() {
    let timeout = |text: &str| {
        let said = user(&format!("limits.timeout_s = {text}"));
        merged(&Layer::default(), &said, &Layer::default(), false).timeout()
    };
    for (text, millis) in
        [("0.001", 1), ("0.25", 250), ("1.5", 1500), ("90", 90_000), ("31536000", 31_536_000_000)]
    {
        let time = Duration::from_millis(millis);
        assert_eq!(timeout(text), Some(time), "{text}");
        assert_eq!(Value::Time(time).to_string(), text);
    }
    for bad in ["0", "0.0009", "-1", "nan", "inf", "31536000.001", "31536001", "\"1\""] {
        let error = wrong(&format!("limits.timeout_s = {bad}"));
        assert!(error.ends_with("expected a number of seconds from 0.001 to 31536000"), "{error}");
    }
}

#[test]
fn a_preapproved_command_is_of_plain_words() {
    for bad in
        ["[]", "[\"\"]", "[\"cargo test\"]", "[\"cargo\", \"$(x)\"]", "[\"a;b\"]", "[\"eval\"]", "\"cargo\""]
    {
        let error = wrong(&format!("approvals.preapproved = [{bad}]"));
        assert!(error.contains("beginnings of commands in plain words"), "{bad}: {error}");
    }
}
