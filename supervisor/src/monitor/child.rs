//! A child of ours with exactly the descriptors that it is given, made without a copy of this process.
//!
//! fork(2) copies the page tables of the supervisor, and every page that either side touches afterwards.
//! `posix_spawn(3)` executes at once; what has to be done in between is data.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use nix::fcntl::{FcntlArg, fcntl};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::pidfd;

/// Executes `program` with this process's environment. The child has `descriptors` under the numbers from 0 on, and those of this
/// process that do not close on exec.
pub(super) fn execute(program: &str, arguments: &[&OsStr], descriptors: Vec<OwnedFd>) -> io::Result<Pid> {
    let least = RawFd::try_from(descriptors.len()).map_err(io::Error::other)?;
    let mut actions = PosixSpawnFileActions::init()?;
    // Open until the child is executed.
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
    Ok(posix_spawn(program, &actions, &usual_signals()?, &arguments, &environment)?)
}

/// Rust ignores SIGPIPE, and a thread may block what it likes; a program expects neither.
fn usual_signals() -> nix::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    attributes.set_sigdefault(&[Signal::SIGPIPE].into_iter().collect::<SigSet>())?;
    attributes.set_sigmask(&SigSet::empty())?;
    Ok(attributes)
}

/// The same descriptor with a number that is no other's target.
fn above(descriptor: OwnedFd, least: RawFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() >= least {
        return Ok(descriptor);
    }
    pidfd::own(fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(least))?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write, pipe};

    use nix::sys::wait::{WaitStatus, waitpid};

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
}
