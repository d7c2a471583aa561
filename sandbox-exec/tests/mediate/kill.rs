use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::libc::{self, c_int, pid_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setsid};

use crate::harness::{as_each_user, goes_on, pipe};
use crate::victims::{FORMS, OWNERS, Victim, call, got, pidfd, queued};

const RACING: Duration = Duration::from_millis(700);
pub(crate) const SIGUSR1: i64 = libc::SIGUSR1 as i64;

fn in_child(life: impl FnOnce()) -> WaitStatus {
    waitpid(forked(life), None).unwrap()
}

pub(crate) fn forked(life: impl FnOnce()) -> Pid {
    daemon(|| {
        // SAFETY: integers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        life();
    })
}

pub(crate) fn daemon(life: impl FnOnce()) -> Pid {
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life)).is_err();
            // SAFETY: ends this process.
            unsafe { libc::_exit(failed.into()) }
        }
    }
}

pub(crate) fn ended_well(child: Pid) {
    assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
}

#[test]
fn no_form_of_a_signal_reaches_a_stranger() {
    as_each_user(|place| {
        for &(form, send) in FORMS.iter().chain(OWNERS) {
            let control = Victim::of(place);
            place.unmediated(|| assert_eq!(send(control.pid()), 0, "{form}"));
            assert!(control.got(libc::SIGUSR1), "unmediated, {form}");
        }
        let victim = Victim::of(place);
        place.mediate_signals(|| {
            for &(form, send) in FORMS.iter().chain(OWNERS) {
                assert_eq!(send(victim.pid()), libc::EPERM, "{form}");
            }
            for signal in [0, libc::SIGKILL, libc::SIGSTOP, libc::SIGCONT] {
                assert_eq!(call(libc::SYS_kill, [victim.pid().into(), signal.into(), 0, 0]), libc::EPERM);
            }
            assert_eq!(call(libc::SYS_kill, [-1, libc::SIGKILL.into(), 0, 0]), 0, "nobody is inside");
        });
        assert!(victim.is_untouched());
    });
}

#[test]
fn what_is_above_is_not_reached() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            // As every program that is executed here: the parent of this test may lead the group that it is
            // in.
            setsid().unwrap();
            let broker = getppid().as_raw();
            let above = crate::victims::status(broker, "PPid:").parse::<pid_t>().unwrap();
            for target in [broker, above] {
                for &(form, send) in FORMS.iter().chain(OWNERS) {
                    // The broker leads no group; ours is not its.
                    let denied = send(target);
                    assert!(denied == libc::EPERM || denied == libc::ESRCH, "{form}: {denied}");
                }
                assert_eq!(call(libc::SYS_kill, [target.into(), libc::SIGKILL.into(), 0, 0]), libc::EPERM);
            }
            assert_eq!(getppid().as_raw(), broker);
        });
    });
}

#[test]
fn inside_every_form_arrives() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            for &(form, send) in FORMS {
                let child = Victim::new();
                assert_eq!(send(child.pid()), 0, "{form}");
                assert!(child.got(libc::SIGUSR1), "{form}");
            }
            let child = Victim::new();
            for signal in [libc::SIGSTOP, libc::SIGCONT, libc::SIGRTMAX(), libc::SIGKILL] {
                assert_eq!(call(libc::SYS_kill, [child.pid().into(), signal.into(), 0, 0]), 0);
            }
        });
    });
}

#[test]
fn wrong_numbers_are_answered_as_the_kernel_does() {
    let answers = || {
        let child = Victim::new();
        let pid: i64 = child.pid().into();
        let none = i64::from(pid_t::MAX);
        let bad = [pid, 65, 0, 0];
        let pidfd = pidfd(child.pid());
        let other_signal = queued(libc::SIGUSR2, 0);
        let forged = {
            let mut info = queued(libc::SIGUSR1, 0);
            info[1] = 0;
            info
        };
        [
            call(libc::SYS_kill, bad),
            call(libc::SYS_kill, [none, SIGUSR1, 0, 0]),
            call(libc::SYS_kill, [-none, SIGUSR1, 0, 0]),
            call(libc::SYS_kill, [i32::MIN.into(), SIGUSR1, 0, 0]),
            call(libc::SYS_tkill, [0, SIGUSR1, 0, 0]),
            call(libc::SYS_tkill, [none, SIGUSR1, 0, 0]),
            call(libc::SYS_tgkill, [pid, std::process::id().into(), SIGUSR1, 0]),
            call(libc::SYS_rt_sigqueueinfo, [pid, SIGUSR1, 8, 0]),
            call(libc::SYS_rt_sigqueueinfo, [pid, SIGUSR1, forged.as_ptr() as i64, 0]),
            call(libc::SYS_pidfd_send_signal, [0, SIGUSR1, 0, 0]),
            call(libc::SYS_pidfd_send_signal, [-1, SIGUSR1, 0, 0]),
            call(libc::SYS_pidfd_send_signal, [pidfd.as_raw_fd().into(), SIGUSR1, 0, 8]),
            call(
                libc::SYS_pidfd_send_signal,
                [pidfd.as_raw_fd().into(), SIGUSR1, other_signal.as_ptr() as i64, 0],
            ),
        ]
    };
    as_each_user(|place| {
        let (mut told, tell) = pipe();
        place.unmediated(|| serde_json::to_writer(&tell, &answers().to_vec()).unwrap());
        drop(tell);
        let mut expected = String::new();
        told.read_to_string(&mut expected).unwrap();
        place.mediate_signals(|| assert_eq!(serde_json::to_string(&answers().to_vec()).unwrap(), expected));
    });
}

pub(crate) static HANDLED: AtomicUsize = AtomicUsize::new(0);
static SENDER: AtomicI32 = AtomicI32::new(0);
static CODE: AtomicI32 = AtomicI32::new(0);
static VALUE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(_: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes what it delivers.
    let info = unsafe { &*info };
    // SAFETY: both are there for every signal that a process sends.
    let (pid, value) = unsafe { (info.si_pid(), info.si_value().sival_ptr.addr()) };
    SENDER.store(pid, Ordering::SeqCst);
    CODE.store(info.si_code, Ordering::SeqCst);
    VALUE.store(value, Ordering::SeqCst);
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

pub(crate) fn noting() {
    let action = SigAction::new(
        SigHandler::SigAction(note),
        SaFlags::SA_SIGINFO | SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler only notes.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
    HANDLED.store(0, Ordering::SeqCst);
}

#[test]
fn a_process_signals_itself_as_without_a_mediator() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            noting();
            let own: i64 = getpid().as_raw().into();
            for (at, sent) in
                [|| libc::SYS_kill, || libc::SYS_tkill, || libc::SYS_rt_sigqueueinfo].into_iter().enumerate()
            {
                let info = queued(libc::SIGUSR1, 7);
                assert_eq!(call(sent(), [own, SIGUSR1, info.as_ptr() as i64, 0]), 0);
                assert_eq!(HANDLED.load(Ordering::SeqCst), at + 1, "handled before the call returns");
                assert_eq!(i64::from(SENDER.load(Ordering::SeqCst)), own);
            }
            assert_eq!(CODE.load(Ordering::SeqCst), libc::SI_QUEUE);
            for (form, send) in FORMS.iter().filter(|(form, _)| form.contains("pidfd")) {
                let before = HANDLED.load(Ordering::SeqCst);
                assert!(form.contains("group") || send(getpid().as_raw()) == 0, "{form}");
                assert_eq!(HANDLED.load(Ordering::SeqCst), before + usize::from(!form.contains("group")));
            }
            // SAFETY: integers.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            assert_eq!(CODE.load(Ordering::SeqCst), libc::SI_TKILL);
            let aborted = forked(|| std::process::abort());
            assert!(matches!(waitpid(aborted, None).unwrap(), WaitStatus::Signaled(_, Signal::SIGABRT, _)));
        });
    });
}

#[test]
fn threads_of_a_process_signal_each_other() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            noting();
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let (tell, told) = std::sync::mpsc::channel();
                let stop = &stop;
                scope.spawn(move || {
                    tell.send(nix::unistd::gettid().as_raw()).unwrap();
                    while !stop.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                });
                let thread = i64::from(told.recv().unwrap());
                let own: i64 = getpid().as_raw().into();
                assert_eq!(call(libc::SYS_tgkill, [own, thread, SIGUSR1, 0]), 0);
                assert_eq!(call(libc::SYS_tkill, [thread, SIGUSR1, 0, 0]), 0);
                assert_eq!(call(libc::SYS_kill, [thread, 0, 0, 0]), 0, "a process by the number of a thread");
                while HANDLED.load(Ordering::SeqCst) < 1 {
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::SeqCst);
            });
        });
    });
}

#[test]
fn what_is_queued_arrives_as_it_was_written() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            noting();
            let parent = getpid().as_raw();
            let child = forked(|| {
                let info = queued(libc::SIGUSR1, 0x1234_5678_9abc);
                let arguments = [parent.into(), SIGUSR1, info.as_ptr() as i64, 0];
                assert_eq!(call(libc::SYS_rt_sigqueueinfo, arguments), 0);
            });
            ended_well(child);
            assert_eq!(HANDLED.load(Ordering::SeqCst), 1);
            assert_eq!(SENDER.load(Ordering::SeqCst), child.as_raw());
            assert_eq!(VALUE.load(Ordering::SeqCst), 0x1234_5678_9abc);
            assert_eq!(CODE.load(Ordering::SeqCst), libc::SI_QUEUE);
        });
    });
}

#[test]
fn everybody_is_everybody_inside_but_the_caller() {
    as_each_user(|place| {
        let stranger = Victim::of(place);
        place.mediate_signals(|| {
            let (child, other) = (Victim::new(), Victim::new());
            assert_eq!(call(libc::SYS_kill, [-1, SIGUSR1, 0, 0]), 0);
            assert!(child.got(libc::SIGUSR1) && other.got(libc::SIGUSR1));
            assert_eq!(call(libc::SYS_kill, [-1, libc::SIGKILL.into(), 0, 0]), 0);
            for victim in [&child, &other] {
                let pid = Pid::from_raw(victim.pid());
                assert_eq!(waitpid(pid, None).unwrap(), WaitStatus::Signaled(pid, Signal::SIGKILL, false));
            }
        });
        assert!(stranger.is_untouched());
    });
}

#[test]
fn a_group_is_signalled_whole_and_the_caller_last() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            let alone = in_child(|| {
                setsid().unwrap();
                let other = Victim::new();
                let member = forked(|| {
                    loop {
                        nix::unistd::pause();
                    }
                });
                noting();
                assert_eq!(call(libc::SYS_kill, [0, SIGUSR1, 0, 0]), 0);
                assert_eq!(HANDLED.load(Ordering::SeqCst), 1, "once, before the call returns");
                let killed = WaitStatus::Signaled(member, Signal::SIGUSR1, false);
                assert_eq!(waitpid(member, None).unwrap(), killed);
                assert!(!other.got(libc::SIGUSR1));
                let gone = -i64::from(member.as_raw());
                assert_eq!(call(libc::SYS_kill, [gone, SIGUSR1, 0, 0]), libc::ESRCH);
            });
            assert!(matches!(alone, WaitStatus::Exited(_, 0)), "{alone:?}");
        });
    });
}

#[test]
fn a_descriptor_that_changes_never_names_a_stranger() {
    as_each_user(|place| {
        let victim = Victim::of(place);
        place.mediate_signals(|| {
            let child = Victim::new();
            let (inside, outside) = (pidfd(child.pid()), pidfd(victim.pid()));
            let racing = inside.try_clone().unwrap();
            let number = racing.as_raw_fd();
            let over = AtomicBool::new(false);
            let (mut sent, mut denied) = (0, 0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        for from in [&outside, &inside] {
                            // SAFETY: replaces a descriptor of the test's own.
                            unsafe { libc::dup2(from.as_raw_fd(), number) };
                        }
                    }
                });
                let start = Instant::now();
                while goes_on(start, RACING, sent > 0 && denied > 0) {
                    match call(libc::SYS_pidfd_send_signal, [number.into(), SIGUSR1, 0, 0]) {
                        0 => sent += 1,
                        errno => {
                            assert!([libc::EPERM, libc::ESRCH].contains(&errno), "{errno}");
                            denied += 1;
                        }
                    }
                }
                over.store(true, Ordering::Relaxed);
            });
            assert!(sent > 0 && denied > 0, "no race: {sent} sent, {denied} denied");
            assert!(got(child.pid(), libc::SIGUSR1));
        });
        assert!(victim.is_untouched());
    });
}

#[test]
fn an_owner_that_changes_is_never_a_stranger() {
    as_each_user(|place| {
        let victim = Victim::of(place);
        place.mediate_signals(|| {
            let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
            let named = [AtomicI32::new(1), AtomicI32::new(0)];
            let over = AtomicBool::new(false);
            let (mut taken, mut denied) = (0, 0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        named[1].store(victim.pid(), Ordering::Relaxed);
                        named[1].store(getpid().as_raw(), Ordering::Relaxed);
                    }
                });
                let start = Instant::now();
                while goes_on(start, RACING, taken > 0 && denied > 0) {
                    let arguments = [socket.as_raw_fd().into(), 15, named.as_ptr() as i64, 0];
                    match call(libc::SYS_fcntl, arguments) {
                        0 => taken += 1,
                        errno => {
                            assert_eq!(errno, libc::EPERM);
                            denied += 1;
                        }
                    }
                    // SAFETY: integers.
                    let now = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_GETOWN) };
                    assert!(now == 0 || now == getpid().as_raw(), "{now}");
                }
                over.store(true, Ordering::Relaxed);
            });
            assert!(taken > 0 && denied > 0, "no race: {taken} taken, {denied} denied");
        });
        assert!(victim.is_untouched());
    });
}
