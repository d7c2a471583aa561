//! `bailiwick debug`: tools for those who work on Bailiwick itself.

use std::io::Write;

use super::args::DebugStreamArgs;
use super::exit::Exit;
use crate::provider::{ProviderKind, debug};
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
    let kind = ProviderKind::from(args.provider);
    let connection = kind.connection(Some(args.base_url), keys.of(kind), kind.key_variable().to_owned());
    let answer = debug::stream(kind, connection, &request).await;
    let printed = writeln!(std::io::stdout(), "{answer}");
    match (printed, answer["ok"].as_bool()) {
        (Err(_), _) => Exit::Internal,
        (Ok(()), Some(true)) => Exit::Done,
        (Ok(()), _) => Exit::Provider,
    }
}
