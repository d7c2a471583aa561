//! Approvals without input or output: requests for exact actions, checks of answers, and approvals that last for the session.

mod agent;
mod diff;
mod effect;
mod form;
mod host;
mod in_project;
mod judge;
mod part;
mod plan;
mod request;
mod scope;
mod secret;
mod session;
mod settings;
mod subject;
mod turn;

pub use agent::AgentSpawn;
pub use effect::effect_digest;
pub use effect::{Proposal, ProposalError};
pub use form::{FormRuling, FormSubject};
pub use host::{HostRuling, HostSubject};
pub use judge::{JudgedAnswer, Ruling};
pub use part::{CallPart, SubjectPart};
pub use plan::PlanProposal;
pub use request::{Question, grant_root};
pub use scope::{KeptSetting, Scope};
pub use secret::secret_in;
pub use session::{SessionApprovals, SessionGrants};
pub use settings::ApprovalSettings;
pub use subject::{Subject, SubjectChange};
pub use turn::{allowed_in_turn, turn_access};
