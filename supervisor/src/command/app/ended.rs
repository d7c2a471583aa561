//! Runs a command so that a signal ends it and what it created is removed.

use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::process::signals::Endings;

/// Runs `work` until it is done or a signal arrives. After a signal, drops `work`, and this removes what it created.
/// Must be called within the runtime, before `work` creates anything.
pub(super) async fn until_ended(work: impl Future<Output = Exit>) -> Exit {
    let mut endings = match Endings::new() {
        Ok(endings) => endings,
        Err(error) => {
            complain(&format!("cannot handle signals: {error}"));
            return Exit::Internal;
        }
    };
    tokio::select! {
        exit = work => exit,
        signal = endings.next() => Exit::by_signal(signal),
    }
}
