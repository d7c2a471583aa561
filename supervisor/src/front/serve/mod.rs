//! `bailiwick serve`: the core for front ends in other processes, as JSON-RPC 2.0 on standard input and output.
//!
//! One task owns the conversations, the open requests and the output queue. Two threads read and write lines, so a
//! front end that blocks does not delay a session. Standard output has only the protocol.

mod agents;
mod conversations;
mod history;
mod input;
mod outbox;
mod output;
pub(crate) mod pending;
mod requests;
mod server;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;

use std::io::Write;

use crate::engine::opening::SessionDirs;
use crate::process::exit::{Exit, printed};
use crate::process::messages::complain;
use sessions::Sessions;

/// Serves a front end on standard input and output until it asks for the end or disconnects.
pub(crate) async fn run(place: SessionDirs) -> Exit {
    let (lines, writer) = match (input::start(), output::start()) {
        (Ok(lines), Ok(writer)) => (lines, writer),
        (Err(error), _) | (_, Err(error)) => {
            complain(&format!("cannot serve standard input and output: {error}"));
            return Exit::Internal;
        }
    };
    Box::pin(server::ServeServer::new(Sessions::new(place)).run(lines, writer)).await
}

pub(crate) fn print_schema() -> Exit {
    let mut stdout = std::io::stdout().lock();
    let written = serde_json::to_writer_pretty(&mut stdout, &protocol::rpc::schema())
        .map_err(std::io::Error::from)
        .and_then(|()| writeln!(stdout));
    printed(written, Exit::Done)
}
