//! Whether a user's change of rights is one, and may be.

use ipc::path::WirePath;
use ipc::rights::{Network, Rights, RightsChange};

use super::standing::is_kernel_tree;
use super::{Activity, ApprovalMode, Standing};

/// Why rights stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged {
    /// They are so already.
    #[error("nothing changed: {0}")]
    Same(String),
    /// They may not be so.
    #[error("the rights were not changed: {0}")]
    Refused(String),
}

impl Unchanged {
    /// The stable code of the notice.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Same(_) => "rights_unchanged",
            Self::Refused(_) => "rights_refused",
        }
    }
}

impl Standing {
    /// The rights after a change, with the host's own paths, as `self` has them.
    pub fn change(&self, change: &RightsChange, activity: Activity) -> Result<Rights, Unchanged> {
        if let Some(why) = self.refusal(change, activity) {
            return Err(Unchanged::Refused(why));
        }
        let mut changed = self.rights.with_change(change);
        if let RightsChange::RemoveWrite { path } = change {
            // A root that held others took their place when it was added.
            let project = (self.mode == ApprovalMode::Auto && *path != self.project).then_some(&self.project);
            let caches = self.caches.as_ref().filter(|caches| *caches != path);
            changed.write.extend(self.temp.iter().chain(project).chain(caches).cloned());
            changed = changed.normalised();
        }
        let same_as_before = changed == self.rights.clone().normalised();
        if same_as_before { Err(Unchanged::Same(same(change))) } else { Ok(changed) }
    }

    fn refusal(&self, change: &RightsChange, activity: Activity) -> Option<String> {
        match (change, activity) {
            (RightsChange::Network { net: Network::On, .. }, Activity::Plan) => {
                Some("the network stays off while a plan is made".to_owned())
            }
            (RightsChange::AddWrite { .. }, Activity::Plan) => {
                Some("nothing is writable while a plan is made".to_owned())
            }
            (RightsChange::AddWrite { path }, Activity::Execute) => self.closed(path),
            (RightsChange::RemoveWrite { path }, _) if Some(path) == self.temp.as_ref() => {
                Some("the private temp directory is always writable".to_owned())
            }
            _ => None,
        }
    }

    fn closed(&self, path: &WirePath) -> Option<String> {
        let within = |roots: &[WirePath]| roots.iter().any(|root| path.is_within(root));
        let holds = |tree: &str| WirePath::from(tree).is_within(path);
        if within(&self.rights.hidden) {
            Some(format!("{path} is hidden"))
        } else if within(&self.rights.protected) {
            Some(format!("{path} is protected: the host runs it later"))
        } else if ["/proc", "/sys", "/dev"].into_iter().any(holds)
            || is_kernel_tree(path) && !path.is_within(&"/dev".into())
        {
            Some(format!("{path} is the kernel's own, or holds what is"))
        } else {
            None
        }
    }
}

fn same(change: &RightsChange) -> String {
    match change {
        RightsChange::Network { net: Network::Off, .. } => "the network is off".to_owned(),
        RightsChange::Network { net: Network::On, .. } => "the network is on, and leads as far".to_owned(),
        RightsChange::AddWrite { path } => format!("{path} may be written already"),
        RightsChange::RemoveWrite { path } => format!("{path} is no write root"),
    }
}
