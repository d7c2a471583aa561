use std::error::Error;
use std::path::Path;

use boundary::monitor::TempError;
use gate::modes::ApprovalMode;
use tempfile::TempDir;

use super::error::SetupError;
use super::scope::Mode;
use super::setup::ProjectSandbox;
use super::wanted::{Caches, ConfinementOptions};
use crate::process::directories::Directories;
use crate::process::scratch::private_directory;

/// Empty project for commands that need some project. Dropping it removes it.
#[derive(Debug)]
pub struct PrivateProject {
    pub sandbox: ProjectSandbox,
    _directory: TempDir,
}

impl PrivateProject {
    pub(crate) fn new(wanted: ConfinementOptions) -> Result<Self, SetupError> {
        let wanted = ConfinementOptions { caches: Caches::EndWithIt, ..wanted };
        let directory = private_directory("bailiwick-");
        let directory = directory.map_err(|error| TempError::of_parent(error.kind().into()))?;
        // The project's caches must not stay. Bailiwick's cache directory stays where it is: beside the project, hiding
        // it would take a rule for each of thousands of neighbours in the system's temporary directory.
        let directories = Directories::of_process()?;
        let sandbox =
            ProjectSandbox::new(directories, directory.path(), Mode::fixed(ApprovalMode::Auto), &wanted)?;
        Ok(Self { sandbox, _directory: directory })
    }

    /// Creates the project. Its worker and sandbox-exec are those in the directory of `program`.
    pub fn beside(program: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let program = Some(program.to_owned());
        Ok(Self::new(ConfinementOptions { program, ..ConfinementOptions::default() })?)
    }
}
