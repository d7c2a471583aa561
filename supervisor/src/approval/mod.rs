//! Approvals, as far as they are pure: what is asked, by exact effect; what an answer may cover; and what was approved for
//! the session.

mod agent;
mod diff;
mod effect;
mod judge;
mod plan;
mod request;
mod scope;
mod session;
mod settings;
mod subject;

pub(crate) use agent::AgentSpawn;
pub(crate) use effect::effect_digest;
pub use effect::{Proposal, ProposalError};
pub(crate) use judge::{JudgedAnswer, Ruling};
pub(crate) use plan::PlanProposal;
pub(crate) use request::{Question, grant_root};
pub(crate) use scope::Scope;
pub(crate) use session::{SessionApprovals, SessionGrants};
pub use settings::ApprovalSettings;
pub(crate) use subject::{Subject, SubjectChange};
