//! Parent directory of all private temp directories of a user. It is hidden from every confined program.
//!
//! It is in the cache directory, which is hidden as a whole, so that directories created later are hidden too. It is in
//! the system's temp directory only if the cache directory is unsuitable: its path is too long for the name of a
//! socket, or the user that runs workers cannot write to or enter it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::fstat;
use nix::unistd::geteuid;

use super::removal;
use super::temp::TempError;

/// Maximum length of the parent's path, out of the 108 bytes of `sun_path` (unix(7)).
const LONGEST: usize = 48;

/// Maximum length of the path of the system's temp directory, in bytes.
const LONGEST_PARENT: usize = 36;

/// Mode of a directory that only its owner can enter, and nobody can list: in the floor tier, nothing else hides names.
const PRIVATE: u32 = 0o300;

/// Mode of a directory that only its owner can enter and list.
const LISTED: u32 = 0o700;

/// Mode of a directory that everybody can enter, but nobody can list.
const ENTERED: u32 = 0o311;

#[derive(Clone, Debug)]
pub struct Temps {
    path: PathBuf,
    pub(super) variable: &'static str,
    serves_another: bool,
    note: Option<String>,
}

impl Temps {
    /// Creates the parent directory, or checks its owner. `serves_another` is true if workers run as another user.
    pub fn open(cache: &Path, serves_another: bool) -> Result<Self, TempError> {
        let passed_over = match (!serves_another).then(|| make_in(cache)) {
            Some(Ok(path)) => {
                return Ok(Self { path, variable: "BAILIWICK_HOME", serves_another, note: None });
            }
            Some(Err(error)) => chosen_cache().map(|variable| (variable, cache.join(NAME), error)),
            None => None,
        };
        let mode = if serves_another { ENTERED } else { PRIVATE };
        let temporary = chosen_temporary();
        let path = first_of(elsewhere(temporary.as_deref(), mode), mode)?;
        let told = [passed_over, too_long(temporary)].into_iter().flatten().map(|(variable, path, error)| {
            format!("not below {variable}, because of {}: {error}", path.display())
        });
        let told = told.collect::<Vec<_>>().join("; ");
        let note =
            (!told.is_empty()).then(|| format!("private temp directories are in {}, {told}", path.display()));
        Ok(Self { path, variable: "TMPDIR", serves_another, note })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a directory next to the parent directory, with the same owner.
    pub fn beside(&self, name: &str) -> Result<PathBuf, TempError> {
        let own = self.path.file_name().unwrap_or_default().to_string_lossy();
        let path = self.path.with_file_name(format!("{own}-{name}"));
        let mode = if self.serves_another { ENTERED } else { LISTED };
        match make(&path, mode) {
            Ok(()) => Ok(path),
            Err(source) => Err(TempError { path, variable: self.variable, source }),
        }
    }

    /// Returns a sentence for the user if a directory that an environment variable names is unsuitable; else `None`.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

const NAME: &str = "temps";

/// Returns the environment variable that determines the cache directory. `None` if the default directory is used.
fn chosen_cache() -> Option<&'static str> {
    ["BAILIWICK_HOME", "XDG_CACHE_HOME"].into_iter().find(|name| std::env::var_os(name).is_some())
}

fn make_in(cache: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
    let path = fs::canonicalize(cache)?.join(NAME);
    if path.as_os_str().len() > LONGEST {
        return Err(is_longer(&path, LONGEST));
    }
    make(&path, PRIVATE).map(|()| path)
}

/// Returns the error for a path of more than `most` bytes, which leaves no room for the name of a socket (unix(7)).
fn is_longer(path: &Path, most: usize) -> io::Error {
    let length = path.as_os_str().len();
    io::Error::other(format!(
        "this path has {length} bytes, and socket paths below it leave room for only {most}"
    ))
}

fn chosen_temporary() -> Option<PathBuf> {
    std::env::var_os("TMPDIR")
        .and_then(|path| fs::canonicalize(path).ok())
        .filter(|path| path != Path::new("/"))
}

fn too_long(chosen: Option<PathBuf>) -> Option<(&'static str, PathBuf, io::Error)> {
    let path = chosen.filter(|path| path.as_os_str().len() > LONGEST_PARENT)?;
    let error = is_longer(&path, LONGEST_PARENT);
    Some(("TMPDIR", path, error))
}

/// Returns candidates for the parent directory outside of the cache directory, preferred ones first.
fn elsewhere(temporary: Option<&Path>, mode: u32) -> Vec<PathBuf> {
    let short = temporary.filter(|path| path.as_os_str().len() <= LONGEST_PARENT).map(Path::to_owned);
    let everybodys = fs::canonicalize("/tmp").unwrap_or_else(|_| "/tmp".into());
    let own = if geteuid().is_root() {
        Some(PathBuf::from(ROOTS_OWN))
    } else {
        // No other user can enter it, not even a worker of another user.
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|_| mode == PRIVATE)
    };
    let name = format!("bailiwick-{}", geteuid());
    let places = [short, Some(everybodys), own].into_iter().flatten().map(|parent| parent.join(&name));
    places.filter(|path| path.as_os_str().len() <= LONGEST).collect()
}

/// Creates the first possible of the directories. Skips paths that another user has taken in a shared directory.
fn first_of(places: Vec<PathBuf>, mode: u32) -> Result<PathBuf, TempError> {
    let mut first = None;
    for path in places {
        match make(&path, mode) {
            Ok(()) => return Ok(path),
            Err(source) => drop(first.get_or_insert(TempError { path, variable: "TMPDIR", source })),
        }
    }
    Err(first.unwrap_or_else(|| TempError::of_parent(io::ErrorKind::NotFound.into())))
}

/// A directory in which only root creates names, and which everybody can enter (hier(7)).
const ROOTS_OWN: &str = "/var/cache";

/// Creates the directory, or corrects its mode. Fails if a symbolic link or another user's directory is at `path`.
fn make(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let directory = removal::open(path)?;
    let found = fstat(&directory)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(io::Error::other("the directory belongs to another user"));
    }
    let found = found.st_mode & 0o7777;
    if found & !ENTERED != 0 || found & mode != mode {
        fs::set_permissions(removal::by_descriptor(directory.as_fd()), Permissions::from_mode(mode))?;
    }
    Ok(())
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
        let temporary = chosen_temporary();
        let systems = elsewhere(temporary.as_deref(), PRIVATE).remove(0);
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
        assert_eq!(make(&theirs, PRIVATE).unwrap_err().to_string(), "the directory belongs to another user");
        // If another user took the name first, the next candidate is used.
        let next = place.path().join("next");
        assert_eq!(first_of(vec![theirs.clone(), next.clone()], ENTERED).unwrap(), next);
        assert_eq!(mode(&next), ENTERED);
        assert_eq!(first_of(vec![theirs.clone(), link], PRIVATE).unwrap_err().path, theirs);
        assert!(elsewhere(None, ENTERED).iter().any(|path| path.starts_with(ROOTS_OWN)));
    }
}
