//! What a person can do about a command that never ran.

/// Where its start stopped.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    /// The stage of sandbox-exec, by its name; empty if it named none.
    pub(super) stage: String,
}

impl Stopped {
    /// What would help. Most stages need something of the machine; some need something of whoever gave the command.
    pub(super) fn next_step(&self) -> &'static str {
        match self.stage.as_str() {
            "execute" => {
                "name a program that is there and can be executed; bailiwick explain PATH says whether it is hidden"
            }
            "directory" => "choose a project with -C that can be entered",
            "rules" => "bailiwick explain PATH says what the rights make of a path, and where they come from",
            _ => "bailiwick doctor shows what is missing on this machine",
        }
    }
}
