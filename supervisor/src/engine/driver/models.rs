//! The models that a session's agents may change to.

use agent::core::ModelChoice;

/// Chooses among the models that the session's provider offers.
pub trait Models: Send + Sync {
    /// Returns the model of this name. The error says why the session cannot use the model.
    fn choose(&self, name: &str) -> Result<ModelChoice, String>;
}
