//! A hook that completes a confinement before a program starts in it.

use std::error::Error;
use std::fmt::Debug;

use ipc::confinement::Confinement;

/// Completes each confinement just before its program starts. By then, sandbox-exec already waits for its
/// orders.
pub trait BeforeSpawn: Debug + Send {
    /// Adds data that must be recent, such as hidden files that were moved. After an error no program starts.
    fn fill(&mut self, confinement: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>>;
}
