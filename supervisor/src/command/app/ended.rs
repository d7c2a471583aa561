//! Commands that clean up after a signal.

use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::process::signals::Endings;

/// Runs the work until it is done or a signal arrives. Then the work is dropped, which removes what it made. Must be
/// called within the runtime before the work makes anything.
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
