//! Writes an approved change to files, provided that they still are as they were when the change was computed.
//!
//! The new content goes to a temporary file, which is renamed over the old one. The old file is overwritten in place in
//! three cases: the temporary file would have other metadata ([`Attributes`]), the old file is a mount point, or the
//! agent may write the file but not its directory. Symbolic links are never followed. Nothing is synced to the disk
//! (fsync), so a power failure may undo the change.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ipc::denial::Operation;
use ipc::effect::{DIRECTORY, FileEffect, FileState, LINK, Patch};
use ipc::tool::{ToolErrorKind, Written, WrittenFile};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::prctl::set_dumpable;
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, symlinkat, unlinkat};
use sandbox_exec::system::file::rename_new;

use super::attributes::Attributes;
use super::difference::difference;
use super::place::{Missing, open_directory};
use crate::fault::{Result, errno_of, failed, refused, refused_io};

/// Writes a change. Checks all files and prepares their new content before it changes the first one.
pub fn commit(patch: &Patch) -> Result<Written> {
    let staged = patch.files.iter().map(Staged::new).collect::<Result<Vec<_>>>()?;
    let files = staged.into_iter().map(Staged::finish).collect::<Result<Vec<_>>>()?;
    Ok(Written { files })
}

struct Staged<'a> {
    effect: &'a FileEffect,
    directory: OwnedFd,
    new: New,
}

/// Prepared last step of the change of one file.
enum New {
    Rename(Temporary),
    InPlace(InPlace),
    Remove,
    RemoveDirectory,
}

impl<'a> Staged<'a> {
    fn new(effect: &'a FileEffect) -> Result<Self> {
        let path = effect.path.as_path();
        let missing =
            if effect.old.is_none() && effect.new.is_some() { Missing::Make } else { Missing::Fail };
        let parent = path.parent().ok_or_else(|| refused(Operation::Write, path, Errno::EINVAL))?;
        let directory =
            open_directory(parent, missing).map_err(|errno| refused(Operation::Write, path, errno))?;
        compare(effect, &directory)?;
        let new = match &effect.new {
            None if is(effect.old.as_ref(), DIRECTORY) => New::RemoveDirectory,
            None => New::Remove,
            Some(state) => stage(effect, state, &directory)?,
        };
        Ok(Self { effect, directory, new })
    }

    fn finish(self) -> Result<WrittenFile> {
        let Self { effect, directory, new } = self;
        let (path, name) = (effect.path.as_path(), name(effect)?);
        let written = match new {
            New::Rename(temporary) => match temporary.rename(effect.old.is_some(), name) {
                // A mount point cannot be renamed over (rename(2)); containers mount single files.
                Err(Errno::EBUSY) => InPlace::open(effect, &directory)
                    .and_then(|file| file.overwrite(effect))
                    .map(|told| [vec![MOUNT_POINT.to_owned()], told].concat()),
                renamed => renamed.map(|()| Vec::new()),
            },
            New::InPlace(file) => file.overwrite(effect),
            New::Remove => unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir).map(|()| Vec::new()),
            New::RemoveDirectory => match unlinkat(&directory, name, UnlinkatFlags::RemoveDir) {
                // The directory has other files: new ones, or ignored ones that are not part of the project.
                Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(Vec::new()),
                removed => removed.map(|()| Vec::new()),
            },
        };
        let mut notes = written.map_err(|errno| match errno {
            Errno::EEXIST => changed(path),
            errno => refused(Operation::Write, path, errno),
        })?;
        notes.extend(difference(effect));
        Ok(WrittenFile {
            notes,
            path: effect.path.clone(),
            created: effect.old.is_none(),
            bytes: new_bytes(effect).len() as u64,
            replacements: effect.replacements,
            change: effect.change(),
        })
    }
}

fn new_bytes(effect: &FileEffect) -> &[u8] {
    effect.new.as_ref().map_or(&[], |new| &new.bytes)
}

fn is(state: Option<&FileState>, kind: u32) -> bool {
    state.is_some_and(|state| state.mode == kind)
}

fn name(effect: &FileEffect) -> Result<&OsStr> {
    let path = effect.path.as_path();
    path.file_name().ok_or_else(|| refused(Operation::Write, path, Errno::EINVAL))
}

/// Fails if the file's type, mode or content is no longer that from which the change was computed.
fn compare(effect: &FileEffect, directory: &OwnedFd) -> Result<()> {
    let path = effect.path.as_path();
    if is(effect.old.as_ref(), LINK) {
        let target = readlinkat(directory, name(effect)?);
        let is_same =
            target.is_ok_and(|target| effect.old.as_ref().is_some_and(|old| old.bytes == target.as_bytes()));
        return if is_same { Ok(()) } else { Err(changed(path)) };
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = match (openat(directory, name(effect)?, flags, Mode::empty()), &effect.old) {
        (Ok(file), Some(_)) => File::from(file),
        (Err(Errno::ENOENT), None) => return Ok(()),
        (Ok(_), None) | (Err(Errno::ENOENT | Errno::ELOOP), _) => return Err(changed(path)),
        (Err(errno), _) => return Err(refused(Operation::Read, path, errno)),
    };
    match &effect.old {
        Some(old) if is_same(file, old).map_err(|error| refused_io(Operation::Read, path, &error))? => Ok(()),
        _ => Err(changed(path)),
    }
}

fn is_same(file: File, old: &FileState) -> std::io::Result<bool> {
    let metadata = file.metadata()?;
    let size = old.bytes.len() as u64;
    if old.mode == DIRECTORY {
        return Ok(metadata.is_dir());
    }
    if !metadata.is_file() || metadata.mode() & 0o777 != old.mode || metadata.size() != size {
        return Ok(false);
    }
    let mut bytes = Vec::with_capacity(old.bytes.len());
    file.take(size + 1).read_to_end(&mut bytes)?;
    Ok(bytes == old.bytes)
}

fn changed(path: &Path) -> crate::fault::Stop {
    let message =
        format!("`{}` changed after it was read, and was not written; read the file again.", path.display());
    failed(ToolErrorKind::Changed, message)
}

fn stage(effect: &FileEffect, state: &FileState, directory: &OwnedFd) -> Result<New> {
    let path = effect.path.as_path();
    let old = effect.old.as_ref().filter(|old| old.mode != LINK);
    if old.is_some() {
        // A rename would replace a file that its owner made read-only.
        faccessat(AT_FDCWD, path, AccessFlags::W_OK, AtFlags::AT_EACCESS)
            .map_err(|errno| refused(Operation::Write, path, errno))?;
    }
    let in_place = || {
        let opened = InPlace::open(effect, directory);
        opened.map(New::InPlace).map_err(|errno| refused(Operation::Write, path, errno))
    };
    match Temporary::new(directory, state, old.map(|_| name(effect)).transpose()?) {
        Ok(Some(temporary)) => Ok(New::Rename(temporary)),
        Ok(None) => in_place(),
        Err(Errno::EACCES | Errno::EPERM | Errno::EROFS) if old.is_some() && state.mode != LINK => in_place(),
        Err(errno) => Err(refused(Operation::Write, path, errno)),
    }
}

const MOUNT_POINT: &str = "the file is a mount point, and was overwritten in place";

struct InPlace {
    file: File,
    before: Attributes,
}

impl InPlace {
    fn open(effect: &FileEffect, directory: &OwnedFd) -> std::result::Result<Self, Errno> {
        let name = effect.path.as_path().file_name().ok_or(Errno::EINVAL)?;
        let flags =
            OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::from(openat(directory, name, flags, Mode::empty())?);
        let before = Attributes::of(&file)?;
        Ok(Self { file, before })
    }

    /// Overwrites the file. Returns sentences for the model about lost metadata.
    fn overwrite(mut self, effect: &FileEffect) -> std::result::Result<Vec<String>, Errno> {
        let old = effect.old.as_ref().map_or(&[][..], |old| &old.bytes);
        overwrite(&mut self.file, old, new_bytes(effect)).map_err(|error| errno_of(&error))?;
        let mode = |state: Option<&FileState>| state.map(|state| state.mode & 0o777);
        if let Some(new) = mode(effect.new.as_ref())
            && mode(effect.old.as_ref()) != Some(new)
        {
            set_mode(&self.file, Mode::from_bits_truncate(new))?;
        }
        Ok(self.before.told_after_write(&Attributes::of(&self.file)?))
    }
}

/// Overwrites the content of a file. Writes the old content back on failure.
fn overwrite(file: &mut File, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let mut put = |bytes: &[u8]| {
        file.rewind()?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)
    };
    put(new).inspect_err(|_| {
        // The first error is reported. Writing back likely succeeds: the old content had fitted.
        let _ = put(old);
    })
}

/// Sets a file's mode.
///
/// In some sandboxes the broker performs this call, and fails with `EPERM` for a process that is not dumpable. So this
/// process is made dumpable for a second attempt. Even then, commands cannot read its memory, by their own sandboxes.
fn set_mode(file: &File, mode: Mode) -> std::result::Result<(), Errno> {
    static SEEN: Mutex<()> = Mutex::new(());
    match fchmod(file, mode) {
        Err(Errno::EPERM) => {
            let _one_at_a_time = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            set_dumpable(true)?;
            let changed = fchmod(file, mode);
            set_dumpable(false)?;
            changed
        }
        changed => changed,
    }
}

/// Prefix of a temporary file's name; sixteen hexadecimal digits follow.
pub const PREFIX: &str = ".bw-";
pub const SUFFIX: &str = ".tmp";

/// Temporary file with an unpredictable name. It is removed on drop unless it was renamed.
struct Temporary {
    directory: OwnedFd,
    name: String,
    renamed: bool,
}

impl Temporary {
    /// Creates a temporary file with the new content. `None` if it would not have the metadata of `old` (mode
    /// excepted).
    fn new(
        directory: &OwnedFd,
        state: &FileState,
        old: Option<&OsStr>,
    ) -> std::result::Result<Option<Self>, Errno> {
        let directory = directory.try_clone().map_err(|error| errno_of(&error))?;
        let name = format!("{PREFIX}{:016x}{SUFFIX}", random());
        if state.mode == LINK {
            symlinkat(OsStr::from_bytes(&state.bytes), &directory, name.as_str())?;
            return Ok(Some(Self { directory, name, renamed: false }));
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(state.mode & 0o777);
        // No other user may read the file before it has the old one's metadata.
        let first = if old.is_some() { Mode::S_IRUSR | Mode::S_IWUSR } else { mode };
        let mut file = File::from(openat(&directory, name.as_str(), flags, first)?);
        let temporary = Self { directory, name, renamed: false };
        let ours = Attributes::of(&file)?;
        if let Some(old) = old
            && Attributes::of_entry(&temporary.directory, old)? != ours
        {
            return Ok(None);
        }
        file.write_all(&state.bytes).map_err(|error| errno_of(&error))?;
        // A directory's default list (acl(5)) decides the access to a new file; setting the mode would widen
        // it.
        if old.is_some() || !ours.has_access_list() {
            set_mode(&file, mode)?;
        }
        Ok(Some(temporary))
    }

    /// Renames the temporary file to `name`. Without `replace`, fails with `EEXIST` if `name` exists.
    fn rename(mut self, replace: bool, name: &OsStr) -> std::result::Result<(), Errno> {
        let (directory, from) = (&self.directory, self.name.as_str());
        if replace {
            renameat(directory, from, directory, name)?;
        } else {
            match rename_new(directory.as_fd(), from, name) {
                // The file system has no such flag (rename(2)); the comparison just before has to suffice.
                Err(Errno::EINVAL | Errno::ENOSYS) => renameat(directory, from, directory, name)?,
                renamed => renamed?,
            }
        }
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The error that led here is the one to report.
            let _ = unlinkat(&self.directory, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Returns a random number. It need not be unique: `O_EXCL` detects a collision of names.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
