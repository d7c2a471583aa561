//! The programs are run here by a small interpreter of classic BPF, and compared with what the tables say.

use nix::libc;
use proptest::prelude::*;

use super::*;

/// `struct seccomp_data`, as far as the programs look at it.
#[derive(Clone, Copy, Debug)]
struct Call {
    arch: u32,
    number: u32,
    arguments: [u64; 6],
}

const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };

impl Call {
    fn new(number: i64, arguments: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Self { arch: NATIVE, number: u32::try_from(number).unwrap(), arguments: all }
    }

    fn word(&self, offset: u32) -> u32 {
        let low = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap();
        match offset {
            0 => self.number,
            4 => self.arch,
            16.. => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) { low(argument) } else { low(argument >> 32) }
            }
            _ => unreachable!("the programs never load {offset}"),
        }
    }
}

/// Runs a program; its answer and how many instructions it took.
fn run(program: &Program, call: &Call) -> (u32, usize) {
    let (mut at, mut accumulator, mut steps) = (0, 0, 0);
    loop {
        let sock_filter { code: operation, jt, jf, k } = program.instructions[at];
        steps += 1;
        at += 1;
        let branch = |taken: bool| usize::from(if taken { jt } else { jf });
        match u32::from(operation) {
            0x20 => accumulator = call.word(k),
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => at += branch(accumulator == k),
            0x25 => at += branch(accumulator > k),
            0x35 => at += branch(accumulator >= k),
            0x06 => return (k, steps),
            other => unreachable!("operation {other:#x}"),
        }
    }
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

fn errno(error: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | error.cast_unsigned()
}

fn answer(program: &Program, number: i64, arguments: &[u64]) -> u32 {
    run(program, &Call::new(number, arguments)).0
}

fn policies() -> Vec<Policy> {
    let mut policies = vec![];
    for net in [Network::Off, Network::On] {
        for root in [false, true] {
            for truncate in [false, true] {
                for tier in [Tier::FloorUnmediated, Tier::Full] {
                    policies.push(Policy { net, root, truncate, tier });
                }
            }
        }
    }
    policies
}

const PLAIN: Policy = Policy { net: Network::Off, root: false, truncate: false, tier: Tier::FloorUnmediated };

/// What the table says, without any program.
fn expected(denials: &[Denial], call: &Call) -> u32 {
    let holds = |test: &Test| {
        let argument = |index: u8| call.word(16 + 8 * u32::from(index));
        match *test {
            Test::Is(index, value) => argument(index) == value,
            Test::IsNot(index, value) => argument(index) != value,
            Test::Masked(index, mask, value) => argument(index) & mask == value,
        }
    };
    denials
        .iter()
        .find(|denial| denial.number == i64::from(call.number) && denial.when.iter().all(holds))
        .map_or(ALLOW, |denial| libc::SECCOMP_RET_ERRNO | denial.answer.errno())
}

#[test]
fn every_denied_call_is_denied_and_every_other_number_allowed() {
    for policy in policies() {
        let (program, denials) = (Program::standing(policy).unwrap(), table::standing(policy));
        for number in 0..600 {
            let call = Call::new(number, &[]);
            assert_eq!(run(&program, &call).0, expected(&denials, &call), "{number} under {policy:?}");
        }
        let unconditional = denials.iter().filter(|denial| denial.when.is_empty());
        assert!(unconditional.clone().count() > 50);
        for denial in unconditional {
            assert_ne!(answer(&program, denial.number, &[]), ALLOW, "{denial:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_program_says_what_the_table_says(
        which in 0..16usize,
        pick in any::<prop::sample::Index>(),
        arguments in prop::array::uniform6(prop_oneof![0..20u64, (0..32u32).prop_map(|bit| 1 << bit), any::<u64>()]),
    ) {
        let policy = policies()[which];
        let (program, denials) = (Program::standing(policy).unwrap(), table::standing(policy));
        let number = denials[pick.index(denials.len())].number;
        let call = Call::new(number, &arguments);
        prop_assert_eq!(run(&program, &call).0, expected(&denials, &call));
        let (program, denials) = (Program::read_only(policy).unwrap(), table::read_only(policy));
        prop_assert_eq!(run(&program, &call).0, expected(&denials, &call));
        let (program, denials) = (Program::offline(policy).unwrap(), table::offline(policy));
        prop_assert_eq!(run(&program, &call).0, expected(&denials, &call));
    }
}

#[test]
fn foreign_tables_are_refused() {
    let program = Program::standing(PLAIN).unwrap();
    let i386 = Call { arch: 0x4000_0003, ..Call::new(1, &[]) };
    assert_eq!(run(&program, &i386).0, libc::SECCOMP_RET_KILL_PROCESS);
    for number in [0x4000_0000, 0x4000_0000 + libc::SYS_write, 0xffff_ffff] {
        assert_eq!(answer(&program, number, &[]), errno(libc::ENOSYS));
    }
}

#[test]
fn sockets_by_family() {
    let families = |stacked: &[Program]| {
        let allowed = |family: &i32| {
            let arguments = [family.cast_unsigned().into(), 1, 0];
            stacked.iter().all(|program| answer(program, libc::SYS_socket, &arguments) == ALLOW)
        };
        (0..64).filter(allowed).collect::<Vec<_>>()
    };
    let standing = |policy| Program::standing(policy).unwrap();
    let (floor, full) = (PLAIN, Policy { tier: Tier::Full, ..PLAIN });
    assert_eq!(families(&[standing(floor)]), [libc::AF_NETLINK]);
    let inet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    assert_eq!(families(&[standing(Policy { net: Network::On, ..floor })]), inet);
    let all = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    for (policy, offline) in [(floor, vec![libc::AF_NETLINK]), (full, vec![libc::AF_UNIX, libc::AF_NETLINK])]
    {
        let on = Policy { net: Network::On, ..policy };
        assert_eq!(families(&[standing(on), Program::offline(on).unwrap()]), offline);
        assert_eq!(families(&[standing(on), Program::read_only(on).unwrap()]), [libc::AF_NETLINK]);
    }
    for net in [Network::Off, Network::On] {
        assert_eq!(families(&[standing(Policy { net, ..full })]), all);
    }
}

#[test]
fn sockets_by_type_and_protocol() {
    for (net, tier) in
        [(Network::On, Tier::FloorUnmediated), (Network::On, Tier::Full), (Network::Off, Tier::Full)]
    {
        let program = Program::standing(Policy { net, tier, ..PLAIN }).unwrap();
        internet_and_netlink_sockets(&|family, kind, protocol| {
            let arguments = [family, kind, protocol].map(|argument| u64::from(argument.cast_unsigned()));
            answer(&program, libc::SYS_socket, &arguments) == ALLOW
        });
    }
}

fn internet_and_netlink_sockets(socket: &dyn Fn(i32, i32, i32) -> bool) {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for family in [libc::AF_INET, libc::AF_INET6] {
        assert!(socket(family, libc::SOCK_STREAM | flags, 0));
        assert!(socket(family, libc::SOCK_DGRAM | flags, libc::IPPROTO_UDP));
        assert!(!socket(family, libc::SOCK_RAW | flags, libc::IPPROTO_TCP));
        assert!(!socket(family, libc::SOCK_STREAM, libc::IPPROTO_MPTCP));
        assert!(!socket(family, libc::SOCK_STREAM, libc::IPPROTO_SCTP));
        assert!(!socket(family, libc::SOCK_SEQPACKET, 0));
        assert!(!socket(family, 10, 0));
    }
    assert!(socket(libc::AF_NETLINK, libc::SOCK_RAW | flags, libc::NETLINK_ROUTE));
    assert!(!socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT));
}

#[test]
fn the_full_tier_leaves_what_its_broker_and_namespaces_hold() {
    let full = Program::standing(Policy { tier: Tier::Full, ..PLAIN }).unwrap();
    let floor = Program::standing(PLAIN).unwrap();
    let read_only = Program::read_only(Policy { tier: Tier::Full, ..PLAIN }).unwrap();
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    for (call, arguments) in [
        (libc::SYS_shmget, vec![]),
        (libc::SYS_msgget, vec![]),
        (libc::SYS_semget, vec![]),
        (libc::SYS_mq_open, vec![]),
        (libc::SYS_socket, vec![unix, 1, 0]),
        (libc::SYS_socket, vec![unix, 2, 0]),
        (libc::SYS_socket, vec![unix, 5, 0]),
        (libc::SYS_socketpair, vec![unix, 2, 0]),
    ] {
        assert_eq!(answer(&full, call, &arguments), ALLOW, "{call} {arguments:?}");
        assert_eq!(answer(&floor, call, &arguments), errno(libc::EPERM), "{call} {arguments:?}");
    }
    assert_eq!(answer(&full, libc::SYS_sendmmsg, &[]), ALLOW);
    assert_eq!(answer(&full, libc::SYS_socketpair, &[2, 1, 0]), errno(libc::EPERM));
    for kind in [3, 4, 6, 10] {
        assert_eq!(answer(&full, libc::SYS_socket, &[unix, kind, 0]), errno(libc::EPERM));
    }
    assert_eq!(answer(&read_only, libc::SYS_socketpair, &[unix, 2, 0]), errno(libc::EPERM));
    assert_eq!(answer(&read_only, libc::SYS_socketpair, &[unix, 1, 0]), ALLOW);
}

#[test]
fn set_id_bits_are_refused_where_they_are_set() {
    let program = Program::standing(Policy { root: true, ..PLAIN }).unwrap();
    let (create, temporary) =
        (u64::from(libc::O_CREAT.cast_unsigned()), u64::from(libc::O_TMPFILE.cast_unsigned()));
    let directory = u64::from(libc::O_DIRECTORY.cast_unsigned());
    for (call, arguments, denied) in [
        (libc::SYS_fchmodat, [0, 0, 0o4755, 0], true),
        (libc::SYS_fchmodat, [0, 0, 0o2755, 0], true),
        (libc::SYS_fchmodat, [0, 0, 0o1777, 0], false),
        (libc::SYS_openat, [0, 0, create, 0o4755], true),
        (libc::SYS_openat, [0, 0, temporary, 0o2755], true),
        (libc::SYS_openat, [0, 0, create, 0o755], false),
        // Without O_CREAT the mode is whatever the register held.
        (libc::SYS_openat, [0, 0, 0, 0o6755], false),
        (libc::SYS_openat, [0, 0, directory, 0o6755], false),
    ] {
        let expected = if denied { errno(libc::EPERM) } else { ALLOW };
        assert_eq!(answer(&program, call, &arguments), expected, "{call} {arguments:?}");
    }
    assert_eq!(answer(&program, libc::SYS_openat2, &[]), errno(libc::ENOSYS));
    let plain = Program::standing(PLAIN).unwrap();
    assert_eq!(answer(&plain, libc::SYS_openat, &[0, 0, create, 0o4755]), ALLOW);
    assert_eq!(answer(&plain, libc::SYS_openat2, &[]), ALLOW);
}

#[test]
fn truncation_is_held_where_landlock_does_not() {
    let program = Program::standing(Policy { truncate: true, ..PLAIN }).unwrap();
    let flags = |flags: i32| [0, 0, u64::from(flags.cast_unsigned())];
    assert_eq!(answer(&program, libc::SYS_openat, &flags(libc::O_TRUNC)), errno(libc::EPERM));
    assert_eq!(answer(&program, libc::SYS_openat, &flags(libc::O_WRONLY | libc::O_TRUNC)), ALLOW);
    assert_eq!(answer(&program, libc::SYS_truncate, &[]), errno(libc::EPERM));
    assert_eq!(answer(&Program::standing(PLAIN).unwrap(), libc::SYS_truncate, &[]), ALLOW);
}

#[test]
fn upper_halves_of_arguments_do_not_hide_them() {
    let program = Program::standing(PLAIN).unwrap();
    let high = 0xdead_beef_0000_0000;
    assert_eq!(answer(&program, libc::SYS_ioctl, &[0, high | 0x5412]), errno(libc::EPERM));
    assert_eq!(answer(&program, libc::SYS_socket, &[high | 2, 1, 0]), errno(libc::EPERM));
    assert_eq!(answer(&program, libc::SYS_clone, &[high | 0x1000_0000]), errno(libc::EPERM));
}

#[test]
fn what_programs_need_stays_allowed() {
    let program = Program::standing(Policy { root: true, ..PLAIN }).unwrap();
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    for (call, arguments) in [
        (libc::SYS_socketpair, vec![unix, 1, 0]),
        (libc::SYS_socketpair, vec![unix, 5, 0]),
        (libc::SYS_prlimit64, vec![0, 7]),
        (libc::SYS_personality, vec![0xffff_ffff]),
        (libc::SYS_personality, vec![0x4_0000]),
        (libc::SYS_ptrace, vec![]),
        (libc::SYS_memfd_create, vec![]),
        (libc::SYS_landlock_create_ruleset, vec![]),
        (libc::SYS_seccomp, vec![]),
        // The flags of fork(3) and of pthread_create(3).
        (libc::SYS_clone, vec![0x0120_0011]),
        (libc::SYS_clone, vec![0x003d_0f00]),
        (libc::SYS_execve, vec![]),
    ] {
        assert_eq!(answer(&program, call, &arguments), ALLOW, "{call} {arguments:?}");
    }
    for kind in [2, 3] {
        assert_eq!(answer(&program, libc::SYS_socketpair, &[unix, kind, 0]), errno(libc::EPERM));
    }
}

#[test]
fn a_call_costs_few_instructions() {
    for policy in policies() {
        let program = Program::standing(policy).unwrap();
        let most = (0..600).map(|number| run(&program, &Call::new(number, &[])).1).max().unwrap();
        assert!(most < 120, "{most} instructions under {policy:?}");
    }
}

#[test]
fn a_call_with_two_answers_is_no_program() {
    let denial = |answer| Denial { number: 1, when: &[], answer };
    let error = join(&[denial(Answer::Forbidden), denial(Answer::NoSuchCall)]).unwrap_err();
    assert!(matches!(error, SeccompError::TwoAnswers(1)));
}
