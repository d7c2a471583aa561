use ipc::confinement::Tier;
use nix::libc::{c_int, c_long};

use super::calls::{ALWAYS, HOST_NAMES, MADE, OWNERS, SIGNALS, number};
use super::tree::NATIVE;
use super::*;
use crate::mediate::files::metadata;
use crate::seccomp::Policy;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;

fn run(filter: &Filter, architecture: u32, call: u32, arguments: [u64; 6]) -> u32 {
    walk(filter, architecture, call, arguments, |_| {})
}

fn walk(
    filter: &Filter,
    architecture: u32,
    call: u32,
    arguments: [u64; 6],
    mut step: impl FnMut(&sock_filter),
) -> u32 {
    let mut data = [call, architecture, 0, 0].to_vec();
    for argument in arguments {
        data.extend([u32::try_from(argument & 0xffff_ffff).unwrap(), u32::try_from(argument >> 32).unwrap()]);
    }
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = filter.instructions[at];
        step(&filter.instructions[at]);
        at += 1;
        match code {
            0x20 => accumulator = data[k as usize / 4],
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => at += usize::from(if accumulator == k { jt } else { jf }),
            0x35 => at += usize::from(if accumulator >= k { jt } else { jf }),
            0x45 => at += usize::from(if accumulator & k != 0 { jt } else { jf }),
            0x25 => at += usize::from(if accumulator > k { jt } else { jf }),
            0x06 => return k,
            other => unreachable!("operation {other:#x}"),
        }
    }
}

fn answered(filter: &Filter, arguments: [u64; 6], wanted: u32) -> Vec<c_long> {
    (0..600).filter(|&call| run(filter, NATIVE, number(call), arguments) == wanted).collect()
}

fn notified(host_network: bool, arguments: [u64; 6]) -> Vec<c_long> {
    answered(&FilteredCalls::new(host_network).filter(), arguments, NOTIFY)
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
    let filter = FilteredCalls::new(false).with_signals().filter();
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
    for calls in [FilteredCalls::new(true), FilteredCalls::new(true).with_signals()] {
        let (plain, filter) = (calls.filter(), calls.with_metadata().filter());
        // The seven of all arguments asks whether a path is writable.
        let questions = metadata::questions().map(|(number, _)| number);
        let more: Vec<u32> = metadata::numbers().chain(questions).collect();
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
fn only_a_question_about_writing_and_a_set_group_id_bit_are_notified() {
    let with = |argument: u32, value: u64| {
        let mut arguments = [0; 6];
        arguments[argument as usize] = value;
        arguments
    };
    let (plain, filter) = (FilteredCalls::new(false), FilteredCalls::new(true).with_metadata().filter());
    for (call, mode) in metadata::questions() {
        for (asked, expected) in
            [(0, ALLOW), (4, ALLOW), (1, ALLOW), (5, ALLOW), (2, NOTIFY), (6, NOTIFY), (7, NOTIFY)]
        {
            assert_eq!(run(&filter, NATIVE, call, with(mode, asked)), expected, "{call} {asked}");
            assert_eq!(run(&plain.filter(), NATIVE, call, with(mode, asked)), ALLOW);
        }
    }
    let full = plain.with_set_group_id().filter();
    for (call, mode) in metadata::modes() {
        for (bits, expected) in
            [(0o755, ALLOW), (0o1777, ALLOW), (0o2775, NOTIFY), (1 << 40 | 0o2000, NOTIFY)]
        {
            assert_eq!(run(&full, NATIVE, call, with(mode, bits)), expected, "{call} {bits:o}");
        }
    }
}

#[test]
fn what_makes_sockets_is_notified_where_the_mediator_makes_them() {
    for (host_network, more) in [(false, &[][..]), (true, HOST_NAMES)] {
        let calls = FilteredCalls::new(host_network).with_made_sockets();
        assert_eq!(answered(&calls.filter(), [0; 6], NOTIFY), sorted(&[ALWAYS, MADE, more]));
        let filter = calls.with_signals().filter();
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
        assert!(answered(&FilteredCalls::new(true).filter(), arguments, errno).is_empty());
        let made = answered(&FilteredCalls::new(true).with_made_sockets().filter(), arguments, errno);
        assert_eq!(made, if denied { vec![libc::SYS_socketpair] } else { vec![] }, "{style:#x}");
    }
}

#[test]
fn sockets_of_the_internet_are_notified_where_strangers_are_kept_from_them() {
    let (inet, inet6, unix) = (libc::AF_INET, libc::AF_INET6, libc::AF_UNIX);
    let datagrams = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for (family, style, expected) in [
        (inet, libc::SOCK_DGRAM, NOTIFY),
        (inet6, datagrams, NOTIFY),
        (inet, libc::SOCK_STREAM, NOTIFY),
        (inet6, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, NOTIFY),
        (unix, libc::SOCK_STREAM, ALLOW),
        (unix, libc::SOCK_DGRAM, ALLOW),
    ] {
        let wide = |value: c_int| 0xffff_ffff_0000_0000 | u64::from(value.cast_unsigned());
        let arguments = [wide(family), wide(style), 0, 0, 0, 0];
        let socket = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_socket), arguments);
        assert_eq!(socket(&FilteredCalls::new(true).filter()), ALLOW);
        assert_eq!(
            socket(&FilteredCalls::new(true).with_guarded_sockets().filter()),
            expected,
            "{family} {style:#x}"
        );
        assert_eq!(
            socket(&FilteredCalls::new(true).with_guarded_sockets().with_made_sockets().filter()),
            NOTIFY
        );
    }
}

#[test]
fn socket_filters_are_denied_where_it_is_said_whom_sockets_hear() {
    let errno = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let guarded = FilteredCalls::new(true).with_guarded_sockets().filter();
    for (level, name) in (0..100).flat_map(|name| [(libc::SOL_SOCKET, name), (libc::IPPROTO_IP, name)]) {
        let wide = |value: c_int| 0xffff_ffff_0000_0000 | u64::from(value.cast_unsigned());
        let arguments = [3, wide(level), wide(name), 0, 0, 0];
        let set = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_setsockopt), arguments);
        let denied = level == libc::SOL_SOCKET && [26, 27, 44, 50].contains(&name);
        assert_eq!(set(&guarded), if denied { errno } else { ALLOW }, "{level} {name}");
        assert_eq!(set(&FilteredCalls::new(true).filter()), ALLOW);
    }
    assert!(answered(&guarded, [1; 6], errno).is_empty());
}

#[test]
fn a_process_that_shares_its_descriptors_is_notified_and_a_thread_is_not() {
    let (files, thread) = (libc::CLONE_FILES, libc::CLONE_THREAD);
    for (flags, expected) in [(files, NOTIFY), (files | thread, ALLOW), (thread, ALLOW), (0, ALLOW)] {
        let flags = flags | libc::CLONE_VM | libc::SIGCHLD;
        let arguments = [u64::from(flags.cast_unsigned()), 0, 0, 0, 0, 0];
        let clone = |filter: &Filter| run(filter, NATIVE, number(libc::SYS_clone), arguments);
        assert_eq!(clone(&FilteredCalls::new(true).filter()), ALLOW);
        assert_eq!(clone(&FilteredCalls::new(true).with_made_sockets().filter()), expected, "{flags:#x}");
    }
}

#[test]
fn foreign_architectures_are_killed_and_x32_is_left_to_the_denying_program() {
    let filter = FilteredCalls::new(true).filter();
    assert_eq!(run(&filter, 0x4000_0003, 102, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    assert_eq!(run(&filter, NATIVE, 0x4000_0000 + number(libc::SYS_connect), [1; 6]), ALLOW);
}

/// Checks that no call passes over 50 instructions: attaching a filter, the kernel runs it for every call number.
#[test]
fn no_call_passes_all_the_others() {
    let all = FilteredCalls::new(true).with_guarded_sockets().with_objects();
    let all = all.with_signals().with_metadata();
    let filter = all.filter();
    let steps = |call| {
        let mut passed = 0;
        walk(&filter, NATIVE, call, [0; 6], |_| passed += 1);
        passed
    };
    let most = (0..600).map(steps).max().unwrap();
    assert!(filter.instructions.len() > 120 && most < 50, "{most} of {}", filter.instructions.len());
}

#[test]
fn behind_a_denying_program_nothing_is_allowed_that_it_denies_and_nothing_else_changes() {
    let nothing = || Filter { instructions: vec![answer(libc::SECCOMP_RET_ALLOW)] };
    let values: Vec<_> =
        (0..24).map(|bit| 1 << bit).chain(0..48).chain([0x5412, 0x8901, 0x4008_6601]).collect();
    for policy in policies() {
        let denying = Program::standing(policy);
        let alone = nothing().behind(denying);
        let calls = FilteredCalls::new(true).with_guarded_sockets().with_objects().with_metadata();
        let filter = calls.filter();
        let both = filter.clone().behind(denying);
        for call in (0..480).chain([600, 0x4000_0000, 0x4000_0000 + number(libc::SYS_connect), u32::MAX]) {
            let arguments = values.iter().flat_map(|&one| [[one, 1, 0, 0, 0, 0], [1, one, 2, 0, one, 0]]);
            for arguments in arguments {
                let denied = run(&alone, NATIVE, call, arguments);
                let expected = if denied == ALLOW { run(&filter, NATIVE, call, arguments) } else { denied };
                assert_eq!(run(&both, NATIVE, call, arguments), expected, "{call} {arguments:x?} {policy:?}");
            }
        }
        assert_eq!(run(&both, 0x4000_0003, 102, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }
}

fn policies() -> impl Iterator<Item = Policy> {
    let policy = |bits: u8| Policy {
        machines_network: bits & 1 != 0,
        root: bits & 2 != 0,
        truncate: bits & 4 != 0,
        tier: Tier::Floor,
        neighbours: bits & 8 != 0,
    };
    (0..16).map(policy)
}
