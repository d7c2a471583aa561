//! A message of the user on its way to the agent.

use ipc::image::Image;

/// A message of the user on its way to the agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub text: String,
    pub images: Vec<Image>,
    /// True if the text after the `!` is a command of the user's own.
    pub is_command: bool,
}

impl Outgoing {
    /// Returns its beginning, up to the length of a row.
    pub(crate) fn beginning(&self) -> String {
        const ROW: usize = 500;
        let images = self.images.iter().map(|image| format!("{image} "));
        images.chain([self.text.clone()]).collect::<String>().chars().take(ROW).collect()
    }
}
