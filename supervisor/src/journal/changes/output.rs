//! The output file of `--patch`.
//!
//! The file is opened before the first worker starts, so no agent can make the patch go elsewhere. An agent that may
//! write in the project can still move or remove the file. The patch then goes to a new file with the same name in the
//! directory that was opened.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ipc::path::WirePath;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, fcntl, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, major, minor};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::patch;
use super::path::ProjectPath;
use super::set::ChangeSet;

#[derive(Debug)]
pub struct PatchFile {
    /// The path as the person gave it.
    path: PathBuf,
    target: OutputTarget,
    /// Path of the project in its git repository, with a slash at its end; empty for the top directory.
    base: Vec<u8>,
}

#[derive(Debug)]
enum OutputTarget {
    /// A pipe, a terminal or `/dev/null`, written from the current position.
    Stream(File),
    /// A regular file. The patch replaces its content.
    File { file: File, place: OutputPlace },
}

/// The output file by its name in a directory that stays open.
#[derive(Debug)]
struct OutputPlace {
    directory: OwnedFd,
    name: OsString,
    /// Path of the file without symbolic links.
    canonical: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PatchFileError {
    /// The path is `-`. This names no file.
    #[error(
        "cannot write the patch to -: the run itself prints to standard output\n  hint: --patch FILE, or --patch ./- for a file of this name"
    )]
    StandardOutput,
    #[error("cannot open {path} for the patch: {source}", path = path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The path leads to a kind of file to which no patch can be written.
    #[error("cannot write the patch to {path}: this is {kind}; name a regular file", path = path.display())]
    Kind { path: PathBuf, kind: &'static str },
    /// The file could not be written. A regular file is then left empty, not with a part of the patch.
    #[error("cannot write the patch to {path}: {source}", path = path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl PatchFile {
    /// Opens the file and creates it if it is missing. Its content stays until the patch is written.
    ///
    /// The last component of the path may not be a symbolic link, except for names of this process's own descriptors
    /// (`/dev/stdout`, `/dev/fd/N` …).
    pub fn open(path: &Path) -> Result<Self, PatchFileError> {
        if path == Path::new("-") {
            return Err(PatchFileError::StandardOutput);
        }
        let target = match own_descriptor(path) {
            Some(number) => open_descriptor(number).map(OutputTarget::Stream),
            None => OutputPlace::find(path).and_then(OutputPlace::open),
        };
        let path = path.to_owned();
        match target {
            Ok(target) => Ok(Self { path, target, base: Vec::new() }),
            Err(OutputRefusal::Kind(kind)) => Err(PatchFileError::Kind { path, kind }),
            Err(OutputRefusal::Errno(errno)) => Err(PatchFileError::Open { path, source: errno.into() }),
        }
    }

    /// Makes the paths in the patch relative to the top of the git repository, where `git apply` expects them.
    #[must_use]
    pub fn of_project(self, project: &Path) -> Self {
        Self { base: place_in_repository(project), ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the output file's path in the project; `None` if the file is elsewhere. The patch leaves this path out.
    pub fn within(&self, canonical_project: &Path) -> Option<ProjectPath> {
        let OutputTarget::File { place, .. } = &self.target else { return None };
        WirePath::from(place.canonical.strip_prefix(canonical_project).ok()?).try_into().ok()
    }

    pub fn write(self, set: &ChangeSet) -> Result<(), PatchFileError> {
        let Self { path, target, base } = self;
        let written = match target {
            OutputTarget::Stream(file) => write_all(file, set, &base).map_err(|(_, error)| error),
            OutputTarget::File { file, place } => {
                place.current(file).map_err(io::Error::from).and_then(|file| {
                    file.set_len(0)?;
                    write_all(file, set, &base)
                        .map_err(|(file, error)| file.set_len(0).err().unwrap_or(error))
                })
            }
        };
        written.map_err(|source| PatchFileError::Write { path, source })
    }
}

/// Writes the patch. An error comes with the file, so that the caller can truncate it.
fn write_all(file: File, set: &ChangeSet, base: &[u8]) -> Result<(), (File, io::Error)> {
    let mut out = BufWriter::new(file);
    match patch::write(set, base, &mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // Dropping the buffer would write it, so the file is taken out of it.
        Err(error) => Err((out.into_parts().0, error)),
    }
}

/// Returns the project's path in its git repository, with a slash at the end. It is empty for the top directory and
/// outside of a repository.
fn place_in_repository(project: &Path) -> Vec<u8> {
    let is_top = |directory: &&Path| {
        let git = directory.join(".git");
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    };
    let top = project.ancestors().find(is_top);
    let below =
        top.and_then(|top| project.strip_prefix(top).ok()).filter(|below| !below.as_os_str().is_empty());
    below.map(|below| [below.as_os_str().as_bytes(), b"/"].concat()).unwrap_or_default()
}

enum OutputRefusal {
    Kind(&'static str),
    Errno(Errno),
}

impl From<Errno> for OutputRefusal {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl OutputPlace {
    fn find(path: &Path) -> Result<Self, OutputRefusal> {
        let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
        let name = name.ok_or(OutputRefusal::Kind("a directory"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = openat(AT_FDCWD, parent, flags, Mode::empty())?;
        let errno = |error: io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
        let canonical = parent.canonicalize().map_err(errno)?.join(&name);
        Ok(Self { directory, name, canonical })
    }

    fn open(self) -> Result<OutputTarget, OutputRefusal> {
        // The file is checked before it is opened, because the opening of some devices has effects.
        if let Some(stat) = self.stat()? {
            accepted(&stat)?;
        }
        let file = self.create(OFlag::O_NONBLOCK)?;
        let stat = fstat(&file)?;
        accepted(&stat)?;
        if kind(&stat) == SFlag::S_IFREG {
            return Ok(OutputTarget::File { file, place: self });
        }
        blocking(&file)?;
        Ok(OutputTarget::Stream(file))
    }

    /// Returns the file `opened` if its name still leads to it. Otherwise creates a new file of that name.
    fn current(&self, opened: File) -> Result<File, Errno> {
        let ours = fstat(&opened)?;
        match self.stat()? {
            Some(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => return Ok(opened),
            Some(_) => unlinkat(&self.directory, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?,
            None => {}
        }
        self.create(OFlag::O_EXCL)
    }

    fn stat(&self) -> Result<Option<FileStat>, Errno> {
        match fstatat(&self.directory, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => Ok(None),
            stat => stat.map(Some),
        }
    }

    fn create(&self, extra: OFlag) -> Result<File, Errno> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        openat(&self.directory, self.name.as_os_str(), flags | extra, mode).map(File::from)
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn accepted(stat: &FileStat) -> Result<(), OutputRefusal> {
    match kind(stat) {
        SFlag::S_IFREG | SFlag::S_IFIFO => Ok(()),
        // Device 1:3 is /dev/null (Documentation/admin-guide/devices.txt), the only device to which a patch may go.
        SFlag::S_IFCHR if (major(stat.st_rdev), minor(stat.st_rdev)) == (1, 3) => Ok(()),
        SFlag::S_IFDIR => Err(OutputRefusal::Kind("a directory")),
        SFlag::S_IFLNK => Err(OutputRefusal::Kind("a symbolic link")),
        SFlag::S_IFSOCK => Err(OutputRefusal::Kind("a socket")),
        _ => Err(OutputRefusal::Kind("a device")),
    }
}

fn own_descriptor(path: &Path) -> Option<u32> {
    match path.to_str()? {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        path => path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
}

fn open_descriptor(number: u32) -> Result<File, OutputRefusal> {
    // The descriptor is duplicated and not opened again, so that a regular file keeps its position.
    let errno = |error: io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EBADF));
    let duplicate = match number {
        1 => Some(io::stdout().as_fd().try_clone_to_owned().map_err(errno)?),
        2 => Some(io::stderr().as_fd().try_clone_to_owned().map_err(errno)?),
        _ => None,
    };
    if let Some(descriptor) = duplicate {
        return Ok(descriptor.into());
    }
    let name = format!("/proc/self/fd/{number}");
    let flags = OFlag::O_WRONLY | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(AT_FDCWD, OsStr::new(&name), flags, Mode::empty())?);
    accepted(&fstat(&file)?)?;
    blocking(&file)?;
    Ok(file)
}

fn blocking(file: &File) -> Result<(), Errno> {
    let flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    fcntl(file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK)).map(drop)
}
