//! Acts that this process tries for `bailiwick explain` and `bailiwick audit`. It runs *inside* a confinement.
//!
//! Each act is harmless if it succeeds. A file is opened for appending, and nothing is written; in a directory a file
//! without a name is created (open(2), `O_TMPFILE`). Fifos and devices are not opened, since that can have effects.

use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use ipc::denial::Operation;
use ipc::path::WirePath;
use ipc::probe::{Outcome, Probe};
use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, socket};

use crate::compile::DEVICES;
use crate::modes::permitted_by_mode;
use crate::system::file;

/// Flag that makes execveat(2) only check if a file could be executed. `EINVAL` before Linux 6.14.
const EXECVE_CHECK: c_int = 0x1_0000;

pub fn run(probes: impl BufRead, out: &mut impl Write) -> io::Result<()> {
    for line in probes.lines() {
        serde_json::to_writer(&mut *out, &outcome(&serde_json::from_str(&line?)?))?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn outcome(probe: &Probe) -> Outcome {
    let (operation, path, tried) = match probe {
        Probe::Read { path } => (Operation::Read, path, open(path, false)),
        Probe::Write { path } => (Operation::Write, path, open(path, true)),
        Probe::Execute { path } => (Operation::Execute, path, execute(path)),
        Probe::Connect { path } => (Operation::Write, path, connect(path)),
    };
    match tried {
        Ok(()) => Outcome::Done,
        Err(ProbeFailure::Untried(why)) => Outcome::Untried { why: why.to_owned() },
        Err(ProbeFailure::Refused(error)) => Outcome::Refused {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            permitted_by_mode: permitted_by_mode(operation, path.as_path()),
        },
    }
}

enum ProbeFailure {
    Refused(io::Error),
    Untried(&'static str),
}

impl From<io::Error> for ProbeFailure {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

fn open(path: &WirePath, write: bool) -> Result<(), ProbeFailure> {
    let path = path.as_path();
    let meta = fs::metadata(path)?;
    if let Some(why) = acts_when_opened(path, &meta) {
        return Err(ProbeFailure::Untried(why));
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = File::options();
    match (write, meta.is_dir()) {
        (false, false) => options.read(true).custom_flags(flags),
        // Lists the directory: opening it is possible in a tree that may only be passed through.
        (false, true) => return Ok(fs::read_dir(path).map(drop)?),
        (true, false) => options.append(true).custom_flags(flags),
        (true, true) => options.write(true).custom_flags(flags | libc::O_TMPFILE),
    };
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if write && matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            Err(ProbeFailure::Untried("this file system makes no files without a name"))
        }
        // The kernel checks this before mounts and rules.
        Err(error) if error.raw_os_error() == Some(libc::ETXTBSY) => {
            Err(ProbeFailure::Untried("it is being executed, and nobody may write it meanwhile"))
        }
        Err(error) => Err(error.into()),
    }
}

fn acts_when_opened(path: &Path, meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    let harmless =
        || fs::canonicalize(path).is_ok_and(|found| DEVICES.iter().any(|known| found == Path::new(known)));
    match () {
        () if kind.is_fifo() => Some("opening a fifo lets its other end go on"),
        () if kind.is_socket() => Some("a socket is connected to, and not opened"),
        () if (kind.is_char_device() || kind.is_block_device()) && !harmless() => {
            Some("opening a device may act on it")
        }
        () => None,
    }
}

/// Connects to a unix socket, first as a stream; if the kernel says that it has another type, with the other types.
/// Does not wait if the socket's queue is full.
fn connect(path: &WirePath) -> Result<(), ProbeFailure> {
    if !fs::metadata(path)?.file_type().is_socket() {
        return Err(ProbeFailure::Untried("it is no socket"));
    }
    let address = UnixAddr::new(path.as_path()).map_err(io::Error::from)?;
    let mut answer = Ok(());
    for kind in [SockType::Stream, SockType::Datagram, SockType::SeqPacket] {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let connected = socket(AddressFamily::Unix, kind, flags, None)
            .and_then(|socket| socket::connect(socket.as_raw_fd(), &address));
        answer = connected.map_err(io::Error::from);
        if connected != Err(Errno::EPROTOTYPE) {
            break;
        }
    }
    Ok(answer?)
}

fn execute(path: &WirePath) -> Result<(), ProbeFailure> {
    if fs::metadata(path)?.is_dir() {
        return Err(ProbeFailure::Untried("a directory is not executed"));
    }
    let name = CString::new(path.as_path().as_os_str().as_bytes()).map_err(io::Error::from)?;
    let asked = file::execute_only_with(&name, EXECVE_CHECK);
    match asked {
        Err(Errno::EINVAL) => Err(ProbeFailure::Untried("this kernel cannot be asked (needs Linux 6.14)")),
        asked => Ok(asked.map_err(io::Error::from)?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tests::comes_true;

    fn outcomes(probes: &[Probe]) -> Vec<Outcome> {
        let lines: Vec<_> = probes.iter().map(|probe| serde_json::to_string(probe).unwrap()).collect();
        let mut out = Vec::new();
        run(lines.join("\n").as_bytes(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn an_act_that_succeeds_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "content").unwrap();
        let before = fs::metadata(place.path()).unwrap().modified().unwrap();
        let path = WirePath::from(&file);
        let directory = WirePath::from(place.path());
        let done = outcomes(&[
            Probe::Read { path: path.clone() },
            Probe::Write { path: path.clone() },
            Probe::Read { path: directory.clone() },
        ]);
        assert_eq!(done, [Outcome::Done, Outcome::Done, Outcome::Done]);
        let made = &outcomes(&[Probe::Write { path: directory }])[0];
        assert!(matches!(made, Outcome::Done | Outcome::Untried { .. }), "{made:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        assert_eq!(fs::metadata(place.path()).unwrap().modified().unwrap(), before);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_program_is_asked_for_and_not_executed() {
        let place = tempfile::tempdir().unwrap();
        let (program, made) = (place.path().join("program"), place.path().join("made"));
        fs::write(&program, format!("#!/bin/sh\n: > {}\n", made.display())).unwrap();
        let ask = || outcomes(&[Probe::Execute { path: (&program).into() }]).remove(0);
        assert!(matches!(ask(), Outcome::Refused { permitted_by_mode: false, .. } | Outcome::Untried { .. }));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(ask(), Outcome::Done | Outcome::Untried { .. }));
        assert!(!made.exists());
    }

    #[test]
    fn whoever_listens_is_connected_to_whatever_the_type() {
        use std::os::unix::net::{UnixDatagram, UnixListener};
        let place = tempfile::tempdir().unwrap();
        let (stream, datagram) = (place.path().join("stream"), place.path().join("datagram"));
        let listener = UnixListener::bind(&stream).unwrap();
        let _receiver = UnixDatagram::bind(&datagram).unwrap();
        let connect = |path: &Path| outcomes(&[Probe::Connect { path: path.into() }]).remove(0);
        assert_eq!([connect(&stream), connect(&datagram)], [Outcome::Done, Outcome::Done]);
        assert!(matches!(connect(place.path()), Outcome::Untried { .. }));
        drop(listener);
        let refused = Outcome::Refused { errno: libc::ECONNREFUSED, permitted_by_mode: true };
        comes_true(|| connect(&stream) == refused);
    }

    #[test]
    fn what_acts_when_it_is_opened_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let tried = outcomes(&[
            Probe::Read { path: (&fifo).into() },
            Probe::Read { path: "/dev/tty".into() },
            Probe::Write { path: "/dev/null".into() },
        ]);
        assert!(matches!(tried[..2], [Outcome::Untried { .. }, Outcome::Untried { .. }]), "{tried:?}");
        assert_eq!(tried[2], Outcome::Done);
    }
}
