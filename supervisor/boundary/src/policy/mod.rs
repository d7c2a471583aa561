mod builds;
mod caches;
mod defaults;
mod environment;
mod followed;
mod git;
mod hidden;
pub mod levels;
mod links;
mod owner;
mod project;
mod socket;
mod system;
mod variable;
mod write_root;

use ipc::path::WirePath;
use ipc::rights::{Execution, Limits, Network, Reach, Rights};

use gate::modes::{ApprovalMode, Modes};

pub use builds::{BuildRoots, Builds};
pub use caches::{Fetched, make_caches, make_sessions};
pub use defaults::{Commands, Defaults};
pub use environment::{Environments, ssh_agent};
pub use followed::{FollowError, HiddenInodes};
pub use git::ExternalGitDirs;
pub use hidden::{HiddenPaths, Host};
pub use links::{ResolvedLink, leads_to, perhaps_there};
pub use owner::{Owner, closed_to, foreign_owner};
pub use project::{ProjectError, check_reachable, open_project};
pub use socket::{allowed_socket, configured_socket};
pub use system::SYSTEM;
pub use variable::split_variable;
pub use write_root::{
    NoWriteRoot, configured_write_root, place_to_grant, place_to_offer, users_home, warning_of_home,
    write_root,
};

#[derive(Clone, Debug)]
pub struct Policy {
    pub project: WirePath,
    pub temp: WirePath,
    pub mode: ApprovalMode,
    pub net: Network,
    /// Addresses of this machine and its local networks that agents may reach while the network is on.
    pub reach: Reach,
    pub write: Vec<WirePath>,
    /// Canonical paths of Unix sockets of other programs to which agents may connect.
    pub sockets: Vec<WirePath>,
    /// Directories other than the project that are writable in mode `auto`: git directories and caches.
    pub auto: Vec<WirePath>,
    /// Hidden paths, including the default ones.
    pub hidden: Vec<WirePath>,
    /// Existing files in writable directories that stay read-only, because they are executed outside of the sandbox.
    pub protected: Vec<WirePath>,
    pub limits: Limits,
}

impl Policy {
    /// Returns the access that the root agent's worker has without any approval.
    pub fn standing(&self) -> Rights {
        self.standing_in(self.mode)
    }

    /// Returns the access that the root agent's worker would have in the approval mode `mode` without any approval.
    pub fn standing_in(&self, mode: ApprovalMode) -> Rights {
        let mut write = vec![self.temp.clone()];
        write.extend(self.modes().roots(mode).cloned());
        let sockets = self.sockets.clone();
        Rights { write, net: self.net.clone(), reach: self.reach, sockets, ..self.base() }.normalised()
    }

    pub fn modes(&self) -> Modes {
        let auto = self.auto.iter().chain([&self.project]).cloned().collect();
        Modes { auto, always: self.write.clone() }
    }

    /// Returns the access of a worker that looks for changed files: it reads, and writes only a temp directory.
    pub fn observer(&self, temp: WirePath) -> Rights {
        Rights { write: vec![temp], ..self.base() }.normalised()
    }

    fn base(&self) -> Rights {
        Rights {
            read: vec!["/".into()],
            hidden: self.hidden.clone(),
            write: Vec::new(),
            protected: self.protected.clone(),
            net: Network::Off,
            reach: Reach::default(),
            sockets: Vec::new(),
            exec: Execution::Allowed,
            limits: self.limits,
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::rights::NamedPlaces;

    use super::*;

    fn policy(mode: ApprovalMode) -> Policy {
        Policy {
            project: "/p".into(),
            temp: "/tmp/bw-1".into(),
            mode,
            net: Network::On,
            reach: Reach::default(),
            write: vec!["/data".into()],
            sockets: Vec::new(),
            auto: vec!["/caches".into()],
            hidden: vec!["/h/.ssh".into()],
            protected: vec!["/p/.git/config".into()],
            limits: Limits::default(),
        }
    }

    fn line(rights: &Rights) -> String {
        let places = NamedPlaces { project: &"/p".into(), temp: Some(&"/tmp/bw-1".into()), caches: None };
        rights.summary(places).to_string()
    }

    #[test]
    fn the_table_of_activities_and_modes() {
        assert_eq!(
            line(&policy(ApprovalMode::Auto).standing()),
            "writes in the project, $TMPDIR, /caches, /data · network on · secrets hidden"
        );
        assert_eq!(
            line(&policy(ApprovalMode::Deny).standing()),
            "writes in $TMPDIR, /data · network on · secrets hidden"
        );
        assert_eq!(
            line(&policy(ApprovalMode::Auto).observer("/tmp/bw-1".into())),
            "read-only but for $TMPDIR · network off · secrets hidden"
        );
    }

    #[test]
    fn reach_is_told_with_the_network_and_means_nothing_without_it() {
        let reach = Reach { host: true, lan: true, link_local: true, metadata: true };
        let far = Policy { reach, ..policy(ApprovalMode::Deny) };
        assert_eq!(
            line(&far.standing()),
            "writes in $TMPDIR, /data · network on +host +lan +link-local +metadata · secrets hidden"
        );
        let off = Policy { net: Network::Off, ..far };
        assert_eq!(off.standing().reach, Reach::default());
    }

    #[test]
    fn an_observer_is_covered_by_every_standing_right() {
        for mode in [ApprovalMode::Auto, ApprovalMode::Deny] {
            let policy = policy(mode);
            assert!(policy.standing().covers(&policy.observer("/tmp/bw-1".into())));
        }
    }
}
