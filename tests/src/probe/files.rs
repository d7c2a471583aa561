//! Actions on files.

use std::ffi::{CString, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

use super::{Act, Arguments, descriptor, done};

const BYTES: &[u8] = b"written by the adversary\n";

pub(super) const ACTS: &[(&str, Act)] = &[
    ("read", |a| fs::read(a.os(0)?)),
    ("list", |a| {
        let names = fs::read_dir(a.os(0)?)?.flatten().map(|entry| entry.file_name());
        Ok(names.flat_map(OsString::into_encoded_bytes).collect())
    }),
    ("write", |a| write(OpenOptions::new().write(true).create(true), a.os(0)?.into())),
    ("open-to-write", |a| OpenOptions::new().write(true).open(a.os(0)?).map(|_| Vec::new())),
    ("append", |a| write(OpenOptions::new().append(true), a.os(0)?.into())),
    ("truncating-read", |a| {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_TRUNC);
        options.open(a.os(0)?).map(|_| Vec::new())
    }),
    ("truncate", |a| {
        // SAFETY: the path is a C string.
        done(unsafe { libc::truncate(a.path(0)?.as_ptr(), 0) })
    }),
    ("unlink", |a| fs::remove_file(a.os(0)?).map(|()| Vec::new())),
    ("rmdir", |a| fs::remove_dir(a.os(0)?).map(|()| Vec::new())),
    ("mkdir", |a| fs::create_dir(a.os(0)?).map(|()| Vec::new())),
    ("symlink", |a| symlink(a.os(0)?, a.os(1)?).map(|()| Vec::new())),
    ("link", |a| fs::hard_link(a.os(0)?, a.os(1)?).map(|()| Vec::new())),
    ("rename", |a| fs::rename(a.os(0)?, a.os(1)?).map(|()| Vec::new())),
    ("exchange", |a| rename_exchange(Path::new(a.os(0)?), Path::new(a.os(1)?))),
    ("mkfifo", |a| {
        // SAFETY: the path is a C string.
        done(unsafe { libc::mkfifo(a.path(0)?.as_ptr(), 0o600) })
    }),
    ("mknod-block", |a| {
        // SAFETY: the path is a C string; device 7:0 is the first loop device.
        done(unsafe { libc::mknod(a.path(0)?.as_ptr(), libc::S_IFBLK | 0o600, libc::makedev(7, 0)) })
    }),
    ("bind-unix", |a| UnixListener::bind(a.os(0)?).map(|_| Vec::new())),
    ("reopen-path", |a| reopen(libc::O_PATH, a)),
    ("reopen-read-only", |a| reopen(libc::O_RDONLY, a)),
    ("write-descriptor", |a| {
        // SAFETY: the buffer is valid for its length; the descriptor may be anything, closed too.
        done(unsafe { libc::write(a.number(0)?, BYTES.as_ptr().cast(), BYTES.len()) } as i64)
    }),
    ("read-descriptor", |a| fs::read(format!("/proc/self/fd/{}", a.number::<i32>(0)?))),
    ("through-directory-descriptor", |a| {
        let path = a.path(1)?;
        // SAFETY: the path is a C string; the descriptor may be anything.
        done(unsafe { libc::openat(a.number(0)?, path.as_ptr(), libc::O_WRONLY | libc::O_CREAT, 0o600) })
    }),
    ("write-here", |a| {
        std::env::set_current_dir(a.os(0)?)?;
        let path = PathBuf::from("/proc/self/cwd").join(a.os(1)?);
        write(OpenOptions::new().write(true), path)
    }),
    ("link-read", |a| {
        fs::hard_link(a.os(0)?, a.os(1)?)?;
        fs::read(a.os(1)?)
    }),
    ("rename-read", |a| {
        fs::rename(a.os(0)?, a.os(1)?)?;
        fs::read(PathBuf::from(a.os(1)?).join(a.os(2)?))
    }),
    ("swap-race", swap_race),
];

fn write(options: &mut OpenOptions, path: PathBuf) -> io::Result<Vec<u8>> {
    options.open(path)?.write_all(BYTES).map(|()| Vec::new())
}

/// Opens a file with these flags, which do not include writing, then reopens it for writing through the descriptor.
fn reopen(flags: libc::c_int, a: &Arguments) -> io::Result<Vec<u8>> {
    // SAFETY: the path is a C string.
    let opened = descriptor(unsafe { libc::open(a.path(0)?.as_ptr(), flags) })?;
    write(OpenOptions::new().write(true), format!("/proc/self/fd/{}", opened.as_raw_fd()).into())
}

/// Reads a file to its end. The kernel reports no size for it.
pub(super) fn read_some(path: &str, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Attacks the time between the check of a path and its use: one thread writes to a directory that another thread
/// repeatedly exchanges with a link that leads outside.
fn swap_race(a: &Arguments) -> io::Result<Vec<u8>> {
    let (project, outside) = (PathBuf::from(a.os(0)?), PathBuf::from(a.os(1)?));
    let places = [project.join(format!("race-{}", std::process::id())), project.join("race-link")];
    fs::create_dir(&places[0])?;
    symlink(&outside, &places[1])?;
    let raced = outside.join("raced");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = rename_exchange(&places[0], &places[1]);
            }
        });
        // The number of rounds is fixed, so it does not depend on the speed of the machine.
        for _ in 0..20_000 {
            let _ = fs::write(places[0].join("raced"), BYTES);
            if raced.exists() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    for place in places {
        let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir_all(&place));
    }
    Ok(Vec::new())
}

fn rename_exchange(from: &Path, to: &Path) -> io::Result<Vec<u8>> {
    let (from, to) = (path_of(from)?, path_of(to)?);
    let (here, exchange) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // SAFETY: both paths are C strings.
    done(unsafe { libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), exchange) })
}

fn path_of(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
