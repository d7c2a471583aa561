//! Plans that need an approval: the text of the plan file, and the exact access of the execution.

use ipc::codec::{self, CodecError};
use ipc::path::WirePath;
use ipc::text::hexadecimal;
use protocol::plan::{PlaceToCreate, Plan};
use sha2::{Digest, Sha256};

use crate::judgement::ChildRights;
use crate::tools::PlannedServer;

/// A plan from a file, and the exact access that its execution would have.
#[derive(Clone, Debug)]
pub struct PlanProposal {
    pub path: WirePath,
    pub markdown: String,
    pub plan: Plan,
    /// SHA-256 of the file's bytes, in hexadecimal.
    pub plan_digest: String,
    pub child: ChildRights,
    /// MCP servers that the plan lists. The execution may call their tools, even if a server has more access than it.
    pub servers: Vec<PlannedServer>,
    /// The project's directory for caches; `None` if the execution may not write it.
    pub caches: Option<WirePath>,
    /// Missing paths that the plan needs. They are created before the execution.
    pub to_create: Vec<PlaceToCreate>,
    /// Numbers of the steps that are finished already.
    pub finished: Vec<u32>,
    /// True if the plan needs a network that the session does not allow.
    pub network_refused: bool,
    /// True if each acceptance command needs a further approval.
    pub confirms_commands: bool,
    /// SHA-256 of the file, all access and the servers' tools, in hexadecimal. The answer to the request repeats it.
    pub digest: String,
}

impl PlanProposal {
    /// Combines a plan with the access of its execution. Fails if the access cannot be encoded for the digest.
    pub fn new(
        path: WirePath,
        markdown: String,
        plan: Plan,
        child: ChildRights,
        servers: Vec<PlannedServer>,
        finished: Vec<u32>,
    ) -> Result<Self, CodecError> {
        let listed: Vec<_> = servers.iter().map(PlannedServer::digested).collect();
        let digest = hexadecimal(&Sha256::digest(codec::encode(&(&markdown, &child.rights, listed))?));
        let plan_digest = crate::plan::digest(&markdown);
        let (network_refused, confirms_commands) = (false, false);
        Ok(Self {
            path,
            markdown,
            plan,
            plan_digest,
            child,
            servers,
            caches: None,
            to_create: Vec::new(),
            finished,
            network_refused,
            confirms_commands,
            digest,
        })
    }
}
