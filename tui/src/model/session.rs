use ipc::confinement::Tier;
use ipc::rights::{Network, RightsSummary};
use protocol::approval::{ApprovalMode, SessionGrant};
use protocol::event::{Activity, Recorded};

use super::TurnAccess;
use crate::start::Start;

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub activity: Activity,
    pub mode: ApprovalMode,
    pub net: Network,
    pub rights: RightsSummary,
    pub tier: Option<Tier>,
    pub model: String,
    /// Size of the language model's context window in tokens; `None` if unknown.
    pub window: Option<u64>,
    pub context: Option<u64>,
    pub pending: Option<Pending>,
    pub grants: Vec<SessionGrant>,
    pub until: Option<TurnAccess>,
    /// True if the person has allowed all requests of the running turn.
    pub turn_allowed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Net(Network),
    /// Change of the approval mode, which also changes some access.
    Mode(ApprovalMode),
}

impl Session {
    pub(crate) fn new(start: &Start) -> Self {
        Self {
            activity: start.activity,
            mode: start.mode,
            net: start.net.clone(),
            rights: start.rights.clone(),
            tier: start.tier,
            model: start.model.clone(),
            window: start.window,
            context: None,
            pending: None,
            grants: Vec::new(),
            until: None,
            turn_allowed: false,
        }
    }

    /// Returns the used percentage of the context window; `None` if the usage or the size of the window is unknown.
    pub(crate) fn filled(&self) -> Option<u64> {
        let (tokens, window) = (self.context?, self.window.filter(|window| *window > 0)?);
        Some((u128::from(tokens) * 100).div_ceil(window.into())).and_then(|share| share.try_into().ok())
    }

    pub(crate) fn set_rights(&mut self, rights: &Recorded<RightsSummary>) {
        let Some(rights) = rights.value() else { return };
        self.net = rights.net.clone();
        self.rights.clone_from(rights);
    }
}
