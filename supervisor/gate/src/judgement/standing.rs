//! What an agent may do without asking.

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
use crate::shell_word::shell_word;

/// Git's own configuration, as most projects have it.
const GIT_CONFIG: &str = ".git/config";

/// Shared memory: below `/dev`, and no device.
const MEMORY: &str = "/dev/shm";

/// An agent's standing rights, and the places that they are told relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRights {
    /// The rights that its worker was born with.
    pub rights: Rights,
    /// The project: where relative paths begin.
    pub project: WirePath,
    /// The private temp directory.
    pub temp: Option<WirePath>,
    /// The private caches, where they outlive the session.
    pub caches: Option<WirePath>,
    /// The directory that holds the places of all levels of rights: each worker writes its own one alone, and nothing opens another's.
    pub levels: Option<WirePath>,
    /// The user's home, which no hint opens.
    pub home: Option<WirePath>,
    /// What becomes of a call beyond the rights.
    pub mode: ApprovalMode,
    /// What the kernel holds the worker by.
    pub tier: Tier,
    /// Places in a write root that cannot be changed all the same: the project and its caches, where they lie in a private
    /// `/tmp`.
    pub read_only: Vec<WirePath>,
    /// Whether mode `ask` asks for every command but those that declare to read.
    pub confirm_shell: bool,
    /// The addresses that the start allowed the network to lead to: they are kept while it is off.
    pub reach: Reach,
    /// How the mode may change; absent where it is fixed.
    pub modes: Option<Modes>,
    /// What the machine refuses by itself.
    pub machine: Arc<Machine>,
    /// True if no flag of the user's widens them: those of a sub-agent, and those of a planner.
    pub is_fixed: bool,
}

impl StandingRights {
    /// Standing rights with the host's own paths, which are also those of the floor tier.
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

    /// The same standing with exactly what is granted beside it; `self` has the host's own paths.
    #[must_use]
    pub fn with_grant(&self, grant: &Grant) -> Self {
        let mut rights = self.rights.with_grant(grant);
        // What is protected is granted by its very name, or not at all.
        rights.protected.retain(|place| !grant.write.contains(place));
        Self { rights, ..self.clone() }
    }

    /// The same rights as a worker of this tier sees them; `self` has the host's own paths.
    #[must_use]
    pub fn seen_in(&self, tier: Tier) -> Self {
        let (rights, temp) = rights_in_tier(&self.rights, &self.project, self.temp.as_ref(), tier);
        let closed = |place: &&WirePath| rights.allows_write(place) && !self.rights.allows_write(place);
        let read_only = [Some(&self.project), self.caches.as_ref()].into_iter().flatten();
        let read_only = read_only.filter(closed).cloned().collect();
        Self { rights, temp, tier, read_only, ..self.clone() }
    }

    /// The rights in short.
    pub fn summary(&self) -> RightsSummary {
        let Self { project, temp, caches, .. } = self;
        self.rights.summary(NamedPlaces { project, temp: temp.as_ref(), caches: caches.as_ref() })
    }

    /// The rights in one line, as the model reads them.
    pub fn line(&self) -> String {
        self.summary().to_string()
    }

    /// Whether `path` may be changed.
    pub fn allows_write(&self, path: &WirePath) -> bool {
        (self.rights.allows_write(path) || self.is_in_temp(path)) && !self.is_read_only(path)
    }

    /// True if the agent holds a write root besides its private temp and caches, which everyone has: a command that declares to
    /// write then runs under these roots, and the kernel judges each path.
    pub fn holds_a_write_root(&self) -> bool {
        let is_private = |root: &WirePath| self.is_in_temp(root) || self.is_in_caches(root);
        self.rights.write.iter().any(|root| !is_private(root))
    }

    /// True if the contents of `path` may be read.
    pub fn allows_read(&self, path: &WirePath) -> bool {
        self.rights.allows_read(path) || self.is_in_temp(path)
    }

    /// The hidden place that `path` is, or lies in. The private temp directory lies in one, and is not hidden.
    pub fn hidden_root(&self, path: &WirePath) -> Option<&WirePath> {
        self.rights.hidden.iter().find(|root| path.is_within(root) && !self.is_in_temp(path))
    }

    /// True of a path in the place of a level: what lies there is executed under that level's rights. The root that stands for
    /// the agent's own place is none of them: whoever has it hands it on to its sub-agents.
    pub(super) fn is_in_levels(&self, path: &WirePath) -> bool {
        let is_own = self.rights.write.contains(path);
        self.levels.as_ref().is_some_and(|levels| path.is_within(levels)) && !is_own
    }

    /// A flag that would allow something, to whom flags give anything.
    pub(super) fn offered(&self, flag: &str) -> Option<String> {
        (!self.is_fixed).then(|| flag.to_owned())
    }

    /// True of a path in the private temp directory. In the full tier that is /tmp, and a project or another write root below it is the
    /// host's all the same.
    pub(super) fn is_in_temp(&self, path: &WirePath) -> bool {
        let Some(temp) = &self.temp else { return false };
        let is_the_hosts = |root: &WirePath| root != temp && root.is_within(temp) && path.is_within(root);
        let mut roots = self.rights.write.iter().chain([&self.project]);
        path.is_within(temp) && !roots.any(is_the_hosts)
    }

    /// The write root that decides about `path`: the deepest that holds it.
    pub fn write_root(&self, path: &WirePath) -> Option<&WirePath> {
        // Sorted by components, a root follows those that hold it.
        self.rights.write.iter().rfind(|root| path.is_within(root))
    }

    /// Whether `path` lies in a read-only place of a write root, and in no deeper write root.
    fn is_read_only(&self, path: &WirePath) -> bool {
        let root = self.write_root(path);
        let closes =
            |place: &WirePath| path.is_within(place) && !root.is_some_and(|root| root.is_within(place));
        self.read_only.iter().any(closes)
    }

    /// What to say where a protected git configuration refused a write: git goes on, and often exits with 0.
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
            "(Git could not write its configuration: that is a right of its own, {grant}. Whatever git said, it is \
             unchanged.)"
        ))
    }

    /// What to say where a command was refused a connection, in a tier whose loopback is the sandbox's own: the server that
    /// runs on the machine is another one's, and looks as if it did not run.
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
        // A program that was given a unix socket for the host speaks of the host all the same.
        let is_socket = |refusal: &Refusal| matches!(refusal.object, Target::Socket(_) | Target::Abstract(_));
        (own && refused && !result.refused.iter().any(is_socket)).then_some(
            "(With the network off, 127.0.0.1 and ::1 are the sandbox's own: only servers that were started within the same \
             command can be reached there, and none of the machine's. The user can open those with --net on --reach host.)",
        )
    }

    /// How the right to configure git is given: that of a linked worktree lies elsewhere.
    fn git_config_grant(&self, config: &WirePath) -> String {
        match config.as_path().strip_prefix(&self.project) {
            Ok(inside) => format!("--write {}", shell_word(inside)),
            Err(_) => format!("--write {}", shell_word(config.as_path())),
        }
    }

    /// The form in which a setting of another program is given: as a whole, by the name under which it is protected. Git's hooks and our own settings are
    /// nothing to be given away because a command ran into them.
    fn setting_grant(&self, path: &WirePath) -> Option<String> {
        let place = self.rights.protected.iter().find(|place| path.is_within(place));
        let inside = place.unwrap_or(path).as_path().strip_prefix(&self.project).ok()?;
        let is_closed = |name: &OsStr| name == ".git" || name.as_encoded_bytes().starts_with(b".bailiwick");
        (is_acted_on(inside) && !inside.iter().any(is_closed))
            .then(|| format!("--write {}", shell_word(inside)))
    }

    /// Whether the full tier holds a place where it is by mounting it onto itself: what is protected, and what that lies in.
    pub(super) fn holds(&self, path: &WirePath) -> bool {
        let inside = self.rights.write.iter().any(|root| path.is_within(root) && path != root);
        let leads_to = |protected: &WirePath| protected.is_within(path);
        self.tier == Tier::Full && inside && self.rights.protected.iter().any(leads_to)
    }

    /// The denial of moving or removing a place that is held.
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

    /// The denial of changing `path`.
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

    /// True if the project could be written in another mode.
    fn is_closed_by_mode(&self, path: &WirePath) -> bool {
        let is_users = !self.is_fixed && self.hidden_root(path).is_none();
        let is_writable = permits(Position::FIRST, self.mode).writes_project();
        is_users && path.is_within(&self.project) && !is_writable
    }

    /// True if mode `auto` would protect this place of the project. In the other modes nobody looks for what is protected, since nothing
    /// around it is writable, so that its name has to tell.
    fn is_kept_in_every_mode(&self, path: &WirePath) -> bool {
        const IN_GIT: [&str; 5] = ["config", "config.worktree", "hooks", "modules", "worktrees"];
        let Ok(inside) = path.as_path().strip_prefix(&self.project) else { return false };
        let mut names = inside.iter().skip_while(|name| *name != GIT);
        match names.next() {
            Some(_) => names.next().is_some_and(|name| IN_GIT.iter().any(|kept| name == *kept)),
            None => is_acted_on(inside),
        }
    }

    /// The rule that keeps a place from being opened by a hint: whoever may write the user's home may write what runs for the user
    /// later, and what holds the project holds more than anybody asked for.
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

    /// The same denial of changing `path`, where `place` has to be granted: the directory that it is to be made in, or goes from.
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

    /// The right to change `path`, with the rule that closes it.
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

    /// The denial of reading `path`. No flag opens what is hidden.
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

    /// The denial of the network.
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

    /// In the full tier the mount answers before Landlock is asked (EROFS, or EXDEV for a move across), but on what is
    /// writable by the mounts: there, and for a mask, it is EACCES.
    fn layer_of_write(&self, path: &WirePath, errno: Option<i32>) -> Layer {
        let hidden = self.hidden_root(path).is_some();
        match (self.tier, errno) {
            (Tier::Floor | Tier::FloorUnmediated, _) => Layer::Landlock,
            (Tier::Full, Some(EACCES | EPERM)) if !hidden => Layer::Landlock,
            (Tier::Full, _) if hidden => Layer::Mask,
            (Tier::Full, _) => Layer::Mounts,
        }
    }

    /// What would allow exactly this write: nothing for hidden, protected and kernel-owned trees (but for shared memory), nor
    /// for the whole file system. Git's configuration is protected, and has a right of its own.
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
        // The kernel's word for what has no path: `anon_inode:[eventfd]`, `pipe:[17]`.
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
    /// Whether the path is git's own configuration in the project, which is a right of its own.
    pub(super) fn is_git_config(&self, path: &WirePath) -> bool {
        is_git_config(path) && (path.is_within(&self.project) || self.rights.protected.contains(path))
    }
}

/// A repository's configuration, or that of a module of it.
fn is_git_config(path: &WirePath) -> bool {
    let path = path.as_path();
    let of_a_module = || {
        let mut names = path.iter().skip_while(|name| *name != ".git").skip(1);
        names.next().is_some_and(|name| name == "modules") && path.ends_with("config")
    };
    path.ends_with(GIT_CONFIG) || of_a_module()
}

/// The denial of set-id bits, which no right opens.
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

/// Whether the path is the kernel's own: what is refused there is rarely a matter of rights.
pub(super) fn is_kernel_tree(path: &WirePath) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|tree| path.is_within(&WirePath::from(*tree)))
}
