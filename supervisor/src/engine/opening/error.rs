//! Every reason for which a session is not opened, and the exit code that a command ends with for it.

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

/// The end of a session before it began: the exit code and the message.
pub(crate) struct Refusal(pub Exit, pub String);

impl Refusal {
    /// The user's to mend.
    pub(crate) fn usage(error: impl ToString) -> Self {
        Self(Exit::Usage, error.to_string())
    }

    /// Ours, or the machine's.
    pub(crate) fn internal(error: impl ToString) -> Self {
        Self(Exit::Internal, error.to_string())
    }
}

/// The reason why a session was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// Its place could not be made ready.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There is no usable key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The model cannot be asked so.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's address is not usable.
    #[error(transparent)]
    Provider(#[from] ConfigError),
    /// The model is behind a socket that is not safe to use.
    #[error(transparent)]
    RelaySocket(#[from] RelaySocketError),
    /// The patch could not be written.
    #[error(transparent)]
    Patch(#[from] PatchFileError),
    /// The traffic could not be recorded.
    #[error("--record: {0}")]
    Record(#[from] DirectoryError),
    /// The session that is to go on is another project's.
    #[error("the session belongs to the project {project}\n  hint: -C {project}", project = shell_word(.0.as_path()))]
    OtherProject(WirePath),
    /// There is no log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The process itself is in trouble.
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
    /// The stable code, where it has one.
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

    /// True of a session that another process has open: a copy of it can go on.
    pub(crate) const fn is_open_elsewhere(&self) -> bool {
        matches!(self, Self::Log(LogError::Held { .. }))
    }
}
