use std::sync::Arc;

use ipc::confinement::{Tier, rights_in_tier};
use ipc::path::WirePath;
use ipc::rights::{Grant, NamedPlaces, Reach, Rights, RightsSummary};
use protocol::approval::ApprovalMode;

use super::Machine;
use crate::modes::{Modes, Position, permits};
use crate::protected::{GIT, is_acted_on};

/// Usual path of a git configuration in a repository.
const GIT_CONFIG: &str = ".git/config";

/// Access that an agent has without any approval, and the directories that this access refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRights {
    pub(super) rights: Rights,
    pub(super) project: WirePath,
    pub(super) temp: Option<WirePath>,
    /// Private directory for caches; `None` if it does not outlive the session.
    pub(super) caches: Option<WirePath>,
    /// Parent of the cache directories, one for each level of access. A worker writes only the directory of its own
    /// level, and no approval makes another directory writable.
    pub(super) levels: Option<WirePath>,
    /// Home of the user. No hint suggests to make it writable.
    pub(super) home: Option<WirePath>,
    pub(super) mode: ApprovalMode,
    pub(super) tier: Tier,
    /// Read-only paths in a writable `/tmp` of the sandbox: the project and its caches, if these are below `/tmp`.
    pub(super) read_only: Vec<WirePath>,
    /// True if mode `ask` asks for every command that does not declare to read only.
    pub(super) confirm_shell: bool,
    /// Local addresses that the session allowed at its start. They are kept here while the network is off.
    pub(super) reach: Reach,
    /// Writable directories of each mode; `None` if the mode cannot change.
    pub(super) modes: Option<Modes>,
    pub(super) machine: Arc<Machine>,
    /// True if no flag can extend the access, as for sub-agents and planners.
    pub(super) is_fixed: bool,
}

impl StandingRights {
    /// Creates the access of the floor tier, in which paths are those of the host.
    pub fn new(rights: Rights, project: WirePath, temp: Option<WirePath>, mode: ApprovalMode) -> Self {
        Self {
            reach: rights.reach,
            rights,
            project,
            temp,
            caches: None,
            levels: None,
            home: None,
            mode,
            tier: Tier::Floor,
            read_only: Vec::new(),
            confirm_shell: false,
            modes: None,
            machine: Arc::default(),
            is_fixed: false,
        }
    }

    #[must_use]
    pub fn with_rights(self, rights: Rights) -> Self {
        Self { rights, ..self }
    }

    #[must_use]
    pub fn with_mode(self, mode: ApprovalMode) -> Self {
        Self { mode, ..self }
    }

    #[must_use]
    pub fn with_modes(self, modes: Option<Modes>) -> Self {
        Self { modes, ..self }
    }

    #[must_use]
    pub fn with_reach(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    #[must_use]
    pub fn with_caches(self, caches: Option<WirePath>) -> Self {
        Self { caches, ..self }
    }

    #[must_use]
    pub fn with_confirm_shell(self, confirm_shell: bool) -> Self {
        Self { confirm_shell, ..self }
    }

    #[must_use]
    pub fn in_directories(self, project: WirePath, temp: Option<WirePath>) -> Self {
        Self { project, temp, ..self }
    }

    /// Adds what hints depend on: the machine, the user's home, and the parent of all cache directories.
    #[must_use]
    pub fn on_machine(self, machine: Machine, home: Option<WirePath>, levels: Option<WirePath>) -> Self {
        Self { machine: machine.into(), home, levels, ..self }
    }

    /// Returns access that no flag extends, in a mode that cannot change.
    #[must_use]
    pub fn fixed(self) -> Self {
        Self { is_fixed: true, modes: None, ..self }
    }

    /// Returns the access of a sub-agent in the same project. Nobody is asked for it, so that calls beyond `rights` are
    /// denied.
    #[must_use]
    pub fn of_sub_agent(&self, rights: Rights, temp: WirePath) -> Self {
        let child = Self::new(rights, self.project.clone(), Some(temp), ApprovalMode::Deny).fixed();
        Self { caches: self.caches.clone(), machine: Arc::clone(&self.machine), ..child }
    }

    pub const fn rights(&self) -> &Rights {
        &self.rights
    }

    pub const fn project(&self) -> &WirePath {
        &self.project
    }

    pub const fn temp(&self) -> Option<&WirePath> {
        self.temp.as_ref()
    }

    pub const fn caches(&self) -> Option<&WirePath> {
        self.caches.as_ref()
    }

    pub const fn mode(&self) -> ApprovalMode {
        self.mode
    }

    pub const fn tier(&self) -> Tier {
        self.tier
    }

    pub fn read_only(&self) -> &[WirePath] {
        &self.read_only
    }

    pub const fn reach(&self) -> Reach {
        self.reach
    }

    pub const fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    pub(crate) const fn confirms_commands(&self) -> bool {
        self.confirm_shell
    }

    pub fn set_rights(&mut self, rights: Rights) {
        self.rights = rights;
    }

    pub const fn set_mode(&mut self, mode: ApprovalMode) {
        self.mode = mode;
    }

    /// Removes a directory from those that are writable in every mode.
    pub fn forget_root(&mut self, path: &WirePath) {
        if let Some(modes) = &mut self.modes {
            modes.always.retain(|root| root != path);
        }
    }

    #[must_use]
    pub fn with_grant(&self, grant: &Grant) -> Self {
        let mut rights = self.rights.with_grant(grant);
        // A protected path becomes writable only if the grant names it.
        rights.protected.retain(|place| !grant.write.contains(place));
        Self { rights, ..self.clone() }
    }

    /// Returns this access, which has host paths, with the paths that a worker of this tier sees.
    #[must_use]
    pub fn seen_in(&self, tier: Tier) -> Self {
        let (rights, temp) = rights_in_tier(&self.rights, &self.project, self.temp.as_ref(), tier);
        let closed = |place: &&WirePath| rights.allows_write(place) && !self.rights.allows_write(place);
        let read_only = [Some(&self.project), self.caches.as_ref()].into_iter().flatten();
        let read_only = read_only.filter(closed).cloned().collect();
        Self { rights, temp, tier, read_only, ..self.clone() }
    }

    pub fn summary(&self) -> RightsSummary {
        let Self { project, temp, caches, .. } = self;
        self.rights.summary(NamedPlaces { project, temp: temp.as_ref(), caches: caches.as_ref() })
    }

    pub fn line(&self) -> String {
        self.summary().to_string()
    }

    pub fn allows_read(&self, path: &WirePath) -> bool {
        self.rights.allows_read(path) || self.is_in_temp(path)
    }

    pub fn allows_write(&self, path: &WirePath) -> bool {
        (self.rights.allows_write(path) || self.is_in_temp(path)) && !self.is_read_only(path)
    }

    /// True if `path` may be changed without a request. Files that the host runs later are not part of a writable
    /// project: such a path has to be writable by its own name.
    pub fn writes_unasked(&self, path: &WirePath) -> bool {
        let is_kept = |place: &WirePath| self.is_kept_in_every_mode(place);
        self.allows_write(path) && (!is_kept(path) || self.write_root(path).is_some_and(is_kept))
    }

    /// True if the agent may write a directory besides its private temp directory and caches. Then a command that
    /// declares to write runs without an approval.
    pub fn holds_a_write_root(&self) -> bool {
        let is_private = |root: &WirePath| self.is_in_temp(root) || self.is_in_caches(root);
        self.rights.write.iter().any(|root| !is_private(root))
    }

    pub fn write_root(&self, path: &WirePath) -> Option<&WirePath> {
        // In sorted order, a directory comes after those above it.
        self.rights.write.iter().rfind(|root| path.is_within(root))
    }

    /// Returns the hidden path that is `path` or above it. `None` for a path in the private temp directory, although
    /// that directory is below a hidden path.
    pub fn hidden_root(&self, path: &WirePath) -> Option<&WirePath> {
        self.rights.hidden.iter().find(|root| path.is_within(root) && !self.is_in_temp(path))
    }

    /// True for a path in the private temp directory. In the full tier, that directory is `/tmp`, except for writable
    /// directories of the host below `/tmp`.
    pub(super) fn is_in_temp(&self, path: &WirePath) -> bool {
        let Some(temp) = &self.temp else { return false };
        let is_the_hosts = |root: &WirePath| root != temp && root.is_within(temp) && path.is_within(root);
        let mut roots = self.rights.write.iter().chain([&self.project]);
        path.is_within(temp) && !roots.any(is_the_hosts)
    }

    pub(super) fn is_in_caches(&self, path: &WirePath) -> bool {
        self.caches.as_ref().is_some_and(|caches| path.is_within(caches))
    }

    /// True for a path in the caches of another level of access. Agents of that level execute files from there.
    pub(super) fn is_in_levels(&self, path: &WirePath) -> bool {
        let is_own = self.rights.write.contains(path);
        self.levels.as_ref().is_some_and(|levels| path.is_within(levels)) && !is_own
    }

    /// True if `path` is in a read-only part of a writable directory, and not in a deeper writable one.
    fn is_read_only(&self, path: &WirePath) -> bool {
        let root = self.write_root(path);
        let closes =
            |place: &WirePath| path.is_within(place) && !root.is_some_and(|root| root.is_within(place));
        self.read_only.iter().any(closes)
    }

    /// True if a mount without permissions covers `path`: a hidden path in the full tier.
    pub(super) fn is_masked(&self, path: &WirePath) -> bool {
        self.tier == Tier::Full && self.hidden_root(path).is_some()
    }

    /// True if the full tier mounts `path` onto itself: a protected path, or a directory above one.
    pub(super) fn holds(&self, path: &WirePath) -> bool {
        let inside = self.rights.write.iter().any(|root| path.is_within(root) && path != root);
        let leads_to = |protected: &WirePath| protected.is_within(path);
        self.tier == Tier::Full && inside && self.rights.protected.iter().any(leads_to)
    }

    pub(super) fn is_git_config(&self, path: &WirePath) -> bool {
        is_git_config(path) && (path.is_within(&self.project) || self.rights.protected.contains(path))
    }

    pub(super) fn is_closed_by_mode(&self, path: &WirePath) -> bool {
        let is_users = !self.is_fixed && self.hidden_root(path).is_none();
        let is_writable = permits(Position::FIRST, self.mode).writes_project();
        is_users && path.is_within(&self.project) && !is_writable
    }

    /// True if mode `auto` protects this path of the project. Other modes list no protected paths, so that the name of
    /// the path decides.
    pub(super) fn is_kept_in_every_mode(&self, path: &WirePath) -> bool {
        const IN_GIT: [&str; 5] = ["config", "config.worktree", "hooks", "modules", "worktrees"];
        let Ok(inside) = path.as_path().strip_prefix(&self.project) else { return false };
        let mut names = inside.iter().skip_while(|name| *name != GIT);
        match names.next() {
            Some(_) => names.next().is_some_and(|name| IN_GIT.iter().any(|kept| name == *kept)),
            None => is_acted_on(inside),
        }
    }
}

/// True for the configuration file of a git repository or of one of its submodules.
pub(super) fn is_git_config(path: &WirePath) -> bool {
    let path = path.as_path();
    let of_a_module = || {
        let mut names = path.iter().skip_while(|name| *name != ".git").skip(1);
        names.next().is_some_and(|name| name == "modules") && path.ends_with("config")
    };
    path.ends_with(GIT_CONFIG) || of_a_module()
}

/// True for a path in a kernel file system, where denials rarely depend on an agent's access.
pub(super) fn is_kernel_tree(path: &WirePath) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|tree| path.is_within(&WirePath::from(*tree)))
}
