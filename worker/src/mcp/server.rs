//! Process of an MCP server, in a process group of its own. It ends at the latest when the guest process ends.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ipc::mcp::{McpCommand, McpFailure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::said::Said;

/// Time limit for reading the rest of the server's standard error after the server has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Time limit for a write to the server that is not finished when the server's standard input has to be closed.
const LAST_WRITE: Duration = Duration::from_millis(100);

pub(super) type Input = Arc<Mutex<Option<ChildStdin>>>;

#[derive(Debug)]
pub(super) struct Streams {
    pub(super) input: Input,
    pub(super) output: ChildStdout,
}

/// Process of an MCP server. Dropping the value kills this process; processes that it started end with the guest.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    input: Input,
    said: Said,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(command: &McpCommand) -> io::Result<Self> {
        let mut child = Command::new(&command.program)
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let said = Said::default();
        let listener = child.stderr.take().map(|stderr| tokio::spawn(said.clone().listen(stderr)));
        let input = Arc::new(Mutex::new(child.stdin.take()));
        Ok(Self { child, input, said, listener })
    }

    pub(super) fn streams(&mut self) -> Option<Streams> {
        Some(Streams { input: Arc::clone(&self.input), output: self.child.stdout.take()? })
    }

    /// Waits until the server has ended. Cancel safe.
    pub(super) async fn ended(&mut self) -> McpFailure {
        let code = self.child.wait().await.ok().as_ref().and_then(ExitStatus::code);
        if let Some(listener) = &mut self.listener
            && timeout(LAST_WORDS, &mut *listener).await.is_ok()
        {
            self.listener = None;
        }
        McpFailure::Ended { code, said: self.said.text() }
    }

    /// Closes the server's standard input. If the server has not ended after `grace`, kills its process group.
    pub(super) async fn end(&mut self, grace: Duration) {
        if let Ok(mut input) = timeout(LAST_WRITE, self.input.lock()).await {
            *input = None;
        }
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        if !grace.is_zero() && timeout(grace, self.child.wait()).await.is_ok() {
            return;
        }
        if let Some(group) = group
            && self.child.try_wait().is_ok_and(|ended| ended.is_none())
        {
            // An error means that nothing of the group is left.
            let _ = killpg(group, Signal::SIGKILL);
        }
        let _ = timeout(LAST_WORDS, self.child.wait()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}
