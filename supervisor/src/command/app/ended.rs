//! Runs a command that a signal can end. Everything that the command has created is then removed.

use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::process::signals::Endings;

/// Runs `work` until it is done or a signal arrives. A signal drops `work`, which removes what `work` created. Must be
/// called within the runtime, before `work` creates anything.
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
