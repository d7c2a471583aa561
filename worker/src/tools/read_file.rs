//! `read_file`: lines of a text file as valid UTF-8, or a picture.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use encoding_rs::{CoderResult, Decoder};
use ipc::denial::Operation;
use ipc::image::{Image, MAX_IMAGE_BYTES, TooManyBytes};
use ipc::tool::{FileText, ReadFile, ToolErrorKind, ToolOutput};
use nix::libc;
use picture::ImageError;

use super::lines::{DEFAULT_LINES, FileLines};
use super::text::{Form, is_binary};
use crate::assignment::Assignment;
use crate::fault::{Result, failed, refused_io};

/// Maximum size in bytes of a file that the message loop reads without a thread.
const SMALL: u64 = 256 << 10;
/// Size of one read: 64 KiB.
const BLOCK: usize = 64 << 10;
/// Maximum size in bytes of a file whose lines are all counted.
const COUNTED: u64 = 8 << 20;

#[derive(Debug)]
pub struct Opened {
    file: File,
    path: PathBuf,
    size: u64,
    read: u64,
}

impl Opened {
    /// Opens a regular file without blocking. Fails outside the project if the call demands that.
    pub fn open(assignment: &Assignment, call: &ReadFile) -> Result<Self> {
        let path = assignment.absolute(&call.path);
        let opened =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(&path);
        let file = opened.map_err(|error| refused_io(Operation::Read, &path, &error))?;
        let metadata = file.metadata().map_err(|error| refused_io(Operation::Read, &path, &error))?;
        if !metadata.is_file() {
            return Err(wrong_kind(&path, metadata.file_type()));
        }
        if call.inside {
            assignment.stays_inside(&path, &opened_place(&file))?;
        }
        Ok(Self { file, path, size: metadata.size(), read: 0 })
    }

    /// True if the message loop may read the file itself. False for files in /proc, whose size reads as 0.
    pub fn is_small(&self) -> bool {
        (1..=SMALL).contains(&self.size)
    }

    /// Reads lines or a picture. Calls `check` between blocks, whose error ends the read. Fails for a binary file.
    pub fn read(mut self, call: &ReadFile, check: impl Fn() -> Result<()>) -> Result<ToolOutput> {
        let (first, limit) = range(call)?;
        let mut block = vec![0; self.block()];
        let (filled, ended) = self.fill(&mut block)?;
        block.truncate(filled);
        if picture::media_type(&block).is_some() {
            return self.picture(block, ended, check).map(ToolOutput::Image);
        }
        if is_binary(&block) {
            return Err(self.binary());
        }
        self.text(first, limit, block, ended, check).map(ToolOutput::File)
    }

    /// Reads lines of text. `block` is the first block of the file.
    fn text(
        mut self,
        first: u64,
        limit: u64,
        mut block: Vec<u8>,
        mut ended: bool,
        check: impl Fn() -> Result<()>,
    ) -> Result<FileText> {
        let form = Form::of(&block, ended);
        let mut text = Text { lines: FileLines::new(first, limit), decoder: form.decoder(), broken: false };
        text.push(&block[form.mark.min(block.len())..], ended);
        while !(ended || text.lines.is_done() && self.size > COUNTED) {
            check()?;
            let filled;
            // A partly filled block is the last one.
            (filled, ended) = self.fill(&mut block)?;
            text.push(&block[..filled], ended);
        }
        if ended && first > text.lines.seen().max(1) {
            return Err(beyond(&self.path, first, text.lines.seen()));
        }
        Ok(text.finish(form, ended))
    }

    /// Reads a picture, whose first bytes are `bytes`.
    fn picture(
        mut self,
        mut bytes: Vec<u8>,
        mut ended: bool,
        check: impl Fn() -> Result<()>,
    ) -> Result<Image> {
        while !ended && bytes.len() <= MAX_IMAGE_BYTES {
            check()?;
            let read = bytes.len();
            bytes.resize(read + BLOCK, 0);
            let filled;
            (filled, ended) = self.fill(&mut bytes[read..])?;
            bytes.truncate(read + filled);
        }
        picture::read(bytes).map_err(|error| self.no_picture(&error))
    }

    fn no_picture(&self, error: &ImageError) -> crate::fault::Stop {
        // The file may be longer than the part that was read.
        let error = match error {
            ImageError::TooManyBytes(TooManyBytes(read)) => &TooManyBytes(self.size.max(*read)).into(),
            other => other,
        };
        let message =
            format!("`{}` {error}; shell_exec can look at the file or change it.", self.path.display());
        failed(ToolErrorKind::Unreadable, message)
    }

    /// Returns the size of the first read: one byte more than a small file, so that one read also finds its end.
    fn block(&self) -> usize {
        usize::try_from(self.size).map_or(BLOCK, |size| if size == 0 { BLOCK } else { (size + 1).min(BLOCK) })
    }

    /// Fills a block. Returns the number of bytes that were read, and true at the end of the file.
    fn fill(&mut self, block: &mut [u8]) -> Result<(usize, bool)> {
        let mut filled = 0;
        while filled < block.len() {
            match self.file.read(&mut block[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(read) => {
                    let wanted = block.len() - filled;
                    filled += read;
                    self.read += read as u64;
                    // A short read at the file's known size: the end. This saves a further read.
                    if read < wanted && self.read == self.size {
                        return Ok((filled, true));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(refused_io(Operation::Read, &self.path, &error)),
            }
        }
        Ok((filled, false))
    }

    fn binary(&self) -> crate::fault::Stop {
        let (path, size) = (self.path.display(), self.size);
        let message = format!(
            "`{path}` is a binary file of {size} bytes; look at it with shell_exec (file, xxd, strings)."
        );
        failed(ToolErrorKind::Unreadable, message)
    }
}

struct Text {
    lines: FileLines,
    decoder: Decoder,
    broken: bool,
}

impl Text {
    fn push(&mut self, mut bytes: &[u8], last: bool) {
        let mut piece = String::with_capacity(bytes.len() + 16);
        loop {
            let (result, read, broken) = self.decoder.decode_to_string(bytes, &mut piece, last);
            self.broken |= broken;
            self.lines.push(&piece);
            if result == CoderResult::InputEmpty {
                break;
            }
            bytes = &bytes[read..];
            piece.clear();
        }
    }

    fn finish(self, form: Form, ended: bool) -> FileText {
        let mut text = self.lines.finish(ended, form.name());
        let broken = self.broken.then_some("Bytes that are not valid in this encoding are shown as U+FFFD.");
        text.notes.extend(form.note().or(broken).map(str::to_owned));
        text
    }
}

/// Returns a path in /proc that leads to an open file, even if the file has been renamed meanwhile.
fn opened_place(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn range(call: &ReadFile) -> Result<(u64, u64)> {
    let (offset, limit) = (call.offset.unwrap_or(1), call.limit.unwrap_or(DEFAULT_LINES));
    if offset == 0 || limit == 0 {
        let message = "offset and limit must be at least 1.";
        return Err(failed(ToolErrorKind::InvalidArgument, message));
    }
    Ok((offset, limit))
}

fn beyond(path: &Path, offset: u64, lines: u64) -> crate::fault::Stop {
    let message = format!(
        "`{}` has {lines} lines, so nothing is at offset {offset}; ask for a smaller offset.",
        path.display()
    );
    failed(ToolErrorKind::InvalidArgument, message)
}

pub fn wrong_kind(path: &Path, kind: std::fs::FileType) -> crate::fault::Stop {
    let path = path.display();
    let message = if kind.is_dir() {
        format!("`{path}` is a directory; list_directory shows what is in it.")
    } else {
        format!("`{path}` is {}; only regular files can be read or changed.", kind_name(kind))
    };
    failed(ToolErrorKind::WrongKind, message)
}

fn kind_name(kind: std::fs::FileType) -> &'static str {
    match kind {
        _ if kind.is_fifo() => "a fifo",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "no regular file",
    }
}
