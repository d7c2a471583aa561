//! Start of a sub-agent that gets access beyond its parent's. Such a start needs an approval.

use ipc::codec::{self, CodecError};
use ipc::rights::Rights;
use ipc::text::hexadecimal;
use sha2::{Digest, Sha256};

use crate::judgement::ChildRights;
use crate::tools::SpawnAgent;

#[derive(Clone, Debug)]
pub struct AgentSpawn {
    pub spawn: SpawnAgent,
    pub child: ChildRights,
    /// SHA-256 of the task, the role, the servers and all access, in hexadecimal. The answer to the request repeats it.
    pub digest: String,
}

impl AgentSpawn {
    /// Combines the call that starts the sub-agent with the sub-agent's access. Fails if the access cannot be encoded.
    pub fn new(spawn: SpawnAgent, child: ChildRights) -> Result<Self, CodecError> {
        let digest = digest(&spawn, &child.rights)?;
        Ok(Self { spawn, child, digest })
    }
}

/// Returns the SHA-256 in hexadecimal. Lengths of texts are hashed too, so that different tasks give different bytes.
fn digest(spawn: &SpawnAgent, rights: &Rights) -> Result<String, CodecError> {
    let SpawnAgent { task, role, servers, .. } = spawn;
    Ok(hexadecimal(&Sha256::digest(codec::encode(&((task, role, servers), rights))?)))
}

#[cfg(test)]
mod tests {
    use ipc::path::WirePath;
    use ipc::rights::Network;
    use protocol::approval::{NamedServer, ServerAccess};

    use super::*;

    fn of(task: &str, write: &[&str], net: Network) -> String {
        let write = write.iter().map(|path| WirePath::from(*path)).collect();
        digest(&spawn(task, &[]), &Rights { write, net, ..Rights::default() }.normalised()).unwrap()
    }

    fn spawn(task: &str, variables: &[&str]) -> SpawnAgent {
        let variables: Vec<_> = variables.iter().map(|name| (*name).to_owned()).collect();
        let access = ServerAccess { variables, ..ServerAccess::default() };
        let server = NamedServer { name: "docs".to_owned(), tools: Vec::new(), access };
        SpawnAgent {
            task: task.to_owned(),
            writes: false,
            write: Vec::new(),
            network: false,
            role: None,
            servers: vec![server],
            model: None,
            max_steps: None,
        }
    }

    #[test]
    fn a_digest_is_one_of_the_task_and_of_every_right() {
        let digests = [
            of("a", &["/p"], Network::Off),
            of("b", &["/p"], Network::Off),
            of("a", &["/q"], Network::Off),
            of("a", &["/p", "/q"], Network::Off),
            of("a", &["/p"], Network::On),
            digest(&spawn("a", &["TOKEN"]), &Rights::default()).unwrap(),
        ];
        for (n, one) in digests.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(!digests[..n].contains(one), "{n}");
        }
        assert_eq!(of("a", &["/p/below", "/p"], Network::Off), digests[0], "equal rights, equal digests");
    }
}
