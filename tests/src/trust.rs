//! Plays a person at a terminal whom `bailiwick config trust` asks about a project's files.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::pty::openpty;

use crate::World;

/// Runs `command` at a new terminal, and types `keys` as the answer. Returns the exit code and the output.
pub fn answer(world: &World, command: &mut Command, keys: &str) -> (i32, String) {
    let pty = openpty(None, None).expect("a terminal");
    let stream = || Stdio::from(pty.slave.try_clone().expect("a terminal"));
    command.stdin(stream()).stdout(stream()).stderr(stream());
    let number = pty.slave.as_raw_fd();
    // SAFETY: setsid and ioctl are async-signal-safe; the descriptor is open until the command runs.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            Errno::result(libc::ioctl(number, libc::TIOCSCTTY, 0)).map(drop).map_err(Into::into)
        });
    }
    let mut child = command.spawn().expect("a terminal");
    // The command, too, has this side of the terminal open until it ends.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(pty.slave);
    let mut ours = File::from(pty.master);
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    let mut keys = Some(keys);
    // EIO: nobody has the terminal open any more.
    while let Ok(read) = ours.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
        if seen.ends_with(b"[y/N] ")
            && let Some(keys) = keys.take()
        {
            ours.write_all(keys.as_bytes()).expect("a terminal");
        }
    }
    let code = child.wait().expect("a terminal").code().expect("a terminal");
    (code, world.stable(&String::from_utf8_lossy(&seen)).replace("\r\n", "\n"))
}

/// Runs `bailiwick config trust` in the project, and types `keys` as the answer.
pub fn trust(world: &World, keys: &str) -> (i32, String) {
    let mut command = world.bailiwick(["config", "trust", "-C"]);
    command.arg(world.project());
    answer(world, &mut command, keys)
}
