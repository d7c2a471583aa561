//! Resolution of the path of a file to change, and opening of the file's directory without following a link.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use ipc::denial::Operation;
use ipc::tool::ToolErrorKind;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};

use crate::fault::{Result, failed, refused, refused_io};

/// Maximum number of links in one path, as in the kernel (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Resolves all links of a path, so that an edit never replaces a link. The path's last components may be missing.
///
/// Fails for a loop of links, and for `..` after a missing directory.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            let message = format!("`{}` is not the path of a file.", path.display());
            return Err(failed(ToolErrorKind::InvalidArgument, message));
        };
        let place = canonical(parent)?.join(name);
        match place.read_link() {
            Ok(target) => path = place.with_file_name("").join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(refused(Operation::Read, &path, Errno::ELOOP))
}

/// Resolves the links of a directory. Last components that do not exist stay as they are.
fn canonical(directory: &Path) -> Result<PathBuf> {
    let mut missing = Vec::new();
    for ancestor in directory.ancestors() {
        match ancestor.canonicalize() {
            Ok(canonical) => return Ok(missing.iter().rev().fold(canonical, |path, name| path.join(name))),
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {
                missing.push(missing_name(directory, ancestor)?);
            }
            Err(error) => return Err(refused_io(Operation::Read, ancestor, &error)),
        }
    }
    Err(refused(Operation::Read, directory, Errno::ENOENT))
}

/// Returns the last component of the path of a missing directory. Fails for `..`, which has no meaning there.
fn missing_name(directory: &Path, ancestor: &Path) -> Result<OsString> {
    match ancestor.components().next_back() {
        Some(Component::Normal(name)) if ancestor.symlink_metadata().is_err() => Ok(name.to_owned()),
        _ => {
            let message = format!(
                "`{}` leads through a directory that does not exist; name it without `..`.",
                directory.display()
            );
            Err(failed(ToolErrorKind::InvalidArgument, message))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Fail,
    Make,
}

/// Opens a directory component by component. Fails if a component has become a link meanwhile. (openat2(2) could do
/// this in one call, but the sandbox denies it to uid 0.)
pub fn open_directory(directory: &Path, missing: Missing) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let root = open("/", flags, Mode::empty())?;
    descend(root, directory.strip_prefix("/").map_err(|_| Errno::EINVAL)?, missing)
}

pub fn descend(from: OwnedFd, relative: &Path, missing: Missing) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut directory = from;
    for component in relative.components() {
        let Component::Normal(name) = component else {
            return Err(Errno::EINVAL);
        };
        if missing == Missing::Make {
            match openat(&directory, name, flags, Mode::empty()) {
                Err(Errno::ENOENT) => match mkdirat(&directory, name, Mode::from_bits_truncate(0o777)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(errno) => return Err(errno),
                },
                Ok(next) => {
                    directory = next;
                    continue;
                }
                Err(errno) => return Err(errno),
            }
        }
        directory = openat(&directory, name, flags, Mode::empty())?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::fault::Stop;

    fn message(result: Result<PathBuf>) -> String {
        match result {
            Err(Stop::Failed(error)) => error.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_resolve_to_exactly_this() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a", root.join("dirlink")).unwrap();
        symlink("b/file", root.join("a/link")).unwrap();
        symlink("missing", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let odd = OsStr::from_bytes(b"n\xff");
        let table: [(PathBuf, PathBuf); 8] = [
            ("a/b/file".into(), "a/b/file".into()),
            ("a/../a/./b/file".into(), "a/b/file".into()),
            ("dirlink/b/file".into(), "a/b/file".into()),
            ("a/link".into(), "a/b/file".into()),
            ("dirlink/link".into(), "a/b/file".into()),
            ("dangling".into(), "missing".into()),
            ("dirlink/new/deeper/leaf".into(), "a/new/deeper/leaf".into()),
            (Path::new("a").join(odd).join(odd), Path::new("a").join(odd).join(odd)),
        ];
        for (path, expected) in table {
            assert_eq!(resolve(&root.join(&path)).unwrap(), root.join(&expected), "{path:?}");
        }
        assert!(message(resolve(&root.join("loop"))).contains("too many symbolic links"));
        assert!(message(resolve(&root.join("new/../x"))).contains("without `..`"));
        assert!(message(resolve(Path::new("/"))).contains("is not the path of a file"));
    }

    #[test]
    fn a_directory_swapped_for_a_link_is_not_entered() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        assert!(open_directory(&root.join("real"), Missing::Fail).is_ok());
        symlink("real", root.join("swapped")).unwrap();
        assert_eq!(open_directory(&root.join("swapped"), Missing::Fail).unwrap_err(), Errno::ENOTDIR);
        assert_eq!(open_directory(&root.join("new/dir"), Missing::Fail).unwrap_err(), Errno::ENOENT);
        assert!(open_directory(&root.join("new/dir"), Missing::Make).is_ok());
    }
}
