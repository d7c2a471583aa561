//! Saves long output of a command to a file in the agent's private temporary directory.
//!
//! The worker writes this file even for a command that may not write. Earlier commands could plant files or links in
//! the directory, so it is opened without following links, and the file is always a new one.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipc::id::CallId;
use ipc::tool::SavedOutput;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::commit::random;
use super::place::{Missing, open_directory};
use crate::fault::errno_of;

/// Name of the directory of saved outputs, inside the agent's temporary directory.
pub const DIRECTORY: &str = "bailiwick-output";
/// Length in bytes from which on output is saved. A result shows shorter output in full.
pub const LONG: usize = 16 << 10;
/// Maximum size of one output: 64 MiB.
const MAX_FILE: u64 = 64 << 20;
/// Maximum size of all saved outputs of an agent together: 256 MiB.
const MAX_ALL: u64 = 256 << 20;
/// Size in bytes of the unit of `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

#[derive(Debug)]
pub struct Saving {
    temp: PathBuf,
    call: CallId,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Output so far, and the size in bytes beyond which it goes to a file.
    Short {
        bytes: Vec<u8>,
        most: usize,
    },
    Open(OpenFile),
    /// State after a failure: no file could be created.
    None,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    directory: OwnedFd,
    name: String,
    written: u64,
    left: u64,
    /// Reason why the file lacks the rest of the output; `None` if nothing is missing.
    cut: Option<String>,
}

impl Saving {
    /// Creates an empty output. `kept` is the number of bytes that the result can show; longer output goes to a file.
    pub fn new(temp: &Path, call: CallId, kept: usize) -> Self {
        let state = State::Short { bytes: Vec::new(), most: kept.min(LONG) };
        Self { temp: temp.to_owned(), call, state }
    }

    /// Adds output. After a write error the file keeps its earlier bytes.
    pub fn push(&mut self, new: &[u8]) {
        match &mut self.state {
            State::Short { bytes, most } if bytes.len() + new.len() <= *most => bytes.extend_from_slice(new),
            State::Short { bytes, .. } => {
                let bytes = std::mem::take(bytes);
                self.state = match OpenFile::new(&self.temp, self.call) {
                    Ok(mut file) => {
                        file.write(&bytes);
                        file.write(new);
                        State::Open(file)
                    }
                    Err(errno) => {
                        tracing::warn!("the output of call {} is not saved: {}", self.call, errno.desc());
                        State::None
                    }
                };
            }
            State::Open(file) => file.write(new),
            State::None => {}
        }
    }

    /// Returns the saved file; `None` if no file was created.
    pub fn finish(self) -> Option<SavedOutput> {
        let State::Open(file) = self.state else { return None };
        let path = self.temp.join(DIRECTORY).join(&file.name).into();
        Some(SavedOutput { path, bytes: file.written, cut: file.cut })
    }

    pub fn discard(self) {
        if let State::Open(OpenFile { directory, name, .. }) = self.state
            && let Err(errno) = unlinkat(directory, name.as_str(), UnlinkatFlags::NoRemoveDir)
        {
            tracing::warn!("cannot remove {name}: {}", errno.desc());
        }
    }
}

impl OpenFile {
    fn new(temp: &Path, call: CallId) -> Result<Self, Errno> {
        let directory = directory(temp)?;
        let left = MAX_ALL.saturating_sub(taken(&temp.join(DIRECTORY))).min(MAX_FILE);
        let name = format!("call-{call}.log");
        let (name, file) = match create(&directory, &name) {
            // A command planted the file, or a killed worker left it.
            Err(Errno::EEXIST) => {
                let name = format!("call-{call}-{:016x}.log", random());
                let file = create(&directory, &name)?;
                (name, file)
            }
            file => (name, file?),
        };
        Ok(Self { file, directory, name, written: 0, left, cut: None })
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.cut.is_some() {
            return;
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        if let Err(error) = self.write_all(&bytes[..room]) {
            self.cut = Some(match errno_of(&error) {
                Errno::ENOSPC | Errno::EDQUOT => "the temp directory is full".to_owned(),
                errno => format!("the file could not be written further: {}", errno.desc()),
            });
        } else if room < bytes.len() {
            self.cut = Some(match self.written {
                MAX_FILE => "the limit for one output is reached".to_owned(),
                _ => format!(
                    "the limit for all outputs is reached; remove what you no longer need in {DIRECTORY}"
                ),
            });
        }
    }

    /// Writes bytes. After an error, the bytes that were written before are still counted.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.written += written as u64;
                    self.left -= written as u64;
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Opens the directory of saved outputs, and creates it if it is missing. Fails for a link.
fn directory(temp: &Path) -> Result<OwnedFd, Errno> {
    let temp = open_directory(temp, Missing::Fail)?;
    match mkdirat(&temp, DIRECTORY, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(&temp, DIRECTORY, flags, Mode::empty())
}

/// Returns the disk space of all saved outputs in bytes. An agent that replaces the directory only falsifies its own.
fn taken(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.blocks());
    sizes.fold(0, |sum: u64, blocks| sum.saturating_add(blocks.saturating_mul(BLOCK)))
}

fn create(directory: &OwnedFd, name: &str) -> Result<File, Errno> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(directory, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).map(File::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::fcntl::{FallocateFlags, fallocate};

    use super::*;

    fn save(temp: &Path, pieces: &[&[u8]]) -> Option<SavedOutput> {
        let mut saving = Saving::new(temp, CallId(7), 64 << 10);
        for piece in pieces {
            saving.push(piece);
        }
        saving.finish()
    }

    fn temp() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        (directory, path)
    }

    #[test]
    fn short_outputs_leave_no_trace() {
        let (_guard, temp) = temp();
        assert_eq!(save(&temp, &[&[b'x'; LONG]]), None);
        assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
    }

    #[test]
    fn long_outputs_are_whole_and_the_agents_alone() {
        let (_guard, temp) = temp();
        let saved = save(&temp, &[&[b'x'; LONG], b"y", &[b'z'; 99]]).unwrap();
        assert_eq!((saved.bytes, saved.cut), (LONG as u64 + 100, None));
        let path = temp.join("bailiwick-output/call-7.log");
        assert_eq!(saved.path.as_path(), path);
        let text = std::fs::read(&path).unwrap();
        assert_eq!(text, [&[b'x'; LONG][..], b"y", &[b'z'; 99]].concat());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn an_output_of_which_nobody_is_told_is_removed() {
        let (_guard, temp) = temp();
        let mut saving = Saving::new(&temp, CallId(7), 4);
        saving.push(b"longer than four");
        saving.discard();
        assert_eq!(std::fs::read_dir(temp.join(DIRECTORY)).unwrap().count(), 0);
    }

    #[test]
    fn one_output_is_bounded_and_the_bound_is_said() {
        let (_guard, temp) = temp();
        let piece = vec![b'x'; 1 << 20];
        let saved = save(&temp, &vec![piece.as_slice(); 65]).unwrap();
        assert_eq!(
            (saved.bytes, saved.cut.as_deref()),
            (MAX_FILE, Some("the limit for one output is reached"))
        );
        assert_eq!(temp.join("bailiwick-output/call-7.log").metadata().unwrap().len(), MAX_FILE);
    }

    #[test]
    fn all_outputs_together_are_bounded() {
        let (_guard, temp) = temp();
        std::fs::create_dir(temp.join(DIRECTORY)).unwrap();
        let earlier = File::create(temp.join(DIRECTORY).join("call-1.log")).unwrap();
        let size = i64::try_from(MAX_ALL - (1 << 20)).unwrap();
        fallocate(&earlier, FallocateFlags::empty(), 0, size).unwrap();
        let saved = save(&temp, &[&vec![b'x'; 2 << 20]]).unwrap();
        assert!(saved.bytes <= 1 << 20 && saved.bytes > 1 << 19, "{}", saved.bytes);
        let cut = "the limit for all outputs is reached; remove what you no longer need in bailiwick-output";
        assert_eq!(saved.cut.as_deref(), Some(cut));
    }

    #[test]
    fn a_full_temp_directory_is_said() {
        let (_guard, temp) = temp();
        let mut saving = Saving::new(&temp, CallId(7), 4);
        saving.push(b"begun");
        let State::Open(open) = &mut saving.state else { panic!("{saving:?}") };
        open.file = File::options().write(true).open("/dev/full").unwrap();
        saving.push(b"more");
        saving.push(b"and more");
        let saved = saving.finish().unwrap();
        assert_eq!((saved.bytes, saved.cut.as_deref()), (5, Some("the temp directory is full")));
    }

    #[test]
    fn planted_links_are_neither_followed_nor_written() {
        let (_guard, temp) = temp();
        let victim = temp.join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::fs::create_dir(temp.join(DIRECTORY)).unwrap();
        symlink(&victim, temp.join(DIRECTORY).join("call-7.log")).unwrap();
        let saved = save(&temp, &[&vec![b'x'; LONG + 1]]).unwrap();
        assert_ne!(saved.path.as_path(), temp.join("bailiwick-output/call-7.log"));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(saved.path.as_path().metadata().unwrap().len(), LONG as u64 + 1);
        // The directory itself.
        let elsewhere = temp.join("elsewhere");
        std::fs::rename(temp.join(DIRECTORY), &elsewhere).unwrap();
        symlink(&elsewhere, temp.join(DIRECTORY)).unwrap();
        let before = std::fs::read_dir(&elsewhere).unwrap().count();
        assert_eq!(save(&temp, &[&vec![b'x'; LONG + 1]]), None);
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), before);
    }
}
