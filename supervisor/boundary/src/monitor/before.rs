use std::error::Error;
use std::fmt::Debug;

use ipc::confinement::Confinement;

/// A hook that completes each confinement just before the confined program starts.
pub trait BeforeSpawn: Debug + Send {
    /// Adds data that must be up to date, such as new paths of hidden files. After an error the program is not started.
    fn fill(&mut self, confinement: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>>;
}
