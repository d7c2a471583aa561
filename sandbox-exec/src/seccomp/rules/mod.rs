//! Rules of denied system calls with reasons, and the choice of rules for a start.
//!
//! A denied call fails with `ENOSYS` if libraries then fall back to an allowed call, else with `EPERM`. Conditions
//! compare the lower 32 bits of an argument, since the kernel reads no more of these arguments.
//!
//! This module names no other crate, since the build script compiles it, too.

mod always;
mod arguments;
pub mod calls;
pub mod constants;
mod sockets;

use Answer::Forbidden;
use calls::Call;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Error `ENOSYS`, as on a kernel that does not have the call.
    NoSuchCall,
    Forbidden,
}

impl Answer {
    pub const fn errno(self) -> u32 {
        match self {
            Self::NoSuchCall => constants::ENOSYS,
            Self::Forbidden => constants::EPERM,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Is(u8, u32),
    IsNot(u8, u32),
    /// True if the argument of the first field's index, masked by the second field, equals the third.
    Masked(u8, u32, u32),
}

impl Test {
    /// True if the arguments pass the test. Only the lower 32 bits of an argument count.
    pub fn holds(self, arguments: &[u64; 6]) -> bool {
        let argument = |index: u8| arguments[usize::from(index)] & 0xffff_ffff;
        match self {
            Self::Is(index, value) => argument(index) == u64::from(value),
            Self::IsNot(index, value) => argument(index) != u64::from(value),
            Self::Masked(index, mask, value) => argument(index) & u64::from(mask) == u64::from(value),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Denial {
    pub call: Call,
    pub when: &'static [Test],
    pub answer: Answer,
    pub reason: &'static str,
}

impl Denial {
    pub fn holds(&self, arguments: &[u64; 6]) -> bool {
        self.when.iter().all(|test| test.holds(arguments))
    }
}

struct Group {
    reason: &'static str,
    answer: Answer,
    calls: &'static [Call],
}

struct Conditional {
    reason: &'static str,
    call: Call,
    /// Lists of tests. The call is denied if all tests of one list pass.
    any_of: &'static [&'static [Test]],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    Standing,
    /// Additional denials for a command that only reads.
    ReadOnly,
    /// Additional denials for a command that declared that it needs no network, if its worker has one.
    Offline,
    NoExecution,
    /// Additional denials for a command that only reads, but was granted the network.
    ReadOnlyOnline,
}

#[expect(clippy::struct_excessive_bools, reason = "every combination is a policy of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Case {
    pub full: bool,
    pub mediated: bool,
    pub network: bool,
    pub root: bool,
    pub truncate: bool,
    pub neighbours: bool,
}

impl RuleKind {
    pub const ALL: [Self; 5] =
        [Self::Standing, Self::ReadOnly, Self::Offline, Self::NoExecution, Self::ReadOnlyOnline];
}

impl Case {
    pub const COUNT: usize = 64;

    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(|bits| Self {
            full: bits & 1 != 0,
            network: bits & 2 != 0,
            root: bits & 4 != 0,
            truncate: bits & 8 != 0,
            mediated: bits & 16 != 0,
            neighbours: bits & 32 != 0,
        })
    }

    fn has_mediator(self) -> bool {
        self.full || self.mediated
    }

    fn is_on_host_network(self) -> bool {
        !self.full || self.network
    }

    pub fn index(self) -> usize {
        let bit = |set: bool, value| if set { value } else { 0 };
        bit(self.full, 1)
            | bit(self.network, 2)
            | bit(self.root, 4)
            | bit(self.truncate, 8)
            | bit(self.mediated, 16)
            | bit(self.neighbours, 32)
    }
}

pub fn denials(kind: RuleKind, case: Case) -> Vec<Denial> {
    match kind {
        RuleKind::Standing => standing(case),
        RuleKind::ReadOnly => read_only(case),
        RuleKind::ReadOnlyOnline => read_only_online(case),
        RuleKind::Offline if case.has_mediator() => by_arguments(sockets::OFFLINE).collect(),
        RuleKind::Offline => standing(Case { network: false, ..case }),
        RuleKind::NoExecution => always(always::NO_EXECUTION).collect(),
    }
}

fn standing(case: Case) -> Vec<Denial> {
    let mut all: Vec<_> = always(always::ALWAYS).chain(by_arguments(arguments::ALWAYS)).collect();
    if case.has_mediator() {
        all.extend(by_arguments(sockets::MEDIATED));
    } else {
        let net = if case.network { sockets::NET_ON } else { sockets::NET_OFF };
        all.extend(by_arguments(sockets::UNMEDIATED).chain(by_arguments(net)).chain(always(always::OBJECTS)));
        all.extend(by_arguments(arguments::UNMEDIATED));
    }
    if case.is_on_host_network() {
        all.extend(on_host_network(case));
    }
    if !case.full {
        all.extend(always(always::QUEUES));
    }
    if case.root {
        all.extend(always(always::AS_ROOT).chain(by_arguments(arguments::AS_ROOT)));
    }
    if case.truncate {
        all.extend(truncation());
    }
    all
}

fn on_host_network(case: Case) -> impl Iterator<Item = Denial> {
    let groups = if case.network && case.neighbours { &[] } else { sockets::GROUPS };
    by_arguments(sockets::HOST_NETWORK).chain(by_arguments(groups))
}

fn read_only(case: Case) -> Vec<Denial> {
    let sockets = by_arguments(sockets::READ_ONLY).chain(always(always::READ_ONLY_SOCKETS));
    reading(case).into_iter().chain(sockets).collect()
}

fn read_only_online(case: Case) -> Vec<Denial> {
    reading(case).into_iter().chain(by_arguments(sockets::READ_ONLY_ONLINE)).collect()
}

fn reading(case: Case) -> Vec<Denial> {
    let mut all: Vec<_> = always(always::READ_ONLY).chain(by_arguments(arguments::READ_ONLY)).collect();
    // Not in the standing program. Creating a segment or a queue is a change.
    if case.has_mediator() {
        all.extend(by_arguments(sockets::UNMEDIATED).chain(always(always::OBJECTS)));
    }
    if case.full {
        all.extend(always(always::QUEUES));
    }
    if case.truncate {
        all.extend(truncation());
    }
    all
}

fn truncation() -> impl Iterator<Item = Denial> {
    always(always::TRUNCATION).chain(by_arguments(arguments::TRUNCATION))
}

fn always(groups: &'static [Group]) -> impl Iterator<Item = Denial> {
    groups.iter().flat_map(|&Group { reason, answer, calls }| {
        calls.iter().map(move |&call| Denial { call, when: &[], answer, reason })
    })
}

fn by_arguments(conditionals: &'static [Conditional]) -> impl Iterator<Item = Denial> {
    conditionals.iter().flat_map(|&Conditional { reason, call, any_of }| {
        any_of.iter().map(move |&when| Denial { call, when, answer: Forbidden, reason })
    })
}
