//! Converts flags to a layer of settings.

use clap::ValueEnum;
use gate::modes::ApprovalMode;
use model::provider::ProviderKind;

use super::{BatchRunsArgs, ConfinementArgs, ExecArgs, ModelArgs, TuiArgs};
use crate::settings::config::{ConfigOrigin, Layer, Value};

/// Returns the settings from the sandbox flags.
pub(crate) fn of_confinement(args: &ConfinementArgs) -> Layer {
    let reach = args.reach.iter().filter_map(|place| Some(place.to_possible_value()?.get_name().to_owned()));
    Layer::default()
        .with("rights.net", args.net.clone().map(Value::Network), ConfigOrigin::Flag("--net"))
        .with_list("rights.reach", reach, &ConfigOrigin::Flag("--reach"))
        .with_list("rights.write", &args.write, &ConfigOrigin::Flag("--write"))
        .with_list("rights.sockets", &args.socket, &ConfigOrigin::Flag("--socket"))
        .with_list("rights.hide", &args.hide, &ConfigOrigin::Flag("--hide"))
        .with_list("rights.env", &args.env, &ConfigOrigin::Flag("--env"))
}

fn with_model(layer: Layer, args: &ModelArgs) -> Layer {
    let provider = args.provider.map(|provider| ProviderKind::from(provider).as_str().to_owned());
    layer
        .with("model", args.model.clone().map(Value::Text), ConfigOrigin::Flag("--model"))
        .with("provider", provider.map(Value::Text), ConfigOrigin::Flag("--provider"))
        .with("base_url", args.base_url.clone().map(Value::Text), ConfigOrigin::Flag("--base-url"))
}

/// Returns the settings from the flags of the terminal UI.
pub(crate) fn of_tui(args: &TuiArgs) -> Layer {
    let mode = args.mode.map(|mode| ApprovalMode::from(mode).as_str().to_owned());
    with_model(of_confinement(&args.confinement), &args.model).with(
        "mode",
        mode.map(Value::Text),
        ConfigOrigin::Flag("--mode"),
    )
}

/// Returns the settings from the flags of an `exec` with a task, always with a mode, which a project can only narrow.
pub(crate) fn of_task(args: &ExecArgs) -> Layer {
    let mode = ApprovalMode::from(args.mode).as_str().to_owned();
    of_exec(args).with("mode", Some(Value::Text(mode)), ConfigOrigin::Flag("--mode"))
}

/// Returns the settings from the flags that every `exec` has.
pub(crate) fn of_exec(args: &ExecArgs) -> Layer {
    with_model(of_confinement(&args.confinement), &args.model)
        .with(
            "limits.max_steps",
            args.max_steps.map(|steps| Value::Number(steps.into())),
            ConfigOrigin::Flag("--max-steps"),
        )
        .with("limits.max_tokens", args.max_tokens.map(Value::Number), ConfigOrigin::Flag("--max-tokens"))
        .with("limits.max_usd", args.max_usd.map(Value::Amount), ConfigOrigin::Flag("--max-usd"))
        .with("limits.timeout_s", args.timeout.map(Value::Time), ConfigOrigin::Flag("--timeout"))
}

/// Returns the settings from the flags of `batch` that are about the model. The runs get the other flags themselves.
pub(crate) fn of_batch(args: &BatchRunsArgs) -> Layer {
    with_model(Layer::default(), &args.model)
}
