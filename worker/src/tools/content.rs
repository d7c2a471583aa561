//! Files of a snapshot: their metadata and content, read below the project without following a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::mem::take;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ipc::effect::PART;
use ipc::message::{Chunk, MOST_ENTRIES, SnapshotEntry, SnapshotKind, Stamp};
use ipc::path::WirePath;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};

use sandbox_exec::system::file::born_ns;

use super::place::{Missing, descend, open_directory};
use crate::fault::{Result, errno_of};
use crate::open_call::OpenCall;

/// Maximum size of a file whose content is sent: 32 MiB.
const MAX_CONTENT: u64 = 32 << 20;

/// Reader of files below a directory. It keeps the last file's directory open: sorted paths often share it.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    parent: PathBuf,
    directory: OwnedFd,
    pending: Pending,
}

/// Entries that are sent together later: one message per file would take longer than reading the files.
#[derive(Debug, Default)]
struct Pending {
    entries: Vec<SnapshotEntry>,
    names: usize,
}

/// Total size in bytes of paths and link targets at which collected entries are sent.
const NAMES: usize = 64 << 10;

impl Tree {
    pub fn open(project: &Path) -> std::result::Result<Self, Errno> {
        let project = project.canonicalize().map_err(|error| errno_of(&error))?;
        let root = open_directory(&project, Missing::Fail)?;
        let directory = root.try_clone().map_err(|error| errno_of(&error))?;
        Ok(Self { root, parent: PathBuf::new(), directory, pending: Pending::default() })
    }

    /// Sends the entry of a path (perhaps at [`Tree::flush`]), and the content. False if it is no file or link.
    ///
    /// The inner error means that this file could not be read; the outer error ends the snapshot.
    pub fn send(
        &mut self,
        path: &WirePath,
        contents: bool,
        open: &OpenCall,
    ) -> Result<std::result::Result<bool, Errno>> {
        let (entry, content) = match self.look(path.as_path(), contents) {
            Ok(Some(Look { kind, stamp, born_ns, content })) => {
                (SnapshotEntry { path: path.clone(), kind, stamp, born_ns }, content)
            }
            Ok(None) => return Ok(Ok(false)),
            Err(errno) => return Ok(Err(errno)),
        };
        let is_full = self.pending.add(entry);
        let content = match content {
            Ok(content) => content,
            Err(errno) => return Ok(Err(errno)),
        };
        if is_full || !content.is_empty() {
            self.flush(open)?;
        }
        content.chunks(PART).try_for_each(|piece| open.output(Chunk::Content(piece.to_vec())))?;
        Ok(Ok(true))
    }

    pub fn flush(&mut self, open: &OpenCall) -> Result<()> {
        let Pending { entries, .. } = take(&mut self.pending);
        if entries.is_empty() { Ok(()) } else { open.output(Chunk::Entries(entries)) }
    }

    fn look(&mut self, path: &Path, contents: bool) -> std::result::Result<Option<Look>, Errno> {
        let Some(name) = path.file_name() else {
            return Ok(None);
        };
        let stat = match self.stat(path, name) {
            // ENOTDIR, ELOOP: a directory of the path was replaced by a file or link, so the path no longer
            // exists.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EINVAL) => return Ok(None),
            stat => stat?,
        };
        let stamp = stamp(&stat);
        match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFLNK => {
                let target = readlinkat(&self.directory, name)?;
                Ok(Some(Look {
                    kind: SnapshotKind::Symlink((&target).into()),
                    stamp,
                    born_ns: None,
                    content: Ok(Vec::new()),
                }))
            }
            SFlag::S_IFREG => Ok(Some(self.file(name, &stat, contents))),
            _ => Ok(None),
        }
    }

    fn stat(&mut self, path: &Path, name: &OsStr) -> std::result::Result<FileStat, Errno> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent != self.parent {
            let root = self.root.try_clone().map_err(|error| errno_of(&error))?;
            self.directory = descend(root, parent, Missing::Fail)?;
            parent.clone_into(&mut self.parent);
        }
        fstatat(&self.directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)
    }

    fn file(&self, name: &OsStr, stat: &FileStat, contents: bool) -> Look {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let read = if contents { self.read(name, size).transpose() } else { None };
        let omitted = contents && !matches!(read, Some(Ok(_)));
        let born_ns = read.as_ref().and_then(|read| read.as_ref().ok()?.1);
        let content = read.map_or_else(|| Ok(Vec::new()), |read| read.map(|(bytes, _)| bytes));
        // The file may grow meanwhile: entry and content must agree on the size.
        let size = if contents && !omitted {
            content.as_ref().map_or(size, |bytes| bytes.len() as u64)
        } else {
            size
        };
        let mode = stat.st_mode & 0o777;
        Look { kind: SnapshotKind::File { mode, size, omitted }, stamp: stamp(stat), born_ns, content }
    }

    /// Reads a file. `None` if it is too large.
    fn read(&self, name: &OsStr, size: u64) -> std::result::Result<Option<Bytes>, Errno> {
        if size > MAX_CONTENT {
            return Ok(None);
        }
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.directory, name, flags, Mode::empty())?);
        let metadata = file.metadata().map_err(|error| errno_of(&error))?;
        if !metadata.is_file() {
            return Err(Errno::EINVAL);
        }
        let born_ns = born_ns(file.as_fd());
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(MAX_CONTENT + 1).read_to_end(&mut bytes).map_err(|error| errno_of(&error))?;
        Ok((bytes.len() as u64 <= MAX_CONTENT).then_some((bytes, born_ns)))
    }
}

impl Pending {
    fn add(&mut self, entry: SnapshotEntry) -> bool {
        let target = match &entry.kind {
            SnapshotKind::Symlink(target) => target.as_bytes().len(),
            SnapshotKind::File { .. } => 0,
        };
        self.names += entry.path.as_bytes().len() + target;
        self.entries.push(entry);
        self.entries.len() == MOST_ENTRIES || self.names >= NAMES
    }
}

/// Content of a file, and its creation time in nanoseconds, if the file system has one.
type Bytes = (Vec<u8>, Option<i64>);

struct Look {
    kind: SnapshotKind,
    stamp: Stamp,
    born_ns: Option<i64>,
    content: std::result::Result<Vec<u8>, Errno>,
}

fn stamp(stat: &FileStat) -> Stamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        inode: stat.st_ino,
        modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}
