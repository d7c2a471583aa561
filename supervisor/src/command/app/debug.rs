//! `bailiwick debug`: tools for developers of Bailiwick.

use std::io::Write;

use model::provider::{Connection, ProviderKind, debug};
use model::secrets::{Redactor, TakenKey, TakenKeys};

use crate::process::attempt::Attempt;
use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::settings::args::DebugStreamArgs;

/// Makes an attack from inside the sandbox. Returns exit status 0 if the attack succeeded.
pub(super) fn attempt(attempt: &Attempt) -> Exit {
    match attempt.make(&mut std::io::stdout()) {
        Ok(true) => Exit::Done,
        Ok(false) | Err(_) => Exit::Internal,
    }
}

/// `debug stream`: sends a request body and prints the response.
pub(super) async fn stream(args: DebugStreamArgs, keys: TakenKeys) -> Exit {
    let request = match std::fs::read(&args.request) {
        Ok(request) => request,
        Err(error) => {
            complain(&format!("cannot read {}: {error}", args.request.display()));
            return Exit::Usage;
        }
    };
    let kind = ProviderKind::from(args.provider);
    let base_url = Some(args.base_url);
    let connection = match keys.of(kind) {
        Some(TakenKey { secret, variable, credential }) => {
            Connection { credential, ..kind.connection(base_url, Some(secret), variable.to_owned()) }
        }
        None => kind.connection(base_url, None, kind.key_variable().to_owned()),
    };
    let redactor = Redactor::new(connection.api_key.clone());
    let answer = debug::stream(kind, connection, &request).await;
    let printed = writeln!(std::io::stdout(), "{}", redactor.masked(&answer.to_string()));
    match (printed, answer["ok"].as_bool()) {
        (Err(_), _) => Exit::Internal,
        (Ok(()), Some(true)) => Exit::Done,
        (Ok(()), _) => Exit::Provider,
    }
}
