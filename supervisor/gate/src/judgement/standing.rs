use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ipc::confinement::{Tier, rights_in_tier};
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;
use ipc::refusal::{Refusal, Target};
use ipc::rights::{Grant, NamedPlaces, Reach, Rights, RightsSummary};
use ipc::tool::{CommandExit, CommandResult};
use libc::{EACCES, EBUSY, EPERM};
use protocol::approval::ApprovalMode;

use super::Machine;
use super::unreached::unreached;
use crate::modes::{Modes, Position, permits};
use crate::protected::{GIT, is_acted_on};
use protocol::shell_word::shell_word;

/// The usual path of a repository's git configuration.
const GIT_CONFIG: &str = ".git/config";

/// Shared memory, which is below `/dev` but not a device.
const MEMORY: &str = "/dev/shm";

/// An agent's access without any approval, and the directories that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRights {
    pub rights: Rights,
    pub project: WirePath,
    pub temp: Option<WirePath>,
    /// The private caches, if they outlive the session.
    pub caches: Option<WirePath>,
    /// The parent of the directories of all levels of access. Each worker writes only its own, and no approval opens
    /// another one.
    pub levels: Option<WirePath>,
    /// The user's home, which no hint suggests to make writable.
    pub home: Option<WirePath>,
    pub mode: ApprovalMode,
    pub tier: Tier,
    /// Paths in a writable directory that are read-only all the same: the project and its caches, if they are in `/tmp`
    /// and the sandbox has its own `/tmp`.
    pub read_only: Vec<WirePath>,
    /// True if mode `ask` asks for every command that does not declare to read only.
    pub confirm_shell: bool,
    /// Addresses that the session's start allowed, kept while the network is off.
    pub reach: Reach,
    /// Writable directories of each mode; `None` if the mode is fixed.
    pub modes: Option<Modes>,
    pub machine: Arc<Machine>,
    /// True if no flag can extend the access: that of sub-agents and planners.
    pub is_fixed: bool,
}

impl StandingRights {
    /// Host paths are also those of the floor tier.
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
    pub fn with_grant(&self, grant: &Grant) -> Self {
        let mut rights = self.rights.with_grant(grant);
        // A protected path becomes writable only if the grant names it.
        rights.protected.retain(|place| !grant.write.contains(place));
        Self { rights, ..self.clone() }
    }

    /// Translates host paths to those that a worker of this tier sees.
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

    pub fn allows_write(&self, path: &WirePath) -> bool {
        (self.rights.allows_write(path) || self.is_in_temp(path)) && !self.is_read_only(path)
    }

    /// True if `path` may be changed without a request. A writable project does not include what the host runs later,
    /// unless it was made writable by its own name.
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

    pub fn allows_read(&self, path: &WirePath) -> bool {
        self.rights.allows_read(path) || self.is_in_temp(path)
    }

    /// The hidden path that is `path` or above it. The private temp directory is below a hidden path, but not hidden.
    pub fn hidden_root(&self, path: &WirePath) -> Option<&WirePath> {
        self.rights.hidden.iter().find(|root| path.is_within(root) && !self.is_in_temp(path))
    }

    /// True for a path in the directory of a level of access other than the agent's own. Files there are executed with
    /// the access of that level.
    pub(super) fn is_in_levels(&self, path: &WirePath) -> bool {
        let is_own = self.rights.write.contains(path);
        self.levels.as_ref().is_some_and(|levels| path.is_within(levels)) && !is_own
    }

    pub(super) fn offered(&self, flag: &str) -> Option<String> {
        (!self.is_fixed).then(|| flag.to_owned())
    }

    /// True for a path in the private temp directory. In the full tier that is `/tmp`, without writable directories
    /// below it.
    pub(super) fn is_in_temp(&self, path: &WirePath) -> bool {
        let Some(temp) = &self.temp else { return false };
        let is_the_hosts = |root: &WirePath| root != temp && root.is_within(temp) && path.is_within(root);
        let mut roots = self.rights.write.iter().chain([&self.project]);
        path.is_within(temp) && !roots.any(is_the_hosts)
    }

    pub fn write_root(&self, path: &WirePath) -> Option<&WirePath> {
        // In sorted order, a directory comes after those above it.
        self.rights.write.iter().rfind(|root| path.is_within(root))
    }

    /// True if `path` is in a read-only part of a writable directory, and not in a deeper writable one.
    fn is_read_only(&self, path: &WirePath) -> bool {
        let root = self.write_root(path);
        let closes =
            |place: &WirePath| path.is_within(place) && !root.is_some_and(|root| root.is_within(place));
        self.read_only.iter().any(closes)
    }

    /// A hint if a write to a protected git configuration was denied. Git continues then, and often exits with 0.
    pub fn refused_git_config(&self, result: &CommandResult) -> Option<String> {
        let is_refusal = |line: &str| {
            let line = line.to_ascii_lowercase();
            line.contains("config")
                && ["could not write", "could not lock", "could not set", "unable to write"]
                    .iter()
                    .any(|words| line.contains(words))
                && ["read-only file system", "device or resource busy", "permission denied"]
                    .iter()
                    .any(|words| line.contains(words))
        };
        let text = [&result.head, &result.tail];
        let refused = text.into_iter().flat_map(|text| text.lines()).find(|line| is_refusal(line))?;
        let configs = || self.rights.protected.iter().filter(|path| is_git_config(path));
        let named = configs().find(|config| refused.contains(&config.to_string()));
        let grant = self.git_config_grant(named.or_else(|| configs().next())?);
        Some(format!(
            "(Git could not write its configuration: writing it has to be allowed separately, {grant}. Whatever git printed, the configuration is unchanged.)"
        ))
    }

    /// A hint if a connection to localhost was refused in a sandbox with its own loopback. A server on the host then
    /// seems not to run.
    pub fn refused_connection(&self, result: &CommandResult) -> Option<&'static str> {
        let is_refusal = |line: &str| {
            let lower = line.to_ascii_lowercase();
            [
                "connection refused",
                "econnrefused",
                "couldn't connect to server",
                "could not connect to server",
            ]
            .iter()
            .any(|words| lower.contains(words))
                && unreached(line).is_none()
        };
        let refused = result.exit != CommandExit::Code(0)
            && [&result.head, &result.tail].iter().flat_map(|text| text.lines()).any(is_refusal);
        let own = self.tier != Tier::FloorUnmediated && self.rights.net.is_off();
        // A program that uses a unix socket may name a host.
        let is_socket = |refusal: &Refusal| matches!(refusal.object, Target::Socket(_) | Target::Abstract(_));
        (own && refused && !result.refused.iter().any(is_socket)).then_some(
            "(With the network off, 127.0.0.1 and ::1 are the sandbox's own: only servers that were started within the same \
             command can be reached there, and none of the machine's. The user can open those with --net on --reach host.)",
        )
    }

    /// The flag that makes a git configuration writable. That of a linked worktree is outside of the project.
    fn git_config_grant(&self, config: &WirePath) -> String {
        match config.as_path().strip_prefix(&self.project) {
            Ok(inside) => format!("--write {}", shell_word(inside)),
            Err(_) => format!("--write {}", shell_word(config.as_path())),
        }
    }

    /// The flag that makes a setting of another program writable. `None` for git's hooks and Bailiwick's own settings.
    fn setting_grant(&self, path: &WirePath) -> Option<String> {
        let place = self.rights.protected.iter().find(|place| path.is_within(place));
        let inside = place.unwrap_or(path).as_path().strip_prefix(&self.project).ok()?;
        let is_closed = |name: &OsStr| name == ".git" || name.as_encoded_bytes().starts_with(b".bailiwick");
        (is_acted_on(inside) && !inside.iter().any(is_closed))
            .then(|| format!("--write {}", shell_word(inside)))
    }

    /// True if the full tier mounts a path onto itself: a protected path, or a directory above one.
    pub(super) fn holds(&self, path: &WirePath) -> bool {
        let inside = self.rights.write.iter().any(|root| path.is_within(root) && path != root);
        let leads_to = |protected: &WirePath| protected.is_within(path);
        self.tier == Tier::Full && inside && self.rights.protected.iter().any(leads_to)
    }

    pub(super) fn immovable(&self, path: &WirePath, grade: Grade) -> Denial {
        Denial {
            missing_right: MissingRight::Move { path: path.clone() }.into(),
            grant: self
                .write_grant(path)
                .filter(|_| is_git_config(path) || self.setting_grant(path).is_some()),
            errno: None,
            ..self.unwritable(path, grade, Some(EBUSY))
        }
    }

    pub(super) fn unwritable(&self, path: &WirePath, grade: Grade, errno: Option<i32>) -> Denial {
        Denial {
            layer: self.layer_of_write(path, errno),
            operation: Operation::Write,
            object: Object::Path(path.clone()),
            program: None,
            missing_right: self.right_to_write(path).into(),
            grant: self.write_grant(path),
            grade,
            errno,
        }
    }

    fn is_closed_by_mode(&self, path: &WirePath) -> bool {
        let is_users = !self.is_fixed && self.hidden_root(path).is_none();
        let is_writable = permits(Position::FIRST, self.mode).writes_project();
        is_users && path.is_within(&self.project) && !is_writable
    }

    /// True if mode `auto` would protect this path of the project. Other modes list no protected paths, so the name
    /// decides.
    fn is_kept_in_every_mode(&self, path: &WirePath) -> bool {
        const IN_GIT: [&str; 5] = ["config", "config.worktree", "hooks", "modules", "worktrees"];
        let Ok(inside) = path.as_path().strip_prefix(&self.project) else { return false };
        let mut names = inside.iter().skip_while(|name| *name != GIT);
        match names.next() {
            Some(_) => names.next().is_some_and(|name| IN_GIT.iter().any(|kept| name == *kept)),
            None => is_acted_on(inside),
        }
    }

    /// The rule by which hints never suggest a directory: the user's home contains files that run later, and a
    /// directory above the project is more than needed.
    fn wide_place(&self, place: &WirePath) -> Option<ClosedBy> {
        let holds = |path: &WirePath| path.is_within(place);
        let is_root = place.as_path() == Path::new("/");
        if self.is_fixed || is_root || self.is_closed_by_mode(place) {
            None
        } else if self.home.as_ref() == Some(place) {
            Some(ClosedBy::Home)
        } else if self.home.as_ref().is_some_and(holds) || (holds(&self.project) && *place != self.project) {
            Some(ClosedBy::Wide)
        } else {
            None
        }
    }

    /// The denial of changing `path`, with a hint to grant `place`, the directory that the file is created in or
    /// removed from.
    pub(super) fn granted_at(&self, denial: Denial, path: &WirePath, place: &WirePath) -> Denial {
        if denial.grant.is_none() {
            return denial;
        }
        match self.wide_place(place) {
            Some(rule) => {
                let missing = MissingRight::Write { path: path.clone(), closed_by: Some(rule) };
                Denial { missing_right: missing.into(), grant: None, ..denial }
            }
            None => Denial { grant: self.write_grant(place), ..denial },
        }
    }

    /// The right to change `path`, with the rule that closes the path, if any.
    pub(super) fn right_to_write(&self, path: &WirePath) -> MissingRight {
        let is_protected = self.rights.protected.iter().any(|place| path.is_within(place));
        let closed_by = match () {
            () if is_protected
                || self.is_in_levels(path)
                || self.is_closed_by_mode(path) && self.is_kept_in_every_mode(path) =>
            {
                Some(ClosedBy::Protected)
            }
            () if self.is_closed_by_mode(path) => Some(ClosedBy::Mode),
            () => self.wide_place(path),
        };
        MissingRight::Write { path: path.clone(), closed_by }
    }

    /// No flag opens a hidden path.
    pub(super) fn unreadable(&self, path: &WirePath, grade: Grade) -> Denial {
        Denial {
            layer: self.layer_of_read(),
            operation: Operation::Read,
            object: Object::Path(path.clone()),
            program: None,
            missing_right: MissingRight::Read { path: path.clone() }.into(),
            grant: None,
            grade,
            errno: None,
        }
    }

    pub(super) fn unreachable(&self, address: &str, grade: Grade) -> Denial {
        let layer = match self.tier {
            Tier::Full => Layer::NetworkNamespace,
            Tier::Floor => Layer::Mediation,
            Tier::FloorUnmediated => Layer::Seccomp,
        };
        Denial {
            layer,
            operation: Operation::Network,
            object: Object::Address(address.to_owned()),
            program: None,
            missing_right: MissingRight::Network.into(),
            grant: self.offered("--net on"),
            grade,
            errno: None,
        }
    }

    fn layer_of_read(&self) -> Layer {
        match self.tier {
            Tier::Full => Layer::Mask,
            Tier::Floor | Tier::FloorUnmediated => Layer::Landlock,
        }
    }

    /// The layer that denied a write. In the full tier, a mount gives an error before Landlock does (EROFS, or EXDEV
    /// for a move). EACCES comes from Landlock or from the mount over a hidden path.
    fn layer_of_write(&self, path: &WirePath, errno: Option<i32>) -> Layer {
        let hidden = self.hidden_root(path).is_some();
        match (self.tier, errno) {
            (Tier::Floor | Tier::FloorUnmediated, _) => Layer::Landlock,
            (Tier::Full, Some(EACCES | EPERM)) if !hidden => Layer::Landlock,
            (Tier::Full, _) if hidden => Layer::Mask,
            (Tier::Full, _) => Layer::Mounts,
        }
    }

    /// The flag that would allow exactly this write. `None` for hidden and protected paths, kernel file systems (except
    /// shared memory) and `/`. A git configuration is protected, but has a flag.
    pub fn write_grant(&self, path: &WirePath) -> Option<String> {
        if self.is_fixed {
            return None;
        }
        let is_config = self.rights.protected.contains(path) || self.is_closed_by_mode(path);
        if is_config && is_git_config(path) {
            return Some(self.git_config_grant(path));
        }
        let is_protected = self.rights.protected.iter().any(|root| path.is_within(root));
        if is_protected && self.hidden_root(path).is_none() {
            return self.setting_grant(path);
        }
        let is_memory = path.is_within(&MEMORY.into());
        let is_closed = self.hidden_root(path).is_some() || is_protected || self.is_in_levels(path);
        if is_closed || (is_kernel_tree(path) && !is_memory) {
            return None;
        }
        // The kernel's name for objects without a path: `anon_inode:[eventfd]`, `pipe:[17]`.
        let is_no_path = !path.as_path().is_absolute();
        if is_no_path || path.as_path() == Path::new("/") || self.wide_place(path).is_some() {
            return None;
        }
        if self.is_closed_by_mode(path) {
            let is_kept = self.is_kept_in_every_mode(path);
            return if is_kept { self.setting_grant(path) } else { Some("--mode auto".to_owned()) };
        }
        Some(format!("--write {}", shell_word(path.as_path())))
    }
}

impl StandingRights {
    pub(super) fn is_git_config(&self, path: &WirePath) -> bool {
        is_git_config(path) && (path.is_within(&self.project) || self.rights.protected.contains(path))
    }
}

/// True for the configuration of a repository or of one of its submodules.
fn is_git_config(path: &WirePath) -> bool {
    let path = path.as_path();
    let of_a_module = || {
        let mut names = path.iter().skip_while(|name| *name != ".git").skip(1);
        names.next().is_some_and(|name| name == "modules") && path.ends_with("config")
    };
    path.ends_with(GIT_CONFIG) || of_a_module()
}

/// The denial of set-id bits, which nothing permits.
pub(super) fn no_set_id(path: &WirePath, grade: Grade) -> Denial {
    Denial {
        layer: Layer::Seccomp,
        operation: Operation::Write,
        object: Object::Path(path.clone()),
        program: None,
        missing_right: MissingRight::SetId { path: path.clone() }.into(),
        grant: None,
        grade,
        errno: Some(EPERM),
    }
}

/// True for kernel file systems, where denials rarely depend on an agent's access.
pub(super) fn is_kernel_tree(path: &WirePath) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|tree| path.is_within(&WirePath::from(*tree)))
}
