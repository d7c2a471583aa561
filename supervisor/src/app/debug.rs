//! `bailiwick debug`: tools for those who work on Bailiwick itself.

use std::io::Write;

use super::args::{DebugStreamArgs, ProviderArg};
use super::exit::Exit;
use crate::provider::anthropic::Config;
use crate::provider::debug;
use crate::secrets::TakenKeys;

/// `debug stream`: sends one request body and prints what came back.
pub(super) async fn stream(args: DebugStreamArgs, keys: TakenKeys) -> Exit {
    let request = match std::fs::read(&args.request) {
        Ok(request) => request,
        Err(error) => {
            super::complain(&format!("cannot read {}: {error}", args.request.display()));
            return Exit::Usage;
        }
    };
    let ProviderArg::Anthropic = args.provider;
    let mut config = Config::new(keys.anthropic);
    config.connection.base_url = args.base_url;
    let answer = debug::stream(config, &request).await;
    let printed = writeln!(std::io::stdout(), "{answer}");
    match (printed, answer["ok"].as_bool()) {
        (Err(_), _) => Exit::Internal,
        (Ok(()), Some(true)) => Exit::Done,
        (Ok(()), _) => Exit::Provider,
    }
}
