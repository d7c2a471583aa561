use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use ipc::codec;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::socket::is_ours;
use crate::engine::driver::Live;
use crate::process::directories::Directories;

/// Time limit for a session's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of a session's answer: 4 MiB.
const MOST: u64 = 4 << 20;

/// Answer of a running session about the confinement of its workers.
#[derive(Debug)]
pub(crate) enum LiveAnswer {
    Live(Vec<Live>),
    NoWorker,
    Nothing(String),
}

/// Asks all running sessions, in the order of their names. Omits sessions that end before they answer.
pub(crate) async fn ask_all(directories: &Directories) -> Vec<(String, LiveAnswer)> {
    let directory = directories.live();
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    let mut names: Vec<_> = sockets.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let mut answers = Vec::new();
    for name in names {
        let asked = timeout(PATIENCE, ask(&directory, &name)).await;
        match asked.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())) {
            Ok(answered) => answers.push((name, answered)),
            Err(error) if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind()) => {}
            Err(error) => answers.push((name, LiveAnswer::Nothing(error.to_string()))),
        }
    }
    answers
}

async fn ask(directory: &Path, name: &str) -> io::Result<LiveAnswer> {
    let held = File::open(directory)?;
    let stream = UnixStream::connect(format!("/proc/self/fd/{}/{name}", held.as_raw_fd())).await?;
    if !is_ours(&stream) {
        return Ok(LiveAnswer::Nothing("the process that answered belongs to another user".to_owned()));
    }
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    Ok(match codec::decode::<Vec<Live>>(&answer) {
        Ok(lives) if lives.is_empty() => LiveAnswer::NoWorker,
        Ok(lives) if lives.iter().all(|live| live.session.as_str() == name) => LiveAnswer::Live(lives),
        Ok(_) => LiveAnswer::Nothing("the process that answered has another session".to_owned()),
        Err(_) => LiveAnswer::Nothing("the session's process is another version of Bailiwick".to_owned()),
    })
}
