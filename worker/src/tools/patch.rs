//! Computes the changes that `write_file` and `edit_file` would make, without making them.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ipc::denial::Operation;
use ipc::effect::{FileEffect, FileState, Patch};
use ipc::tool::{EditFile, ToolErrorKind, WriteFile};
use nix::errno::Errno;
use nix::libc;

use super::place;
use super::read_file::wrong_kind;
use super::replace::replace;
use crate::assignment::Assignment;
use crate::fault::{Result, failed, refused, refused_io};

/// Maximum size in bytes of a file that is changed: a change contains the old and the new content.
const MAX_FILE: u64 = 30 << 20;

pub fn of_write(assignment: &Assignment, call: &WriteFile) -> Result<Patch> {
    let path = place::resolve(&assignment.absolute(&call.path))?;
    let old = state(&path)?;
    let mode = old.as_ref().map_or(assignment.new_file_mode, |old| old.mode);
    let new = Some(FileState { bytes: call.content.clone().into_bytes(), mode });
    Ok(one(FileEffect { path: path.into(), old, new, replacements: 0 }))
}

/// Computes the change of an edit. Fails if the file is missing or an edit does not match.
pub fn of_edit(assignment: &Assignment, call: &EditFile) -> Result<Patch> {
    let path = place::resolve(&assignment.absolute(&call.path))?;
    let old = state(&path)?.ok_or_else(|| refused(Operation::Read, &path, Errno::ENOENT))?;
    let replaced = replace(&old.bytes, &call.edits)?;
    let new = Some(FileState { bytes: replaced.bytes, mode: old.mode });
    let replacements = replaced.replacements;
    Ok(one(FileEffect { path: path.into(), old: Some(old), new, replacements }))
}

fn one(file: FileEffect) -> Patch {
    Patch { files: vec![file] }
}

/// Returns a file's content and mode; `None` if the file does not exist.
fn state(path: &Path) -> Result<Option<FileState>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        opened => opened.map_err(|error| refused_io(Operation::Read, path, &error))?,
    };
    let metadata = file.metadata().map_err(|error| refused_io(Operation::Read, path, &error))?;
    if !metadata.is_file() {
        return Err(wrong_kind(path, metadata.file_type()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.size().min(MAX_FILE)).unwrap_or(0));
    let read = file.take(MAX_FILE + 1).read_to_end(&mut bytes);
    if read.map_err(|error| refused_io(Operation::Read, path, &error))? as u64 > MAX_FILE {
        let message =
            format!("`{}` has more than {} MiB; change it with shell_exec.", path.display(), MAX_FILE >> 20);
        return Err(failed(ToolErrorKind::Unreadable, message));
    }
    Ok(Some(FileState { bytes, mode: metadata.mode() & 0o777 }))
}
