//! Seccomp program that sends calls to the mediator. It allows all other calls, since denying is the task of
//! another program ([`crate::seccomp`]: its errors outrank notifications, seccomp(2)). Where both are attached
//! at once they are merged to one, which denies first.
//!
//! ```text
//!     architecture == native ? go on : kill          numbers of foreign tables mean other calls
//!                                                    then by number, in a tree: no call passes them all
//!     number == connect ?      notify                the destination is behind a pointer
//!     number == sendmsg ?      notify                the same, and the control data
//!     number == sendmmsg ?     notify
//!     number == sendto ?       args[4] (an address) is null ? allow : notify
//!     number == bind ?         notify                only where the names of sockets are the host's
//!     number == accept ?       notify                "
//!     number == accept4 ?      notify                "
//!     number == kill … ?       notify                where Landlock has no scope for signals: whose number is it?
//!     number == shmget … ?     notify                where there is no ipc namespace: whose is the object?
//!     number == fcntl ?        args[1] is F_SETOWN, F_SETOWN_EX ? notify          whom the kernel signals later
//!     number == ioctl ?        args[1] is FIOSETOWN, SIOCSPGRP ? notify           the same
//!     number changes metadata? notify                only where no mount holds them (`metadata`)
//!     number == ioctl ?        args[1] changes flags of files ? notify          "
//!     number == access … ?     mode & W_OK ? notify       " : a question, which Landlock does not answer
//!     number == chmod … ?      mode & S_ISGID ? notify    elsewhere: is it a directory?
//!     number == socket ?       args[0] is AF_INET, AF_INET6 ? notify : allow
//!                                                    where the network is off and the host's: who reaches it?
//!     number == setsockopt ?   args[1] == SOL_SOCKET && args[2] attaches or detaches a socket filter ? EPERM : allow     "
//!     number == socket ?       notify                where sockets are made by the mediator, and all that follows
//!     number == bind ?         notify
//!     number == clone ?        args[0] & (CLONE_FILES | CLONE_THREAD) == CLONE_FILES ? notify : allow
//!     number == socketpair ?   args[1] & SOCK_TYPE_MASK == SOCK_DGRAM or SOCK_RAW ? EPERM : allow
//!     allow
//! ```
//!
//! `calls` lists the calls and the treatment of each; several treatments apply in this order. `tree` makes a
//! program of the list.
//!
//! A send on a connected socket is not mediated: it goes to the peer that a mediated call, or a socketpair,
//! has chosen. The denying program denies the x32 table: its numbers match none here.

mod calls;
mod tree;

use std::io;
use std::os::fd::OwnedFd;

use nix::libc::{self, sock_filter};

use crate::seccomp::Program;
use crate::system;

pub(in crate::mediate) use calls::{F_SETOWN, F_SETOWN_EX, FIOSETOWN, FilteredCalls, SIOCSPGRP};
pub(in crate::mediate) use tree::{answer, equal, jump, statement};

#[derive(Clone, Debug)]
pub struct Filter {
    instructions: Vec<sock_filter>,
}

impl Filter {
    /// Merges the program `denying` and this one: a call that `denying` allows goes on to this program. As two separate
    /// programs they would give the same answers, but each program costs time when it is attached and at every call.
    #[must_use]
    pub(crate) fn behind(self, denying: Program) -> Self {
        let denying = denying.instructions();
        let here = |(place, instruction): (usize, &seccompiler::sock_filter)| {
            let seccompiler::sock_filter { code, jt, jf, k } = *instruction;
            let instruction = sock_filter { code, jt, jf, k };
            if instruction == answer(libc::SECCOMP_RET_ALLOW) {
                jump(denying.len() - place - 1)
            } else {
                instruction
            }
        };
        let denying = denying.iter().enumerate().map(here);
        Self { instructions: denying.chain(self.instructions).collect() }
    }

    /// Attaches the program to this thread, and returns the listener. Async-signal-safe. Needs `no_new_privs`. Fails
    /// with `EBUSY` if a program of this thread already has a listener.
    pub fn attach(&self) -> io::Result<OwnedFd> {
        // With the second flag only fatal signals interrupt a call once it was received: no storm of restarts
        // (Linux 5.19).
        let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        match self.attach_with(listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.attach_with(listener),
            attached => attached,
        }
    }

    fn attach_with(&self, flags: libc::c_ulong) -> io::Result<OwnedFd> {
        system::attach_with_listener(&self.instructions, flags)
    }
}

#[cfg(test)]
mod tests;
