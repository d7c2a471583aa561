//! Check of files with ignore rules, such as `.gitignore`, before the directory walker opens them.
//!
//! The walker opens any file with such a name. A fifo would block the walker for ever, and a link to `/dev/zero` would
//! fill the memory. A walk that meets such an unsafe file fails, since it cannot know which files are ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::DirEntry;
use ipc::tool::ToolErrorKind;

use crate::fault::{Result, failed};

/// Maximum size of a file of ignore rules: 1 MiB.
const LARGEST: u64 = 1 << 20;

/// Maximum size of a git index that git may read: 256 MiB.
const LARGEST_INDEX: u64 = 256 << 20;

/// First unsafe file with ignore rules that a walk has met. Clones share the value.
#[derive(Clone, Debug, Default)]
pub struct Traps(Arc<Mutex<Option<PathBuf>>>);

impl Traps {
    /// Fails if the root or a directory above it has an unsafe file with ignore rules.
    pub fn new(root: &Path) -> Result<Self> {
        match root.ancestors().find_map(trap_in) {
            Some(path) => Err(refused(&path)),
            None => Ok(Self::default()),
        }
    }

    /// False for a directory that has an unsafe file with ignore rules. The walker asks before it reads that file.
    pub fn passes(&self, entry: &DirEntry) -> bool {
        if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
            return true;
        }
        let trap = trap_in(entry.path());
        let passes = trap.is_none();
        if let Some(trap) = trap {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(trap);
        }
        passes
    }

    /// Fails if the walk has met an unsafe file with ignore rules.
    pub fn finish(&self) -> Result<()> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(path) => Err(refused(path)),
            None => Ok(()),
        }
    }
}

/// Returns the unsafe file with ignore rules in a directory or in its `.git`; `None` if there is none.
fn trap_in(directory: &Path) -> Option<PathBuf> {
    let rules = [".gitignore", ".ignore"].map(|name| directory.join(name));
    let trap = rules.into_iter().find(|path| !is_readable(path, LARGEST));
    trap.or_else(|| trap_of_git(&directory.join(".git")))
}

/// Returns the unsafe file with ignore rules in a `.git`, a directory or a file (gitrepository-layout(5)).
fn trap_of_git(git: &Path) -> Option<PathBuf> {
    let exclude = |git: &Path| Some(git.join("info/exclude")).filter(|path| !is_readable(path, LARGEST));
    let Ok(metadata) = git.metadata() else { return None };
    if metadata.is_dir() {
        return exclude(git);
    }
    if !is_readable(git, LARGEST) {
        return Some(git.to_owned());
    }
    let place = PathBuf::from(first_line(git)?.strip_prefix("gitdir: ")?);
    let common = place.join("commondir");
    if !is_readable(&common, LARGEST) {
        return Some(common);
    }
    exclude(&place.join(first_line(&common)?))
}

/// Returns a file of the project's repository that would block git or keep it busy for ever; `None` if there is none.
pub fn trap_of_index(project: &Path) -> Option<PathBuf> {
    let git = project.ancestors().map(|ancestor| ancestor.join(".git")).find(|git| git.exists())?;
    let files = ["index", "config", "HEAD"].map(|name| git.join(name));
    files.into_iter().find(|path| !is_readable(path, LARGEST_INDEX))
}

fn first_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::to_owned)
}

/// True for a regular file of at most `largest` bytes, and for a missing one.
fn is_readable(path: &Path, largest: u64) -> bool {
    path.metadata().map_or(true, |metadata| metadata.is_file() && metadata.len() <= largest)
}

fn refused(path: &Path) -> crate::fault::Stop {
    let message = format!(
        "`{}` is not a regular file of at most 1 MiB, so that Bailiwick cannot tell what is ignored: remove that file, or use a path elsewhere.",
        path.display()
    );
    failed(ToolErrorKind::WrongKind, message)
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn what_would_hold_the_walker_is_found_wherever_it_would_be_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("plain/.git/info")).unwrap();
        fs::write(at("plain/.gitignore"), "x").unwrap();
        assert_eq!(trap_in(&at("plain")), None);
        for name in
            ["a/.gitignore", "b/.ignore", "c/.git/info/exclude", "d/.git", "e/x/commondir", "f/info/exclude"]
        {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            mkfifo(&at(name), Mode::S_IRUSR).unwrap();
        }
        fs::write(at("e/.git"), format!("gitdir: {}\n", at("e/x").display())).unwrap();
        fs::create_dir(at("f/x")).unwrap();
        fs::write(at("f/x/commondir"), "..\n").unwrap();
        fs::write(at("f/.git"), format!("gitdir: {}\n", at("f/x").display())).unwrap();
        for directory in ["a", "b", "c", "d", "e", "f"] {
            assert!(trap_in(&at(directory)).is_some(), "{directory}");
        }
        std::os::unix::fs::symlink("/dev/zero", at("plain/.ignore")).unwrap();
        assert_eq!(trap_in(&at("plain")), Some(at("plain/.ignore")));
        assert!(Traps::new(&at("plain")).is_err() && Traps::new(&at("plain/.git")).is_err());
    }
}
