//! A plan that needs an approval: the text of its file, and the exact access of its execution.

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
    /// The listed servers: the execution may call their tools, independent of its access.
    pub servers: Vec<PlannedServer>,
    /// The writable directory for the project's caches.
    pub caches: Option<WirePath>,
    /// Missing paths that the plan needs and that will be created.
    pub to_create: Vec<PlaceToCreate>,
    /// Numbers of the steps that are finished already.
    pub finished: Vec<u32>,
    /// True if the plan needs a network that the session does not allow.
    pub network_refused: bool,
    /// True if each acceptance command needs a further approval.
    pub confirms_commands: bool,
    /// SHA-256 of the file's bytes, all access and the tools of the servers, in hexadecimal. An approval repeats it.
    pub digest: String,
}

impl PlanProposal {
    /// Combines a plan with its access. Fails if the access cannot be encoded for the digest.
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
