//! Approvals that the user's settings keep for later sessions of a project.

use std::path::PathBuf;

use gate::approval::KeptSetting;
use gate::tools::ExternalCall;
use ipc::path::WirePath;

use crate::engine::driver::ApprovalKeeper;
use crate::engine::place::ProjectSandbox;
use crate::settings::config::{ToolGrant, USER_NAME, allow_prefixes, allow_tool};

#[derive(Clone, Debug)]
pub(super) struct KeptApprovals {
    file: PathBuf,
    project: PathBuf,
}

impl KeptApprovals {
    pub(super) fn of(setup: &ProjectSandbox) -> Self {
        Self {
            file: setup.directories.config.join(USER_NAME),
            project: setup.policy.project.as_path().to_owned(),
        }
    }

    pub(super) fn file(&self) -> WirePath {
        self.file.as_path().into()
    }

    /// Keeps an approval of the tool with its present definition. Returns a text for the user, also as the error.
    fn keep_tool(&self, call: &ExternalCall) -> Result<String, String> {
        let ExternalCall { server, tool, guest, .. } = call;
        let Some(guest) = guest else { return Err("the tool's server has no sandbox".to_owned()) };
        let grant = ToolGrant::new(server, tool, &guest.definition);
        allow_tool(&self.file, &self.project, &grant).map_err(|error| error.to_string())?;
        Ok(format!(
            "{tool} of {server} runs without a question in {} from now on, until the tool's definition or the server's table changes: this is saved in {}",
            self.project.display(),
            self.file.display()
        ))
    }

    fn keep_prefixes(&self, prefixes: &[Vec<String>]) -> Result<String, String> {
        allow_prefixes(&self.file, &self.project, prefixes).map_err(|error| error.to_string())?;
        let named: Vec<_> = prefixes.iter().map(|words| words.join(" ")).collect();
        Ok(format!(
            "commands that begin with {} run without a question in {} from now on, without the network: this is saved as approvals.preapproved in {}; delete the entry there to be asked again",
            named.join(" or "),
            self.project.display(),
            self.file.display()
        ))
    }
}

impl ApprovalKeeper for KeptApprovals {
    fn keep(&self, setting: &KeptSetting) -> Result<String, String> {
        match setting {
            KeptSetting::Tool(call) => self.keep_tool(call),
            KeptSetting::Prefixes(prefixes) => self.keep_prefixes(prefixes),
        }
    }
}
