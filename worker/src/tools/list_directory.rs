//! `list_directory`: lists files and directories that are not ignored.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ignore::{DirEntry, WalkBuilder};
use ipc::denial::Operation;
use ipc::tool::{Entry, EntryKind, ListDirectory, Listing, ToolErrorKind};
use nix::libc;

use super::ignore_rules::Traps;
use crate::assignment::Assignment;
use crate::fault::{Result, failed, refused_io};
use crate::open_call::OpenCall;

/// Maximum number of entries in a result.
const ENTRIES: usize = 2_000;
/// Maximum total size of the paths in a result: 512 KiB.
const PATH_BYTES: usize = 512 << 10;
/// Maximum number of entries beyond the result that are counted.
const COUNTED: u64 = 100_000;

/// Lists a directory: hidden files too, but neither ignored files nor the content of `.git`.
pub fn list_directory(assignment: &Assignment, call: &ListDirectory, open: &OpenCall) -> Result<Listing> {
    let root = assignment.absolute(&call.path);
    let depth = call.depth.unwrap_or(1);
    if depth == 0 {
        return Err(failed(ToolErrorKind::InvalidArgument, "depth must be at least 1."));
    }
    readable_directory(&root)?;
    let mut listing = Listing { entries: Vec::new(), omitted: 0 };
    let mut left = PATH_BYTES;
    let traps = Traps::new(&root)?;
    for found in walk(&root, depth, traps.clone()).flatten().filter(|found| found.depth() > 0) {
        open.check()?;
        let Some(entry) = entry(&root, &found) else {
            continue;
        };
        match left.checked_sub(entry.path.as_bytes().len()) {
            Some(rest) if listing.entries.len() < ENTRIES => {
                left = rest;
                listing.entries.push(entry);
            }
            _ => listing.omitted += 1,
        }
        if listing.omitted >= COUNTED {
            break;
        }
    }
    traps.finish()?;
    Ok(listing)
}

/// Fails with the kernel's error if a directory cannot be read. A directory walk would skip the directory silently.
pub fn readable_directory(path: &Path) -> Result<()> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NONBLOCK).open(path);
    match opened {
        Err(error) if error.raw_os_error() == Some(libc::ENOTDIR) && path.exists() => {
            let message =
                format!("`{}` is not a directory; read_file shows what is in a file.", path.display());
            Err(failed(ToolErrorKind::WrongKind, message))
        }
        opened => opened.map(drop).map_err(|error| refused_io(Operation::Read, path, &error)),
    }
}

fn walk(root: &Path, depth: u32, traps: Traps) -> ignore::Walk {
    let in_git = |entry: &DirEntry| {
        entry.depth() > 1 && entry.path().parent().is_some_and(|parent| parent.ends_with(".git"))
    };
    WalkBuilder::new(root)
        .hidden(false)
        .max_depth(Some(depth as usize))
        .filter_entry(move |entry| !in_git(entry) && traps.passes(entry))
        .sort_by_file_name(Ord::cmp)
        .build()
}

fn entry(root: &Path, found: &DirEntry) -> Option<Entry> {
    let metadata = found.path().symlink_metadata().ok()?;
    let path = found.path().strip_prefix(root).ok()?.into();
    let kind = metadata.file_type();
    let (kind, size) = if kind.is_symlink() {
        (EntryKind::Symlink(found.path().read_link().ok()?.into()), 0)
    } else if kind.is_dir() {
        (EntryKind::Directory, 0)
    } else if kind.is_file() {
        (EntryKind::File, metadata.len())
    } else {
        (EntryKind::Other, 0)
    };
    Some(Entry { path, kind, size })
}
