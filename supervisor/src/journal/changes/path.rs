//! Checked paths: paths of the project that a worker reported.

use std::fmt;

use ipc::path::WirePath;

/// Maximum size in bytes of a path for the kernel, including the NUL at the end (`PATH_MAX`, linux/limits.h).
const PATH_MAX: usize = 4096;

/// A path below the project: relative, without empty, `.`, `..` or `.git` components.
///
/// Paths are ordered by their bytes, as in git.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectPath(Box<[u8]>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("a path has {0} bytes, not between 1 and 4095")]
    Length(usize),
    /// The path is absolute, or has an empty component.
    #[error("path {0:?} is not relative to the project")]
    NotRelative(WirePath),
    #[error("path {path:?} has the forbidden component {component:?}")]
    Component {
        path: WirePath,
        /// `.`, `..` or `.git`.
        component: &'static str,
    },
    #[error("a path contains a NUL byte")]
    Nul,
}

impl ProjectPath {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn to_wire(&self) -> WirePath {
        WirePath::from(self.0.to_vec())
    }

    /// Returns the directories above the path, the nearest first, without the project itself.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self(self.0[..at].into()))
    }

    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// True if git would reject the path, and with it a whole patch that names the path. `symlink` is true for a link.
    ///
    /// Git rejects `.git` in any case, names that become `.git` on NTFS (`is_ntfs_dotgit` of git's path.c), and
    /// `.gitmodules` as a symbolic link.
    pub fn is_refused_by_git(&self, symlink: bool) -> bool {
        self.0.split(|byte| *byte == b'/').any(is_dotgit_alias)
            || (symlink && self.file_name().eq_ignore_ascii_case(b".gitmodules"))
    }
}

fn is_dotgit_alias(component: &[u8]) -> bool {
    // NTFS drops trailing dots and spaces, and `name:stream` names a stream of `name`.
    let name = component.split(|byte| matches!(byte, b':' | b'\\')).next().unwrap_or_default();
    let kept = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    name[..kept].eq_ignore_ascii_case(b".git") || name[..kept].eq_ignore_ascii_case(b"git~1")
}

impl TryFrom<WirePath> for ProjectPath {
    type Error = PathError;

    fn try_from(path: WirePath) -> Result<Self, PathError> {
        let bytes = path.as_bytes();
        if bytes.is_empty() || bytes.len() >= PATH_MAX {
            return Err(PathError::Length(bytes.len()));
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        for component in bytes.split(|byte| *byte == b'/') {
            let component = match component {
                b"" => return Err(PathError::NotRelative(path)),
                b"." => ".",
                b".." => "..",
                b".git" => ".git",
                _ => continue,
            };
            return Err(PathError::Component { path, component });
        }
        Ok(Self(bytes.into()))
    }
}

impl fmt::Debug for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_wire(), f)
    }
}

/// Escapes control characters, and replaces bytes that are not UTF-8.
impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in String::from_utf8_lossy(&self.0).chars() {
            if char.is_control() {
                write!(f, "{}", char.escape_default())?;
            } else {
                write!(f, "{char}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> Result<ProjectPath, PathError> {
        WirePath::from(bytes.to_vec()).try_into()
    }

    #[test]
    fn a_path_that_leaves_the_project_is_refused() {
        for bytes in [
            b"" as &[u8],
            b"/etc/passwd",
            b"..",
            b"a/../b",
            b"a/..",
            b"./a",
            b"a//b",
            b"a/",
            b".git/config",
            b"m/.git",
            b"a\0b",
            &[b'x'; 4096],
        ] {
            assert!(path(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn an_ordinary_path_is_kept_as_it_is() {
        for bytes in
            [b"a" as &[u8], b"a/b", b"...", b".gitignore", b"a b\n/\xff", b".github/x", &[b'x'; 4095]]
        {
            assert_eq!(path(bytes).unwrap().as_bytes(), bytes);
        }
    }

    #[test]
    fn ancestors_are_whole_components() {
        let ancestors: Vec<_> = path(b"a/bc/d").unwrap().ancestors().map(|a| a.to_wire()).collect();
        assert_eq!(ancestors, ["a/bc".into(), "a".into()]);
    }

    #[test]
    fn what_git_refuses_is_known() {
        for name in ["x/.GIT/y", ".git ", ".git...", "git~1", "GIT~1/x", ".git:stream", ".git\\x"] {
            assert!(path(name.as_bytes()).unwrap().is_refused_by_git(false), "{name}");
        }
        for name in [".gitignore", "git", ".git2", "git~2", ".gitmodules"] {
            assert!(!path(name.as_bytes()).unwrap().is_refused_by_git(false), "{name}");
        }
        assert!(path(b".gitmodules").unwrap().is_refused_by_git(true));
    }
}
