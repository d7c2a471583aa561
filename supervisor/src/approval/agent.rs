//! A sub-agent that takes an approval, since its rights would go beyond those of the agent that starts it.

use ipc::approval::AgentAccess;
use ipc::codec::{self, CodecError};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Rights};
use sha2::{Digest, Sha256};

use super::effect::hexadecimal;

/// The longest task that is asked about, in bytes: a person reads it to its end.
const MAX_TASK: usize = 16 << 10;

/// The access that an agent asks for when it starts a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAsked {
    /// Reading alone, or writing too.
    pub access: AgentAccess,
    /// The write roots, absolute.
    pub write: Vec<WirePath>,
    /// The network.
    pub network: Network,
}

/// The spawn of a sub-agent: exactly the task and the rights that it starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpawn {
    /// The task, whole.
    pub task: String,
    /// The access that the parent asks for.
    pub asked: AgentAsked,
    /// All rights of the sub-agent.
    pub rights: Rights,
    /// Those of them that are beyond the parent's.
    pub grant: Grant,
    /// SHA-256 of the task and the rights, in hexadecimal.
    pub digest: String,
}

/// The reason why nobody can be asked about a spawn.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A person would not read it to its end.
    #[error("the task has {0} bytes, and at most {MAX_TASK} can be shown")]
    TaskTooLong(usize),
    /// There is nothing to bind an answer to.
    #[error("cannot encode the rights of the sub-agent: {0}")]
    Rights(#[from] CodecError),
}

impl AgentSpawn {
    /// The spawn of a sub-agent with these rights, of which `grant` is beyond the parent's.
    pub fn new(task: String, asked: AgentAsked, rights: Rights, grant: Grant) -> Result<Self, SpawnError> {
        if task.len() > MAX_TASK {
            return Err(SpawnError::TaskTooLong(task.len()));
        }
        let rights = rights.normalised();
        let digest = digest(&task, &rights)?;
        Ok(Self { task, asked, rights, grant, digest })
    }
}

/// In the encoding the length of the task stands before it, so that no two pairs are the same bytes.
fn digest(task: &str, rights: &Rights) -> Result<String, CodecError> {
    Ok(hexadecimal(&Sha256::digest(codec::encode(&(task, rights))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(task: &str, write: &[&str], network: Network) -> Result<AgentSpawn, SpawnError> {
        let write: Vec<_> = write.iter().map(|path| WirePath::from(*path)).collect();
        let asked = AgentAsked { access: AgentAccess::Write, write: write.clone(), network };
        let rights = Rights { write, net: network, ..Rights::default() };
        AgentSpawn::new(task.to_owned(), asked, rights, Grant::default())
    }

    #[test]
    fn a_digest_is_one_of_the_task_and_of_every_right() {
        let digests = [
            spawn("a", &["/p"], Network::Off),
            spawn("b", &["/p"], Network::Off),
            spawn("a", &["/q"], Network::Off),
            spawn("a", &["/p", "/q"], Network::Off),
            spawn("a", &["/p"], Network::On),
        ]
        .map(|spawn| spawn.unwrap().digest);
        for (n, one) in digests.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(!digests[..n].contains(one), "{n}");
        }
        let same = spawn("a", &["/p/below", "/p"], Network::Off).unwrap();
        assert_eq!(same.digest, digests[0], "equal rights, equal digests");
    }

    #[test]
    fn a_task_that_nobody_would_read_to_its_end_is_not_asked_about() {
        assert!(spawn(&"x".repeat(MAX_TASK), &[], Network::Off).is_ok());
        let error = spawn(&"x".repeat(MAX_TASK + 1), &[], Network::Off).unwrap_err();
        assert_eq!(error.to_string(), "the task has 16385 bytes, and at most 16384 can be shown");
    }
}
