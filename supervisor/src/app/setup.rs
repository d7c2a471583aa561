//! What every confined command needs before its first process: directories, project, policy, temp, spawner.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, Environment, Identity, TierChoice};
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};

use super::args::ConfinementArgs;
use super::exit::Exit;
use crate::directories::{Directories, DirectoriesError};
use crate::gate::{ApprovalMode, Standing};
use crate::monitor::{PrivateTemp, Programs, Spawner, TempError, remove_stale};
use crate::policy::{
    Elsewhere, FollowError, Followed, HiddenPaths, Host, Owner, Policy, ProjectError, check_reachable,
    closed_to, foreign_owner, lead_to_caches, make_caches, open_project, write_root,
};
use crate::tripwire::Watch;

/// A session's place: everything about its confinement that flags and machine decide.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Our own directories.
    pub directories: Directories,
    /// The policy.
    pub policy: Policy,
    /// What is watched, where an agent may write in the project.
    pub watch: Option<Watch>,
    /// What passes of the environment.
    pub environment: Environment,
    /// Whether to start although a layer is missing.
    pub allow_degraded: bool,
    /// Which tier is wanted.
    pub tier: TierChoice,
    /// Whom workers run as, where that is not whoever we are.
    pub identity: Option<Identity>,
    /// The programs of the system.
    pub programs: Programs,
    /// The spawn thread.
    pub spawner: Spawner,
    /// The private temp directory; removed with this value.
    pub temp: PrivateTemp,
}

/// Why nothing could be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    /// No place for our own files.
    #[error(transparent)]
    Directories(#[from] DirectoriesError),
    /// The project is missing or refused.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A path of a flag does not exist, or cannot be granted.
    #[error("{flag} {path}: {why}")]
    Path {
        /// The flag.
        flag: &'static str,
        /// Its value.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The project's owner cannot execute our programs.
    #[error(
        "{program}: a worker for this project runs as uid {uid}, whom {closed} is closed to\n  next: install our programs \
         where everybody can execute them, as in /usr/local/bin, or run as the project's owner"
    )]
    Programs {
        /// Which.
        program: PathBuf,
        /// Who.
        uid: u32,
        /// Where the way ends.
        closed: PathBuf,
    },
    /// Too much is hidden inside what may be written.
    #[error("{0}\n  next: hide its subdirectories, or take it out of the write roots")]
    TooMuchHidden(#[from] FollowError),
    /// `--env` names no variable.
    #[error("--env {0:?}: expected NAME or NAME=VALUE, with a name of letters, digits and underscores")]
    Env(OsString),
    /// No temp directory.
    #[error(transparent)]
    Temp(#[from] TempError),
    /// The process itself is in trouble.
    #[error("cannot prepare to spawn: {0}")]
    System(#[from] io::Error),
}

impl SetupError {
    /// The exit code that it means.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Directories(_)
            | Self::Project(_)
            | Self::TooMuchHidden(_)
            | Self::Path { .. }
            | Self::Env(_) => Exit::Usage,
            Self::Programs { .. } | Self::Temp(_) | Self::System(_) => Exit::NoSandbox,
        }
    }
}

impl Setup {
    /// Resolves everything; makes our directories and the private temp.
    pub(crate) fn new(
        directories: Directories,
        directory: &Path,
        mode: ApprovalMode,
        args: &ConfinementArgs,
    ) -> Result<Self, SetupError> {
        directories.make()?;
        for leftover in remove_stale(&directories.locks()) {
            super::say(&format!("note: {leftover}"));
        }
        let owner = foreign_owner(directory);
        let identity = owner.as_ref().map(|owner| owner.identity);
        let scope = Scope::resolve(directory, mode, args, &directories, owner.as_ref())?;
        let programs = scope.programs(mode, identity)?;
        let watch = watch(mode, &scope.project, &scope.elsewhere, &scope.given);
        let protected = scope.protected(watch.as_ref())?;
        let temp = private_temp(&directories, identity)?;
        let place = scope.caches.clone().unwrap_or_else(|| temp.path().join("caches"));
        let mut environment = environment(&args.env, owner.as_ref(), temp.path())?;
        lead_to_caches(&mut environment, &place, home(owner.as_ref()).as_deref());
        environment.caches = scope.caches.as_ref().map(WirePath::from);
        let policy = scope.policy(mode, args, protected, temp.path());
        let followed = Followed::of(&policy.standing())?;
        Ok(Self {
            directories,
            watch,
            policy,
            environment,
            identity,
            allow_degraded: args.allow_degraded,
            tier: args.tier.into(),
            spawner: Spawner::start(programs.sandbox_exec.clone(), followed)?,
            programs,
            temp,
        })
    }

    /// Another private temp directory, for workers of the same user.
    pub(crate) fn another_temp(&self) -> Result<PrivateTemp, SetupError> {
        private_temp(&self.directories, self.identity)
    }

    /// The standing rights of the root agent.
    pub(crate) fn standing(&self) -> Standing {
        let Policy { project, temp, mode, .. } = &self.policy;
        let standing = Standing::new(self.policy.standing(), project.clone(), Some(temp.clone()), *mode);
        Standing { caches: self.environment.caches.clone(), ..standing }
    }

    /// A confinement under these rights, in this place.
    pub(crate) fn confinement(&self, rights: Rights) -> Confinement {
        Confinement {
            rights,
            project: self.policy.project.clone(),
            temp: Some(self.policy.temp.clone()),
            hidden_files: Vec::new(),
            environment: self.environment.clone(),
            allow_degraded: self.allow_degraded,
            read_only: false,
            tier: self.tier,
            landlock_abi: None,
            terminal: false,
            identity: self.identity,
        }
    }
}

/// Where agents may read and write: what flags, project and machine add up to.
struct Scope {
    project: PathBuf,
    hidden: HiddenPaths,
    /// Where git has to write outside the project.
    elsewhere: Elsewhere,
    /// The project's caches, where they outlive the session.
    caches: Option<PathBuf>,
    /// What the user gave away.
    given: Vec<PathBuf>,
    /// That, what git needs, and the caches.
    write: Vec<WirePath>,
}

impl Scope {
    fn resolve(
        directory: &Path,
        mode: ApprovalMode,
        args: &ConfinementArgs,
        directories: &Directories,
        owner: Option<&Owner>,
    ) -> Result<Self, SetupError> {
        let host = Host::probe(std::env::var_os("HOME"), owner.and_then(|owner| owner.home.clone()));
        let (project, hidden) = resolve(directory, &host, directories, &args.hide)?;
        let caches = lasting_caches(mode, directories, &project, owner);
        let hidden = match &caches {
            Some(own) => hidden.around_caches(own),
            None => hidden,
        };
        let given = args.write.iter().map(|path| writable(&project, path)).collect::<Result<Vec<_>, _>>()?;
        let elsewhere = elsewhere(mode, &project, &hidden);
        let beside = elsewhere.directory.iter().chain(&caches).map(WirePath::from);
        let write = given.iter().cloned().chain(beside).collect();
        let given = given.into_iter().map(PathBuf::from).collect();
        Ok(Self { project, hidden, elsewhere, caches, given, write })
    }

    /// The programs of the system; what runs as another user has to be able to execute them, and to reach the project.
    fn programs(&self, mode: ApprovalMode, identity: Option<Identity>) -> Result<Programs, SetupError> {
        let programs = Programs::beside_current_exe()?;
        warn_of_writable_programs(&programs, mode, &self.project, &self.write);
        if let Some(identity) = identity {
            check_reachable(&self.project, identity)?;
            check_programs(&programs, identity)?;
        }
        Ok(programs)
    }

    /// What there is of that which the host runs later, here and where git writes for others.
    fn protected(&self, watch: Option<&Watch>) -> io::Result<Vec<WirePath>> {
        let existing = watch.map(Watch::existing).transpose()?.unwrap_or_default();
        Ok(existing.iter().chain(&self.elsewhere.of_others).map(WirePath::from).collect())
    }

    fn policy(
        self,
        mode: ApprovalMode,
        args: &ConfinementArgs,
        protected: Vec<WirePath>,
        temp: &Path,
    ) -> Policy {
        Policy {
            project: self.project.into(),
            temp: temp.into(),
            mode,
            net: Network::from(args.net),
            reach: args.reach(),
            write: self.write,
            hidden: self.hidden.0,
            protected,
        }
    }
}

/// The project's caches, where they outlive the session: an agent that may not change the project has none to build, and
/// another user does not get into our cache directory, as root must make nothing in that user's own.
fn lasting_caches(
    mode: ApprovalMode,
    directories: &Directories,
    project: &Path,
    owner: Option<&Owner>,
) -> Option<PathBuf> {
    if mode != ApprovalMode::Auto || owner.is_some() {
        return None;
    }
    match make_caches(&directories.cache, project) {
        Ok(place) => Some(place),
        Err(error) => {
            let cache = directories.cache.display();
            super::say(&format!("note: caches of this session end with it: {cache}: {error}"));
            None
        }
    }
}

/// The home of whom workers run as.
fn home(owner: Option<&Owner>) -> Option<PathBuf> {
    match owner {
        Some(owner) => owner.home.clone(),
        None => std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
    }
}

fn private_temp(directories: &Directories, identity: Option<Identity>) -> Result<PrivateTemp, SetupError> {
    let temp = PrivateTemp::create(&directories.locks())?;
    if let Some(Identity { uid, gid }) = identity {
        chown(temp.path(), Some(uid), Some(gid))?;
    }
    Ok(temp)
}

/// What runs as another user executes our worker as that user.
fn check_programs(programs: &Programs, identity: Identity) -> Result<(), SetupError> {
    match closed_to(identity, &programs.worker) {
        Some(closed) => {
            Err(SetupError::Programs { program: programs.worker.clone(), uid: identity.uid, closed })
        }
        None => Ok(()),
    }
}

/// Sets the variables that say who one is, unless the user did. Who has no home has one in the temp directory.
fn at_home(environment: &mut Environment, owner: &Owner, temp: &Path) {
    let home = owner.home.as_deref().unwrap_or(temp);
    let mut said = vec![("HOME", home.as_os_str().as_bytes().to_vec())];
    for name in ["USER", "LOGNAME"] {
        let value = owner.name.clone().unwrap_or_else(|| owner.identity.uid.to_string());
        said.push((name, value.into_bytes()));
    }
    for (name, value) in said {
        let named = environment.pass.iter().any(|passed| passed == name)
            || environment.set.iter().any(|(set, _)| set == name);
        if !named {
            environment.set.push((name.to_owned(), value));
        }
    }
}

fn resolve(
    directory: &Path,
    host: &Host,
    directories: &Directories,
    hide: &[PathBuf],
) -> Result<(PathBuf, HiddenPaths), SetupError> {
    let canonical = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    // What the user hides may well lie inside the project; what is hidden by default must not.
    let defaults = HiddenPaths::new(host, directories, &canonical, &[]);
    let roots: Vec<PathBuf> = defaults.0.into_iter().map(PathBuf::from).collect();
    let project = open_project(directory, host, &roots)?;
    let hide: Vec<_> = hide.iter().map(|path| project.join(path)).collect();
    let hidden = HiddenPaths::new(host, directories, &project, &hide);
    Ok((project, hidden))
}

/// Where git has to write outside the project, and may: nothing that is hidden, and nothing around what is.
fn elsewhere(mode: ApprovalMode, project: &Path, hidden: &HiddenPaths) -> Elsewhere {
    if mode != ApprovalMode::Auto {
        return Elsewhere::default();
    }
    let mut elsewhere = Elsewhere::of(project);
    let meets_hidden = |directory: &Path| {
        hidden
            .0
            .iter()
            .any(|path| path.as_path().starts_with(directory) || directory.starts_with(path.as_path()))
    };
    if elsewhere.directory.as_deref().is_some_and(meets_hidden) {
        elsewhere = Elsewhere::default();
    }
    if let Some(note) = &elsewhere.note {
        super::say(&format!("note: {note}"));
    }
    elsewhere
}

/// What is watched, if an agent may write in the project at all. Only what the user gives away *inside* a watched root is
/// given away.
fn watch(mode: ApprovalMode, project: &Path, elsewhere: &Elsewhere, given: &[PathBuf]) -> Option<Watch> {
    let meets = |path: &PathBuf| path.starts_with(project) || project.starts_with(path);
    if mode != ApprovalMode::Auto && !given.iter().any(meets) {
        return None;
    }
    let git_directories: Vec<_> = elsewhere.directory.iter().cloned().collect();
    let inside = |path: &PathBuf, root: &Path| path.starts_with(root) && path != root;
    let granted = given.iter().filter(|path| {
        inside(path, project) || git_directories.iter().any(|directory| inside(path, directory))
    });
    let granted = granted.cloned().collect();
    Some(Watch { project: project.to_owned(), git_directories, granted })
}

/// Says when an agent may write where our own programs lie. This session executes what it has opened; the next would
/// execute what it finds.
fn warn_of_writable_programs(programs: &Programs, mode: ApprovalMode, project: &Path, write: &[WirePath]) {
    let place = programs.sandbox_exec.parent().unwrap_or(Path::new("/"));
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let project = (mode == ApprovalMode::Auto).then_some(project);
    let mut roots = project.into_iter().chain(write.iter().map(WirePath::as_path));
    if let Some(root) = roots.find(|root| place.starts_with(root)) {
        super::say(&format!(
            "note: our own programs lie in {}, inside {}, which agents may write; copy them elsewhere, or look before you \
             run them again",
            place.display(),
            root.display()
        ));
    }
}

fn writable(project: &Path, path: &Path) -> Result<WirePath, SetupError> {
    write_root(project, path).map_err(|why| SetupError::Path { flag: "--write", path: path.to_owned(), why })
}

/// What passes of the environment: what the flags say, and who works as another is at home there.
fn environment(flags: &[OsString], owner: Option<&Owner>, temp: &Path) -> Result<Environment, SetupError> {
    let mut environment = of_flags(flags)?;
    if let Some(owner) = owner {
        at_home(&mut environment, owner, temp);
    }
    Ok(environment)
}

fn of_flags(flags: &[OsString]) -> Result<Environment, SetupError> {
    let mut environment = Environment::default();
    for flag in flags {
        let (name, value) = split(flag);
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name));
        let name = name.ok_or_else(|| SetupError::Env(flag.clone()))?.to_owned();
        match value {
            Some(value) => environment.set.push((name, value.to_vec())),
            None => environment.pass.push(name),
        }
    }
    Ok(environment)
}

fn split(flag: &OsStr) -> (&[u8], Option<&[u8]>) {
    let bytes = flag.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_as_another_is_at_home_there_unless_the_user_says_otherwise() {
        let identity = Identity { uid: 12345, gid: 12345 };
        let owner = Owner { identity, name: Some("me".to_owned()), home: Some("/home/me".into()) };
        let set = |environment: &Environment| {
            let pairs =
                environment.set.iter().map(|(name, value)| format!("{name}={}", value.escape_ascii()));
            pairs.collect::<Vec<_>>().join(" ")
        };
        let mut ours = Environment::default();
        at_home(&mut ours, &owner, Path::new("/tmp/bw-1"));
        assert_eq!(set(&ours), "HOME=/home/me USER=me LOGNAME=me");
        let mut said = of_flags(&["HOME=/x".into(), "USER".into()]).unwrap();
        at_home(&mut said, &Owner { name: None, home: None, ..owner.clone() }, Path::new("/tmp/bw-1"));
        assert_eq!(set(&said), "HOME=/x LOGNAME=12345");
        let mut homeless = Environment::default();
        at_home(&mut homeless, &Owner { home: None, ..owner }, Path::new("/tmp/bw-1"));
        assert!(set(&homeless).starts_with("HOME=/tmp/bw-1 "));
    }

    #[test]
    fn env_flags_pass_or_set() {
        let flags = ["FOO", "BAR=a=b", "EMPTY="].map(OsString::from);
        let environment = of_flags(&flags).unwrap();
        assert_eq!(environment.pass, ["FOO"]);
        assert_eq!(environment.set, [("BAR".to_owned(), b"a=b".to_vec()), ("EMPTY".to_owned(), vec![])]);
        for bad in ["", "=x", "A-B", "1A", "A B=c"] {
            assert!(of_flags(&[bad.into()]).is_err(), "{bad}");
        }
    }
}
