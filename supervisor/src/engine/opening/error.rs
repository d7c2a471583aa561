use ipc::path::WirePath;
use model::provider::ConfigError;
use model::recording::DirectoryError;
use model::secrets::KeyError;
use protocol::error_code::ErrorCode;
use protocol::shell_word::shell_word;

use super::model::ModelError;
use super::relay_socket::RelaySocketError;
use crate::engine::place::SetupError;
use crate::journal::changes::PatchFileError;
use crate::journal::session::LogError;
use crate::process::exit::Exit;

/// Exit code and error message of a session that did not start.
pub(crate) struct Refusal(pub Exit, pub String);

impl Refusal {
    /// Returns the refusal for an error that the user can correct.
    pub(crate) fn usage(error: impl ToString) -> Self {
        Self(Exit::Usage, error.to_string())
    }

    /// Returns the refusal for an error of Bailiwick or of the machine.
    pub(crate) fn internal(error: impl ToString) -> Self {
        Self(Exit::Internal, error.to_string())
    }
}

/// Error because of which a session was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Provider(#[from] ConfigError),
    #[error(transparent)]
    RelaySocket(#[from] RelaySocketError),
    #[error(transparent)]
    Patch(#[from] PatchFileError),
    #[error("--record: {0}")]
    Record(#[from] DirectoryError),
    #[error("the session belongs to the project {project}\n  hint: -C {project}", project = shell_word(.0.as_path()))]
    OtherProject(WirePath),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        let exit = match &error {
            OpenError::Setup(error) => error.exit(),
            OpenError::RelaySocket(RelaySocketError::Untried(_) | RelaySocketError::Reached(_)) => {
                Exit::NoSandbox
            }
            OpenError::Key(_)
            | OpenError::Model(_)
            | OpenError::Provider(_)
            | OpenError::RelaySocket(_)
            | OpenError::Patch(_)
            | OpenError::Record(_)
            | OpenError::OtherProject(_)
            | OpenError::Log(LogError::Held { .. } | LogError::Broken { .. }) => Exit::Usage,
            OpenError::Log(_) | OpenError::System(_) => Exit::Internal,
        };
        let other_way = if error.is_open_elsewhere() { ", or continue in a copy with --fork" } else { "" };
        let message = format!("{error}{other_way}");
        Self(exit, error.code().map_or_else(|| message.clone(), |code| code.mark(&message)))
    }
}

impl OpenError {
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Key(KeyError::Missing { .. }) => Some(ErrorCode::NoKey),
            Self::Key(_) => Some(ErrorCode::UnusableKey),
            Self::Log(error) => error.code(),
            Self::Setup(error) if error.exit() == Exit::NoSandbox => Some(ErrorCode::NoSandbox),
            Self::RelaySocket(RelaySocketError::Untried(_) | RelaySocketError::Reached(_)) => {
                Some(ErrorCode::NoSandbox)
            }
            _ => None,
        }
    }

    /// True if another process has the session open. The user can continue a copy of the session then.
    pub(crate) const fn is_open_elsewhere(&self) -> bool {
        matches!(self, Self::Log(LogError::Held { .. }))
    }
}
