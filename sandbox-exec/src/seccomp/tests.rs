//! Tests that run the seccomp programs of both architectures in a BPF interpreter, and compare with the rules.

use complaint::{When, denied_calls};
use nix::libc;
use proptest::prelude::*;

use super::rules::{Answer, Arch, Denial, calls, denials};
use super::*;

mod numbers;
mod sockets;

#[expect(clippy::unreadable_literal, reason = "it is generated")]
mod x86_64 {
    use super::super::{Program, sock_filter};

    include!(concat!(env!("OUT_DIR"), "/programs_x86_64.rs"));
}

#[expect(clippy::unreadable_literal, reason = "it is generated")]
mod aarch64 {
    use super::super::{Program, sock_filter};

    include!(concat!(env!("OUT_DIR"), "/programs_aarch64.rs"));
}

#[derive(Clone, Copy, Debug)]
struct Built {
    program: Program,
    arch: Arch,
}

fn built(kind: RuleKind, case: Case, arch: Arch) -> Built {
    let programs = match arch {
        Arch::X86_64 => &x86_64::PROGRAMS,
        Arch::Aarch64 => &aarch64::PROGRAMS,
    };
    Built { program: programs[kind as usize][case.index()], arch }
}

#[derive(Clone, Copy, Debug)]
struct Call {
    arch: u32,
    number: u32,
    arguments: [u64; 6],
}

const fn audit_arch(arch: Arch) -> u32 {
    match arch {
        Arch::X86_64 => 0xC000_003E,
        Arch::Aarch64 => 0xC000_00B7,
    }
}

impl Call {
    fn new(arch: Arch, number: u32, arguments: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Self { arch: audit_arch(arch), number, arguments: all }
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

fn run(program: Program, call: &Call) -> (u32, usize) {
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
            0x45 => at += branch(accumulator & k != 0),
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

fn answer(built: Built, call: calls::Call, arguments: &[u64]) -> u32 {
    let Some(number) = call.number(built.arch) else { panic!("no {} on {:?}", call.name, built.arch) };
    run(built.program, &Call::new(built.arch, number, arguments)).0
}

const PLAIN: Case =
    Case { full: false, mediated: false, network: false, root: false, truncate: false, neighbours: false };
const MEDIATED: Case = Case { mediated: true, ..PLAIN };
const FULL: Case = Case { full: true, ..MEDIATED };

fn standing(case: Case) -> [Built; 2] {
    Arch::ALL.map(|arch| built(RuleKind::Standing, case, arch))
}

fn every_program() -> impl Iterator<Item = (Built, RuleKind, Case)> {
    let of_kind = |kind| Case::all().map(move |case| (kind, case));
    let all = RuleKind::ALL.into_iter().flat_map(of_kind);
    all.flat_map(|(kind, case)| Arch::ALL.map(|arch| (built(kind, case, arch), kind, case)))
}

/// Call number that the filter sees after a tracer has skipped a call.
const SKIPPED: u32 = u32::MAX;

fn expected(denials: &[Denial], arch: Arch, call: &Call) -> u32 {
    if call.number == SKIPPED {
        return ALLOW;
    }
    if call.number > calls::NEWEST {
        return errno(libc::ENOSYS);
    }
    let holds =
        |denial: &&Denial| denial.call.number(arch) == Some(call.number) && denial.holds(&call.arguments);
    denials.iter().find(holds).map_or(ALLOW, |denial| libc::SECCOMP_RET_ERRNO | denial.answer.errno())
}

#[test]
fn every_denied_call_is_denied_and_every_other_number_allowed() {
    for (Built { program, arch }, kind, case) in every_program() {
        let denials = denials(kind, case);
        for number in 0..600 {
            let call = Call::new(arch, number, &[]);
            assert_eq!(
                run(program, &call).0,
                expected(&denials, arch, &call),
                "{number}, {kind:?}, {case:?}, {arch:?}"
            );
        }
        let known: Vec<_> = denials.iter().filter(|denial| denial.call.number(arch).is_some()).collect();
        assert_eq!(program.rules() as usize, known.len());
        for denial in known.iter().filter(|denial| denial.when.is_empty()) {
            assert_ne!(answer(Built { program, arch }, denial.call, &[]), ALLOW, "{denial:?}");
        }
    }
}

#[test]
fn the_program_of_a_policy_is_the_one_of_its_architecture() {
    let arch = Arch::ALL.into_iter().find(|arch| arch.name() == std::env::consts::ARCH).unwrap();
    for machines_network in [false, true] {
        for tier in [Tier::Full, Tier::Floor, Tier::FloorUnmediated] {
            let policy = Policy { machines_network, root: true, truncate: false, tier, neighbours: false };
            is_of_its_architecture(policy, arch);
            is_of_its_architecture(policy.within(Reach { link_local: true, ..Reach::default() }), arch);
        }
    }
}

fn is_of_its_architecture(policy: Policy, arch: Arch) {
    assert_eq!(Case::all().nth(policy.case().index()), Some(policy.case()));
    for (kind, program) in [
        (RuleKind::Standing, Program::standing(policy)),
        (RuleKind::ReadOnly, Program::read_only(policy)),
        (RuleKind::Offline, Program::offline(policy)),
        (RuleKind::NoExecution, Program::no_execution()),
        (RuleKind::ReadOnlyOnline, Program::read_only_online(policy)),
    ] {
        let Built { program: other, .. } = built(kind, policy.case(), arch);
        assert_eq!(format!("{program:?}"), format!("{other:?}"), "{kind:?} {policy:?}");
    }
}

proptest! {
    #[test]
    fn the_program_says_what_the_rules_say(
        which in any::<prop::sample::Index>(),
        pick in any::<prop::sample::Index>(),
        arguments in prop::array::uniform6(prop_oneof![0..20u64, (0..32u32).prop_map(|bit| 1 << bit), any::<u64>()]),
    ) {
        let all: Vec<_> = every_program().collect();
        let (Built { program, arch }, kind, case) = *which.get(&all);
        let denials = denials(kind, case);
        if let Some(number) = pick.get(&denials).call.number(arch) {
            let call = Call::new(arch, number, &arguments);
            prop_assert_eq!(run(program, &call).0, expected(&denials, arch, &call));
        }
    }
}

#[test]
fn foreign_tables_are_refused() {
    for Built { program, arch } in standing(PLAIN) {
        // i386 and 32-bit ARM.
        for foreign in [0x4000_0003, 0x4000_0028] {
            let call = Call { arch: foreign, ..Call::new(arch, 1, &[]) };
            assert_eq!(run(program, &call).0, libc::SECCOMP_RET_KILL_PROCESS);
        }
        // The x32 table, with its bit and without, and unexamined calls.
        for number in [0x4000_0000, 0x4000_0001, 512, 547, calls::NEWEST + 1, 0xffff_fffe] {
            assert_eq!(run(program, &Call::new(arch, number, &[])).0, errno(libc::ENOSYS));
        }
        assert_eq!(run(program, &Call::new(arch, calls::NEWEST, &[])).0, ALLOW);
    }
}

#[test]
fn what_a_tracer_skipped_is_left_to_the_tracer() {
    for (Built { program, arch }, ..) in every_program() {
        assert_eq!(run(program, &Call::new(arch, SKIPPED, &[])).0, ALLOW);
    }
}

#[test]
fn the_full_tier_leaves_what_its_broker_and_namespaces_hold() {
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    for (full, floor) in standing(FULL).into_iter().zip(standing(PLAIN)) {
        for (call, arguments) in [
            (calls::SHMGET, vec![]),
            (calls::MSGGET, vec![]),
            (calls::SEMGET, vec![]),
            (calls::MQ_OPEN, vec![]),
            (calls::SOCKET, vec![unix, 1, 0]),
            (calls::SOCKET, vec![unix, 2, 0]),
            (calls::SOCKET, vec![unix, 5, 0]),
            (calls::SOCKETPAIR, vec![unix, 2, 0]),
        ] {
            assert_eq!(answer(full, call, &arguments), ALLOW, "{call:?} {arguments:?}");
            assert_eq!(answer(floor, call, &arguments), errno(libc::EPERM), "{call:?} {arguments:?}");
        }
        assert_eq!(answer(full, calls::SOCKETPAIR, &[2, 1, 0]), errno(libc::EPERM));
        for kind in [3, 4, 6, 10] {
            assert_eq!(answer(full, calls::SOCKET, &[unix, kind, 0]), errno(libc::EPERM));
        }
        for case in [FULL, MEDIATED] {
            let read_only = built(RuleKind::ReadOnly, case, full.arch);
            assert_eq!(answer(read_only, calls::SOCKETPAIR, &[unix, 2, 0]), errno(libc::EPERM));
            assert_eq!(answer(read_only, calls::SOCKETPAIR, &[unix, 1, 0]), ALLOW);
        }
    }
}

#[test]
fn the_mediated_floor_has_what_its_broker_keeps_apart_and_no_queues_of_the_host() {
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    for (mediated, full) in standing(MEDIATED).into_iter().zip(standing(FULL)) {
        for call in [calls::SOCKET, calls::SOCKETPAIR] {
            for (family, kind) in (0..64).flat_map(|family| (0..11).map(move |kind| (family, kind))) {
                let arguments = [family, kind, 0];
                assert_eq!(
                    answer(mediated, call, &arguments),
                    answer(full, call, &arguments),
                    "{arguments:?}"
                );
            }
        }
        assert_eq!(answer(mediated, calls::SOCKETPAIR, &[unix, 2, 0]), ALLOW);
        for call in [calls::SHMGET, calls::MSGGET, calls::SEMGET] {
            assert_eq!(answer(mediated, call, &[]), ALLOW, "{call:?}");
            let read_only = built(RuleKind::ReadOnly, MEDIATED, mediated.arch);
            assert_eq!(answer(read_only, call, &[]), errno(libc::EPERM), "{call:?}");
        }
        assert_eq!(answer(mediated, calls::MQ_OPEN, &[]), errno(libc::EPERM));
    }
}

#[test]
fn set_id_bits_are_refused_where_they_are_set() {
    let flag = |flag: i32| u64::from(flag.cast_unsigned());
    let (create, directory) = (flag(libc::O_CREAT), flag(libc::O_DIRECTORY));
    let temporary = u64::from(rules::constants::O_TMPFILE_ALONE);
    for (root, plain) in standing(Case { root: true, ..PLAIN }).into_iter().zip(standing(PLAIN)) {
        for (call, arguments, denied) in [
            (calls::FCHMODAT, [0, 0, 0o4755, 0], true),
            (calls::FCHMODAT, [0, 0, 0o2755, 0], true),
            (calls::FCHMODAT, [0, 0, 0o1777, 0], false),
            (calls::MKNODAT, [0, 0, 0o2755, 0], true),
            (calls::OPENAT, [0, 0, create, 0o4755], true),
            (calls::OPENAT, [0, 0, temporary, 0o2755], true),
            (calls::OPENAT, [0, 0, create, 0o755], false),
            // Without O_CREAT the mode is an unused register.
            (calls::OPENAT, [0, 0, 0, 0o6755], false),
            (calls::OPENAT, [0, 0, directory, 0o6755], false),
        ] {
            let expected = if denied { errno(libc::EPERM) } else { ALLOW };
            assert_eq!(answer(root, call, &arguments), expected, "{call:?} {arguments:?}");
        }
        for case in [MEDIATED, FULL] {
            let mediated = built(RuleKind::Standing, case, root.arch);
            for (call, mode) in
                [(calls::FCHMOD, 1), (calls::CHMOD, 1), (calls::FCHMODAT, 2), (calls::FCHMODAT2, 2)]
            {
                if call.number(root.arch).is_none() {
                    continue;
                }
                let asked = |bits| {
                    let mut arguments = [0; 3];
                    arguments[mode] = bits;
                    answer(mediated, call, &arguments)
                };
                assert_eq!(
                    [asked(0o2775), asked(0o4755), asked(0o6755)],
                    [ALLOW, errno(libc::EPERM), errno(libc::EPERM)]
                );
            }
            assert_eq!(answer(mediated, calls::MKNODAT, &[0, 0, 0o2755]), errno(libc::EPERM));
        }
        assert_eq!(answer(root, calls::OPENAT2, &[]), errno(libc::ENOSYS));
        assert_eq!(answer(plain, calls::OPENAT, &[0, 0, create, 0o4755]), ALLOW);
        assert_eq!(answer(plain, calls::OPENAT2, &[]), ALLOW);
    }
}

#[test]
fn truncation_is_held_where_landlock_does_not() {
    let flags = |flags: i32| [0, 0, u64::from(flags.cast_unsigned())];
    for (held, plain) in standing(Case { truncate: true, ..PLAIN }).into_iter().zip(standing(PLAIN)) {
        assert_eq!(answer(held, calls::OPENAT, &flags(libc::O_TRUNC)), errno(libc::EPERM));
        assert_eq!(answer(held, calls::OPENAT, &flags(libc::O_WRONLY | libc::O_TRUNC)), ALLOW);
        assert_eq!(answer(held, calls::TRUNCATE, &[]), errno(libc::EPERM));
        assert_eq!(answer(plain, calls::TRUNCATE, &[]), ALLOW);
    }
}

#[test]
fn upper_halves_of_arguments_do_not_hide_them() {
    let high = 0xdead_beef_0000_0000;
    for program in standing(PLAIN) {
        assert_eq!(answer(program, calls::IOCTL, &[0, high | 0x5412]), errno(libc::EPERM));
        assert_eq!(answer(program, calls::SOCKET, &[high | 2, 1, 0]), errno(libc::EPERM));
        assert_eq!(answer(program, calls::CLONE, &[high | 0x1000_0000]), errno(libc::EPERM));
    }
}

#[test]
fn what_programs_need_stays_allowed() {
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    for program in standing(Case { root: true, ..PLAIN }) {
        for (call, arguments) in [
            (calls::SOCKETPAIR, vec![unix, 1, 0]),
            (calls::SOCKETPAIR, vec![unix, 5, 0]),
            (calls::PRLIMIT64, vec![0, 7]),
            (calls::PERSONALITY, vec![0xffff_ffff]),
            (calls::PERSONALITY, vec![0x4_0000]),
            // The flags of fork(3) and of pthread_create(3).
            (calls::CLONE, vec![0x0120_0011]),
            (calls::CLONE, vec![0x003d_0f00]),
            (calls::EXECVE, vec![]),
            // FICLONE, FS_IOC_GETFLAGS and TCGETS; PR_SET_NAME and PR_SET_PTRACER; TCP_NODELAY.
            (calls::IOCTL, vec![0, 0x4004_9409]),
            (calls::IOCTL, vec![0, 0x8008_6601]),
            (calls::IOCTL, vec![0, 0x5401]),
            (calls::PRCTL, vec![15]),
            (calls::PRCTL, vec![0x5961_6d61]),
            (calls::SETSOCKOPT, vec![0, 6, 1]),
            // F_GETFL, F_SETLK, F_DUPFD_CLOEXEC and F_ADD_SEALS.
            (calls::FCNTL, vec![0, 3]),
            (calls::FCNTL, vec![0, 6]),
            (calls::FCNTL, vec![0, 1030]),
            (calls::FCNTL, vec![0, 1033]),
        ] {
            assert_eq!(answer(program, call, &arguments), ALLOW, "{call:?} {arguments:?}");
        }
        for kind in [2, 3] {
            assert_eq!(answer(program, calls::SOCKETPAIR, &[unix, kind, 0]), errno(libc::EPERM));
        }
    }
    let native = Program::standing(Policy {
        machines_network: false,
        root: true,
        truncate: false,
        tier: Tier::FloorUnmediated,
        neighbours: false,
    });
    let arch = Arch::ALL.into_iter().find(|arch| arch.name() == std::env::consts::ARCH).unwrap();
    for number in
        [libc::SYS_ptrace, libc::SYS_memfd_create, libc::SYS_landlock_create_ruleset, libc::SYS_seccomp]
    {
        assert_eq!(run(native, &Call::new(arch, u32::try_from(number).unwrap(), &[])).0, ALLOW);
    }
}

#[test]
fn a_call_costs_few_instructions() {
    for (Built { program, arch }, kind, case) in every_program() {
        let most = (0..600).map(|number| run(program, &Call::new(arch, number, &[])).1).max().unwrap();
        assert!(most < 120, "{most} instructions, {kind:?}, {case:?}, {arch:?}");
    }
}

#[test]
fn a_call_with_two_answers_is_no_program() {
    let denial = |answer| Denial { call: calls::ACCT, when: &[], answer, reason: "" };
    let both = [denial(Answer::Forbidden), denial(Answer::NoSuchCall)];
    let error = assemble::join(&both, Arch::Aarch64).unwrap_err();
    assert_eq!(error.to_string(), "acct has two answers in one seccomp program");
}

#[test]
fn what_is_told_to_be_denied_is_denied_in_every_case() {
    for case in Case::all() {
        let denials = denials(RuleKind::Standing, case);
        for named in denied_calls() {
            let answer = if named.when == When::AsIfAbsent { Answer::NoSuchCall } else { Answer::Forbidden };
            let holds = |denial: &Denial| {
                let always = denial.when.is_empty() || named.when == When::Sometimes;
                denial.call.name == named.name && denial.answer == answer && always
            };
            assert!(denials.iter().any(holds), "{} in {case:?}", named.name);
        }
    }
}
