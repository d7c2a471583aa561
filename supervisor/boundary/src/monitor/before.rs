//! The last word on a confinement before a program starts in it.

use std::error::Error;
use std::fmt::Debug;

use ipc::confinement::Confinement;

/// Completes each confinement before a program starts in it, while sandbox-exec is executed and waits for its orders.
pub trait BeforeSpawn: Debug + Send {
    /// Adds what has to be found out at the last moment. After an error nothing is started.
    fn fill(&mut self, confinement: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>>;
}
