//! System calls that are denied: [`table`] is the data, with a reason for each; this file makes programs of it.
//!
//! Everything else is allowed, since compilers, interpreters and test suites use everything else. seccompiler turns rules
//! into BPF; this file joins what it makes into one program, because each attached program costs a fixed price at every
//! start and at every call:
//!
//! 1. A foreign architecture (`int 0x80`) kills: its numbers mean other calls.
//! 2. A number from `0x4000_0000` on, the x32 table, does not exist (`ENOSYS`).
//! 3. The rules, sorted by number, in blocks of [`BLOCK`] calls that are jumped over as a whole. The kernel walks the
//!    program once for every call number when it is attached (to find what is always allowed), so this is most of the cost
//!    of attaching.
//!
//! Each call is in exactly one place of a program, which is what makes joining sound; [`join`] checks it.

mod denied;
pub mod table;

use std::collections::BTreeMap;

use ipc::confinement::Tier;
use ipc::rights::Network;
use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::platform::{Platform, TRUNCATE};
use table::{Answer, Denial, Test};

/// How many calls a block has.
const BLOCK: usize = 12;

/// The first number of the x32 table (`__X32_SYSCALL_BIT`); no other architecture has calls there.
const X32_FIRST: u32 = 0x4000_0000;

const LOAD_NUMBER: sock_filter = statement(code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), 0);

/// What a program has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The network.
    pub net: Network,
    /// Whether it runs as uid 0.
    pub root: bool,
    /// Whether truncation has to be held here, since Landlock does not.
    pub truncate: bool,
    /// What else holds.
    pub tier: Tier,
}

impl Policy {
    /// The policy of rights on a platform.
    pub fn of(net: Network, platform: Platform, tier: Tier) -> Self {
        Self { net, root: platform.root, truncate: (1..TRUNCATE).contains(&platform.abi), tier }
    }
}

/// A compiled program, ready to be attached.
#[derive(Clone, Debug)]
pub struct Program {
    instructions: BpfProgram,
    rules: u32,
}

/// Why a program cannot be made or attached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SeccompError {
    #[error("cannot compile the seccomp rules: {0}")]
    Compile(#[source] BackendError),
    #[error("system call {0} has two answers in one seccomp program")]
    TwoAnswers(i64),
    #[error("seccomp rules are not written for this architecture")]
    Architecture,
    #[error("cannot attach the seccomp program: {0}")]
    Attach(#[source] seccompiler::Error),
}

impl From<BackendError> for SeccompError {
    fn from(error: BackendError) -> Self {
        Self::Compile(error)
    }
}

impl Program {
    /// The program that every worker and every confined program runs under.
    pub fn standing(policy: Policy) -> Result<Self, SeccompError> {
        join(&table::standing(policy))
    }

    /// The program that is stacked on it for a command that said it only reads.
    pub fn read_only(policy: Policy) -> Result<Self, SeccompError> {
        join(&table::read_only(policy))
    }

    /// The program that is stacked on it, where it is one of a network, for a command that said it needs none.
    pub fn offline(policy: Policy) -> Result<Self, SeccompError> {
        join(&table::offline(policy))
    }

    /// The program for a worker that may run nothing.
    pub fn no_execution() -> Result<Self, SeccompError> {
        join(&table::no_execution())
    }

    /// How many rules it has.
    pub fn rules(&self) -> u32 {
        self.rules
    }

    /// Attaches it to this thread, for good. Async-signal-safe where it succeeds.
    pub fn attach(&self) -> Result<(), SeccompError> {
        seccompiler::apply_filter(&self.instructions).map_err(SeccompError::Attach)
    }
}

/// Joins denials into one program; see the module.
fn join(denials: &[Denial]) -> Result<Program, SeccompError> {
    let mut calls: BTreeMap<i64, (Answer, Vec<&[Test]>)> = BTreeMap::new();
    for denial in denials {
        let (answer, when) = calls.entry(denial.number).or_insert((denial.answer, vec![]));
        if *answer != denial.answer {
            return Err(SeccompError::TwoAnswers(denial.number));
        }
        when.push(denial.when);
    }
    let arch: TargetArch =
        std::env::consts::ARCH.try_into().map_err(|_: BackendError| SeccompError::Architecture)?;
    let calls: Vec<_> = calls.into_iter().collect();
    let mut instructions = prologue(arch)?;
    for block in calls.chunks(BLOCK) {
        let mut body = BpfProgram::new();
        for (number, (answer, when)) in block {
            if when.iter().any(|tests| tests.is_empty()) {
                body.extend(always(*number, *answer));
            } else {
                body.extend(chain(*number, *answer, when, arch)?);
            }
        }
        // Numbers are sorted: what is in this range and not in this block is in none.
        body.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
        let last = block.last().map_or(0, |(number, _)| *number);
        instructions.extend(skip_beyond(last, body.len()));
        instructions.extend(body);
    }
    instructions.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    let rules = u32::try_from(denials.len()).unwrap_or(u32::MAX);
    Ok(Program { instructions, rules })
}

const RETURN: u16 = code(libc::BPF_RET | libc::BPF_K);

/// An operation code of classic BPF; they all fit.
#[allow(clippy::cast_possible_truncation, reason = "the codes of linux/filter.h are below 0x100")]
const fn code(code: u32) -> u16 {
    code as u16
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// Architecture, then the x32 table; leaves the number loaded.
fn prologue(arch: TargetArch) -> Result<BpfProgram, SeccompError> {
    let mut program = empty(arch)?;
    program.truncate(ARCH_CHECK);
    program.push(LOAD_NUMBER);
    let at_least = code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
    program.push(sock_filter { code: at_least, jt: 0, jf: 1, k: X32_FIRST });
    program.push(statement(RETURN, libc::SECCOMP_RET_ERRNO | Answer::NoSuchCall.errno()));
    Ok(program)
}

/// Load, compare, kill: how seccompiler begins every program.
const ARCH_CHECK: usize = 3;

fn empty(arch: TargetArch) -> Result<BpfProgram, SeccompError> {
    let filter = SeccompFilter::new(
        BTreeMap::new(),
        SeccompAction::Allow,
        SeccompAction::Errno(Answer::Forbidden.errno()),
        arch,
    )?;
    Ok(filter.try_into()?)
}

/// Jumps over `length` instructions if the number is greater than `last`. A conditional jump reaches only 255.
fn skip_beyond(last: i64, length: usize) -> [sock_filter; 2] {
    let greater = code(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K);
    let always = code(libc::BPF_JMP | libc::BPF_JA);
    [
        sock_filter { code: greater, jt: 0, jf: 1, k: u32::try_from(last).unwrap_or(u32::MAX) },
        statement(always, u32::try_from(length).unwrap_or(u32::MAX)),
    ]
}

/// The instructions of one call that is always denied: two, where seccompiler makes five.
fn always(number: i64, answer: Answer) -> [sock_filter; 2] {
    let equal = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
    [
        sock_filter { code: equal, jt: 0, jf: 1, k: u32::try_from(number).unwrap_or(u32::MAX) },
        statement(RETURN, libc::SECCOMP_RET_ERRNO | answer.errno()),
    ]
}

/// The instructions of one call that is denied by its arguments, without what seccompiler puts around them: the architecture check, the loading of the
/// number, and the final answer.
fn chain(
    number: i64,
    answer: Answer,
    when: &[&[Test]],
    arch: TargetArch,
) -> Result<BpfProgram, SeccompError> {
    let always = when.iter().any(|tests| tests.is_empty());
    let rules =
        if always { vec![] } else { when.iter().map(|tests| rule(tests)).collect::<Result<_, _>>()? };
    let filter = SeccompFilter::new(
        BTreeMap::from([(number, rules)]),
        SeccompAction::Allow,
        SeccompAction::Errno(answer.errno()),
        arch,
    )?;
    let mut program: BpfProgram = filter.try_into()?;
    program.pop();
    program.drain(..=ARCH_CHECK);
    Ok(program)
}

fn rule(tests: &[Test]) -> Result<SeccompRule, SeccompError> {
    let condition = |test: &Test| {
        let (argument, operator, value) = match *test {
            Test::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
            Test::IsNot(argument, value) => (argument, SeccompCmpOp::Ne, value),
            Test::Masked(argument, mask, value) => (argument, SeccompCmpOp::MaskedEq(mask.into()), value),
        };
        // The kernel reads these arguments as 32-bit integers and ignores the upper half of the register.
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
    };
    let conditions = tests.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

#[cfg(test)]
mod tests;
