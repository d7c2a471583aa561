//! Snapshots of the project's files: all files that git does not ignore, and ignored files that git tracks.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::{DirEntry, WalkBuilder};
use ipc::denial::Operation;
use ipc::path::WirePath;
use ipc::tool::{Ignored, SnapshotSummary};
use nix::errno::Errno;

use super::content::Tree;
use super::ignore_rules::Traps;
use super::list_directory::readable_directory;
use crate::assignment::Assignment;
use crate::fault::{Result, errno_of, refused};
use crate::open_call::OpenCall;

/// Maximum number of notes in the summary of a snapshot.
const NOTES: usize = 100;

/// Files that git tracks, as git lists them.
#[derive(Debug)]
pub enum Tracked {
    /// There is no list, since the project is not in a git repository.
    None,
    /// Paths of the tracked files relative to the project, each terminated by NUL.
    Paths(Vec<u8>),
    /// Git could not list the files, for this reason.
    Unknown(String),
}

pub fn in_repository(project: &Path) -> bool {
    project.ancestors().any(|ancestor| ancestor.join(".git").symlink_metadata().is_ok())
}

/// Sends the project's files, sorted by path; their contents, too, if `contents` is true.
pub fn snapshot(
    assignment: &Assignment,
    tracked: Tracked,
    contents: bool,
    open: &OpenCall,
) -> Result<SnapshotSummary> {
    readable_directory(&assignment.project)?;
    let mut notes = Vec::new();
    let mut walked = Walked::default();
    walk(&assignment.project, &mut walked, &mut notes, open)?;
    let directories = std::mem::take(&mut walked.directories);
    let mut paths = walked.files;
    match tracked {
        Tracked::None => {}
        Tracked::Unknown(reason) => {
            notes.push(format!("Files that git tracks although they are ignored are not included: {reason}"));
        }
        Tracked::Paths(bytes) => {
            let listed = bytes.split(|&byte| byte == 0).filter(|path| !path.is_empty());
            paths.extend(listed.map(|path| WirePath::from(path.to_vec())));
        }
    }
    let ignored = if contents {
        Ignored::default()
    } else {
        ignored(&assignment.project, &directories, |path| {
            paths.contains(path) || walked.others.contains(path)
        })
    };
    let summary = send(assignment, paths.iter(), contents, open, notes)?;
    Ok(SnapshotSummary { ignored, ..summary })
}

#[derive(Default)]
struct Walked {
    files: BTreeSet<WirePath>,
    directories: BTreeSet<WirePath>,
    /// Paths of nested repositories and of special files.
    others: BTreeSet<WirePath>,
}

fn ignored(
    project: &Path,
    directories: &BTreeSet<WirePath>,
    is_known: impl Fn(&WirePath) -> bool,
) -> Ignored {
    let mut ignored = Ignored::default();
    for directory in directories {
        // The walk has noted unreadable directories already.
        let entries = project.join(directory.as_path()).read_dir().into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name()).filter(|name| name.as_bytes() != b".git");
        let paths = names.map(|name| WirePath::from(directory.as_path().join(name)));
        let mut unknown: Vec<_> =
            paths.filter(|path| !directories.contains(path) && !is_known(path)).collect();
        unknown.sort();
        for path in unknown {
            ignored.add(path);
        }
    }
    ignored
}

pub fn fetch(assignment: &Assignment, paths: &[WirePath], open: &OpenCall) -> Result<SnapshotSummary> {
    send(assignment, paths.iter(), true, open, Vec::new())
}

fn send<'a>(
    assignment: &Assignment,
    paths: impl Iterator<Item = &'a WirePath>,
    contents: bool,
    open: &OpenCall,
    mut notes: Vec<String>,
) -> Result<SnapshotSummary> {
    let project = &assignment.project;
    let mut tree = Tree::open(project).map_err(|errno| refused(Operation::Read, project, errno))?;
    let mut entries = 0;
    for path in paths {
        open.check()?;
        match tree.send(path, contents, open)? {
            Ok(sent) => entries += u64::from(sent),
            Err(errno) => notes.push(format!("`{path}` could not be read ({errno:?}).")),
        }
    }
    tree.flush(open)?;
    Ok(SnapshotSummary { entries, notes: bounded(notes), ignored: Ignored::default() })
}

fn bounded(mut notes: Vec<String>) -> Vec<String> {
    let more = notes.len().saturating_sub(NOTES);
    notes.truncate(NOTES);
    if more > 0 {
        notes.push(format!("{more} more notes are left out."));
    }
    notes
}

fn walk(project: &Path, walked: &mut Walked, notes: &mut Vec<String>, open: &OpenCall) -> Result<()> {
    let nested = Arc::new(Mutex::new(Vec::<PathBuf>::new()));
    let within = |path: &Path| path.strip_prefix(project).ok().map(WirePath::from);
    let traps = Traps::new(project)?;
    for found in walker(project, Arc::clone(&nested), traps.clone()) {
        open.check()?;
        match found {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink()) => {
                walked.files.extend(within(entry.path()));
            }
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_dir()) => {
                walked.directories.extend(within(entry.path()));
            }
            Ok(entry) => walked.others.extend(within(entry.path())),
            Err(error) => notes.push(unreadable(project, &error)),
        }
    }
    traps.finish()?;
    let nested = nested.lock().unwrap_or_else(PoisonError::into_inner);
    walked.others.extend(nested.iter().filter_map(|path| within(path)));
    // A name with a line end must not look like a line of its own.
    let name = |path: &Path| {
        path.strip_prefix(project)
            .unwrap_or(path)
            .display()
            .to_string()
            .replace(|c: char| c.is_control(), "?")
    };
    notes.extend(
        nested.iter().map(|path| format!("`{}` is a separate repository, and is left out.", name(path))),
    );
    Ok(())
}

fn walker(project: &Path, nested: Arc<Mutex<Vec<PathBuf>>>, traps: Traps) -> ignore::Walk {
    // Without a repository, the project's own .gitignore applies, and those of parent directories do not.
    let in_repository = in_repository(project);
    WalkBuilder::new(project)
        .hidden(false)
        .ignore(false)
        .parents(in_repository)
        .require_git(in_repository)
        .filter_entry(move |entry| {
            if entry.depth() == 0 {
                return true;
            }
            let repository = is_repository(entry);
            if repository {
                nested.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
            }
            !repository && entry.file_name().as_bytes() != b".git" && traps.passes(entry)
        })
        .build()
}

fn is_repository(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
        && entry.path().join(".git").symlink_metadata().is_ok()
}

fn unreadable(project: &Path, error: &ignore::Error) -> String {
    let errno = error.io_error().map_or(Errno::EIO, errno_within);
    let path = match error {
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            return unreadable(project, err);
        }
        ignore::Error::WithPath { path, .. } => {
            path.strip_prefix(project).unwrap_or(path).display().to_string()
        }
        _ => return format!("Part of the project could not be read: {error}."),
    };
    format!("`{path}` could not be read ({errno:?}).")
}

/// Returns the error number of a directory walk's error, which wraps that of the system.
fn errno_within(error: &io::Error) -> Errno {
    let wrapped = error.source().and_then(|source| source.downcast_ref());
    errno_of(wrapped.unwrap_or(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_walk_could_not_read_is_named_with_the_errors_own_number() {
        let project = tempfile::tempdir().unwrap();
        let missing = project.path().join("gone");
        let error = WalkBuilder::new(&missing).build().find_map(std::result::Result::err).unwrap();
        assert_eq!(unreadable(project.path(), &error), "`gone` could not be read (ENOENT).");
    }
}
