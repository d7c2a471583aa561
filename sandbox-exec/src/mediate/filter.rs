//! The program that sends calls to the mediator; everything else it allows, since denying is another program's
//! ([`crate::seccomp`]: its errors outrank notifications, seccomp(2)).
//!
//! ```text
//!     architecture == native ? go on : kill          numbers of foreign tables mean other calls
//!     number == connect ?      notify                where to is behind a pointer
//!     number == sendmsg ?      notify                the same, and what is passed along
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
//!     number == socket ?       args[0] is AF_INET, AF_INET6 && args[1] & SOCK_TYPE_MASK == SOCK_DGRAM ? notify : allow
//!                                                    where the network is off and the host's: whom does it hear?
//!     number == setsockopt ?   args[1] == SOL_SOCKET && args[2] attaches or detaches a socket filter ? EPERM : allow     "
//!     number == setsockopt ?   args[1] == SOL_SOCKET && args[2] == SO_REUSEPORT ? notify : allow
//!                                                    where the names of sockets are the host's: who else may have its port?
//!     number == unshare …?     notify                denied here, by the tests of the rules themselves ([`told`](crate::seccomp::rules::told))
//!     number == socket ?       notify                where sockets are made by the mediator, and all that follows
//!     number == bind ?         notify
//!     number == clone ?        args[0] & (CLONE_FILES | CLONE_THREAD) == CLONE_FILES ? notify : allow
//!     number == socketpair ?   args[1] & SOCK_TYPE_MASK == SOCK_DGRAM or SOCK_RAW ? EPERM : allow
//!     allow
//! ```
//!
//! A send on a connected socket is not notified: it goes where a mediated call, or a socketpair, has led it. The x32 table
//! is refused by the denying program: here its numbers equal none.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::libc::{self, c_int, c_long, sock_filter, sock_fprog};

use super::metadata;
use crate::seccomp::rules::{Arch, Denial, Test};

/// Offsets in `struct seccomp_data` (linux/seccomp.h).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The fifth argument, both halves; on both architectures the low half comes first.
const ADDRESS_LOW: u32 = 16 + 4 * 8;
const ADDRESS_HIGH: u32 = ADDRESS_LOW + 4;
/// The first argument, of which the kernel takes the low half as flags, or as a family.
const FLAGS: u32 = 16;
/// The second argument, of which the kernel takes the low half as a command, as a type, or as a level; and the third, as a name.
const COMMAND: u32 = 16 + 8;
const NAME: u32 = 16 + 2 * 8;

/// `AUDIT_ARCH_X86_64`, `AUDIT_ARCH_AARCH64` (linux/audit.h).
const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };

/// The same, as the rules call it.
pub(super) const ARCH: Arch = if cfg!(target_arch = "x86_64") { Arch::X86_64 } else { Arch::Aarch64 };

const ALWAYS: &[c_long] = &[libc::SYS_connect, libc::SYS_sendmsg, libc::SYS_sendmmsg];
const HOST_NAMES: &[c_long] = &[libc::SYS_bind, libc::SYS_accept, libc::SYS_accept4];
const MADE: &[c_long] = &[libc::SYS_socket, libc::SYS_bind];

/// What changes whom a socket hears: options of `SOL_SOCKET` (asm-generic/socket.h).
const FILTERS: [c_int; 4] =
    [libc::SO_ATTACH_FILTER, libc::SO_DETACH_FILTER, libc::SO_LOCK_FILTER, libc::SO_ATTACH_BPF];

/// `SOCK_TYPE_MASK` (linux/net.h).
const TYPE: c_int = 0xf;

/// What signals other processes.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// What makes, uses or removes an object of System V. shmdt(2) is about memory of the caller's own.
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

/// What has the kernel signal other processes later: a call, and two commands of it.
const OWNERS: &[(c_long, [u32; 2])] =
    &[(libc::SYS_fcntl, [F_SETOWN, F_SETOWN_EX]), (libc::SYS_ioctl, [FIOSETOWN, SIOCSPGRP])];

/// Commands of fcntl(2) (asm-generic/fcntl.h) and ioctl(2) (asm-generic/sockios.h).
pub(super) const F_SETOWN: u32 = 8;
pub(super) const F_SETOWN_EX: u32 = 15;
pub(super) const FIOSETOWN: u32 = 0x8901;
pub(super) const SIOCSPGRP: u32 = 0x8902;

/// How many instructions come before the comparisons of the number, which they load.
const PROLOGUE: usize = 4;

/// The mediation program, ready to be attached.
#[derive(Clone, Debug)]
pub struct Filter {
    instructions: Vec<sock_filter>,
}

impl Filter {
    /// The program for programs that share the host's network namespace, or not.
    pub(super) fn new(host_network: bool) -> Self {
        let more = if host_network { HOST_NAMES } else { &[] };
        let mut instructions = vec![
            load(ARCHITECTURE),
            equal(NATIVE, 1, 0),
            answer(libc::SECCOMP_RET_KILL_PROCESS),
            load(NUMBER),
        ];
        instructions.extend(notified(ALWAYS));
        instructions.extend(notified(more));
        instructions.extend([
            equal(number(libc::SYS_sendto), 0, 5),
            load(ADDRESS_LOW),
            equal(0, 0, 2),
            load(ADDRESS_HIGH),
            equal(0, 1, 0),
            answer(libc::SECCOMP_RET_USER_NOTIF),
            answer(libc::SECCOMP_RET_ALLOW),
        ]);
        Self { instructions }
    }

    /// The program that also notifies what is done with objects of System V.
    #[must_use]
    pub fn with_objects(mut self) -> Self {
        self.instructions.splice(PROLOGUE..PROLOGUE, notified(OBJECTS));
        self
    }

    /// The program that also notifies what signals other processes.
    #[must_use]
    pub fn with_signals(mut self) -> Self {
        let mut signals = notified(SIGNALS);
        for &(call, [one, other]) in OWNERS {
            signals.extend([
                equal(number(call), 0, 5),
                load(COMMAND),
                equal(one, 1, 0),
                equal(other, 0, 1),
                answer(libc::SECCOMP_RET_USER_NOTIF),
                load(NUMBER),
            ]);
        }
        self.instructions.splice(PROLOGUE..PROLOGUE, signals);
        self
    }

    /// The program that also notifies what changes metadata.
    #[must_use]
    pub fn with_metadata(mut self) -> Self {
        self.instructions.splice(PROLOGUE..PROLOGUE, metadata());
        self
    }

    /// The program that also notifies what makes datagram sockets of the internet, and denies socket filters: whom such a socket hears is
    /// not its program's to say.
    #[must_use]
    pub fn with_guarded_datagrams(mut self) -> Self {
        let mut more = datagrams();
        more.extend(socket_filters());
        self.instructions.splice(PROLOGUE..PROLOGUE, more);
        self
    }

    /// The program that also notifies what lets others have a socket's port: whoever has it alone is known by less.
    #[must_use]
    pub fn with_shared_ports(mut self) -> Self {
        self.instructions.splice(PROLOGUE..PROLOGUE, shared_ports());
        self
    }

    /// The program that also notifies what makes sockets, and denies those that nobody here could make.
    #[must_use]
    pub fn with_made_sockets(mut self) -> Self {
        let mut more = notified(MADE);
        more.extend(shared_tables());
        more.extend(pairs());
        self.instructions.splice(PROLOGUE..PROLOGUE, more);
        self
    }

    /// The program that also notifies what is denied here, whatever else it does with such calls.
    #[must_use]
    pub fn with_denials(mut self, denials: &[Denial]) -> Self {
        self.instructions.splice(PROLOGUE..PROLOGUE, denied(denials));
        self
    }

    /// Attaches it to this thread, for good, and returns its listener. Async-signal-safe. `no_new_privs` must be set, and no
    /// program of this thread may have a listener yet (`EBUSY`).
    pub fn attach(&self) -> io::Result<OwnedFd> {
        // With the second flag only fatal signals interrupt a call once it was received: no storm of restarts (Linux 5.19).
        let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        match self.attach_with(listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.attach_with(listener),
            attached => attached,
        }
    }

    fn attach_with(&self, flags: libc::c_ulong) -> io::Result<OwnedFd> {
        let length = libc::c_ushort::try_from(self.instructions.len())
            .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let program = sock_fprog { len: length, filter: self.instructions.as_ptr().cast_mut() };
        // SAFETY: the kernel copies `length` instructions and keeps no pointer.
        let listener = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        let listener = c_int::try_from(listener).unwrap_or(-1);
        if listener < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, and nothing else knows of it.
        Ok(unsafe { OwnedFd::from_raw_fd(listener) })
    }
}

/// Notifies these, whatever their arguments.
fn notified(calls: &[c_long]) -> Vec<sock_filter> {
    calls.iter().flat_map(|&call| [equal(number(call), 0, 1), answer(libc::SECCOMP_RET_USER_NOTIF)]).collect()
}

/// Each call once, with all its rules, which follow each other.
fn denied(denials: &[Denial]) -> Vec<sock_filter> {
    let of_call = |rules: &[Denial]| {
        let number = rules.first()?.call.number(ARCH)?;
        let mut body: Vec<_> = rules.iter().flat_map(|rule| notified_if(rule.when)).collect();
        body.push(load(NUMBER));
        Some([vec![equal(number, 0, distance(&body))], body].concat())
    };
    denials.chunk_by(|one, next| one.call == next.call).filter_map(of_call).flatten().collect()
}

/// Notifies if all the tests hold; without any, always.
fn notified_if(tests: &[Test]) -> Vec<sock_filter> {
    let mut rule = vec![answer(libc::SECCOMP_RET_USER_NOTIF)];
    for test in tests.iter().rev() {
        let otherwise = distance(&rule);
        let (argument, mask, compared) = match *test {
            Test::Is(argument, value) => (argument, None, equal(value, 0, otherwise)),
            Test::IsNot(argument, value) => (argument, None, equal(value, otherwise, 0)),
            Test::Masked(argument, mask, value) => (argument, Some(mask), equal(value, 0, otherwise)),
        };
        let loaded = load(FLAGS + 8 * u32::from(argument));
        rule.splice(
            0..0,
            [Some(loaded), mask.map(|mask| and(mask.cast_signed())), Some(compared)].into_iter().flatten(),
        );
    }
    rule
}

/// How far it is over these.
fn distance(instructions: &[sock_filter]) -> u8 {
    u8::try_from(instructions.len()).unwrap_or(u8::MAX)
}

fn metadata() -> Vec<sock_filter> {
    let notify = |is| [equal(is, 0, 1), answer(libc::SECCOMP_RET_USER_NOTIF)];
    let mut requests: Vec<_> =
        metadata::IOCTLS.into_iter().flat_map(|(request, _)| notify(request)).collect();
    requests.insert(0, load(COMMAND));
    requests.push(load(NUMBER));
    let skipped = u8::try_from(requests.len()).unwrap_or(u8::MAX);
    let ioctl = equal(number(libc::SYS_ioctl), 0, skipped);
    metadata::numbers().flat_map(notify).chain([ioctl]).chain(requests).collect()
}

/// `clone` of a process that shares its table of descriptors.
fn shared_tables() -> Vec<sock_filter> {
    vec![
        equal(number(libc::SYS_clone), 0, 5),
        load(FLAGS),
        and(libc::CLONE_FILES | libc::CLONE_THREAD),
        equal(libc::CLONE_FILES.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

/// `socket` of datagrams of an internet family.
fn datagrams() -> Vec<sock_filter> {
    vec![
        equal(number(libc::SYS_socket), 0, 8),
        load(FLAGS),
        equal(libc::AF_INET.cast_unsigned(), 1, 0),
        equal(libc::AF_INET6.cast_unsigned(), 0, 4),
        load(COMMAND),
        and(TYPE),
        equal(libc::SOCK_DGRAM.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

/// `setsockopt` of what filters a socket.
fn socket_filters() -> Vec<sock_filter> {
    let [attach, detach, lock, program] = FILTERS.map(c_int::cast_unsigned);
    vec![
        equal(number(libc::SYS_setsockopt), 0, 9),
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

/// `setsockopt` of what shares a port. Other options may be another's to judge.
fn shared_ports() -> Vec<sock_filter> {
    vec![
        equal(number(libc::SYS_setsockopt), 0, 6),
        load(COMMAND),
        equal(libc::SOL_SOCKET.cast_unsigned(), 0, 3),
        load(NAME),
        equal(libc::SO_REUSEPORT.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        load(NUMBER),
    ]
}

/// `socketpair` of sockets that take addresses: what unix(7) calls raw is one of datagrams.
fn pairs() -> Vec<sock_filter> {
    vec![
        equal(number(libc::SYS_socketpair), 0, 6),
        load(COMMAND),
        and(TYPE),
        equal(libc::SOCK_DGRAM.cast_unsigned(), 1, 0),
        equal(libc::SOCK_RAW.cast_unsigned(), 0, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

/// Call numbers are small and positive.
fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Keeps some bits of what was loaded.
fn and(bits: c_int) -> sock_filter {
    statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, bits.cast_unsigned())
}

/// Skips `then` instructions if what was loaded is `value`, else `otherwise`.
fn equal(value: u32, then: u8, otherwise: u8) -> sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, otherwise, value)
}

fn answer(action: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

#[expect(clippy::cast_possible_truncation, reason = "the codes of linux/filter.h are below 0x100")]
fn statement(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::rules::{Case, told};

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;

    /// Runs the program on `struct seccomp_data`, as the kernel would.
    fn run(filter: &Filter, architecture: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let mut data = [call, architecture, 0, 0].to_vec();
        for argument in arguments {
            data.extend([
                u32::try_from(argument & 0xffff_ffff).unwrap(),
                u32::try_from(argument >> 32).unwrap(),
            ]);
        }
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter.instructions[at];
            at += 1;
            match code {
                0x20 => accumulator = data[k as usize / 4],
                0x54 => accumulator &= k,
                0x15 => at += usize::from(if accumulator == k { jt } else { jf }),
                0x06 => return k,
                other => unreachable!("operation {other:#x}"),
            }
        }
    }

    fn answered(filter: &Filter, arguments: [u64; 6], wanted: u32) -> Vec<c_long> {
        (0..600).filter(|&call| run(filter, NATIVE, number(call), arguments) == wanted).collect()
    }

    fn notified(host_network: bool, arguments: [u64; 6]) -> Vec<c_long> {
        answered(&Filter::new(host_network), arguments, NOTIFY)
    }

    fn sorted(calls: &[&[c_long]]) -> Vec<c_long> {
        let mut all = calls.concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn without_an_address_a_sendto_is_not_notified() {
        assert_eq!(notified(false, [7, 7, 7, 7, 0, 7]), sorted(&[ALWAYS]));
        assert_eq!(notified(true, [7, 7, 7, 7, 0, 7]), sorted(&[ALWAYS, HOST_NAMES]));
    }

    #[test]
    fn any_bit_of_an_address_counts() {
        for bit in 0..64 {
            let arguments = [0, 0, 0, 0, 1 << bit, 0];
            assert_eq!(notified(false, arguments), sorted(&[ALWAYS, &[libc::SYS_sendto]]));
            assert_eq!(notified(true, arguments), sorted(&[ALWAYS, HOST_NAMES, &[libc::SYS_sendto]]));
        }
    }

    #[test]
    fn signals_are_notified_where_they_are_mediated() {
        let filter = Filter::new(false).with_signals();
        let notified = |arguments| answered(&filter, arguments, NOTIFY);
        assert_eq!(notified([0; 6]), sorted(&[ALWAYS, SIGNALS]));
        assert_eq!(notified([0, 0, 0, 0, 1, 0]), sorted(&[ALWAYS, SIGNALS, &[libc::SYS_sendto]]));
        for (call, commands) in OWNERS {
            for command in commands {
                let arguments = [7, u64::from(*command) | 1 << 40, 7, 7, 0, 7];
                assert_eq!(notified(arguments), sorted(&[ALWAYS, SIGNALS, &[*call]]));
            }
        }
    }

    #[test]
    fn changes_of_metadata_are_notified_beside_the_others_and_ioctl_by_its_request() {
        for plain in [Filter::new(true), Filter::new(true).with_signals()] {
            let filter = plain.clone().with_metadata();
            let more: Vec<u32> = metadata::numbers().collect();
            for call in 0..600 {
                let expected = if more.contains(&call) { NOTIFY } else { run(&plain, NATIVE, call, [7; 6]) };
                assert_eq!(run(&filter, NATIVE, call, [7; 6]), expected, "{call}");
            }
            let ioctl = |filter, request| {
                run(filter, NATIVE, number(libc::SYS_ioctl), [3, u64::from(request), 0, 0, 0, 0])
            };
            for (request, _) in metadata::IOCTLS {
                assert_eq!([ioctl(&filter, request), ioctl(&plain, request)], [NOTIFY, ALLOW]);
                assert_eq!(ioctl(&filter, request ^ 1), ALLOW);
            }
            for request in [FIOSETOWN, SIOCSPGRP] {
                assert_eq!(ioctl(&filter, request), ioctl(&plain, request));
            }
        }
    }

    #[test]
    fn what_makes_sockets_is_notified_where_the_mediator_makes_them() {
        for (host_network, more) in [(false, &[][..]), (true, HOST_NAMES)] {
            let filter = Filter::new(host_network).with_made_sockets();
            assert_eq!(answered(&filter, [0; 6], NOTIFY), sorted(&[ALWAYS, MADE, more]));
            let filter = filter.with_signals();
            assert_eq!(answered(&filter, [0; 6], NOTIFY), sorted(&[ALWAYS, MADE, more, SIGNALS]));
        }
    }

    #[test]
    fn pairs_of_datagram_sockets_are_denied_where_the_mediator_makes_sockets() {
        for (style, denied) in [
            (libc::SOCK_STREAM, false),
            (libc::SOCK_SEQPACKET, false),
            (libc::SOCK_DGRAM, true),
            (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, true),
            (libc::SOCK_RAW, true),
        ] {
            let arguments = [1, 0xffff_ffff_0000_0000 | u64::from(style.cast_unsigned()), 0, 0, 0, 0];
            let errno = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
            assert!(answered(&Filter::new(true), arguments, errno).is_empty());
            let made = answered(&Filter::new(true).with_made_sockets(), arguments, errno);
            assert_eq!(made, if denied { vec![libc::SYS_socketpair] } else { vec![] }, "{style:#x}");
        }
    }

    #[test]
    fn datagram_sockets_of_the_internet_are_notified_where_it_is_said_whom_they_hear() {
        let (inet, inet6, unix) = (libc::AF_INET, libc::AF_INET6, libc::AF_UNIX);
        let datagrams = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        for (family, style, expected) in [
            (inet, libc::SOCK_DGRAM, NOTIFY),
            (inet6, datagrams, NOTIFY),
            (inet, libc::SOCK_STREAM, ALLOW),
            (inet6, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, ALLOW),
            (unix, libc::SOCK_DGRAM, ALLOW),
        ] {
            let wide = |value: c_int| 0xffff_ffff_0000_0000 | u64::from(value.cast_unsigned());
            let arguments = [wide(family), wide(style), 0, 0, 0, 0];
            let socket = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_socket), arguments);
            assert_eq!(socket(&Filter::new(true)), ALLOW);
            assert_eq!(socket(&Filter::new(true).with_guarded_datagrams()), expected, "{family} {style:#x}");
            assert_eq!(socket(&Filter::new(true).with_guarded_datagrams().with_made_sockets()), NOTIFY);
        }
    }

    #[test]
    fn socket_filters_are_denied_where_it_is_said_whom_sockets_hear() {
        let errno = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
        let guarded = Filter::new(true).with_guarded_datagrams();
        for (level, name) in (0..100).flat_map(|name| [(libc::SOL_SOCKET, name), (libc::IPPROTO_IP, name)]) {
            let wide = |value: c_int| 0xffff_ffff_0000_0000 | u64::from(value.cast_unsigned());
            let arguments = [3, wide(level), wide(name), 0, 0, 0];
            let set = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_setsockopt), arguments);
            let denied = level == libc::SOL_SOCKET && [26, 27, 44, 50].contains(&name);
            assert_eq!(set(&guarded), if denied { errno } else { ALLOW }, "{level} {name}");
            assert_eq!(set(&Filter::new(true)), ALLOW);
        }
        assert!(answered(&guarded, [1; 6], errno).is_empty());
    }

    #[test]
    fn what_shares_a_port_is_notified_and_other_options_are_judged_as_before() {
        let errno = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
        let shared = Filter::new(true).with_shared_ports();
        let both = Filter::new(true).with_guarded_datagrams().with_shared_ports();
        for (level, name) in (0..100).flat_map(|name| [(libc::SOL_SOCKET, name), (libc::IPPROTO_IP, name)]) {
            let wide = |value: c_int| 0xffff_ffff_0000_0000 | u64::from(value.cast_unsigned());
            let arguments = [3, wide(level), wide(name), 0, 0, 0];
            let set = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_setsockopt), arguments);
            let socket = level == libc::SOL_SOCKET;
            let expected = if socket && name == 15 { NOTIFY } else { ALLOW };
            assert_eq!(set(&shared), expected, "{level} {name}");
            let denied = socket && [26, 27, 44, 50].contains(&name);
            assert_eq!(set(&both), if denied { errno } else { expected }, "{level} {name}");
        }
        assert_eq!(answered(&shared, [1; 6], NOTIFY), answered(&Filter::new(true), [1; 6], NOTIFY));
    }

    #[test]
    fn a_process_that_shares_its_descriptors_is_notified_and_a_thread_is_not() {
        let (files, thread) = (libc::CLONE_FILES, libc::CLONE_THREAD);
        for (flags, expected) in [(files, NOTIFY), (files | thread, ALLOW), (thread, ALLOW), (0, ALLOW)] {
            let flags = flags | libc::CLONE_VM | libc::SIGCHLD;
            let arguments = [u64::from(flags.cast_unsigned()), 0, 0, 0, 0, 0];
            let clone = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_clone), arguments);
            assert_eq!(clone(&Filter::new(true)), ALLOW);
            assert_eq!(clone(&Filter::new(true).with_made_sockets()), expected, "{flags:#x}");
        }
    }

    /// Of what the standing program leaves out nothing gets by.
    #[test]
    fn what_is_denied_here_is_notified_exactly_where_a_rule_says_so() {
        let values =
            |bits: &[u64]| bits.iter().flat_map(|bit| [*bit, !*bit, bit | 1 << 40]).collect::<Vec<_>>();
        let bits: Vec<_> = (0..32).map(|bit| 1 << bit).collect();
        let small: Vec<_> = (0..48).chain([132, 136, 262, 0x8_0000_0002, 0x8_0001]).collect();
        let some = [values(&bits), small].concat();
        for (case, host_network) in Case::all().flat_map(|case| [(case, false), (case, true)]) {
            let denials = told(case);
            let plain = Filter::new(host_network).with_guarded_datagrams().with_made_sockets();
            let filter = plain.clone().with_denials(&denials);
            assert_eq!(filter.instructions.len() == plain.instructions.len(), denials.is_empty());
            for call in 0..600 {
                let rules: Vec<_> =
                    denials.iter().filter(|denial| denial.call.number(ARCH) == Some(call)).collect();
                let arguments = some.iter().flat_map(|&one| {
                    [[one, 1, 0, 0, 0, 0], [1, one, 2, 0, 0, 0], [2, 1, one, 0, 0, 0], [16, 3, one, 0, 0, 0]]
                });
                for arguments in arguments.step_by(if rules.is_empty() { 97 } else { 1 }) {
                    let denied = rules.iter().any(|rule| rule.holds(&arguments));
                    let expected = if denied { NOTIFY } else { run(&plain, NATIVE, call, arguments) };
                    assert_eq!(
                        run(&filter, NATIVE, call, arguments),
                        expected,
                        "{call} {arguments:x?} {case:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn foreign_architectures_are_killed_and_x32_is_left_to_the_denying_program() {
        let filter = Filter::new(true);
        assert_eq!(run(&filter, 0x4000_0003, 102, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(run(&filter, NATIVE, 0x4000_0000 + number(libc::SYS_connect), [1; 6]), ALLOW);
    }
}
