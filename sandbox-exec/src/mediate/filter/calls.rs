use std::collections::BTreeMap;

use nix::libc::{self, c_int, c_long, sock_filter};

use super::Filter;
use super::tree::{ADDRESS_HIGH, ADDRESS_LOW, COMMAND, FLAGS, NAME, and, answer, equal, load, program};
use crate::mediate::files::metadata;

pub(super) const ALWAYS: &[c_long] = &[libc::SYS_connect, libc::SYS_sendmsg, libc::SYS_sendmmsg];
pub(super) const HOST_NAMES: &[c_long] = &[libc::SYS_bind, libc::SYS_accept, libc::SYS_accept4];
pub(super) const MADE: &[c_long] = &[libc::SYS_socket, libc::SYS_bind];

/// Options of `SOL_SOCKET` that attach, detach or lock a socket's filter (asm-generic/socket.h).
const FILTERS: [c_int; 4] =
    [libc::SO_ATTACH_FILTER, libc::SO_DETACH_FILTER, libc::SO_LOCK_FILTER, libc::SO_ATTACH_BPF];

/// Bit mask of a socket's type: `SOCK_TYPE_MASK` (linux/net.h).
const TYPE: c_int = 0xf;

pub(super) const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Calls on System V objects, except shmdt(2), which only changes the caller's own memory.
const OBJECTS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// Calls that choose the process that later gets a descriptor's signals, each with the commands that do so.
pub(super) const OWNERS: &[(c_long, [u32; 2])] =
    &[(libc::SYS_fcntl, [F_SETOWN, F_SETOWN_EX]), (libc::SYS_ioctl, [FIOSETOWN, SIOCSPGRP])];

// Commands of fcntl(2) (asm-generic/fcntl.h) and ioctl(2) (asm-generic/sockios.h).
pub(in crate::mediate) const F_SETOWN: u32 = 8;
pub(in crate::mediate) const F_SETOWN_EX: u32 = 15;
pub(in crate::mediate) const FIOSETOWN: u32 = 0x8901;
pub(in crate::mediate) const SIOCSPGRP: u32 = 0x8902;

/// Instructions for each mediated or denied call, by number. They end in an answer. All other calls are allowed.
#[derive(Clone, Debug)]
pub(in crate::mediate) struct FilteredCalls {
    by_number: BTreeMap<u32, Vec<sock_filter>>,
}

impl FilteredCalls {
    pub(in crate::mediate) fn new(host_network: bool) -> Self {
        let calls = Self { by_number: BTreeMap::new() };
        let more = if host_network { HOST_NAMES } else { &[] };
        calls.notify(ALWAYS).notify(more).first(libc::SYS_sendto, addressed())
    }

    #[must_use]
    pub(in crate::mediate) fn with_objects(self) -> Self {
        self.notify(OBJECTS)
    }

    #[must_use]
    pub(in crate::mediate) fn with_signals(self) -> Self {
        let owners = OWNERS.iter().map(|&(call, commands)| (call, commanded(&commands)));
        owners.fold(self.notify(SIGNALS), |calls, (call, body)| calls.first(call, body))
    }

    #[must_use]
    pub(in crate::mediate) fn with_metadata(self) -> Self {
        let requests = metadata::IOCTLS.map(|(request, _)| request);
        let calls = metadata::numbers().fold(self, |calls, number| calls.first_of(number, notified()));
        let questions =
            metadata::questions().map(|(number, mode)| (number, has_bit(mode, libc::W_OK.cast_unsigned())));
        let calls = questions.fold(calls, |calls, (number, body)| calls.first_of(number, body));
        calls.first(libc::SYS_ioctl, commanded(&requests))
    }

    /// Sends calls to the mediator if they set the set-group-ID bit: only directories may have it.
    #[must_use]
    pub(in crate::mediate) fn with_set_group_id(self) -> Self {
        let modes = metadata::modes().map(|(number, mode)| (number, has_bit(mode, libc::S_ISGID)));
        modes.fold(self, |calls, (number, body)| calls.first_of(number, body))
    }

    /// Sends the creation of internet sockets to the mediator. Denies socket filters, since with one a program could
    /// choose from which senders its socket receives.
    #[must_use]
    pub(in crate::mediate) fn with_guarded_sockets(self) -> Self {
        self.first(libc::SYS_socket, internet()).first(libc::SYS_setsockopt, socket_filters())
    }

    /// Sends the creation of sockets to the mediator. Denies the creation of sockets that the mediator cannot create.
    #[must_use]
    pub(in crate::mediate) fn with_made_sockets(self) -> Self {
        let calls = self.notify(MADE).first(libc::SYS_clone, shared_tables());
        calls.first(libc::SYS_socketpair, pairs())
    }

    pub(in crate::mediate) fn filter(&self) -> Filter {
        Filter { instructions: program(&self.by_number) }
    }

    fn notify(self, calls: &[c_long]) -> Self {
        calls.iter().fold(self, |all, &call| all.first(call, notified()))
    }

    fn first(self, call: c_long, body: Vec<sock_filter>) -> Self {
        self.first_of(number(call), body)
    }

    fn first_of(mut self, number: u32, mut body: Vec<sock_filter>) -> Self {
        let all = self.by_number.entry(number).or_default();
        body.append(all);
        *all = body;
        self
    }
}

pub(super) fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn notified() -> Vec<sock_filter> {
    vec![answer(libc::SECCOMP_RET_USER_NOTIF)]
}

fn commanded(commands: &[u32]) -> Vec<sock_filter> {
    let notify = |command: &u32| [equal(*command, 0, 1), answer(libc::SECCOMP_RET_USER_NOTIF)];
    [load(COMMAND)].into_iter().chain(commands.iter().flat_map(notify)).collect()
}

fn has_bit(argument: u32, bit: u32) -> Vec<sock_filter> {
    // The kernel takes the low half of a mode (`tree::FLAGS` is the low half of the first argument).
    vec![
        load(FLAGS + 8 * argument),
        and(bit.cast_signed()),
        equal(bit, 0, 1),
        answer(libc::SECCOMP_RET_USER_NOTIF),
    ]
}

/// Returns instructions for `sendto`: it is mediated if the pointer to an address is not null in either 32-bit half.
fn addressed() -> Vec<sock_filter> {
    vec![
        load(ADDRESS_LOW),
        equal(0, 0, 2),
        load(ADDRESS_HIGH),
        equal(0, 1, 0),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

fn shared_tables() -> Vec<sock_filter> {
    vec![
        load(FLAGS),
        and(libc::CLONE_FILES | libc::CLONE_THREAD),
        equal(libc::CLONE_FILES.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

fn internet() -> Vec<sock_filter> {
    vec![
        load(FLAGS),
        equal(libc::AF_INET.cast_unsigned(), 1, 0),
        equal(libc::AF_INET6.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

fn socket_filters() -> Vec<sock_filter> {
    let [attach, detach, lock, program] = FILTERS.map(c_int::cast_unsigned);
    vec![
        load(COMMAND),
        equal(libc::SOL_SOCKET.cast_unsigned(), 0, 5),
        load(NAME),
        equal(attach, 4, 0),
        equal(detach, 3, 0),
        equal(lock, 2, 0),
        equal(program, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()),
    ]
}

/// Returns instructions for `socketpair`: datagram pairs are denied, also raw ones, which are the same (unix(7)).
fn pairs() -> Vec<sock_filter> {
    vec![
        load(COMMAND),
        and(TYPE),
        equal(libc::SOCK_DGRAM.cast_unsigned(), 1, 0),
        equal(libc::SOCK_RAW.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}
