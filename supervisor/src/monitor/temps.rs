//! The directory that holds the private temps of a user: hidden from every confined program as a whole.
//!
//! It lies in our cache directory, where nothing beside it needs a rule of its own, and names that appear later stay readable to
//! nobody: both would be otherwise in the system's temp directory. That one is used where our cache directory cannot be: its path
//! leaves a socket's name no room, nothing can be made there, or workers run as a user who is not let through our home.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::fstat;
use nix::unistd::geteuid;

use super::removal;
use super::temp::TempError;

/// The longest path of such a directory, out of the 108 bytes of `sun_path` (unix(7)).
const LONGEST: usize = 48;

/// The longest path of the system's temp directory.
const LONGEST_PARENT: usize = 36;

/// Nobody else enters it, and nobody lists it: in the floor rules keep contents from the confined, and modes the names.
const PRIVATE: u32 = 0o300;

/// Others enter what they know the name of: their own.
const ENTERED: u32 = 0o311;

/// The directory that holds the private temps of a user.
#[derive(Clone, Debug)]
pub struct Temps {
    path: PathBuf,
    /// The variable that moves it.
    pub(super) variable: &'static str,
}

impl Temps {
    /// Makes the directory, or checks that it is ours. It serves workers of this user, or of another one.
    pub fn open(cache: &Path, serves_another: bool) -> Result<Self, TempError> {
        if let Some(path) = (!serves_another).then(|| make_in(cache)).and_then(Result::ok) {
            return Ok(Self { path, variable: "BAILIWICK_HOME" });
        }
        let path = systems_own().join(format!("bailiwick-{}", geteuid()));
        let made = make(&path, if serves_another { ENTERED } else { PRIVATE });
        let variable = "TMPDIR";
        made.map(|()| Self { path: path.clone(), variable }).map_err(|source| TempError {
            path,
            variable,
            source,
        })
    }

    /// Its place, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn make_in(cache: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
    let path = fs::canonicalize(cache)?.join("temps");
    if path.as_os_str().len() > LONGEST {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    make(&path, PRIVATE).map(|()| path)
}

/// Somebody else may have made something there first: neither a link nor another user's directory is used.
fn make(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let directory = removal::open(path)?;
    let found = fstat(&directory)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    let found = found.st_mode & 0o7777;
    if found & !ENTERED != 0 || found & mode != mode {
        fs::set_permissions(removal::by_descriptor(directory.as_fd()), Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// The system's temp directory, if its path is short enough.
fn systems_own() -> PathBuf {
    match fs::canonicalize(std::env::temp_dir()) {
        Ok(path) if path.as_os_str().len() <= LONGEST_PARENT && path != Path::new("/") => path,
        _ => PathBuf::from("/tmp"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn it_is_part_of_our_cache_directory_and_nobody_elses() {
        let place = tempfile::tempdir().unwrap();
        let cache = fs::canonicalize(place.path()).unwrap().join("c");
        let temps = Temps::open(&cache, false).unwrap();
        assert_eq!((temps.path(), mode(temps.path())), (cache.join("temps").as_path(), 0o300));
        fs::set_permissions(temps.path(), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(mode(Temps::open(&cache, false).unwrap().path()), 0o300);
    }

    #[test]
    fn a_long_path_and_another_user_need_the_systems_own() {
        let place = tempfile::tempdir().unwrap();
        let systems = systems_own().join(format!("bailiwick-{}", geteuid()));
        assert_eq!(Temps::open(&place.path().join("c".repeat(LONGEST)), false).unwrap().path(), systems);
        assert_eq!(mode(&systems) & !ENTERED, 0);
        assert_eq!(Temps::open(place.path(), true).unwrap().path(), systems);
        assert_eq!(mode(&systems), 0o311);
    }

    #[test]
    fn what_somebody_else_put_there_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let [link, theirs] = ["link", "theirs"].map(|name| place.path().join(name));
        symlink(place.path(), &link).unwrap();
        assert!(make(&link, PRIVATE).is_err());
        fs::write(place.path().join("file"), "").unwrap();
        assert!(make(&place.path().join("file"), PRIVATE).is_err());
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give directories away");
            return;
        }
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(12345), None).unwrap();
        assert_eq!(make(&theirs, PRIVATE).unwrap_err().to_string(), "it belongs to another user");
    }
}
