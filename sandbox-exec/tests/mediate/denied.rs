//! Calls that the mediator denies in the stead of the standing program: each by every rule, whatever else is mediated.

use std::io::{Read, Write};
use std::os::fd::AsFd;

use ipc::confinement::Tier;
use nix::libc::{self, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::getppid;
use sandbox_exec::seccomp::rules::{self, Arch, Case, Denial, Test, calls};

use crate::harness::{Place, as_each_user, pipe};
use crate::kill::daemon;
use crate::victims::pidfd;

/// What the mediator denies in a tier.
fn denials(place: &Place) -> Vec<Denial> {
    rules::told(Case { full: place.tier() == Tier::Full, mediated: true, told: true, ..Case::default() })
}

/// Arguments that a rule denies, and as far as it says nothing of them none that could do anything.
fn arguments(denial: &Denial) -> [u64; 6] {
    let mut arguments = [0; 6];
    for test in denial.when {
        match *test {
            Test::Is(index, value) => arguments[usize::from(index)] = value.into(),
            Test::Masked(index, mask, value) => {
                let argument = &mut arguments[usize::from(index)];
                *argument = *argument & !u64::from(mask) | u64::from(value);
            }
            Test::IsNot(index, value) => {
                let argument = &mut arguments[usize::from(index)];
                *argument = if *argument == u64::from(value) { 99 } else { *argument };
            }
        }
    }
    for test in denial.when {
        if let Test::IsNot(index, value) = *test
            && arguments[usize::from(index)] == u64::from(value)
        {
            arguments[usize::from(index)] = 99;
        }
    }
    assert!(denial.holds(&arguments), "{denial:?} {arguments:?}");
    arguments
}

/// Makes the call that a rule denies; its error. Where it succeeds as a new process, that one ends.
fn make(denial: &Denial) -> c_int {
    let arch = Arch::ALL.into_iter().find(|arch| arch.name() == std::env::consts::ARCH).unwrap();
    let [first, second, third, fourth, fifth, sixth] = arguments(denial);
    let number = denial.call.number(arch).unwrap();
    let parent = std::process::id();
    // SAFETY: the arguments name no memory.
    let result = unsafe { libc::syscall(number.into(), first, second, third, fourth, fifth, sixth) };
    if std::process::id() != parent {
        // SAFETY: ends the new process.
        unsafe { libc::_exit(0) }
    }
    if result < 0 { nix::errno::Errno::last_raw() } else { 0 }
}

#[test]
fn every_rule_is_answered_with_its_error_whatever_else_is_mediated() {
    as_each_user(|place| {
        let all = denials(place);
        assert!(all.len() > 20, "{all:?}");
        place.denied(&all, || {
            for denial in &all {
                assert_eq!(make(denial), denial.answer.errno().cast_signed(), "{denial:?}");
            }
            // What no rule denies is none of its.
            let nothing = std::ptr::null::<libc::rlimit64>();
            // SAFETY: the limits of this process, which are neither set nor asked for.
            let own = unsafe { libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, nothing, nothing) };
            assert_eq!(own, 0);
            let child = daemon(|| {});
            waitpid(child, None).unwrap();
            drop(std::os::unix::net::UnixStream::pair().unwrap());
            drop(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        });
    });
}

/// Nothing is let through for want of who denies it.
#[test]
fn without_the_broker_every_denied_call_fails() {
    as_each_user(|place| {
        let all = denials(place);
        let (mut heard, say) = pipe();
        let ended = place.killed(&all, || {
            let broker = getppid();
            // It outlives the broker, and who would end with it.
            daemon(|| {
                let gone = pidfd(broker.as_raw());
                kill(broker, Signal::SIGKILL).unwrap();
                poll(&mut [PollFd::new(gone.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
                for denial in &all {
                    (&say).write_all(&make(denial).to_ne_bytes()).unwrap();
                }
            });
            // SAFETY: waits for its end.
            unsafe { libc::pause() };
        });
        assert!(matches!(ended, WaitStatus::Signaled(_, Signal::SIGKILL, _)), "{ended:?}");
        for denial in &all {
            let mut answer = [0; 4];
            heard.read_exact(&mut answer).unwrap();
            // What a container's profile denies, it denies still.
            let profile = place.makes_sockets() && [calls::KCMP, calls::PIDFD_GETFD].contains(&denial.call);
            let expected = if profile { libc::EPERM } else { libc::ENOSYS };
            assert_eq!(c_int::from_ne_bytes(answer), expected, "{denial:?}");
        }
    });
}

/// Many processes at once, each with kinds of calls that are tried out: all get their answers, and so does who is not denied.
#[test]
fn a_flood_of_denied_calls_is_answered_and_holds_up_nobody_for_good() {
    as_each_user(|place| {
        let all = denials(place);
        place.denied(&all, || {
            let floods: Vec<_> = (0..4)
                .map(|_| {
                    daemon(|| {
                        for _ in 0..100 {
                            for denial in &all {
                                assert_eq!(make(denial), libc::EPERM, "{denial:?}");
                            }
                        }
                    })
                })
                .collect();
            drop(std::net::TcpStream::connect("127.0.0.1:1").unwrap_err());
            floods.into_iter().for_each(crate::kill::ended_well);
        });
    });
}
