//! Landlock domains from rules.
//!
//! A domain restricts every right that the Landlock ABI knows. A rule or layer that the kernel rejects is an error.
//! [`Platform::missing`] names what the ABI cannot restrict.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use ipc::confinement::Tier;
use ipc::path::WirePath;
use ipc::rights::Network;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::libc;
use nix::sys::stat::Mode;

use crate::compile::{Access, PathRule, Plan};
use crate::descriptors;
use crate::platform::Platform;
use crate::system;

#[derive(Debug)]
pub struct Domain {
    ruleset: Option<OwnedFd>,
    abi: ABI,
    rules: u32,
}

/// Open files of rules that were added. Closing a file takes a fifth of the time that adding a rule takes. So a process
/// that others wait for closes the files later.
#[derive(Debug, Default)]
#[must_use = "it is for later"]
pub(crate) struct Opened(Vec<File>);

impl Opened {
    /// Maximum number of files that are kept open, far below the usual limit of 1024 (`getrlimit(2)`).
    const MOST: usize = 256;

    fn keep(&mut self, file: File) {
        if self.0.len() == Self::MOST {
            self.0.clear();
        }
        self.0.push(file);
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        descriptors::close_together(mem::take(&mut self.0).into_iter().map(OwnedFd::from));
    }
}

#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DomainError {
    #[error("cannot create a Landlock ruleset: {0}")]
    Create(#[source] RulesetError),
    #[error("cannot open {path} for a rule: {source}")]
    Open { path: WirePath, source: io::Error },
    #[error("{0} is a symbolic link: roots must be canonical")]
    Symlink(WirePath),
    #[error("cannot add a rule for {path}: {source}")]
    Add { path: WirePath, source: io::Error },
    #[error("cannot add the rule of a domain that only has scopes: {0}")]
    Scopes(#[source] RulesetError),
}

impl Domain {
    pub fn build(plan: &Plan, platform: Platform) -> Result<Self, DomainError> {
        let mut domain = Self::empty(&plan.net, plan.tier, platform)?;
        domain.add(&plan.rules)?;
        Ok(domain)
    }

    pub(crate) fn empty(net: &Network, tier: Tier, platform: Platform) -> Result<Self, DomainError> {
        let abi = abi(platform);
        if abi == ABI::Unsupported {
            return Ok(Self { ruleset: None, abi, rules: 0 });
        }
        let ruleset = create(abi, net, tier).map_err(DomainError::Create)?;
        Ok(Self { ruleset: ruleset.into(), abi, rules: 0 })
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let ruleset = self.ruleset.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(Self { ruleset, abi: self.abi, rules: self.rules })
    }

    pub(crate) fn add(&mut self, rules: &[PathRule]) -> Result<(), DomainError> {
        self.add_opened(rules, |rule| open_path(&rule.path, rule.named)).map(drop)
    }

    /// Adds rules for canonical paths. A path gets no rule if one of its directories is a symbolic link by now.
    pub(crate) fn add_canonical(&mut self, rules: &[PathRule]) -> Result<Opened, DomainError> {
        self.add_opened(rules, |rule| open_path(&rule.path, true))
    }

    fn add_opened(
        &mut self,
        rules: &[PathRule],
        open: impl Fn(&PathRule) -> io::Result<File>,
    ) -> Result<Opened, DomainError> {
        let mut opened = Opened::default();
        let Some(ruleset) = &self.ruleset else { return Ok(opened) };
        for rule in rules {
            if let Some(path) = found(rule, open(rule))? {
                let added = add(ruleset.as_fd(), path.as_fd(), rule, self.abi)
                    .map_err(|source| DomainError::Add { path: rule.path.clone().into(), source })?;
                self.rules += u32::from(added);
                opened.keep(path);
            }
        }
        Ok(opened)
    }

    /// Sets the number of rules, for a domain whose rules another process added through its own descriptor.
    pub(crate) fn count(&mut self, rules: u32) {
        self.rules = rules;
    }

    /// Builds a domain that only bounds signals and abstract unix sockets (scopes). `None` if the ABI has no scopes.
    ///
    /// A domain without file rights denies moving files between directories (EXDEV). So this one restricts that right,
    /// REFER, and allows it everywhere.
    pub fn of_scopes(platform: Platform) -> Result<Option<Self>, DomainError> {
        if platform.abi < crate::platform::SCOPES {
            return Ok(None);
        }
        let root = open_path(Path::new("/"), false)
            .map_err(|source| DomainError::Open { path: "/".into(), source })?;
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer)
            .and_then(|ruleset| ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket))
            .and_then(Ruleset::create)
            .map_err(DomainError::Create)?;
        let ruleset = ruleset
            .add_rule(PathBeneath::new(root, AccessFs::Refer).set_compatibility(CompatLevel::HardRequirement))
            .map_err(DomainError::Scopes)?;
        Ok(Some(Self { ruleset: ruleset.into(), abi: ABI::V6, rules: 0 }))
    }

    pub fn rules(&self) -> u32 {
        self.rules
    }

    /// Confines this thread to the domain, for good. Async-signal-safe. Needs `no_new_privs`.
    pub fn enter(&self) -> io::Result<()> {
        self.ruleset().map_or(Ok(()), system::landlock_restrict_self)
    }

    /// Returns the descriptor of the ruleset; `None` without Landlock.
    pub(crate) fn ruleset(&self) -> Option<BorrowedFd<'_>> {
        self.ruleset.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn of_ruleset(ruleset: OwnedFd) -> Self {
        Self { ruleset: Some(ruleset), abi: ABI::Unsupported, rules: 0 }
    }
}

fn abi(platform: Platform) -> ABI {
    i32::try_from(platform.abi).map_or(ABI::Unsupported, ABI::from)
}

/// Creates a ruleset that restricts all rights of the ABI. Leaves out ports in the full tier, where a network namespace
/// isolates a program without network.
fn create(abi: ABI, net: &Network, tier: Tier) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if !net.is_the_machines() && tier != Tier::Full && abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket)?;
    }
    ruleset.create()
}

/// Returns the opened file of a rule. `None` for a file from a listing that is gone, unreachable or behind a link by
/// now. A rule for a path that has become a link itself allows nothing.
fn found(rule: &PathRule, opened: io::Result<File>) -> Result<Option<File>, DomainError> {
    let opened = opened.and_then(|file| Ok((rule.named && file.metadata()?.is_symlink(), file)));
    match opened {
        Ok((true, _)) => Err(DomainError::Symlink(rule.path.clone().into())),
        Ok((false, file)) => Ok(Some(file)),
        Err(error) if !rule.named && (is_out_of_reach(&error) || is_behind_link(&error)) => Ok(None),
        Err(source) => Err(DomainError::Open { path: rule.path.clone().into(), source }),
    }
}

/// Adds a rule with the rights of a directory. Uses the rights of a file if the path was listed as a file, or if the
/// kernel rejects the first rule. Returns false if no rule was needed: the right to list allows nothing on a file.
fn add(ruleset: BorrowedFd<'_>, path: BorrowedFd<'_>, rule: &PathRule, abi: ABI) -> io::Result<bool> {
    let add = |directory| match rights(rule.access, abi, directory).bits() {
        0 => Ok(false),
        rights => system::landlock_add_path(ruleset, path, rights).map(|()| true),
    };
    match add(!rule.file) {
        Err(error) if !rule.file && error.raw_os_error() == Some(libc::EINVAL) => add(false),
        added => added,
    }
}

/// Opens a path with `O_PATH`. Follows no link, by which an agent could choose another root.
pub(crate) fn open_path(path: &Path, named: bool) -> io::Result<File> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    if named {
        let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        match openat2(AT_FDCWD, path, how) {
            // A worker of root has no openat2 (nor could it widen anything: it is inside its own domain).
            Err(Errno::ENOSYS | Errno::EPERM) => {}
            opened => return Ok(opened?.into()),
        }
    }
    // Rust's own way to open drops `O_PATH` where the C library counts it among the access modes (musl).
    Ok(open(path, flags, Mode::empty())?.into())
}

/// True if the error means that the file is gone, or is on a mount that does not answer.
pub(crate) fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOENT
                | libc::ENOTDIR
                | libc::EACCES
                | libc::EPERM
                | libc::ENOTCONN
                | libc::ESTALE
                | libc::EIO
        )
    )
}

fn is_behind_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Returns the Landlock rights of an access that the ABI knows. For a file, leaves out rights on directories, which
/// would be an error (EINVAL, `landlock_add_rule(2)`).
fn rights(access: Access, abi: ABI, directory: bool) -> BitFlags<AccessFs> {
    let all = AccessFs::from_all(abi);
    let contents = AccessFs::ReadFile | AccessFs::Execute;
    let mut rights = BitFlags::EMPTY;
    if access.has(Access::LIST) {
        rights |= AccessFs::ReadDir;
    }
    if access.has(Access::READ) {
        rights |= contents;
    }
    if access.has(Access::WRITE) {
        rights |= all & !(contents | AccessFs::ReadDir);
    }
    if access.has(Access::DEVICE) {
        rights |= AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    }
    rights & if directory { all } else { AccessFs::from_file(abi) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_rule_has_no_right_of_directories() {
        let rights = rights(Access::ALL, ABI::V7, false);
        assert_eq!(rights & !AccessFs::from_file(ABI::V7), BitFlags::EMPTY);
        assert!(
            rights
                .contains(AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::Execute)
        );
    }

    #[test]
    fn no_rule_has_a_right_that_its_abi_lacks() {
        for number in 1..=9 {
            let abi = ABI::from(number);
            for access in [Access::LIST, Access::TREE, Access::ALL, Access::DEVICE] {
                for directory in [true, false] {
                    assert_eq!(rights(access, abi, directory) & !AccessFs::from_all(abi), BitFlags::EMPTY);
                }
            }
            assert_eq!(rights(Access::ALL, abi, true), AccessFs::from_all(abi));
        }
    }

    #[test]
    fn listing_allows_no_contents_and_reading_no_change() {
        assert_eq!(rights(Access::LIST, ABI::V7, true), BitFlags::from(AccessFs::ReadDir));
        assert_eq!(rights(Access::TREE, ABI::V7, true), AccessFs::from_read(ABI::V7));
        let hidden_inside = Access::LIST | Access::WRITE;
        assert_eq!(
            rights(hidden_inside, ABI::V7, true) & (AccessFs::ReadFile | AccessFs::Execute),
            BitFlags::EMPTY
        );
    }

    #[test]
    fn a_canonical_path_that_leads_through_a_link_gets_no_rule() {
        let platform = Platform::probe();
        if platform.abi == 0 {
            eprintln!("skipped: this kernel has no Landlock");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        std::fs::create_dir_all(root.join("real/inner")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let rules = |name: &str, named| {
            let rule = PathRule { path: root.join(name), access: Access::TREE, named, file: false };
            let mut domain = Domain::empty(&Network::Off, Tier::Full, platform).unwrap();
            domain.add_canonical(&[rule]).map(|_| domain.rules())
        };
        assert_eq!(rules("real/inner", false).unwrap(), 1);
        assert_eq!(rules("link/inner", false).unwrap(), 0);
        assert!(rules("link/inner", true).is_err());
    }
}
