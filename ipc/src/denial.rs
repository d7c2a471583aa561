//! A denial with its reason and its remedy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::missing_right::MissingRight;
use crate::path::WirePath;
use crate::recorded::Recorded;

/// An action that the access does not allow, with the reason, and the way to allow exactly this action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denial {
    /// The layer that denied the operation.
    pub layer: Layer,
    /// The attempted operation.
    pub operation: Operation,
    /// Target of the operation.
    pub object: Object,
    /// The program that attempted the operation, by the name that it has set for itself. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The missing access. As text it is a phrase: `write /etc/probe`.
    pub missing_right: Recorded<MissingRight>,
    /// The option that grants exactly this right: `--write /etc/probe`. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Certainty of the denial.
    pub grade: Grade,
    /// The error number of the operation, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

/// Layer of the confinement that denied an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Layer {
    /// The kernel's Landlock ruleset.
    Landlock,
    /// The kernel's seccomp filter.
    Seccomp,
    /// The program's own mount tree, which is read-only except for writable directories.
    Mounts,
    /// A mount over a hidden path.
    Mask,
    /// The program's own network namespace, which is not connected.
    NetworkNamespace,
    /// The broker, which performs system calls that no rule of the kernel can judge.
    Mediation,
    /// The supervisor, before it sends anything to a worker.
    Policy,
}

/// The attempted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Operation {
    /// Reading a file or listing a directory.
    Read,
    /// Changing, creating or removing a file.
    Write,
    /// Executing a program.
    Execute,
    /// Reaching the network, or a socket of another program.
    Network,
    /// Signalling a process.
    Signal,
    /// Using a shared object of other programs: a socket, or shared memory, a semaphore or a message queue of System V.
    Share,
    /// Making a system call, or calling an external tool.
    Call,
}

/// Target of an operation, in the form in which it is displayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Object {
    /// A file or directory.
    Path(WirePath),
    /// A network address, or a phrase that describes it.
    Address(String),
    /// Name of a system call, as in the manual pages.
    Syscall(String),
    /// The command line, as the model wrote it.
    Command(String),
    /// A process, or another shared object, as a phrase.
    Shared(String),
    /// A tool that a server outside the sandbox serves, as a phrase.
    Tool(String),
}

/// Certainty of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Grade {
    /// Certain: the kernel or the broker denied an operation that the agent's access does not include. Bailiwick's own
    /// tool got the error, the broker reported it, or a worker repeated the operation with the same error.
    Proved,
    /// Likely: only the output of a command reports the denial.
    Likely,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
            Self::Mounts => "read-only mount",
            Self::Mask => "masked path",
            Self::NetworkNamespace => "network namespace",
            Self::Mediation => "mediation",
            Self::Policy => "policy",
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "reach",
            Self::Signal => "signal",
            Self::Share => "use",
            Self::Call => "call",
        })
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Address(text)
            | Self::Syscall(text)
            | Self::Command(text)
            | Self::Shared(text)
            | Self::Tool(text) => text.fmt(f),
        }
    }
}

/// Displays one sentence for the model and for people: the denied operation, the layer, and the remedy.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer, operation, object, missing_right, .. } = self;
        match (self.grade, layer) {
            (Grade::Proved, Layer::Policy) => write!(f, "blocked by the policy: {operation} {object}")?,
            (Grade::Proved, Layer::Mediation) => {
                write!(f, "blocked by the sandbox ({layer}): {operation} {object}")?;
            }
            (Grade::Proved, _) => write!(f, "blocked by the kernel ({layer}): {operation} {object}")?,
            (Grade::Likely, _) => write!(f, "likely blocked by the sandbox ({layer}): {operation} {object}")?,
        }
        if let Some(program) = &self.program {
            write!(f, " (tried by {program})")?;
        }
        write!(f, "; missing access: {missing_right}")?;
        match (&self.grant, operation, layer) {
            (Some(grant), ..) => write!(f, "; the user can allow it with {grant}"),
            // A path that is not readable is hidden, and no grant opens it.
            (None, Operation::Read | Operation::Execute, Layer::Landlock | Layer::Mask) => f.write_str(
                "; the path is hidden, and no flag makes it readable: do without this path, or ask the user to copy the needed file \
                 into the project",
            ),
            (None, ..) if missing_right.value().is_some_and(MissingRight::takes_too_much) => f.write_str(
                "; use a directory below it instead, which the user can allow with --write PATH",
            ),
            (None, ..) => f.write_str("; it cannot be allowed here"),
        }
    }
}
