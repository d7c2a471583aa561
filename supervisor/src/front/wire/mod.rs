//! A server of sessions on standard input and output, for any protocol: lines, conversations, approvals, output queue.
//!
//! One task owns the conversations, the open requests and the output queue. Two threads read and write lines, so a
//! front end that blocks does not delay a session. A [`Dialect`] decides how events and requests are written: there is
//! one for `serve` and one for `acp`.

mod agents;
mod conversations;
mod ending;
mod input;
mod outbox;
mod output;
pub(crate) mod pending;
mod server;
mod sessions;
mod settings;

use std::io::IsTerminal;

pub(in crate::front) use conversations::{OpenConversation, OpenedConversation, StartAccess};
pub(in crate::front) use ending::ServeEnding;
#[cfg(test)]
pub(in crate::front) use output::Writer;
pub(in crate::front) use server::{Dialect, Server};
pub(in crate::front) use sessions::Sessions;

use crate::process::exit::Exit;
use crate::process::messages::{complain, say};

/// Serves a front end on standard input and output until the front end asks for the end or disconnects. If standard
/// input is a terminal, tells the person that `expects` belongs there.
pub(in crate::front) async fn run<D: Dialect>(server: Server<D>, expects: &str) -> Exit {
    if std::io::stdin().is_terminal() {
        say(&format!("{expects}; press Ctrl-D to end\n  hint: type `bailiwick` for the terminal UI"));
    }
    let (lines, writer) = match (input::start(), output::start()) {
        (Ok(lines), Ok(writer)) => (lines, writer),
        (Err(error), _) | (_, Err(error)) => {
            complain(&format!("cannot serve standard input and output: {error}"));
            return Exit::Internal;
        }
    };
    Box::pin(server.run(lines, writer)).await
}
