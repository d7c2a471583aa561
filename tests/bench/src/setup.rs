//! The measured program, and a new project for it.

use std::path::{Path, PathBuf};

use supervisor::engine::place::{PrivateProject, ProjectSandbox};

use super::BenchError;

const PROGRAM: &str = "bailiwick";

pub(crate) struct BenchSetup {
    program: PathBuf,
    project: PrivateProject,
}

impl BenchSetup {
    /// Prepares a measurement of `program`. If that is `None`, measures the `bailiwick` next to the running program.
    pub(crate) fn new(program: Option<&Path>) -> Result<Self, BenchError> {
        let program = program.map_or_else(beside, |program| Ok(program.to_owned()))?;
        // Measurements start it from other directories.
        let program = program.canonicalize().map_err(|error| {
            format!(
                "cannot measure {}: {error}\n  hint: --program PATH names the program to measure",
                program.display()
            )
        })?;
        let project = PrivateProject::beside(&program)?;
        Ok(Self { program, project })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn sandbox(&self) -> &ProjectSandbox {
        &self.project.sandbox
    }
}

fn beside() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(PROGRAM))
}
