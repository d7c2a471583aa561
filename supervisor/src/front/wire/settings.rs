//! The settings in a request, converted to a layer of settings.

use std::path::PathBuf;

use ipc::path::WirePath;
use ipc::rights::Reach;
use protocol::rpc::NewConversationParams;

use crate::settings::config::{ConfigOrigin, Layer, Value};

pub(super) fn of_request(params: &NewConversationParams, origin: &'static str) -> Layer {
    let word = |word: &str| Some(Value::Text(word.to_owned()));
    let origin = ConfigOrigin::Flag(origin);
    let net = params.net.clone().map(Value::Network);
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
        .with_list("rights.sockets", paths(&params.sockets), &origin)
        .with_list("rights.hide", paths(&params.hide), &origin)
        .with_list("rights.env", &params.env, &origin)
        .with("limits.max_steps", params.max_steps.map(|steps| Value::Number(steps.into())), origin.clone())
        .with("limits.max_tokens", params.max_tokens.map(Value::Number), origin.clone())
        .with("limits.max_usd", params.max_usd.map(Value::Amount), origin)
}
