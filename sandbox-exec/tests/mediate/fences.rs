use std::sync::atomic::Ordering;

use nix::libc::{self, pid_t};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid, setpgid, setsid};

use crate::harness::{as_each_user, pipe};
use crate::kill::{HANDLED, SIGUSR1, daemon, ended_well, forked, noting};
use crate::victims::{FORMS, OWNERS, Victim, call};

/// Runs `life` in the child of a process with a fence around its descendants, as a command runs below its reaper.
fn behind_a_fence(life: impl FnOnce(pid_t)) -> Pid {
    forked(|| {
        setsid().unwrap();
        sandbox_exec::system::set_subreaper().unwrap();
        sandbox_exec::descendants::fence().unwrap();
        let reaper = getpid().as_raw();
        ended_well(forked(|| {
            setpgid(Pid::from_raw(0), Pid::from_raw(0)).unwrap();
            life(reaper);
        }));
        // Also waits for orphans of the child.
        while let Ok(status) = waitpid(None, None) {
            assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
        }
    })
}

#[test]
fn behind_a_fence_only_what_is_behind_it_is_reached() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            let worker = getpid().as_raw();
            let beside = Victim::new();
            let attack = |reaper: pid_t| {
                for target in [worker, reaper, beside.pid()] {
                    for &(form, send) in FORMS.iter().chain(OWNERS) {
                        let errno = send(target);
                        assert!(errno == libc::EPERM || errno == libc::ESRCH, "{form}: {errno}");
                    }
                    assert_eq!(call(libc::SYS_kill, [target.into(), 0, 0, 0]), libc::EPERM);
                }
                assert_eq!(call(libc::SYS_kill, [-1, libc::SIGKILL.into(), 0, 0]), 0);
            };
            ended_well(behind_a_fence(|reaper| {
                attack(reaper);
                // In the reaper's own group, which is of the same session.
                setpgid(Pid::from_raw(0), Pid::from_raw(reaper)).unwrap();
                noting();
                assert_eq!(call(libc::SYS_kill, [0, SIGUSR1, 0, 0]), 0);
                assert_eq!(HANDLED.load(Ordering::SeqCst), 1);
                let child = Victim::new();
                assert_eq!(call(libc::SYS_kill, [child.pid().into(), SIGUSR1, 0, 0]), 0);
                assert!(child.got(libc::SIGUSR1));
            }));
            // A daemon, whose parent is the reaper now.
            ended_well(behind_a_fence(|reaper| {
                daemon(|| {
                    while getppid().as_raw() != reaper {
                        std::thread::yield_now();
                    }
                    setsid().unwrap();
                    attack(reaper);
                });
            }));
            assert!(beside.is_untouched());
        });
    });
}

#[test]
fn from_outside_a_fence_what_is_behind_it_is_reached() {
    as_each_user(|place| {
        place.mediate_signals(|| {
            let (mut told, tell) = pipe();
            let reaper = behind_a_fence(|_| {
                let victim = Victim::new();
                serde_json::to_writer(&tell, &victim.pid()).unwrap();
                std::io::Write::write_all(&mut &tell, b"\n").unwrap();
                while !victim.got(libc::SIGUSR1) {
                    std::thread::yield_now();
                }
            });
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(&mut told), &mut line).unwrap();
            let pid: pid_t = line.trim().parse().unwrap();
            assert_eq!(call(libc::SYS_kill, [pid.into(), SIGUSR1, 0, 0]), 0);
            ended_well(reaper);
        });
    });
}
