use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use ipc::codec;
use ipc::id::ConversationId;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::engine::driver::{Live, Lives};
use crate::process::directories::Directories;

/// Time limit for the client to read the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Socket of a session. Dropping this removes the socket's name.
pub(crate) struct LiveSocket {
    path: PathBuf,
    _answering: JoinSet<()>,
}

impl LiveSocket {
    /// Creates the socket and answers on it. An existing socket is a leftover, as the caller has locked the session's
    /// log.
    pub(crate) fn open(
        directories: &Directories,
        session: &ConversationId,
        live: watch::Receiver<Lives>,
    ) -> io::Result<Self> {
        let directory = directories.live();
        // The path may be longer than the address of a socket: 107 bytes (unix(7)).
        let held = File::open(&directory)?;
        let path = directory.join(session.to_string());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/{session}", held.as_raw_fd()))?;
        let mut answering = JoinSet::new();
        answering.spawn(answer(listener, live));
        Ok(Self { path, _answering: answering })
    }
}

impl Drop for LiveSocket {
    fn drop(&mut self) {
        // A client that still finds the socket gets no answer.
        let _ = fs::remove_file(&self.path);
    }
}

/// Answers connections one after another, since each answer takes little time.
async fn answer(listener: UnixListener, live: watch::Receiver<Lives>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_ours(&stream) => {
                let answer = codec::encode(&live.borrow().values().collect::<Vec<&Live>>());
                if let Ok(answer) = answer {
                    // A client that does not read in time gets no answer.
                    let _ = timeout(PATIENCE, tell(stream, answer)).await;
                }
            }
            Ok(_) => {}
            // The error may last (such as no free descriptor), so it is not retried at once.
            Err(_) => sleep(PATIENCE).await,
        }
    }
}

async fn tell(mut stream: UnixStream, answer: Vec<u8>) -> io::Result<()> {
    stream.write_all(&answer).await?;
    stream.shutdown().await
}

/// True if the process at the other end runs as the supervisor's user. Confined processes cannot reach the socket.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn a_name_that_a_kill_left_is_taken_again() {
        let place = tempfile::tempdir().unwrap();
        let home = |name: &str| (name == "HOME").then(|| place.path().into());
        let directories = Directories::from_environment(home).unwrap();
        directories.make().unwrap();
        drop(UnixListener::bind(directories.live().join("s-1")).unwrap());
        let (_lives, seen) = watch::channel(Lives::new());
        let socket = LiveSocket::open(&directories, &"s-1".into(), seen).unwrap();
        drop(socket);
        assert!(!directories.live().join("s-1").exists());
    }
}
