//! Rights → rules, as plain data: nothing here touches the kernel.
//!
//! Landlock knows no deny rule: a rule grants on a whole tree, and grants add up. What must stay unreadable inside a read
//! root is therefore *left out*: every directory on the way to it gets the right to be listed only, and everything beside
//! that way gets the full right. Names list, contents stay denied. It follows that a name which appears later in such a
//! directory is unreadable, which errs on the right side.
//!
//! * A symbolic link gets no rule: it would be one for its target. The target has its own place in the tree.
//! * A file that is another name (hard link) of a hidden file gets no rule, since a file's rule is its inode's.
//! * `/dev` is never granted as a whole: five devices are, and neither terminals, disks nor shared memory, but for the
//!   program's own in the full tier.
//! * `/proc` and `/sys` are never writable, and neither is a root that holds them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::ops::BitOr;
use std::path::{Path, PathBuf};

use ipc::confinement::{FileIdentity, Tier};
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};

use crate::tree::{Identity, Tree};

/// The devices that every program may read and write, and the only ones.
pub const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What lies in the program's own `/dev` in the full tier: shared memory, and its own terminals.
const OWN_DEVICES: [(&str, Access); 4] = [
    ("/dev/shm", Access::ALL),
    ("/dev/mqueue", Access::ALL),
    ("/dev/pts", Access::TERMINALS),
    ("/dev/tty", Access::DEVICE),
];

/// The most rules that a domain may have: each is a descriptor for a moment, and memory of the kernel's for long.
pub const MAX_RULES: usize = 20_000;

/// Never writable, and no write root may hold them.
const NEVER_WRITABLE: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What a rule allows on its path and beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Names can be listed.
    pub const LIST: Self = Self(1);
    /// Contents can be read and executed.
    pub const READ: Self = Self(2);
    /// Everything can be changed.
    pub const WRITE: Self = Self(4);
    /// A device can be read and written.
    pub const DEVICE: Self = Self(8);
    /// A directory of devices.
    const TERMINALS: Self = Self(1 | 8);
    /// A read root: names and contents.
    pub const TREE: Self = Self(1 | 2);
    /// A write root: everything.
    pub const ALL: Self = Self(1 | 2 | 4);

    /// Whether all of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// The file or the root of the tree.
    pub path: PathBuf,
    /// What it allows there.
    pub access: Access,
    /// Whether the rights name this path: it must exist. Others were found by listing, and may vanish.
    pub named: bool,
}

/// Rights, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The rules, by path.
    pub rules: Vec<PathRule>,
    /// The network.
    pub net: Network,
    /// The tier: what else holds, and whether devices and addresses are private.
    pub tier: Tier,
    /// A file that exists and must be unreadable: what the attempt before the start is tried on.
    pub hidden_witness: Option<PathBuf>,
}

impl Plan {
    /// The plan of a domain inside another one, which has left out already what must be left out. In the full tier a domain
    /// that has all of the outer one's rights also has its private devices.
    pub fn within(read: &[WirePath], write: &[WirePath], net: Network, tier: Tier, devices: Devices) -> Self {
        let rule =
            |access, named| move |path: &WirePath| PathRule { path: path.clone().into(), access, named };
        let read = read.iter().map(rule(Access::TREE, false));
        let write = write.iter().map(rule(Access::ALL, true));
        let device = |device: &str| PathRule { path: device.into(), access: Access::DEVICE, named: false };
        let own = OWN_DEVICES.into_iter().filter(|_| tier == Tier::Full && devices == Devices::Own);
        let own = own.map(|(device, access)| PathRule { path: device.into(), access, named: false });
        let rules = read.chain(write).chain(DEVICES.map(device)).chain(own).collect();
        Self { rules, net, tier, hidden_witness: None }
    }

    /// Allows the program's own terminal, by the paths that lead to it.
    pub fn allow_terminal(&mut self, paths: impl Iterator<Item = PathBuf>) {
        self.rules.extend(paths.map(|path| PathRule { path, access: Access::DEVICE, named: false }));
    }

    /// Makes a place the program's own, whatever lies in it.
    pub fn own(&mut self, path: &Path) {
        match self.rules.iter_mut().find(|rule| rule.path == path) {
            Some(rule) => rule.access = Access::ALL,
            None => self.rules.push(PathRule { path: path.to_owned(), access: Access::ALL, named: true }),
        }
    }
}

/// Which devices a domain inside another one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// The five harmless ones.
    Harmless,
    /// What is the program's own in the full tier as well: terminals and shared memory.
    Own,
}

/// Why rights cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CompileError {
    #[error("{0} is not an absolute path without `.` and `..`")]
    NotCanonical(WirePath),
    #[error("the write root {0} would make /proc, /sys or /dev writable: name what lies beside them")]
    SystemWritable(WirePath),
    #[error("the root {root} lies in {hidden}, which is hidden")]
    Hidden { root: WirePath, hidden: WirePath },
    #[error("cannot look at {path}: {source}")]
    Look { path: WirePath, source: io::Error },
    #[error(
        "{0} rules, of which there may be {MAX_RULES}: what is hidden lies in directories with too many entries"
    )]
    TooManyRules(usize),
}

/// Compiles rights against a file system.
///
/// What has the identity of one of `moved` stays unreadable under whatever name it is found beside a hidden path.
pub fn compile(
    rights: &Rights,
    moved: &[FileIdentity],
    tier: Tier,
    tree: &impl Tree,
) -> Result<Plan, CompileError> {
    for path in rights.read.iter().chain(&rights.write).chain(&rights.hidden) {
        check_canonical(path)?;
    }
    for root in &rights.write {
        check_writable(root)?;
    }
    let mut compiler = Compiler::new(rights, moved, tree);
    for root in &rights.read {
        compiler.root(root, Access::TREE)?;
    }
    for root in &rights.write {
        compiler.root(root, Access::ALL)?;
    }
    compiler.devices(tier);
    if compiler.rules.len() > MAX_RULES {
        return Err(CompileError::TooManyRules(compiler.rules.len()));
    }
    Ok(compiler.finish(rights.net, tier))
}

fn check_canonical(path: &WirePath) -> Result<(), CompileError> {
    use std::path::Component::{Normal, RootDir};
    let canonical = path.as_path().is_absolute()
        && path.as_path().components().all(|part| matches!(part, RootDir | Normal(_)));
    if canonical { Ok(()) } else { Err(CompileError::NotCanonical(path.clone())) }
}

/// Something beneath `/dev` may be granted (`/dev/shm`, `/dev/dri`), `/dev` itself may not.
fn check_writable(root: &WirePath) -> Result<(), CompileError> {
    let path = root.as_path();
    let holds = NEVER_WRITABLE.iter().any(|system| Path::new(system).starts_with(path));
    let within = path.starts_with("/proc") || path.starts_with("/sys");
    if holds || within { Err(CompileError::SystemWritable(root.clone())) } else { Ok(()) }
}

struct Compiler<'a, T> {
    tree: &'a T,
    exceptions: Exceptions,
    rules: BTreeMap<PathBuf, (Access, bool)>,
}

/// What must be left out, looked up rather than searched: every entry beside a hidden path is asked about.
struct Exceptions {
    hidden: BTreeMap<PathBuf, Option<Identity>>,
    /// By their bytes: paths are canonical, and comparing components costs twenty times as much.
    names: HashSet<OsString>,
    /// What lies above an exception.
    ancestors: HashSet<OsString>,
    /// The devices on which a hidden file, or one that was hidden when the session began, has this inode.
    files: HashMap<u64, Vec<u64>>,
}

impl Exceptions {
    /// A hidden path is hidden under the name that it was given, and under the one that it resolves to.
    fn new(rights: &Rights, moved: &[FileIdentity], tree: &impl Tree) -> Self {
        let given = rights.hidden.iter().map(WirePath::as_path);
        let both = given.flat_map(|path| [path.to_owned(), tree.resolve(path)]);
        let hidden: BTreeMap<_, _> = both
            .map(|path| {
                let identity = tree.identity(&path).ok();
                (path, identity)
            })
            .collect();
        let above = hidden.keys().map(PathBuf::as_path).chain([Path::new("/dev")]);
        let ancestors =
            above.flat_map(|path| path.ancestors().skip(1)).map(|path| path.as_os_str().to_owned()).collect();
        let mut files: HashMap<u64, Vec<u64>> = HashMap::new();
        for identity in hidden.values().flatten().filter(|identity| !identity.directory) {
            files.entry(identity.inode).or_default().push(identity.device);
        }
        for FileIdentity { device, inode } in moved {
            files.entry(*inode).or_default().push(*device);
        }
        let names = hidden.keys().map(|path| path.as_os_str().to_owned()).collect();
        Self { hidden, names, ancestors, files }
    }

    /// The hidden path that `path` is, or lies in.
    fn above(&self, path: &Path) -> Option<&Path> {
        path.ancestors()
            .find(|place| self.names.contains(place.as_os_str()))
            .and_then(|place| self.hidden.get_key_value(place).map(|(hidden, _)| hidden.as_path()))
    }
}

impl<'a, T: Tree> Compiler<'a, T> {
    fn new(rights: &Rights, moved: &[FileIdentity], tree: &'a T) -> Self {
        Self { tree, exceptions: Exceptions::new(rights, moved, tree), rules: BTreeMap::new() }
    }

    fn root(&mut self, root: &WirePath, access: Access) -> Result<(), CompileError> {
        if let Some(hidden) = self.exceptions.above(root.as_path()) {
            return Err(CompileError::Hidden { root: root.clone(), hidden: hidden.into() });
        }
        self.tree.identity(root.as_path()).map_err(|source| look(root.as_path(), source))?;
        self.grant(root.as_path(), access)?;
        if let Some((_, named)) = self.rules.get_mut(root.as_path()) {
            *named = true;
        }
        Ok(())
    }

    /// Grants `access` on `path` and beneath it, around what must be left out.
    fn grant(&mut self, path: &Path, access: Access) -> Result<(), CompileError> {
        if path == Path::new("/dev") && !access.has(Access::WRITE) {
            self.add(path, Access::LIST);
            return Ok(());
        }
        if !self.leads_to_exception(path) {
            self.add(path, access);
            return Ok(());
        }
        let entries = match self.tree.entries(path) {
            Ok(entries) => entries,
            Err(error) => match error.kind() {
                // It vanished since its parent was listed.
                io::ErrorKind::NotFound => return Ok(()),
                io::ErrorKind::NotADirectory => {
                    self.add(path, access);
                    return Ok(());
                }
                // Who may not list it can name nothing beside the hidden path: nothing is granted.
                io::ErrorKind::PermissionDenied => {
                    self.add(path, access.without(Access::READ));
                    return Ok(());
                }
                _ => return Err(look(path, error)),
            },
        };
        self.add(path, access.without(Access::READ));
        for entry in entries {
            let child = path.join(&entry.name);
            if !entry.symlink && !self.is_hidden(&child, entry.inode) {
                self.grant(&child, access)?;
            }
        }
        Ok(())
    }

    fn leads_to_exception(&self, path: &Path) -> bool {
        self.exceptions.ancestors.contains(path.as_os_str())
    }

    /// By name, or as another name of a hidden file.
    fn is_hidden(&self, path: &Path, inode: u64) -> bool {
        self.exceptions.names.contains(path.as_os_str())
            || self.exceptions.files.get(&inode).is_some_and(|devices| {
                self.tree.identity(path).is_ok_and(|found| devices.contains(&found.device))
            })
    }

    fn devices(&mut self, tier: Tier) {
        let harmless = DEVICES.map(|device| (device, Access::DEVICE));
        let own = OWN_DEVICES.into_iter().filter(|_| tier == Tier::Full);
        for (device, access) in harmless.into_iter().chain(own) {
            let device = Path::new(device);
            if self.exceptions.above(device).is_none() {
                self.add(device, access);
            }
        }
    }

    fn add(&mut self, path: &Path, access: Access) {
        let rule = self.rules.entry(path.to_owned()).or_insert((access, false));
        rule.0 = rule.0 | access;
    }

    fn finish(self, net: Network, tier: Tier) -> Plan {
        let hidden = self.exceptions.hidden.into_iter();
        let witness = hidden.filter(|(_, identity)| identity.is_some_and(|identity| !identity.directory));
        let witness = witness.map(|(path, _)| path).next();
        let rule = |(path, (access, named))| PathRule { path, access, named };
        Plan { rules: self.rules.into_iter().map(rule).collect(), net, tier, hidden_witness: witness }
    }
}

fn look(path: &Path, source: io::Error) -> CompileError {
    CompileError::Look { path: path.into(), source }
}

#[cfg(test)]
mod tests;
