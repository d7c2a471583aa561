//! Datagram sockets of the mediated programs, and the `sendmsg` calls that the kernel may perform while there are none.
//!
//! When the mediator leaves `sendmsg` to the kernel, the kernel reads the message and the descriptor's number again. On
//! other than datagram sockets it ignores or denies the message's address. But before the kernel looks up the number, a
//! program could put a datagram socket there. So a call is left to the kernel only while no process has a datagram
//! socket (see [`Alive`]). A program gets such a socket only when all calls that were left to the kernel are past the
//! lookup.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc::pid_t;

use crate::mediate::kernel::text;
use crate::mediate::net::open_sockets::Alive;

/// Processor time, in ticks of 10 ms (`times(2)`), that a thread has used after its answer when its call is certainly
/// past the lookup. The second of the ticks is a full one, a thousand times the time that the lookup needs.
const ENOUGH: u64 = 2;
/// Number of recorded calls above which those past the lookup are dropped.
const SLACK: usize = 64;

/// Open datagram sockets, and calls that were left to the kernel.
#[derive(Debug)]
pub(super) struct Datagrams {
    sockets: Alive,
    state: Mutex<DatagramState>,
}

#[derive(Debug, Default)]
struct DatagramState {
    /// Inodes of the datagram sockets that programs got, some of which may be closed by now.
    known: HashSet<u64>,
    passing: Vec<Passing>,
}

#[derive(Debug)]
struct Passing {
    thread: pid_t,
    answered: bool,
    since: Option<u64>,
}

impl Datagrams {
    pub(in crate::mediate) fn new() -> Result<Self, Errno> {
        Ok(Self { sockets: Alive::new()?, state: Mutex::default() })
    }

    /// Registers a datagram socket before a program gets it. Fails with `EAGAIN` while a call that was left to the
    /// kernel has not looked up its descriptor yet.
    pub(super) fn enter(&self, socket: &OwnedFd, inode: u64) -> Result<(), Errno> {
        let mut state = self.lock();
        state.passing.retain_mut(|call| !call.is_past());
        if !state.passing.is_empty() {
            return Err(Errno::EAGAIN);
        }
        self.sockets.add(socket, inode)?;
        state.known.insert(inode);
        Ok(())
    }

    pub(super) fn has(&self, inode: u64) -> bool {
        let mut state = self.lock();
        self.forget_closed(&mut state);
        state.known.contains(&inode)
    }

    /// True if a thread's call may be left to the kernel; the call is then recorded.
    pub(super) fn pass(&self, thread: pid_t) -> bool {
        let mut state = self.lock();
        self.forget_closed(&mut state);
        if !state.known.is_empty() {
            return false;
        }
        if state.passing.len() > SLACK {
            state.passing.retain_mut(|call| !call.is_past());
        }
        state.passing.push(Passing { thread, answered: false, since: None });
        true
    }

    pub(super) fn answered(&self, thread: pid_t) {
        for call in self.lock().passing.iter_mut().filter(|call| call.thread == thread) {
            call.answered = true;
        }
    }

    pub(super) fn is_back(&self, thread: pid_t) {
        self.lock().passing.retain(|call| call.thread != thread);
    }

    /// Forgets closed datagram sockets. If the kernel does not list the open ones, all count as open.
    fn forget_closed(&self, state: &mut DatagramState) {
        if !state.known.is_empty()
            && let Some(alive) = self.sockets.numbers()
        {
            state.known.retain(|inode| alive.contains(inode));
        }
    }

    fn lock(&self) -> MutexGuard<'_, DatagramState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passing {
    /// True if the kernel has looked up the call's descriptor. Until then the thread runs, or waits uninterruptibly for
    /// the listener's lock (`seccomp_do_user_notification`). So a thread that sleeps otherwise, that has ended, or that
    /// has run for longer than [`ENOUGH`] is past the lookup.
    fn is_past(&mut self) -> bool {
        if !self.answered {
            return false;
        }
        match Run::of(self.thread) {
            Some(Run { state: b'R' | b'D', time }) => {
                let since = *self.since.get_or_insert(time);
                // Less time than before: the number belongs to another thread.
                time < since || time - since >= ENOUGH
            }
            _ => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    state: u8,
    time: u64,
}

impl Run {
    fn of(thread: pid_t) -> Option<Self> {
        Self::parse(&text::read_string(&format!("/proc/{thread}/task/{thread}/stat")).ok()?)
    }

    /// Parses a `stat` of `/proc`: state (field 3), user and system time (14, 15). The name before may contain
    /// anything.
    fn parse(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = *fields.next()?.as_bytes().first()?;
        let mut times = fields.skip(10).map(str::parse::<u64>);
        let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
        Some(Self { state, time: user.saturating_add(system) })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::sys::stat::fstat;

    use super::*;
    use crate::tests::comes_true;

    fn socket() -> (OwnedFd, u64) {
        let socket: OwnedFd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let inode = fstat(&socket).unwrap().st_ino;
        (socket, inode)
    }

    #[test]
    fn nothing_passes_while_a_datagram_socket_is_open_anywhere() {
        let datagrams = Datagrams::new().unwrap();
        let (socket, inode) = socket();
        datagrams.enter(&socket, inode).unwrap();
        let duplicate = socket.try_clone().unwrap();
        drop(socket);
        assert!(!datagrams.pass(1) && datagrams.has(inode));
        drop(duplicate);
        comes_true(|| datagrams.pass(1) && !datagrams.has(inode));
    }

    #[test]
    fn no_datagram_socket_is_given_out_before_a_call_is_known_to_be_past() {
        let datagrams = Datagrams::new().unwrap();
        let (socket, inode) = socket();
        // This thread runs, and so never sleeps while it looks at itself.
        let thread = nix::unistd::gettid().as_raw();
        assert!(datagrams.pass(thread));
        assert_eq!(datagrams.enter(&socket, inode), Err(Errno::EAGAIN), "not answered");
        datagrams.answered(thread);
        assert_eq!(datagrams.enter(&socket, inode), Err(Errno::EAGAIN), "running");
        while datagrams.enter(&socket, inode).is_err() {
            std::hint::spin_loop();
        }
        assert!(datagrams.lock().passing.is_empty(), "it ran for long enough");
    }

    #[test]
    fn who_sleeps_or_is_gone_or_calls_again_is_past() {
        let datagrams = Datagrams::new().unwrap();
        let gone = std::thread::spawn(|| nix::unistd::gettid().as_raw()).join().unwrap();
        // The join can return before the thread is gone.
        while Run::of(gone).is_some() {
            std::thread::yield_now();
        }
        let (tell, told) = std::sync::mpsc::channel();
        let (wake, woken) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            woken.recv().unwrap_err();
        });
        let asleep = told.recv().unwrap();
        while Run::of(asleep).unwrap().state != b'S' {
            std::thread::yield_now();
        }
        let back = nix::unistd::gettid().as_raw();
        for thread in [gone, asleep, back] {
            assert!(datagrams.pass(thread));
            datagrams.answered(thread);
        }
        datagrams.is_back(back);
        let (socket, inode) = socket();
        assert_eq!(datagrams.enter(&socket, inode), Ok(()));
        drop(wake);
        sleeper.join().unwrap();
    }

    #[test]
    fn a_name_does_not_pass_for_a_state() {
        let text = "7 (a) S 1) R 1 2 3 4 5 6 7 8 9 10 40 2 5 6";
        assert_eq!(Run::parse(text), Some(Run { state: b'R', time: 42 }));
        assert_eq!(Run::parse("7 (a) R 1 2"), None);
    }
}
