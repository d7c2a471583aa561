//! The models that a session's agents may change to.

use agent::core::ModelChoice;

/// Knows the models that the session's provider can be asked for.
pub trait Models: Send + Sync {
    /// The model of this name, or a sentence that says why the session cannot go on with it.
    fn choose(&self, name: &str) -> Result<ModelChoice, String>;
}
