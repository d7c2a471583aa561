//! Paths and processes in a command's error messages, with file permissions and the kernel's answer to the same access.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use complaint::{find, named_in, processes_in, start};
use ipc::denial::Operation;
use ipc::effect::Exec;
use ipc::named::{NamedPlace, Permits, process_of};
use ipc::path::WirePath;
use nix::unistd::geteuid;
use sandbox_exec::modes::permitted_by_mode;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::again::ask;
use super::head_tail::Ends;
use crate::assignment::Assignment;

/// Time limit for checks of the paths, since a file system may never answer. If it is exceeded, no paths are reported.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of paths to which an access is repeated.
const MOST_TRIED: usize = 8;

/// Returns the paths and processes that a command's output reports as denied. Ignores the exit status: `touch /etc/x;
/// true` fails and exits with 0.
pub async fn look(assignment: &Assignment, exec: &Exec, ends: &Ends) -> Vec<NamedPlace> {
    let mut names = names([&ends.head, &ends.tail]);
    let directory = directory(exec);
    names.retain(|name| directory.is_some() || name.starts_with('/'));
    if names.is_empty() {
        return Vec::new();
    }
    let (rights, tier) = (assignment.rights.clone(), assignment.tier);
    let directory = directory.unwrap_or_default();
    let looking = spawn_blocking(move || {
        let mut places: Vec<_> = names.iter().map(|named| find(named, &directory, permits)).collect();
        for place in places.iter_mut().take(MOST_TRIED) {
            place.asked = ask(place, &rights, tier);
        }
        places
    });
    timeout(PATIENCE, looking).await.map(Result::unwrap_or_default).unwrap_or_default()
}

/// Returns the names of processes and then of paths in the two parts of an output.
fn names(text: [&str; 2]) -> Vec<String> {
    processes_in(text).into_iter().chain(named_in(text).into_iter().map(str::to_owned)).collect()
}

/// Returns the directory to which relative paths in a command's messages refer; `None` if the command may change it.
fn directory(exec: &Exec) -> Option<PathBuf> {
    let text = exec.argv.last().map(WirePath::to_string).unwrap_or_default();
    start(&text, exec.cwd.as_path())
}

fn permits(path: &Path) -> Permits {
    Permits {
        read: permitted_by_mode(Operation::Read, path),
        write: permitted_by_mode(Operation::Write, path),
        execute: permitted_by_mode(Operation::Execute, path),
        remove: may_remove(path),
        own: process_of(path)
            .map_or_else(|| path.to_owned(), |number| format!("/proc/{number}").into())
            .symlink_metadata()
            .is_ok_and(|meta| meta.uid() == geteuid().as_raw()),
    }
}

/// True if file permissions let this user remove a path. The path's directory must be writable; if it is sticky, the
/// user must own the file or the directory (inode(7)).
fn may_remove(path: &Path) -> bool {
    let Some(directory) = path.parent() else {
        return false;
    };
    let is_own = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.uid() == geteuid().as_raw());
    let is_sticky = directory.metadata().is_ok_and(|meta| meta.mode() & 0o1000 != 0);
    let closed = is_sticky && path.symlink_metadata().is_ok() && !is_own(path) && !is_own(directory);
    !closed && permitted_by_mode(Operation::Write, directory)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use ipc::confinement::Tier;
    use ipc::rights::Rights;
    use ipc::tool::Access;

    use super::*;

    fn exec(directory: &Path, text: &str) -> Exec {
        Exec {
            argv: ["bash", "-c", text].map(WirePath::from).into(),
            cwd: directory.into(),
            environment: Vec::new(),
            access: Access::Standing,
            network: None,
            timeout_ms: 0,
        }
    }

    fn nothing(project: &Path) -> Assignment {
        Assignment {
            project: project.to_owned(),
            temp: None,
            rights: Rights::default(),
            tier: Tier::Floor,
            shell_init: None,
            new_file_mode: 0o600,
        }
    }

    fn ends(text: &str) -> Ends {
        Ends { head: text.to_owned(), ..Ends::default() }
    }

    #[tokio::test]
    async fn a_complaint_is_looked_at_where_the_command_was() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap();
        fs::create_dir(directory.join("sub")).unwrap();
        fs::write(directory.join("sub/x"), "").unwrap();
        let said = ends("touch: cannot touch 'x': Permission denied\n");
        let run = exec(&directory, "cd sub && touch x");
        let found = look(&nothing(&directory), &run, &said).await;
        let [found] = found.try_into().unwrap();
        assert_eq!(found.path, directory.join("sub/x").into());
        assert_eq!((found.nearest, found.permits.write, found.permits.own), (None, true, true));
        assert_eq!(found.asked.write, Some(0), "nothing confines this process");
        assert_eq!(look(&nothing(&directory), &run, &ends("touch: created\n")).await, []);
    }

    #[tokio::test]
    async fn a_relative_name_of_a_command_that_goes_elsewhere_is_of_no_place() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap();
        let run = exec(&directory, "(cd /usr/lib; touch ../x /etc/x)");
        let said = ends(
            "touch: cannot touch '../x': Permission denied\ntouch: cannot touch '/etc/x': Permission denied\n",
        );
        let found = look(&nothing(&directory), &run, &said).await;
        assert_eq!(found.iter().map(|place| place.named.as_str()).collect::<Vec<_>>(), ["/etc/x"]);
    }

    #[test]
    fn plain_permissions_are_asked_of_each_kind_of_change() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(permits(&file), Permits { execute: false, ..Permits::ALL });
        let missing = permits(&place.path().join("none"));
        assert_eq!((missing.write, missing.read, missing.own), (true, false, false));
        if geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(12345), Some(12345)).unwrap();
            assert!(!permits(&file).own);
            let theirs = tempfile::tempdir().unwrap();
            fs::set_permissions(theirs.path(), Permissions::from_mode(0o1777)).unwrap();
            fs::write(theirs.path().join("file"), "").unwrap();
            assert!(permits(&theirs.path().join("file")).remove, "it is our own");
            for place in [theirs.path(), &theirs.path().join("file")] {
                std::os::unix::fs::chown(place, Some(12345), Some(12345)).unwrap();
            }
            assert!(!permits(&theirs.path().join("file")).remove);
        }
    }

    #[test]
    fn a_name_is_looked_for_where_it_leads() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", base.join("link")).unwrap();
        let looked = |named: &str| {
            let NamedPlace { path, nearest, .. } = find(named, &base, |_| Permits::ALL);
            (path, nearest)
        };
        let whole = |name: &str| base.join(name).into();
        assert_eq!(looked("a"), (whole("a"), None));
        assert_eq!(looked("./link/new"), (whole("a/b/new"), Some(whole("a/b"))));
        assert_eq!(looked("link/../new/er"), (whole("a/new/er"), Some(whole("a"))), "as the kernel reads it");
        assert_eq!(looked("none/../x"), (whole("x"), Some(base.as_path().into())));
        assert_eq!(looked("/no/such"), ("/no/such".into(), Some("/".into())));
    }
}
