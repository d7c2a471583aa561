//! The exit codes, each with a name. Scripts rely on these codes.

use std::io;
use std::process::ExitCode;

use protocol::event::EndReason;

use crate::process::messages::complain;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Internal,
    /// The command line, the project or the key file is not usable.
    Usage,
    /// The model or the agent gave up, or a budget (steps, tokens, money, time) is spent.
    GaveUp,
    /// The agent ended its turn after a denied call, and no later call succeeded.
    Denied,
    /// The sandbox is unavailable; no model was called.
    NoSandbox,
    /// The provider failed after retries: bad key, no network, overloaded.
    Provider,
    /// The log of a session is unchanged, but the events in the log contradict each other.
    Finding,
    /// A review has findings of at least the severity of `--fail-on`.
    Findings,
    Interrupted,
    Terminated,
    HungUp,
    /// Status of a command that was run.
    Status(u8),
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::GaveUp => 3,
            Self::Denied => 4,
            Self::NoSandbox => 5,
            Self::Provider => 6,
            Self::Finding => 7,
            Self::Findings => 8,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::HungUp => 129,
            Self::Status(status) => status,
        }
    }
}

impl Exit {
    /// Returns the exit status for a process that a signal ended.
    pub(crate) fn by_signal(signal: i32) -> Self {
        Self::Status(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<EndReason> for Exit {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Done | EndReason::Closed => Self::Done,
            EndReason::Internal => Self::Internal,
            EndReason::DeniedAtEnd | EndReason::Aborted => Self::Denied,
            EndReason::NoSandbox => Self::NoSandbox,
            EndReason::Provider => Self::Provider,
            EndReason::Interrupted => Self::Interrupted,
            EndReason::Terminated => Self::Terminated,
            EndReason::HungUp => Self::HungUp,
            EndReason::GaveUp
            | EndReason::NothingSaid
            | EndReason::CallAsText
            | EndReason::SchemaUnmet
            | EndReason::StepLimit
            | EndReason::TokenLimit
            | EndReason::CostLimit
            | EndReason::TimeLimit
            | EndReason::Refusal
            | EndReason::ContextFull => Self::GaveUp,
        }
    }
}

/// Section of `--help` that lists the exit statuses.
pub(crate) const EXIT_STATUS: &str = "\
Exit status:
  0    the task is done, or the user ended the session
  1    internal error
  2    usage: the command line, the project or the key file is not usable
  3    the model or the agent gave up, or a budget (steps, tokens, money, time) is spent
  4    an approval was answered `abort`, or the agent ended its turn after a denied call, with no tool call succeeding later (0 with `exec --denied ok`)
  5    the sandbox is unavailable (before any model call)
  6    provider error after retries: bad key, no network, overloaded
  129  hung up (SIGHUP)
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)";

/// Returns the exit status of a command that printed something. A reader that closed the pipe is no failure. Reports
/// any other error.
pub(crate) fn printed(printed: io::Result<()>, exit: Exit) -> Exit {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {error}"));
            Exit::Internal
        }
        _ => exit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_help() {
        let all = [
            Exit::Done,
            Exit::Internal,
            Exit::Usage,
            Exit::GaveUp,
            Exit::Denied,
            Exit::NoSandbox,
            Exit::Provider,
            Exit::Interrupted,
            Exit::Terminated,
            Exit::HungUp,
        ];
        for exit in all {
            let line = format!("\n  {:<5}", exit.code());
            assert!(EXIT_STATUS.contains(&line), "{exit:?}");
        }
        for reason in EndReason::ALL {
            assert_eq!(Exit::from(reason).code(), reason.exit_code(), "{reason:?}");
        }
        assert_eq!(EXIT_STATUS.lines().count(), all.len() + 1);
    }
}
