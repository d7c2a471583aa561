//! Directory of a session's package caches, which contains one directory for each access level.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use boundary::monitor::{PrivateTemp, Temps};
use boundary::policy::{make_caches, make_sessions};

use super::error::SetupError;
use super::scope::Mode;
use super::wanted::Caches;
use crate::process::directories::Directories;
use crate::process::messages::say;

#[derive(Debug)]
pub(super) enum CachesRoot {
    /// Directory for the project. It stays after the session.
    Lasting(PathBuf),
    /// Directory for the session. Dropping this removes the directory.
    OfSession(PrivateTemp),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CachesWanted<'a> {
    pub(super) mode: Mode,
    pub(super) caches: Caches,
    pub(super) project: &'a Path,
    /// True if workers run as another user, who cannot enter the supervisor's cache directory.
    pub(super) foreign: bool,
}

impl CachesRoot {
    /// Creates the directory. Returns `None` if there is a single access level and the caches end with the session.
    pub(super) fn make(
        wanted: CachesWanted<'_>,
        directories: &Directories,
        temps: &Temps,
    ) -> Result<Option<Self>, SetupError> {
        let CachesWanted { mode, caches, project, foreign } = wanted;
        // Without write access to the project, nothing is built.
        if caches == Caches::OutliveIt && mode.comes_to_be_written() && !foreign {
            match make_caches(&directories.cache, project) {
                Ok(place) => return Ok(Some(Self::Lasting(place))),
                Err(error) => {
                    let cache = directories.cache.display();
                    say(&format!(
                        "note: the package caches of this session are deleted at its end: {cache}: {error}"
                    ));
                }
            }
        }
        if !mode.has_levels() {
            return Ok(None);
        }
        let place =
            if foreign { Err(io::ErrorKind::Unsupported.into()) } else { make_sessions(&directories.cache) };
        let place = place.or_else(|_| temps.beside("caches"))?;
        let root = PrivateTemp::create_in(&place, &directories.locks())?;
        if foreign {
            // Workers of another user may enter the directory, but change nothing in it.
            fs::set_permissions(root.path(), Permissions::from_mode(0o711))?;
        }
        Ok(Some(Self::OfSession(root)))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Lasting(path) => path,
            Self::OfSession(directory) => directory.path(),
        }
    }

    /// Returns the directory if it outlives the session; `None` otherwise.
    pub(super) fn lasting(&self) -> Option<&Path> {
        match self {
            Self::Lasting(path) => Some(path),
            Self::OfSession(_) => None,
        }
    }
}
