//! A plan that takes an approval: its bytes, and exactly the rights that its execution has.

use ipc::codec::{self, CodecError};
use ipc::path::WirePath;
use protocol::plan::{PlaceToCreate, Plan};
use sha2::{Digest, Sha256};

use super::effect::hexadecimal;
use crate::judgement::ChildRights;
use crate::plan;

/// A plan in its file, and exactly the rights that its execution would have.
#[derive(Clone, Debug)]
pub struct PlanProposal {
    pub path: WirePath,
    pub markdown: String,
    pub plan: Plan,
    /// SHA-256 of the bytes, in hexadecimal.
    pub plan_digest: String,
    pub child: ChildRights,
    /// The write root of them that is the project's caches.
    pub caches: Option<WirePath>,
    /// The places that the plan asks for and that are to be created.
    pub to_create: Vec<PlaceToCreate>,
    /// The steps that are finished.
    pub finished: Vec<u32>,
    /// True if the plan asks for a network that the session does not have.
    pub network_refused: bool,
    /// True if each acceptance command is asked for once more.
    pub confirms_commands: bool,
    /// SHA-256 of the bytes and all rights, in hexadecimal.
    pub digest: String,
}

impl PlanProposal {
    /// Binds a plan to its rights; fails where they have no encoding that an answer could be bound to.
    pub fn new(
        path: WirePath,
        (markdown, read): (String, Plan),
        child: ChildRights,
        finished: Vec<u32>,
    ) -> Result<Self, CodecError> {
        let digest = hexadecimal(&Sha256::digest(codec::encode(&(&markdown, &child.rights))?));
        let plan_digest = plan::digest(&markdown);
        let (network_refused, confirms_commands) = (false, false);
        Ok(Self {
            path,
            markdown,
            plan: read,
            plan_digest,
            child,
            caches: None,
            to_create: Vec::new(),
            finished,
            network_refused,
            confirms_commands,
            digest,
        })
    }
}
