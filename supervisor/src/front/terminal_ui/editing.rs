//! The terminal in the hands of an editor: the UI leaves it, reads nothing, and has it back however the editor ended.

use std::io;

use ipc::id::{AgentId, ApprovalId};
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::task::spawn_blocking;
use tui::Msg;

use super::ui::Ui;
use crate::process::editor::{Edits, edit};
use crate::process::signals::SignalChange;
use crate::process::tty::stop_job;

/// The outcome of an editor: another text, none if the text is as it was, or the reason why there is no text.
type Edited = Result<Option<String>, String>;

impl Ui {
    /// Has a plan edited. The session goes on meanwhile; its events wait.
    pub(super) async fn edit_plan(
        &mut self,
        (agent, id): (AgentId, ApprovalId),
        markdown: String,
    ) -> io::Result<()> {
        let edited = self.hand_over(Edits::Plan, markdown).await?;
        self.tell(Msg::PlanEdited { agent, id, edited }).await
    }

    /// Has the message edited that is being written.
    pub(super) async fn edit_prompt(&mut self, text: String) -> io::Result<()> {
        let edited = self.hand_over(Edits::Message, text).await?;
        self.tell(Msg::PromptEdited(edited)).await
    }

    async fn hand_over(&mut self, edits: Edits, text: String) -> io::Result<Edited> {
        self.tty.release();
        // An editor that is killed leaves the terminal as it had it.
        let modes = self.tty.modes()?;
        let edited = self.wait_for_editor(edits, text).await;
        self.tty.set_modes(&modes);
        self.resume()?;
        Ok(edited)
    }

    /// Waits for the editor. SIGINT and SIGQUIT of the keyboard are meant for it; a stop is meant for the whole job.
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
                    // Where nobody could continue us we are not stopped, and go on at once.
                    let _ = stop_job();
                },
            }
        }
    }
}
