//! Custom commands (`/name`) of the person, whose text is placed at the prompt.

use protocol::own_command::OwnCommand;

/// Name of the built-in command that reviews a change.
pub(crate) const REVIEW: &str = "review";

/// Effect of a custom command on the turn that its text starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnTurn {
    pub name: String,
    pub reads: bool,
    pub offline: bool,
    pub model: Option<String>,
}

impl OwnTurn {
    pub(crate) fn of(command: &OwnCommand) -> Self {
        let OwnCommand { name, reads, model, .. } = command.clone();
        Self { name, reads, offline: false, model }
    }

    /// Returns the effect of `:review`: a turn that only reads, without the network.
    pub(crate) fn review() -> Self {
        Self { name: REVIEW.to_owned(), reads: true, offline: true, model: None }
    }

    pub(crate) fn words(&self) -> String {
        let reads = if self.reads { " · only reads" } else { "" };
        let offline = if self.offline { " · network off" } else { "" };
        let model = self.model.as_ref().map(|model| format!(" · by {model}")).unwrap_or_default();
        format!("/{}{reads}{offline}{model} · Enter sends it", self.name)
    }
}
