//! Opens the person's editor. Meanwhile the UI leaves the terminal and reads nothing from it.

use std::io;

use ipc::id::{AgentId, ApprovalId};
use ipc::path::WirePath;
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::task::spawn_blocking;
use tui::Msg;

use super::ui::Ui;
use crate::process::editor::{Edits, edit};
use crate::process::signals::SignalChange;
use crate::process::tty::stop_job;

type Edited = Result<Option<String>, String>;

impl Ui {
    /// Opens a plan in the editor. Meanwhile the session continues, and its events wait to be shown.
    pub(super) async fn edit_plan(
        &mut self,
        agent: AgentId,
        id: ApprovalId,
        markdown: String,
    ) -> io::Result<()> {
        let edited = self.hand_over(Edits::Plan, markdown).await?;
        self.tell(Msg::PlanEdited { agent, id, edited }).await
    }

    /// Opens the editor with the new text of a file whose change waits for approval.
    pub(super) async fn edit_text(
        &mut self,
        agent: AgentId,
        id: ApprovalId,
        path: WirePath,
        text: String,
    ) -> io::Result<()> {
        let edited = self.hand_over(Edits::Change, text).await?;
        self.tell(Msg::TextEdited { agent, id, path, edited }).await
    }

    /// Opens the unsent message in the editor.
    pub(super) async fn edit_prompt(&mut self, text: String) -> io::Result<()> {
        let edited = self.hand_over(Edits::Message, text).await?;
        self.tell(Msg::PromptEdited(edited)).await
    }

    async fn hand_over(&mut self, edits: Edits, text: String) -> io::Result<Edited> {
        self.tty.release();
        // A killed editor does not restore the terminal's modes.
        let modes = self.tty.modes()?;
        let edited = self.wait_for_editor(edits, text).await;
        self.tty.set_modes(&modes);
        self.resume()?;
        Ok(edited)
    }

    /// Waits for the editor. Ignores SIGINT and SIGQUIT, which the keyboard sends to the editor too.
    async fn wait_for_editor(&mut self, edits: Edits, text: String) -> Edited {
        let mut editor = spawn_blocking(move || edit(edits, &text));
        loop {
            tokio::select! {
                edited = &mut editor => {
                    return edited.unwrap_or_else(|error| Err(format!("cannot edit the {edits}: {error}")));
                }
                signal = self.endings.next() => match signal {
                    libc::SIGINT | libc::SIGQUIT => {}
                    libc::SIGHUP => self.act(UserActionKind::Agent(AgentAction::HangUp)).await,
                    _ => self.act(UserActionKind::Agent(AgentAction::Terminate)).await,
                },
                change = self.changes.next() => if change == SignalChange::Suspended {
                    // Without a parent shell we are not stopped and continue at once.
                    let _ = stop_job();
                },
            }
        }
    }
}
