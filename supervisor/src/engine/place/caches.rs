//! The directory that holds the places of a session's levels of rights.

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

/// The directory that holds the places of a session's levels.
#[derive(Debug)]
pub(super) enum CachesRoot {
    /// The project's: it outlives the session.
    Lasting(PathBuf),
    /// The session's; removed with this value.
    OfSession(PrivateTemp),
}

/// The owner of such a directory, and the time for which it is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachesWanted<'a> {
    pub(super) mode: Mode,
    pub(super) caches: Caches,
    pub(super) project: &'a Path,
    /// True if workers run as another user, who does not get into our cache directory.
    pub(super) foreign: bool,
}

impl CachesRoot {
    /// Makes the directory. A session whose rights stay as they are and in which nobody is asked has one level, and
    /// needs none.
    pub(super) fn make(
        wanted: CachesWanted<'_>,
        directories: &Directories,
        temps: &Temps,
    ) -> Result<Option<Self>, SetupError> {
        let CachesWanted { mode, caches, project, foreign } = wanted;
        // An agent that may not change the project has nothing to build.
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
            // Who works in a place below enters the directory, and changes nothing in it.
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

    /// The same where it outlives the session.
    pub(super) fn lasting(&self) -> Option<&Path> {
        match self {
            Self::Lasting(path) => Some(path),
            Self::OfSession(_) => None,
        }
    }
}
