use ipc::image::Image;

use super::OwnTurn;

#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub text: String,
    pub images: Vec<Image>,
    /// True if the text is a shell command of the user, typed after `!`.
    pub is_command: bool,
    /// Custom command (`/name`) of the person that produced the text; `None` for a typed message.
    pub own: Option<OwnTurn>,
}

/// Message with long pastes, and its short form at the prompt.
#[derive(Clone, Debug)]
pub(crate) struct Pasted {
    pub whole: String,
    pub folded: String,
}

impl Outgoing {
    pub(crate) fn beginning(&self) -> String {
        const ROW: usize = 500;
        let images = self.images.iter().map(|image| format!("{image} "));
        images.chain([self.text.clone()]).collect::<String>().chars().take(ROW).collect()
    }
}
