//! Git directories outside of the project, such as those of linked worktrees and submodules.
//!
//! Git must be able to write to such a directory. But the project's `.git` file, which names it, may be hostile. So it
//! becomes writable only if it names the project in turn, which takes write access outside of the project.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::tripwire::{git_file_target, worktree_in};

const LONGEST: u64 = 16 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalGitDirs {
    /// Canonical directory outside of the project to which git writes; `None` if it is in the project. For a linked
    /// worktree: the git directory of the main repository, which contains that of the worktree.
    pub directory: Option<PathBuf>,
    pub of_others: Vec<PathBuf>,
    /// Message for the user if agents cannot write to the git directory; `None` if they can.
    pub note: Option<String>,
}

impl ExternalGitDirs {
    pub fn of(project: &Path) -> Self {
        let file = project.join(".git");
        if !fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file()) {
            return Self::default();
        }
        let named = content(&file).as_deref().and_then(git_file_target);
        let Some(directory) = named.and_then(|named| fs::canonicalize(project.join(named)).ok()) else {
            return Self::default();
        };
        if directory.starts_with(project) {
            return Self::default();
        }
        shared_with(&directory, &file).or_else(|| module_of(&directory, project)).unwrap_or_else(|| Self {
            note: Some(format!(
                "the project's .git file names the git directory {}, but that directory does not name the project: agents cannot write there",
                directory.display()
            )),
            ..Self::default()
        })
    }
}

/// Returns the git directory of the main repository of a linked worktree. `None` unless `directory` is `worktrees/NAME`
/// in it, and the file `gitdir` there names the project's `.git`.
fn shared_with(directory: &Path, file: &Path) -> Option<ExternalGitDirs> {
    let backlink = directory.join(line(&directory.join("gitdir"))?);
    if fs::canonicalize(backlink).ok()? != file {
        return None;
    }
    let shared = fs::canonicalize(directory.join(line(&directory.join("commondir"))?)).ok()?;
    let worktrees = shared.join("worktrees");
    if directory.parent()? != worktrees || !is_repository(&shared) {
        return None;
    }
    let others = fs::read_dir(&worktrees).ok()?.flatten().map(|entry| entry.path());
    let of_others = others.filter(|other| other != directory && !is_link(other)).collect();
    Some(ExternalGitDirs { directory: Some(shared), of_others, note: None })
}

/// Returns the git directory of a submodule. `None` unless the configuration in it names the project as its worktree.
fn module_of(directory: &Path, project: &Path) -> Option<ExternalGitDirs> {
    let worktree = worktree_in(&content(&directory.join("config"))?)?;
    let is_ours = fs::canonicalize(directory.join(worktree)).ok()? == project;
    (is_ours && is_repository(directory))
        .then(|| ExternalGitDirs { directory: Some(directory.to_owned()), ..ExternalGitDirs::default() })
}

fn is_repository(directory: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| directory.join(name).symlink_metadata().is_ok())
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

fn line(path: &Path) -> Option<PathBuf> {
    let text = content(path)?;
    let line = text.strip_suffix(b"\n").unwrap_or(&text);
    (!line.is_empty() && !line.contains(&b'\n')).then(|| PathBuf::from(OsStr::from_bytes(line)))
}

/// Reads a small regular file. Neither follows links nor blocks on pipes. `None` for other files and errors.
fn content(path: &Path) -> Option<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > LONGEST {
        return None;
    }
    let mut content = Vec::new();
    file.take(LONGEST).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]);
        let output = git.args(arguments).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn repository(place: &Path) -> PathBuf {
        let main = place.join("main");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
        main
    }

    fn scratch() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(place.path()).unwrap();
        (place, path)
    }

    #[test]
    fn a_linked_worktree_is_followed_to_what_it_shares() {
        let (_place, path) = scratch();
        let main = repository(&path);
        for name in ["../mine", "../other"] {
            git(&main, &["worktree", "add", "-q", name]);
        }
        let found = ExternalGitDirs::of(&path.join("mine"));
        assert_eq!(found.directory, Some(main.join(".git")));
        assert_eq!(found.of_others, [main.join(".git/worktrees/other")]);
        assert_eq!(
            ExternalGitDirs::of(&main),
            ExternalGitDirs::default(),
            "a repository of its own lies nowhere else"
        );
    }

    #[test]
    fn a_submodule_is_followed_to_its_own_directory_only() {
        let (_place, path) = scratch();
        let main = repository(&path);
        let library = path.join("library");
        git(&path, &["clone", "-q", "main", "library"]);
        git(&main, &["submodule", "add", "-q", library.to_str().unwrap(), "sub"]);
        let found = ExternalGitDirs::of(&main.join("sub"));
        assert_eq!(
            found,
            ExternalGitDirs { directory: Some(main.join(".git/modules/sub")), ..ExternalGitDirs::default() }
        );
    }

    #[test]
    fn what_does_not_name_the_project_in_turn_is_not_written() {
        let (_place, path) = scratch();
        let main = repository(&path);
        git(&main, &["worktree", "add", "-q", "../other"]);
        let hostile = path.join("hostile");
        fs::create_dir(&hostile).unwrap();
        let refused = |target: &Path| {
            fs::write(hostile.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
            let found = ExternalGitDirs::of(&hostile);
            assert_eq!(found.directory, None, "{target:?}");
            found.note
        };
        assert!(refused(&main.join(".git")).unwrap().contains("does not name the project"));
        assert!(refused(&main.join(".git/worktrees/other")).is_some());
        assert_eq!(refused(&path.join("nothing")), None);
        // A directory in the project can say anything, and does not widen the rights.
        let own = hostile.join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("gitdir"), hostile.join(".git").to_str().unwrap()).unwrap();
        fs::write(own.join("commondir"), main.join(".git").to_str().unwrap()).unwrap();
        assert_eq!(refused(&own), None);
    }

    #[test]
    fn a_shared_directory_has_the_worktree_in_it() {
        let (_place, path) = scratch();
        let main = repository(&path);
        let project = path.join("project");
        let fake = path.join("fake");
        fs::create_dir(&project).unwrap();
        fs::create_dir(&fake).unwrap();
        fs::write(project.join(".git"), format!("gitdir: {}\n", fake.display())).unwrap();
        fs::write(fake.join("gitdir"), project.join(".git").to_str().unwrap()).unwrap();
        fs::write(fake.join("commondir"), main.join(".git").to_str().unwrap()).unwrap();
        assert_eq!(ExternalGitDirs::of(&project).directory, None);
    }
}
