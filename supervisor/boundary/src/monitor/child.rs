//! Starts a child process with exactly the given descriptors, without copying this process.
//!
//! Unlike fork(2), `posix_spawn(3)` copies no page tables. But until the child calls execve(2), the calling thread
//! waits with all signals blocked. If ^Z stopped the child before that call, the supervisor could not stop, and the
//! shell would wait for ever. So the child starts with the stopping signals of a terminal blocked. sandbox-exec
//! unblocks them first, and a pending one then stops it.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use nix::fcntl::{FcntlArg, fcntl};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use crate::system;

/// Signals with which a terminal stops a process group: ^Z, and access to the terminal from the background.
const STOPPING: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// Executes `program` with this process's environment. The child gets `descriptors`, numbered from 0, and the
/// descriptors of this process that are not close-on-exec. Only the signals [`STOPPING`] are blocked in the child.
pub(super) fn execute(program: &str, arguments: &[&OsStr], descriptors: Vec<OwnedFd>) -> io::Result<Pid> {
    let least = RawFd::try_from(descriptors.len()).map_err(io::Error::other)?;
    let mut actions = PosixSpawnFileActions::init()?;
    // The descriptors stay open until the child executes.
    let descriptors: Vec<_> =
        descriptors.into_iter().map(|descriptor| above(descriptor, least)).collect::<Result<_, _>>()?;
    for (number, descriptor) in (0..).zip(&descriptors) {
        actions.add_dup2(descriptor.as_raw_fd(), number)?;
    }
    let arguments: Vec<_> =
        arguments.iter().map(|argument| CString::new(argument.as_bytes())).collect::<Result<_, _>>()?;
    let environment: Vec<_> = std::env::vars_os()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>()?;
    Ok(posix_spawn(program, &actions, &signals()?, &arguments, &environment)?)
}

/// Returns attributes that reset the child's signal handling: Rust ignores SIGPIPE, and a thread may block signals.
fn signals() -> nix::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    attributes.set_sigdefault(&[Signal::SIGPIPE].into_iter().collect::<SigSet>())?;
    attributes.set_sigmask(&STOPPING.into_iter().collect())?;
    Ok(attributes)
}

/// Duplicates a descriptor to a number of at least `least`. Lower numbers are overwritten with the child's descriptors.
fn above(descriptor: OwnedFd, least: RawFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() >= least {
        return Ok(descriptor);
    }
    system::own(fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(least))?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write, pipe};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use nix::sys::signal::killpg;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

    use super::*;

    fn run(script: &str, descriptors: Vec<OwnedFd>) -> WaitStatus {
        let arguments = ["sh", "-c", script].map(OsStr::new);
        waitpid(execute("/bin/sh", &arguments, descriptors).unwrap(), None).unwrap()
    }

    fn null() -> OwnedFd {
        File::options().read(true).write(true).open("/dev/null").unwrap().into()
    }

    #[test]
    fn a_child_has_the_descriptors_that_it_is_given_and_no_others() {
        let (mut theirs, out) = pipe().unwrap();
        let (given, mut ours) = pipe().unwrap();
        ours.write_all(b"given").unwrap();
        drop(ours);
        let script = "read -r word <&3; echo $word; test -e /proc/$$/fd/4 || echo no more";
        let status = run(script, vec![null(), out.into(), null(), given.into()]);
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert_eq!(text, "given\nno more\n");
    }

    #[test]
    fn descriptors_that_have_each_others_numbers_are_not_mixed_up() {
        let (one, two) = (null(), null());
        let least = two.as_raw_fd() + 1;
        let (low, high) = (one.as_raw_fd(), two.as_raw_fd());
        let moved = [above(one, least).unwrap(), above(two, least).unwrap()];
        assert!(moved.iter().all(|descriptor| descriptor.as_raw_fd() >= least), "{low} {high} {moved:?}");
    }

    #[test]
    fn a_child_expects_to_end_by_a_broken_pipe() {
        let status = run("kill -PIPE $$; exit 7", vec![null(), null(), null()]);
        assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGPIPE, _)), "{status:?}");
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        let error = execute("/nowhere/program", &[OsStr::new("x")], vec![null()]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_child_blocks_what_stops_it_and_nothing_else() {
        let (mut theirs, out) = pipe().unwrap();
        // A shell would unblock signals.
        let arguments = ["grep", "SigBlk", "/proc/self/status"].map(OsStr::new);
        let child = execute("/bin/grep", &arguments, vec![null(), out.into(), null()]).unwrap();
        let status = waitpid(child, None).unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        let bits = STOPPING.into_iter().fold(0, |bits, signal| bits | 1_u64 << (signal as i32 - 1));
        assert_eq!(text, format!("SigBlk:\t{bits:016x}\n"));
    }

    /// Environment variable that makes this test binary start programs in an endless loop.
    const SPAWN_FOR_EVER: &str = "BAILIWICK_TEST_SPAWN_FOR_EVER";

    #[test]
    fn a_group_that_is_stopped_while_it_spawns_stops_as_a_whole() {
        if std::env::var_os(SPAWN_FOR_EVER).is_some() {
            loop {
                let arguments = [OsStr::new("true")];
                let child = execute("/bin/true", &arguments, vec![null(), null(), null()]).unwrap();
                // Continues a child that was stopped after it executed.
                waitpid(child, None).unwrap();
            }
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "monitor::child::tests::a_group_that_is_stopped_while_it_spawns_stops_as_a_whole",
        ]);
        let mut spawning =
            command.env(SPAWN_FOR_EVER, "1").process_group(0).stdout(Stdio::null()).spawn().unwrap();
        let group = Pid::from_raw(spawning.id().cast_signed());
        let (say, changes) = mpsc::channel();
        let waiter = thread::spawn(move || {
            let flags = WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
            while let Ok(status) = waitpid(group, Some(flags)) {
                say.send(status).unwrap();
                if matches!(status, WaitStatus::Signaled(..) | WaitStatus::Exited(..)) {
                    return;
                }
            }
        });
        let next = || changes.recv_timeout(Duration::from_secs(10));
        let mut outcome = Ok(());
        for round in 0..500 {
            killpg(group, Signal::SIGTSTP).unwrap();
            let stopped = next();
            killpg(group, Signal::SIGCONT).unwrap();
            let continued = next();
            if !matches!((&stopped, &continued), (Ok(WaitStatus::Stopped(..)), Ok(WaitStatus::Continued(_))))
            {
                outcome = Err(format!("round {round}: {stopped:?}, {continued:?}"));
                break;
            }
        }
        killpg(group, Signal::SIGKILL).unwrap();
        waiter.join().unwrap();
        drop(spawning.wait());
        outcome.unwrap();
    }
}
