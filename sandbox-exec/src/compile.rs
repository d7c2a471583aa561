//! Compilation of rights to Landlock rules. The rules are plain data; the kernel is not asked for anything.
//!
//! Landlock has no deny rules: a rule allows a whole tree, and rules add up. So a hidden file in a read root is *left
//! out*: the directories above it can only be listed, and everything else in them gets full rules. Files that are
//! created in such a directory later are unreadable, too.
//!
//! * A symbolic link gets no rule, since the rule would be for the link's target.
//! * A hard link to a hidden file gets no rule, since the rule would be for the inode and so for the hidden file.
//! * Of `/dev`, five devices are allowed; terminals and shared memory only if they are the program's own or the
//!   container's (`private`).
//! * `/proc`, `/sys` and roots that contain them are never writable.

mod exceptions;
mod rules;

use std::io;
use std::path::{Path, PathBuf};

use ipc::confinement::{FileIdentity, Tier};
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};

use self::exceptions::Exceptions;
use self::rules::Rules;
pub use self::rules::{Access, PathRule};
use crate::tree::{Kind, Tree};

/// Devices that every program may read and write.
pub const DEVICES: [&str; 5] = ipc::confinement::HARMLESS_DEVICES;

/// Full tier's own shared memory, message queues and terminals in `/dev`, with the access to each.
const OWN_DEVICES: [(&str, Access); 4] = [
    ("/dev/shm", Access::ALL),
    ("/dev/mqueue", Access::ALL),
    ("/dev/pts", Access::TERMINALS),
    ("/dev/tty", Access::DEVICE),
];

/// Maximum number of rules of a program. Each rule takes kernel memory, and a descriptor while it is added.
pub const MAX_RULES: usize = 20_000;

/// Directories that no write root may be or contain.
const NEVER_WRITABLE: [&str; 3] = ["/proc", "/sys", "/dev"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub rules: Vec<PathRule>,
    pub net: Network,
    pub tier: Tier,
    pub hidden_witness: Option<PathBuf>,
}

impl Plan {
    /// Returns the plan of a domain inside the worker's, which already denies hidden paths: these need no rules here.
    pub fn within(read: &[WirePath], write: &[WirePath], net: Network, tier: Tier, devices: Devices) -> Self {
        let rule = |access, named| move |path: &WirePath| PathRule::new(path.clone(), access, named);
        let read = read.iter().map(rule(Access::TREE, false));
        let write = write.iter().map(rule(Access::ALL, true));
        let device = |device: &str| PathRule::new(device, Access::DEVICE, false);
        let own = OWN_DEVICES.into_iter().filter(|_| devices == Devices::Own);
        let own = own.map(|(device, access)| PathRule::new(device, access, false));
        let rules = read.chain(write).chain(DEVICES.map(device)).chain(own).collect();
        Self { rules, net, tier, hidden_witness: None }
    }

    pub(crate) fn allow_private(&mut self, rules: impl Iterator<Item = (&'static str, Access)>) {
        self.rules.extend(rules.map(|(path, access)| PathRule::new(path, access, false)));
    }

    pub fn allow_terminal(&mut self, paths: impl Iterator<Item = PathBuf>) {
        self.rules.extend(paths.map(|path| PathRule::new(path, Access::DEVICE, false)));
    }

    fn own(&mut self, path: &Path) {
        match self.rules.iter_mut().find(|rule| rule.path == path) {
            Some(rule) => rule.access = Access::ALL,
            None => self.rules.push(PathRule::new(path, Access::ALL, true)),
        }
    }
}

/// Devices that an inner domain allows. The domain around it may allow fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    Harmless,
    Own,
}

#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CompileError {
    #[error("{0} is not an absolute path without `.`, `..` and empty parts")]
    NotCanonical(WirePath),
    #[error("the write root {0} would make /proc, /sys or /dev writable: name what lies beside them")]
    SystemWritable(WirePath),
    #[error("the root {root} lies in {hidden}, which is hidden")]
    Hidden { root: WirePath, hidden: WirePath },
    #[error("cannot look at {path}: {source}")]
    Look { path: WirePath, source: io::Error },
    #[error("more rules than {MAX_RULES}: what is hidden lies in directories with too many entries")]
    TooManyRules,
}

/// Compiles rights to a plan of rules for a file system.
///
/// The directory `own` is fully allowed if a write root is or contains it, even in a hidden directory. The files
/// `moved` were hidden when the session began; they stay unreadable in directories that contain a hidden path.
///
/// Fails for a path that is not canonical, a write root that is or contains a system directory, a root that is hidden
/// or cannot be looked up, and more than [`MAX_RULES`] rules.
pub fn compile(
    rights: &Rights,
    own: Option<&WirePath>,
    moved: &[FileIdentity],
    tier: Tier,
    tree: &impl Tree,
) -> Result<Plan, CompileError> {
    for path in rights.read.iter().chain(&rights.write).chain(&rights.hidden) {
        check_canonical(path)?;
    }
    let write = || rights.write.iter().filter(|root| Some(*root) != own);
    for root in write() {
        check_writable(root)?;
    }
    let mut compiler = Compiler::new(rights, moved, tree);
    for root in &rights.read {
        compiler.root(root, Access::TREE)?;
    }
    for root in write() {
        compiler.root(root, Access::ALL)?;
    }
    compiler.devices(tier);
    compiler.check_count()?;
    let mut plan = compiler.finish(rights.net.clone(), tier);
    if let Some(own) = own.filter(|own| rights.write.iter().any(|root| own.is_within(root))) {
        plan.own(own.as_path());
    }
    Ok(plan)
}

/// Fails for a path that is relative or has an empty part, `.` or `..`: paths are compared by bytes.
fn check_canonical(path: &WirePath) -> Result<(), CompileError> {
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let canonical = match path.as_bytes() {
        b"/" => true,
        [b'/', names @ ..] => names.split(|byte| *byte == b'/').all(is_name),
        _ => false,
    };
    if canonical { Ok(()) } else { Err(CompileError::NotCanonical(path.clone())) }
}

/// Fails for `/proc`, `/sys` and paths beneath, for `/dev` itself, and for directories that contain one of them.
fn check_writable(root: &WirePath) -> Result<(), CompileError> {
    let path = root.as_path();
    let holds = NEVER_WRITABLE.iter().any(|system| Path::new(system).starts_with(path));
    let within = path.starts_with("/proc") || path.starts_with("/sys");
    if holds || within { Err(CompileError::SystemWritable(root.clone())) } else { Ok(()) }
}

struct Compiler<'a, T> {
    tree: &'a T,
    exceptions: Exceptions<'a>,
    rules: Rules,
}

impl<'a, T: Tree> Compiler<'a, T> {
    fn new(rights: &'a Rights, moved: &[FileIdentity], tree: &'a T) -> Self {
        Self { tree, exceptions: Exceptions::new(rights, moved, tree), rules: Rules::default() }
    }

    fn root(&mut self, root: &WirePath, access: Access) -> Result<(), CompileError> {
        if let Some(hidden) = self.exceptions.holding(root.as_path()) {
            return Err(CompileError::Hidden { root: root.clone(), hidden: hidden.into() });
        }
        self.tree.identity(root.as_path()).map_err(|source| look(root.as_path(), source))?;
        self.grant(root.as_path(), access)?;
        self.rules.name(root.as_path());
        Ok(())
    }

    fn grant(&mut self, path: &Path, access: Access) -> Result<(), CompileError> {
        if path == Path::new("/dev") && !access.has(Access::WRITE) {
            self.rules.add(path, Access::LIST);
            return Ok(());
        }
        if !self.exceptions.lie_beneath(path) {
            self.rules.add(path, access);
            return Ok(());
        }
        let entries = match self.tree.entries(path) {
            Ok(entries) => entries,
            Err(error) => match error.kind() {
                // The directory vanished after its parent was listed.
                io::ErrorKind::NotFound => return Ok(()),
                io::ErrorKind::NotADirectory => {
                    self.rules.add(path, access);
                    return Ok(());
                }
                // A process that may not list the directory can name nothing in it: grant nothing.
                io::ErrorKind::PermissionDenied => {
                    self.rules.add(path, access.without(Access::READ));
                    return Ok(());
                }
                io::ErrorKind::FileTooLarge => return Err(CompileError::TooManyRules),
                _ => return Err(look(path, error)),
            },
        };
        self.rules.add(path, access.without(Access::READ));
        for entry in entries.iter() {
            self.check_count()?;
            let child = path.join(&entry.name);
            if entry.kind == Kind::Link || self.exceptions.has(&child, entry.inode, self.tree) {
                continue;
            }
            match entry.kind {
                Kind::Other => self.rules.add(&child, access).file = true,
                _ => self.grant(&child, access)?,
            }
        }
        Ok(())
    }

    fn check_count(&self) -> Result<(), CompileError> {
        if self.rules.count() > MAX_RULES { Err(CompileError::TooManyRules) } else { Ok(()) }
    }

    fn devices(&mut self, tier: Tier) {
        let harmless = DEVICES.map(|device| (device, Access::DEVICE));
        let own = OWN_DEVICES.into_iter().filter(|_| tier == Tier::Full);
        for (device, access) in harmless.into_iter().chain(own) {
            let device = Path::new(device);
            if self.exceptions.holding(device).is_none() {
                self.rules.add(device, access);
            }
        }
    }

    fn finish(self, net: Network, tier: Tier) -> Plan {
        Plan { rules: self.rules.needed(), net, tier, hidden_witness: self.exceptions.witness() }
    }
}

fn look(path: &Path, source: io::Error) -> CompileError {
    CompileError::Look { path: path.into(), source }
}

#[cfg(test)]
mod tests;
