//! Reasons for the end of a server.

use protocol::frontend::{AgentAction, UserActionKind};

use crate::process::exit::Exit;

/// The reason for which a server ends. Later variants take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::front) enum ServeEnding {
    /// The front end sent `shutdown`.
    Shutdown,
    InputOver,
    OutputGone,
    Interrupted,
    /// SIGTERM or SIGQUIT.
    Terminated,
    HungUp,
}

impl ServeEnding {
    pub(super) const fn exit(self) -> Exit {
        match self {
            Self::Shutdown | Self::InputOver => Exit::Done,
            Self::OutputGone => Exit::Internal,
            Self::Interrupted => Exit::Interrupted,
            Self::Terminated => Exit::Terminated,
            Self::HungUp => Exit::HungUp,
        }
    }

    pub(super) const fn by(signal: i32) -> Self {
        match signal {
            libc::SIGINT => Self::Interrupted,
            libc::SIGHUP => Self::HungUp,
            _ => Self::Terminated,
        }
    }

    pub(super) const fn last_action(self) -> UserActionKind {
        match self {
            Self::Shutdown => UserActionKind::Agent(AgentAction::Quit),
            Self::HungUp => UserActionKind::Agent(AgentAction::HangUp),
            Self::Interrupted => UserActionKind::Agent(AgentAction::InterruptSession),
            Self::InputOver | Self::OutputGone | Self::Terminated => {
                UserActionKind::Agent(AgentAction::Terminate)
            }
        }
    }

    /// Returns the reason that the denial of an open approval states.
    pub(super) const fn cause(self) -> &'static str {
        match self {
            Self::Shutdown => "the front end ended the session",
            Self::InputOver => "the front end closed the connection",
            Self::OutputGone => "the front end no longer reads the output",
            Self::Interrupted | Self::Terminated | Self::HungUp => "the server was ended by a signal",
        }
    }
}
