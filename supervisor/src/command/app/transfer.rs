//! `bailiwick export` and `bailiwick import`: a session as one file, for another machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ipc::path::WirePath;
use protocol::shell_word::shell_word;

use super::show::log_of;
use crate::engine::opening::Refusal;
use crate::journal::sessions::{ArchiveError, Archived, Head, LARGEST, export as write_archive};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say};
use crate::settings::args::{ExportSessionArgs, ImportArgs};

pub(super) fn export(args: &ExportSessionArgs) -> Exit {
    finish(write(args))
}

pub(super) fn import(args: &ImportArgs) -> Exit {
    finish(read(args))
}

fn finish(done: Result<(), Refusal>) -> Exit {
    match done {
        Ok(()) => Exit::Done,
        Err(Refusal(exit, message)) => {
            complain(&message);
            exit
        }
    }
}

fn write(args: &ExportSessionArgs) -> Result<(), Refusal> {
    let log = log_of(args.session.as_deref(), &args.directory)?;
    let failed =
        |error: &dyn std::fmt::Display| Refusal::usage(format!("cannot export {}: {error}", log.display()));
    let mut bytes = File::open(&log).map_err(|error| match (error.kind(), &args.file) {
        (io::ErrorKind::NotFound, None) => failed(&format!("{error}\n  hint: bailiwick export SESSION FILE")),
        _ => failed(&error),
    })?;
    let redacts = !args.no_redact;
    let (head, unwritten) = match &args.file {
        Some(file) => {
            let mut out = WatchedOutput::new(new_file(file).map_err(|error| failed(&error))?);
            let head = write_archive(&mut bytes, redacts, &mut BufWriter::new(&mut out));
            if head.is_err() {
                // The file was created by this command, and overwrote nothing.
                let _ = fs::remove_file(file);
            }
            (head, out.failed.then(|| file.display().to_string()))
        }
        None if io::stdout().is_terminal() => {
            return Err(Refusal::usage("cannot export to a terminal\n  hint: bailiwick export SESSION FILE"));
        }
        None => {
            let mut out = WatchedOutput::new(io::stdout().lock());
            let head = write_archive(&mut bytes, redacts, &mut BufWriter::new(&mut out));
            (head, out.failed.then(|| "to standard output".to_owned()))
        }
    };
    match head {
        // A reader that closed standard output is no error.
        Err(ArchiveError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
        head => say(&told(&head.map_err(|error| match unwritten {
            Some(output) => Refusal::internal(format!("cannot write {output}: {error}")),
            None => failed(&error),
        })?)),
    }
    Ok(())
}

/// An output that records whether a write failed, to tell this from a failed read of the log.
struct WatchedOutput<W> {
    to: W,
    failed: bool,
}

impl<W> WatchedOutput<W> {
    const fn new(to: W) -> Self {
        Self { to, failed: false }
    }

    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        // A write that a signal interrupted is repeated.
        self.failed |= done.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        done
    }
}

impl<W: Write> Write for WatchedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.noted(flushed)
    }
}

/// Creates a file that only its owner can read. Fails if the path exists, even as a symbolic link (`O_EXCL`, open(2)).
fn new_file(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("the file {} already exists\n  hint: remove it, or name another file", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    })
}

/// Returns the message after an export, with a warning that some secrets may remain.
fn told(head: &Head) -> String {
    let unit = if head.events == 1 { "event" } else { "events" };
    let exported = format!("exported {} {unit} of the session {}", head.events, head.session);
    let Some(redacted) = &head.redacted else {
        return format!("{exported}, with all secrets in the log");
    };
    if redacted.found.is_empty() {
        return format!(
            "{exported}; no secret of a known form was found: check the export before you share it"
        );
    }
    let found: Vec<_> = redacted.found.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    format!("{exported}; redacted: {}; check the export before you share it", found.join(", "))
}

fn seekable(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let mut copy = tempfile::tempfile()?;
    // One byte more than the limit shows that the archive is too large.
    io::copy(&mut file.take(LARGEST + 1), &mut copy)?;
    Ok(copy)
}

fn read(args: &ImportArgs) -> Result<(), Refusal> {
    let directories = Directories::of_process().map_err(Refusal::usage)?;
    let failed = |error: &dyn std::fmt::Display| {
        Refusal::usage(format!("cannot import {}: {error}", args.file.display()))
    };
    let archive = seekable(&args.file).map_err(|error| failed(&error))?;
    let archived = Archived::read(archive).map_err(|error| failed(&error))?;
    let project = match &args.directory {
        None => None,
        Some(directory) => Some(WirePath::from(&directory.canonicalize().map_err(|error| failed(&error))?)),
    };
    let own = archived.project().cloned();
    let (events, earlier) = (archived.head().events, archived.head().session.clone());
    directories.make().map_err(Refusal::usage)?;
    let session = archived.import(&directories.state, project.as_ref()).map_err(|error| failed(&error))?;
    let project = project.or(own).map(|project| shell_word(project.as_path())).unwrap_or_default();
    let unit = if events == 1 { "event" } else { "events" };
    say(&format!("imported {events} {unit} of the session {earlier} as {session}, of the project {project}"));
    say(&format!(
        "bailiwick show {session} shows the session; the file came from elsewhere, and nothing proves that its content is true"
    ));
    // Scripts read this line, so it is on standard output.
    let mut out = io::stdout().lock();
    let printed = writeln!(out, "{session}");
    printed.map_err(Refusal::internal)
}
