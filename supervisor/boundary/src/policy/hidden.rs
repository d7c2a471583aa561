//! Default hidden paths, listed in `hidden.txt`: credentials, keys, histories, other users' homes, Bailiwick's state.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gate::listed::{matches, places};
use ipc::path::WirePath;
use nix::unistd::{AccessFlags, access};

use super::links::Links;

/// List of hidden paths in sections. The head of `hidden.txt` explains the sections.
const LIST: &str = include_str!("hidden.txt");

/// Parent of all users' runtime directories. It is hidden as a whole.
const RUNTIME_DIRECTORIES: &str = "/run/user";

#[derive(Clone, Debug)]
pub struct Host {
    /// Canonical home directories of the user, from `HOME` and the password database.
    pub homes: Vec<PathBuf>,
    pub other_homes: Vec<PathBuf>,
    /// Canonical path of the user's runtime directory. `None` if it is in `/run/user`, or missing.
    pub runtime: Option<PathBuf>,
    /// True if this process runs as root. Then files that only root can read are hidden as well.
    pub is_root: bool,
}

#[derive(Clone, Debug)]
pub struct HiddenPaths(pub Vec<WirePath>);

impl Host {
    /// Examines this machine. `home` and `runtime` are the values of `HOME` and `XDG_RUNTIME_DIR`. `worker` is the home
    /// of the user that workers run as, if that is another user.
    pub fn probe(home: Option<OsString>, runtime: Option<OsString>, worker: Option<PathBuf>) -> Self {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let named = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
        let claimed = named(home);
        let mut homes: Vec<_> = claimed
            .into_iter()
            .chain(user.map(|user| user.dir))
            .chain(worker)
            .filter_map(|home| fs::canonicalize(home).ok())
            .filter(|home| home != Path::new("/"))
            .collect();
        homes.dedup();
        let other_homes = all_homes().into_iter().filter(|other| !homes.contains(other)).collect();
        let runtime = named(runtime)
            .and_then(|runtime| fs::canonicalize(runtime).ok())
            .filter(|runtime| !runtime.starts_with(RUNTIME_DIRECTORIES));
        Self { homes, other_homes, runtime, is_root: nix::unistd::geteuid().is_root() }
    }
}

impl HiddenPaths {
    /// Returns the default hidden paths and Bailiwick's directories `own`. Leaves out a home that contains the project.
    pub fn new(host: &Host, own: &[PathBuf], project: &Path) -> Self {
        let in_homes = host.homes.iter().flat_map(|home| below(home, "home"));
        let in_runtime = host.runtime.iter().flat_map(|runtime| below(runtime, "runtime"));
        let of_system = of_machine("system").filter(|path| host.is_root || is_readable(path));
        let for_root = || of_machine("root").chain(of_machine("mounted").filter(|path| is_mount(path)));
        let of_root = host.is_root.then(for_root).into_iter().flatten();
        // The owner's home is not "another user's" for a project inside it.
        let others = host.other_homes.iter().filter(|other| !project.starts_with(other)).cloned();
        let all = in_homes
            .chain(in_runtime)
            .chain(of_system)
            .chain(of_root)
            .chain(others)
            .chain(own.iter().cloned());
        Self(followed(&all.collect::<Vec<_>>()).collect())
    }

    #[must_use]
    pub fn with(mut self, more: &[PathBuf]) -> Self {
        self.0.extend(followed(more));
        self
    }
}

/// Resolves the links in paths, since Landlock rules apply to inodes.
fn followed(paths: &[PathBuf]) -> impl Iterator<Item = WirePath> {
    let mut links = Links::expecting(paths.iter().map(PathBuf::as_path));
    paths.iter().map(move |path| WirePath::from(links.follow(path).path))
}

fn of_machine(section: &str) -> impl Iterator<Item = PathBuf> {
    below(Path::new("/"), section).into_iter()
}

/// Returns the paths of a section of [`LIST`] in a directory, with patterns expanded.
fn below(directory: &Path, section: &str) -> Vec<PathBuf> {
    let listed = || places(LIST).filter(|listed| listed.section == section).map(|listed| listed.place);
    let excepted: Vec<_> =
        listed().filter_map(|place| place.strip_prefix('!')).map(|place| directory.join(place)).collect();
    let found = |place: &str| match place.rsplit_once('/') {
        _ if place.starts_with('!') => Vec::new(),
        Some((above, name)) if name.contains('*') => matching(&directory.join(above), name),
        None if place.contains('*') => matching(directory, place),
        _ => vec![directory.join(place)],
    };
    listed().flat_map(found).filter(|path| !excepted.contains(path)).collect()
}

fn matching(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let matching = entries.filter(|entry| matches(pattern.as_bytes(), entry.file_name().as_bytes()));
    matching.map(|entry| entry.path()).collect()
}

/// True if this user can read the file. A file that the user cannot read need not be hidden: rules around each path in
/// /etc would take most of the time of a start.
fn is_readable(path: &Path) -> bool {
    access(path, AccessFlags::R_OK).is_ok()
}

fn is_mount(path: &Path) -> bool {
    let device = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| meta.dev());
    device(path).is_some_and(|own| path.parent().and_then(device).is_some_and(|above| above != own))
}

fn all_homes() -> Vec<PathBuf> {
    let entries = fs::read_dir("/home").into_iter().flatten().flatten();
    let is_home =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() >= 1000);
    let mut homes: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_home(path)).collect();
    homes.push(PathBuf::from("/root"));
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(project: &str) -> Vec<String> {
        let host = Host {
            homes: vec!["/nowhere/me".into()],
            other_homes: vec!["/nowhere/you".into()],
            runtime: Some("/nowhere/run".into()),
            is_root: true,
        };
        let place = |name: &str| PathBuf::from("/nowhere/me/.b").join(name);
        let own = [place("c"), place("s"), place("k")];
        let paths = HiddenPaths::new(&host, &own, Path::new(project)).with(&["/nowhere/more".into()]);
        paths.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn credentials_other_homes_and_our_own_state_are_hidden() {
        let hidden = hidden("/nowhere/me/p");
        for path in [
            "/nowhere/me/.ssh",
            "/nowhere/run/keyring",
            "/etc/shadow",
            "/nowhere/you",
            "/nowhere/me/.b/s",
            "/nowhere/more",
        ] {
            assert!(hidden.iter().any(|found| found == path), "{path} in {hidden:?}");
        }
    }

    #[test]
    fn the_owners_home_of_a_project_is_not_anothers() {
        assert!(!hidden("/nowhere/you/p").iter().any(|found| found == "/nowhere/you"));
    }

    #[test]
    fn a_hidden_path_behind_a_link_is_hidden_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let host =
            Host { homes: vec![root.join("link")], other_homes: vec![], runtime: None, is_root: false };
        let own = ["c", "s", "k"].map(|name| root.join(name));
        let hidden = HiddenPaths::new(&host, &own, &root.join("p"));
        assert!(hidden.0.contains(&root.join("real/.ssh").into()), "{hidden:?}");
    }

    #[test]
    fn each_hidden_place_has_one_line_and_a_reason() {
        for listed in places(LIST) {
            assert!(["home", "runtime", "system", "root", "mounted"].contains(&listed.section), "{listed:?}");
            assert_eq!(
                listed.place.starts_with('/'),
                !["home", "runtime"].contains(&listed.section),
                "{listed:?}"
            );
            let above = listed.place.rsplit_once('/').unwrap_or_default().0;
            assert!(!above.contains('*'), "only a last name is a pattern: {listed:?}");
        }
    }

    #[test]
    fn a_mount_is_told_from_a_directory() {
        assert!(is_mount(Path::new("/proc")));
        assert!(!is_mount(Path::new("/proc/self")) && !is_mount(Path::new("/nowhere")));
    }

    #[test]
    fn a_pattern_hides_what_exists_but_for_its_exceptions() {
        let home = tempfile::tempdir().unwrap();
        for name in ["snap/firefox", "snap/flutter"] {
            fs::create_dir_all(home.path().join(name)).unwrap();
        }
        fs::write(home.path().join("mine.kdbx"), "").unwrap();
        let hidden = below(home.path(), "home");
        for (name, is_hidden) in
            [("snap/firefox", true), ("snap/flutter", false), ("mine.kdbx", true), ("snap", false)]
        {
            assert_eq!(hidden.contains(&home.path().join(name)), is_hidden, "{name}");
        }
    }
}
