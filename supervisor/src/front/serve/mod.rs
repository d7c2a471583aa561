//! `bailiwick serve`: a server for front ends in other processes, as JSON-RPC 2.0 on standard input and output.

mod dialect;
mod history;
mod requests;
#[cfg(test)]
mod tests;

use std::io::Write;

use protocol::rpc::NEW_CONVERSATION_METHOD;

use self::dialect::ServeServer;
use super::wire::{self, Sessions};
use crate::engine::opening::SessionDirs;
use crate::process::exit::{Exit, printed};

/// Serves a front end on standard input and output until the front end sends `shutdown` or disconnects.
pub(crate) async fn run(place: SessionDirs) -> Exit {
    let expects = "waits for a front end that speaks JSON-RPC, with one message on each line";
    wire::run(ServeServer::new(Sessions::new(place, NEW_CONVERSATION_METHOD)), expects).await
}

pub(crate) fn print_schema() -> Exit {
    let mut stdout = std::io::stdout().lock();
    let written = serde_json::to_writer_pretty(&mut stdout, &protocol::rpc::schema())
        .map_err(std::io::Error::from)
        .and_then(|()| writeln!(stdout));
    printed(written, Exit::Done)
}
