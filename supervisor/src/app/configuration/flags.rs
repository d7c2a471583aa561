//! What flags and environment say, as a layer.

use std::path::PathBuf;

use clap::ValueEnum;
use ipc::path::WirePath;
use ipc::rights::{Network, Reach};
use ipc::rpc::{NEW_CONVERSATION_METHOD, NewConversationParams};

use crate::app::args::{ConfinementArgs, ExecArgs, ModelArgs, TuiArgs};
use crate::config::{Layer, Origin, Value};
use crate::gate::ApprovalMode;
use crate::provider::ProviderKind;

/// What the environment says to who asks this provider: each has a variable for its address.
pub(super) fn of_environment(provider: ProviderKind) -> Layer {
    let variable = provider.address_variable();
    let base_url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    Layer::default().with("base_url", base_url.map(Value::Text), Origin::Environment(variable))
}

/// What the flags of a confinement say.
pub(in crate::app) fn of_confinement(args: &ConfinementArgs) -> Layer {
    let word = |value: &dyn Fn() -> Option<String>| value();
    let net = word(&|| Some(args.net?.to_possible_value()?.get_name().to_owned()));
    let reach = args.reach.iter().filter_map(|place| Some(place.to_possible_value()?.get_name().to_owned()));
    Layer::default()
        .with("rights.net", net.map(Value::Text), Origin::Flag("--net"))
        .with_list("rights.reach", reach, &Origin::Flag("--reach"))
        .with_list("rights.write", &args.write, &Origin::Flag("--write"))
        .with_list("rights.hide", &args.hide, &Origin::Flag("--hide"))
        .with_list("rights.env", &args.env, &Origin::Flag("--env"))
}

fn with_model(layer: Layer, args: &ModelArgs) -> Layer {
    let provider = args.provider.map(|provider| ProviderKind::from(provider).as_str().to_owned());
    layer
        .with("model", args.model.clone().map(Value::Text), Origin::Flag("--model"))
        .with("provider", provider.map(Value::Text), Origin::Flag("--provider"))
        .with("base_url", args.base_url.clone().map(Value::Text), Origin::Flag("--base-url"))
}

/// What the flags of the terminal UI say.
pub(in crate::app) fn of_tui(args: &TuiArgs) -> Layer {
    let mode = args.mode.map(|mode| ApprovalMode::from(mode).as_str().to_owned());
    with_model(of_confinement(&args.confinement), &args.model).with(
        "mode",
        mode.map(Value::Text),
        Origin::Flag("--mode"),
    )
}

/// What a front end says of a new conversation.
pub(in crate::app) fn of_request(params: &NewConversationParams) -> Layer {
    let word = |word: &str| Some(Value::Text(word.to_owned()));
    let origin = Origin::Flag(NEW_CONVERSATION_METHOD);
    let net = params.net.and_then(|net| word(if net == Network::On { "on" } else { "off" }));
    let Reach { host, lan, link_local, metadata } = params.reach.unwrap_or_default();
    let reach = [(host, "host"), (lan, "lan"), (link_local, "link-local"), (metadata, "metadata")];
    let reach = reach.into_iter().filter_map(|(within, name)| within.then_some(name));
    let paths = |paths: &[WirePath]| paths.iter().cloned().map(PathBuf::from).collect::<Vec<_>>();
    Layer::default()
        .with("mode", params.mode.and_then(|mode| word(mode.as_str())), origin.clone())
        .with("model", params.model.as_deref().and_then(word), origin.clone())
        .with("provider", params.provider.as_deref().and_then(word), origin.clone())
        .with("base_url", params.base_url.as_deref().and_then(word), origin.clone())
        .with("rights.net", net, origin.clone())
        .with_list("rights.reach", reach, &origin)
        .with_list("rights.write", paths(&params.write), &origin)
        .with_list("rights.hide", paths(&params.hide), &origin)
        .with_list("rights.env", &params.env, &origin)
        .with("limits.max_steps", params.max_steps.map(|steps| Value::Number(steps.into())), origin.clone())
        .with("limits.max_tokens", params.max_tokens.map(Value::Number), origin.clone())
        .with("limits.max_usd", params.max_usd.map(Value::Amount), origin)
}

/// What the flags of `exec` say.
pub(in crate::app) fn of_exec(args: &ExecArgs) -> Layer {
    with_model(of_confinement(&args.confinement), &args.model)
        .with(
            "limits.max_steps",
            args.max_steps.map(|steps| Value::Number(steps.into())),
            Origin::Flag("--max-steps"),
        )
        .with("limits.max_tokens", args.max_tokens.map(Value::Number), Origin::Flag("--max-tokens"))
        .with("limits.max_usd", args.max_usd.map(Value::Amount), Origin::Flag("--max-usd"))
        .with("limits.timeout_s", args.timeout.map(Value::Time), Origin::Flag("--timeout"))
}
