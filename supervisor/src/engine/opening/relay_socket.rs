//! Model behind the Unix socket of a relay, `--base-url unix:PATH`. A process that can connect to the socket can spend
//! the user's money and send data out of the sandbox. So a session does not start if one of its workers could connect.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};

use gate::modes::WIDEST;
use ipc::probe::{Outcome, Probe};
use ipc::rights::{Network, Rights};
use tokio::runtime::Builder;

use crate::engine::inside;
use crate::engine::place::ProjectSandbox;

/// Error because of which a session with a relay does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RelaySocketError {
    #[error("no relay at {0}: there is no socket at this path\n  hint: start the relay, or check --base-url")]
    Missing(PathBuf),
    /// No relay answers on the socket, or the relay refuses this user.
    #[error("no relay at {0}: {1}\n  hint: start the relay as your user, or check --base-url")]
    Silent(PathBuf, #[source] io::Error),
    /// The socket is in a directory in which an agent can replace it.
    #[error(
        "the relay's socket {socket} is inside {root}, where an agent can write\n  hint: move the socket's directory \
         out of the project and of all writable and temporary directories"
    )]
    Writable {
        socket: PathBuf,
        /// Directory that contains the socket and in which agents may write.
        root: PathBuf,
    },
    #[error(
        "cannot check whether an agent can reach the relay's socket: {0}\n  hint: bailiwick doctor shows what this machine enforces"
    )]
    Untried(String),
    #[error("an agent can reach the relay's socket {}: this machine cannot keep agents from sockets\n  hint: bailiwick doctor shows what is missing", .0.display())]
    Reached(PathBuf),
}

/// Returns the most access that an agent of the session may get.
fn widest(setup: &ProjectSandbox) -> Rights {
    Rights { net: Network::On, ..setup.policy.standing_in(WIDEST) }
}

/// Checks that a confined process cannot connect to the socket. Returns the socket's path without links.
pub(crate) async fn check(setup: &ProjectSandbox, socket: &Path) -> Result<PathBuf, RelaySocketError> {
    let socket = placed(setup, socket)?;
    // If nobody listened, a failed attempt would prove nothing.
    StdStream::connect(&socket).map_err(|error| RelaySocketError::Silent(socket.clone(), error))?;
    let probe = Probe::Connect { path: (&socket).into() };
    let confinement = setup.confinement(widest(setup));
    let tried = inside::try_all(setup, confinement, &[probe]).await;
    let (_, outcomes) = tried.map_err(|error| RelaySocketError::Untried(error.to_string()))?;
    judged(outcomes.first(), socket)
}

/// Returns the socket if the confined process could not connect to it, and an error otherwise.
fn judged(outcome: Option<&Outcome>, socket: PathBuf) -> Result<PathBuf, RelaySocketError> {
    match outcome {
        // Outside the sandbox this is a socket. If it is none inside, the sandbox hides it.
        Some(
            Outcome::Refused { errno: libc::EACCES | libc::EPERM | libc::ENOENT, .. }
            | Outcome::Untried { .. },
        ) => Ok(socket),
        // Any other error comes from the other end, so that the kernel permitted the attempt.
        Some(Outcome::Done | Outcome::Refused { .. }) => Err(RelaySocketError::Reached(socket)),
        None => Err(RelaySocketError::Untried("no answer".to_owned())),
    }
}

/// Runs [`check`] on another thread, for callers that are not async.
pub(super) fn check_now(setup: &ProjectSandbox, socket: &Path) -> Result<PathBuf, RelaySocketError> {
    let failed = |error: &dyn std::fmt::Display| RelaySocketError::Untried(error.to_string());
    std::thread::scope(|scope| {
        let trying = scope.spawn(|| {
            let runtime =
                Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
            runtime.block_on(check(setup, socket))
        });
        trying.join().unwrap_or_else(|_| Err(failed(&"the attempt panicked")))
    })
}

/// Returns the socket's path without links. Fails if an agent may write in the socket's directory.
fn placed(setup: &ProjectSandbox, socket: &Path) -> Result<PathBuf, RelaySocketError> {
    let missing = || RelaySocketError::Missing(socket.to_owned());
    let named = std::path::absolute(socket).map_err(|_| missing())?;
    let found = fs::canonicalize(&named).map_err(|_| missing())?;
    if !fs::symlink_metadata(&found).is_ok_and(|meta| meta.file_type().is_socket()) {
        return Err(missing());
    }
    let rights = widest(setup);
    let project = setup.policy.project.as_path();
    let mut roots =
        rights.write.iter().map(ipc::path::WirePath::as_path).chain([project, setup.temps.path()]);
    // An agent could redirect a link that it may change.
    match roots.find(|root| found.starts_with(root) || named.starts_with(root)) {
        Some(root) => Err(RelaySocketError::Writable { socket: found.clone(), root: root.to_owned() }),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_an_agent_reaches_is_refused() {
        let judged = |outcome: Option<&Outcome>| judged(outcome, "/run/relay.sock".into());
        let refused = |errno| Outcome::Refused { errno, permitted_by_mode: true };
        for errno in [libc::EACCES, libc::EPERM, libc::ENOENT] {
            assert!(judged(Some(&refused(errno))).is_ok(), "{errno}");
        }
        let reached =
            [Outcome::Done, refused(libc::ECONNREFUSED), refused(libc::EAGAIN), refused(libc::EPROTOTYPE)];
        for outcome in &reached {
            let error = judged(Some(outcome)).unwrap_err();
            assert!(matches!(error, RelaySocketError::Reached(_)), "{outcome:?}");
            let text = error.to_string();
            assert!(text.starts_with("an agent can reach the relay's socket /run/relay.sock"), "{text}");
        }
        assert!(matches!(judged(None), Err(RelaySocketError::Untried(_))));
    }
}
