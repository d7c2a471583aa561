use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, Tier};
use ipc::path::WirePath;

use super::resolving;
use crate::tree::resolve;

/// Mount point of a program's private temp directory.
pub(crate) const TMP: &str = "/tmp";

/// Directory of devices, which the full tier always replaces by a new one.
const DEV: &str = "/dev";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Private temp directory to mount on `/tmp`; `None` if the program has none.
    pub(crate) tmp: Option<PathBuf>,
    /// Directories to mount on their own paths, outer ones before inner ones.
    pub(crate) roots: Vec<NamespaceRoot>,
    /// Granted sockets of other programs below a directory that the full tier replaces.
    pub(crate) sockets: Vec<PathBuf>,
    /// Granted sockets of other programs below hidden directories. Each of these directories is covered by one that
    /// shows only these sockets.
    pub(crate) windows: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    /// Existing paths inside writable directories that the program must not change.
    pub(crate) protected: Vec<InsidePath>,
    write: Vec<PathBuf>,
    /// Files that are replaced so that the program asks the broker for names, each with its replacement's name.
    pub(crate) resolving: Vec<(PathBuf, &'static str)>,
    pub(crate) terminal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamespaceRoot {
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
}

/// Path that the program must not move, with the writable directory around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InsidePath {
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
}

impl Layout {
    /// Plans the file tree. `program` is the program's path. `confinement` must not yet be adapted to the full tier.
    pub(crate) fn new(confinement: &Confinement, program: Option<&Path>) -> Self {
        let Confinement { rights, temp, project, .. } = confinement;
        let tmp = temp.clone().filter(|_| confinement.has_private_tmp(Tier::Full));
        let written = rights.write.iter().filter(|root| Some(*root) != tmp.as_ref());
        let mut roots: Vec<NamespaceRoot> =
            written.map(|root| NamespaceRoot { path: root.clone().into(), writable: true }).collect();
        let read = rights.read.iter().chain([project]).map(WirePath::as_path);
        for path in read.map(Path::to_owned).chain(program.into_iter().flat_map(names)) {
            let replaced = [(TMP, tmp.is_some()), (DEV, true)].into_iter().any(|(place, replaced)| {
                replaced && path.starts_with(place) && path != Path::new(place) && !is_own_device(&path)
            });
            if replaced && !roots.iter().any(|root| path.starts_with(&root.path)) {
                roots.push(NamespaceRoot { path, writable: false });
            }
        }
        roots.sort();
        let is_replaced = |path: &Path| tmp.is_some() && path.starts_with(TMP) || path.starts_with(DEV);
        let is_shown = |path: &Path| roots.iter().any(|root| path.starts_with(&root.path));
        let owned = |paths: &[WirePath]| paths.iter().cloned().map(PathBuf::from).collect::<Vec<_>>();
        let write = owned(&rights.write);
        // If the temp directory is not mounted on `/tmp`, only Landlock rules hide the directory around it.
        let inner = temp.as_ref().filter(|_| tmp.is_none());
        let covered = rights.hidden.iter().filter(|hidden| !inner.is_some_and(|temp| temp.is_within(hidden)));
        let hidden: Vec<_> = covered.cloned().map(PathBuf::from).collect();
        let is_hidden = |path: &PathBuf| hidden.iter().any(|hidden| path.starts_with(hidden));
        let (windows, sockets): (Vec<_>, Vec<_>) = owned(&rights.sockets).into_iter().partition(is_hidden);
        let sockets = sockets.into_iter().filter(|path| is_replaced(path) && !is_shown(path)).collect();
        Self {
            protected: inside(rights.protected.iter().map(WirePath::as_path), &write),
            sockets,
            windows,
            hidden,
            write,
            resolving: rights.net.hosts().map(|_| resolving::files()).unwrap_or_default(),
            terminal: confinement.terminal,
            tmp: tmp.map(Into::into),
            roots,
        }
    }

    /// Returns those of `places` that are inside a writable directory, where the program could move them.
    pub(super) fn held(&self, places: &[PathBuf]) -> Vec<InsidePath> {
        inside(places.iter().map(PathBuf::as_path), &self.write)
    }

    /// True if the program sees the host's file at `path`, false if that path is in a directory that the tier replaces.
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let own = self.tmp.is_some() && path.starts_with(TMP) || path.starts_with(DEV);
        !own || self.roots.iter().any(|root| path.starts_with(&root.path))
    }
}

/// Returns those of `paths` that are inside one of the directories `write`, each with that directory.
fn inside<'a>(paths: impl Iterator<Item = &'a Path>, write: &[PathBuf]) -> Vec<InsidePath> {
    let inside = |path: &'a Path| {
        let root = write.iter().find(|root| path.starts_with(root) && path != **root)?;
        Some(InsidePath { root: root.clone(), path: path.to_owned() })
    };
    paths.filter_map(inside).collect()
}

fn is_own_device(path: &Path) -> bool {
    ["/dev/shm", "/dev/pts", "/dev/mqueue"].iter().any(|own| path == Path::new(own))
}

/// Returns the path of a program as it is written, and with links resolved.
fn names(program: &Path) -> [PathBuf; 2] {
    [program.to_owned(), resolve(program)]
}

#[cfg(test)]
mod tests {
    use ipc::rights::Rights;

    use super::*;

    fn layout(project: &str, write: &[&str], temp: Option<&str>, program: Option<&str>) -> Layout {
        let paths = |paths: &[&str]| paths.iter().map(WirePath::from).collect();
        let rights = Rights {
            read: paths(&["/"]),
            write: paths(write),
            protected: paths(&["/p/.git/hooks", "/elsewhere/.envrc"]),
            ..Rights::default()
        };
        let temp = temp.map(WirePath::from);
        let confinement = Confinement { temp, ..Confinement::new(rights.normalised(), project.into()) };
        Layout::new(&confinement, program.map(Path::new))
    }

    fn roots(layout: &Layout) -> Vec<(&str, bool)> {
        layout.roots.iter().map(|root| (root.path.to_str().unwrap(), root.writable)).collect()
    }

    #[test]
    fn the_private_temp_directory_becomes_tmp() {
        let usual = layout("/p", &["/p", "/tmp/bw-1"], Some("/tmp/bw-1"), None);
        assert_eq!((usual.tmp.as_deref(), roots(&usual)), (Some(Path::new("/tmp/bw-1")), vec![("/p", true)]));
        assert!(usual.shows(Path::new("/p/x")) && !usual.shows(Path::new("/tmp/x")));
        let plain = layout("/p", &["/p"], None, None);
        assert_eq!((plain.tmp.as_deref(), roots(&plain)), (None, vec![("/p", true)]));
        assert!(plain.shows(Path::new("/tmp/x")));
    }

    #[test]
    fn what_holds_the_private_temp_directory_is_covered_where_that_becomes_tmp() {
        let covered = |write: &[&str]| {
            let paths = |paths: &[&str]| paths.iter().map(WirePath::from).collect();
            let hidden = paths(&["/h/.ssh", "/c/temps"]);
            let rights = Rights { hidden, write: paths(write), ..Rights::default() };
            let temp = Some("/c/temps/bw-1".into());
            let confinement = Confinement { temp, ..Confinement::new(rights.normalised(), "/p".into()) };
            Layout::new(&confinement, None).hidden
        };
        assert_eq!(covered(&["/c/temps/bw-1"]), ["/c/temps", "/h/.ssh"].map(PathBuf::from));
        assert_eq!(covered(&["/c/temps/bw-1", "/tmp"]), ["/h/.ssh"].map(PathBuf::from));
    }

    #[test]
    fn what_lies_below_the_hosts_tmp_and_is_needed_is_shown() {
        let below = layout("/tmp/p/sub", &["/tmp/bw-1"], Some("/tmp/bw-1"), Some("/tmp/bin/tool"));
        assert_eq!(roots(&below), [("/tmp/bin/tool", false), ("/tmp/p/sub", false)]);
        assert!(below.shows(Path::new("/tmp/p/sub/x")) && !below.shows(Path::new("/tmp/p")));
        let written = layout("/tmp/p", &["/tmp/p", "/tmp/bw-1"], Some("/tmp/bw-1"), Some("/tmp/p/tool"));
        assert_eq!(roots(&written), [("/tmp/p", true)]);
    }

    #[test]
    fn a_project_in_shared_memory_is_shown() {
        let memory = layout("/dev/shm/p", &["/tmp/bw-1"], Some("/tmp/bw-1"), None);
        assert_eq!(roots(&memory), [("/dev/shm/p", false)]);
        assert!(memory.shows(Path::new("/dev/shm/p/x")) && !memory.shows(Path::new("/dev/shm/secret")));
        assert_eq!(roots(&layout("/p", &[], None, None)), []);
    }

    #[test]
    fn a_granted_socket_is_shown_where_the_tier_would_not() {
        let paths = |paths: &[&str]| paths.iter().map(WirePath::from).collect();
        let sockets = paths(&["/dev/log", "/run/docker.sock", "/run/user/1/bus", "/tmp/a/agent", "/tmp/p/s"]);
        let rights = Rights {
            read: paths(&["/"]),
            hidden: paths(&["/run/user"]),
            write: paths(&["/tmp/bw-1", "/tmp/p"]),
            sockets,
            ..Rights::default()
        };
        let shown = |temp: Option<&str>| {
            let temp = temp.map(WirePath::from);
            let confinement = Confinement { temp, ..Confinement::new(rights.clone(), "/tmp/p".into()) };
            let Layout { sockets, windows, .. } = Layout::new(&confinement, None);
            (sockets, windows)
        };
        let windows = vec![PathBuf::from("/run/user/1/bus")];
        let own = ["/dev/log", "/tmp/a/agent"].map(PathBuf::from).to_vec();
        assert_eq!(shown(Some("/tmp/bw-1")), (own, windows.clone()));
        assert_eq!(shown(None), (vec!["/dev/log".into()], windows));
    }

    #[test]
    fn what_is_protected_lies_in_a_root() {
        let layout = layout("/p", &["/p"], None, None);
        assert_eq!(layout.protected, [InsidePath { root: "/p".into(), path: "/p/.git/hooks".into() }]);
        let held = layout.held(&["/p/.env", "/p", "/q/.env"].map(PathBuf::from));
        assert_eq!(held, [InsidePath { root: "/p".into(), path: "/p/.env".into() }]);
    }
}
