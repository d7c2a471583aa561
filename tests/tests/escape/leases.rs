//! Tests leases and directory notifications. A lease of a confined process could delay a process of the host that opens
//! the file. Notifications would report each change of that process in the directory.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc::{self, EPERM};
use tests::{User, World};

use crate::everywhere;
use crate::victim::Victim;

/// Program that requests a write lease on a file, and notifications about the file's directory. `F_SETDELEG`
/// (linux/fcntl.h) is a newer `F_SETLEASE`. The program then waits, so that the lease lasts.
const HOLDER: &str = "import fcntl, os, signal, struct, sys\n\
    signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
    file, place = os.open(sys.argv[1] + '/file', os.O_RDONLY), os.open(sys.argv[1], os.O_RDONLY)\n\
    def attempt(act):\n\
    \x20   try: act()\n\
    \x20   except OSError as error: return error.errno\n\
    \x20   return 0\n\
    acts = [lambda: fcntl.fcntl(file, 1024, fcntl.F_WRLCK), lambda: fcntl.fcntl(place, 1026, 0x80000004),\n\
    \x20   lambda: fcntl.fcntl(file, 1040, struct.pack('IHHq', 0, fcntl.F_WRLCK, 0, 0))]\n\
    print(*map(attempt, acts), flush=True)\n\
    input()\n";

/// Runs [`HOLDER`]. Returns the program's error numbers, and the error number of a non-blocking open of the file by the
/// host while the program waits.
fn hold(command: &mut Command, world: &World) -> (Vec<i32>, i32) {
    let outside = world.root().join("outside");
    command.args(["-c", HOLDER]).arg(&outside).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(outside.join("file"));
    let answer = opened.map_or_else(|error| error.raw_os_error().unwrap(), |_| 0);
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.wait().unwrap();
    (line.split_whitespace().map(|errno| errno.parse().unwrap()).collect(), answer)
}

#[test]
fn no_lease_inside_holds_up_an_open_of_the_host() {
    for user in User::all() {
        let world = World::new(user);
        let _victim = Victim::new(&world);
        let (taken, opened) = hold(&mut world.command("python3"), &world);
        assert_eq!((&taken[..2], opened), (&[0, 0][..], Errno::EWOULDBLOCK as i32), "{user:?}");
        assert_ne!(taken[2], EPERM, "{user:?}");
    }
    for (tier, user) in everywhere() {
        for access in ["write", "read"] {
            let world = World::new(user);
            let _victim = Victim::new(&world);
            let mut sandbox = world.sandbox(tier, &["--access", access], "python3");
            let (taken, opened) = hold(&mut sandbox, &world);
            assert_eq!((taken, opened), (vec![EPERM; 3], 0), "{tier}, {user:?}, access {access}");
        }
    }
}
