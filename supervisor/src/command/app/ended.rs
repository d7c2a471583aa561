//! Commands that a signal ends in order.

use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::process::signals::Endings;

/// Works until a signal ends this process: what the work made is removed by then. Must be called within the runtime, before the work
/// makes anything.
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
