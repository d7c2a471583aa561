//! Approvals of tools that the person's settings keep for a project.

use std::path::PathBuf;

use gate::tools::ExternalCall;

use crate::engine::place::ProjectSandbox;
use crate::settings::config::{ToolGrant, USER_NAME, allow_tool};

/// The place of such approvals: the person's settings for this project.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptTools {
    file: PathBuf,
    project: PathBuf,
}

impl KeptTools {
    pub(super) fn of(setup: &ProjectSandbox) -> Self {
        Self {
            file: setup.directories.config.join(USER_NAME),
            project: setup.policy.project.as_path().to_owned(),
        }
    }

    /// Adds a tool as it is defined now. Returns words for the person.
    pub(super) fn keep(&self, call: &ExternalCall) -> Result<String, String> {
        let ExternalCall { server, tool, guest, .. } = call;
        let Some(guest) = guest else { return Err("its server has no sandbox".to_owned()) };
        let grant = ToolGrant::new(server, tool, &guest.definition);
        allow_tool(&self.file, &self.project, &grant).map_err(|error| error.to_string())?;
        Ok(format!(
            "{tool} of {server} runs without a question in {} from now on, until its definition or the server's table changes: {} has it",
            self.project.display(),
            self.file.display()
        ))
    }
}
