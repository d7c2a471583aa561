//! Joins many rules into one program, for the build script and tests.
//!
//! seccompiler turns rules into BPF. Its programs are joined, because each attached program costs a fixed price at
//! every start and at every call:
//!
//! 1. A foreign architecture (`int 0x80`) kills: its numbers mean other calls.
//! 2. A number beyond the newest examined call does not exist (`ENOSYS`), the x32 table from `0x4000_0000` on included;
//!    except [`SKIPPED`], which is no call.
//! 3. The rules, sorted by number, in a tree whose leaves have [`LEAF`] calls. When a program is attached the kernel
//!    translates every instruction (a fifth of a microsecond each), and walks the program once for every call number to
//!    find the calls that are always allowed. So the program is as short as possible: calls that are always denied
//!    share their answer, and values and bits of one argument are one comparison each, or one for all the bits.
//!
//! Each call is in exactly one place of a program, which makes joining sound; [`join`] checks it.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::rules::{Answer, Arch, Denial, Test, calls};

const LEAF: usize = 8;

// Operations of classic BPF (`linux/bpf_common.h`).
const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER: u16 = 0x25;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

// Answers (`linux/seccomp.h`).
const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_ALLOW: u32 = 0x7fff_0000;

/// Call number by which a tracer makes the kernel skip a call and return the tracer's result (ptrace(2),
/// `seccomp_filter.rst`). The filter allows this number, since an answer of the filter would replace the tracer's. To a
/// program that calls it itself, the kernel answers ENOSYS.
const SKIPPED: u32 = u32::MAX;

/// Number of instructions at the start of seccompiler's programs that check the architecture: load, compare, kill.
const ARCH_CHECK: usize = 3;

#[derive(Debug)]
pub enum AssembleError {
    Compile(BackendError),
    TwoAnswers(&'static str),
    TooLarge,
}

impl std::fmt::Display for AssembleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compile(error) => write!(f, "cannot compile the seccomp rules: {error}"),
            Self::TwoAnswers(call) => write!(f, "{call} has two answers in one seccomp program"),
            Self::TooLarge => f.write_str("a seccomp program is too long"),
        }
    }
}

impl std::error::Error for AssembleError {}

impl From<BackendError> for AssembleError {
    fn from(error: BackendError) -> Self {
        Self::Compile(error)
    }
}

struct RuleList {
    answer: Answer,
    when: Vec<&'static [Test]>,
}

/// Joins the denials of an architecture into one program. Returns it, and the number of denials.
pub fn join(denials: &[Denial], arch: Arch) -> Result<(BpfProgram, u32), AssembleError> {
    let mut by_number: BTreeMap<u32, RuleList> = BTreeMap::new();
    let mut count = 0;
    for Denial { call, when, answer, .. } in denials {
        let Some(number) = call.number(arch) else { continue };
        let rules = by_number.entry(number).or_insert(RuleList { answer: *answer, when: vec![] });
        if rules.answer != *answer {
            return Err(AssembleError::TwoAnswers(call.name));
        }
        rules.when.push(when);
        count += 1;
    }
    let by_number: Vec<_> = by_number.into_iter().collect();
    let mut program = prologue(arch)?;
    program.extend(tree(&by_number, arch)?);
    Ok((program, count))
}

/// Returns the instructions that find a call by its number, by binary search. A conditional jump skips at most 255
/// instructions, so an unconditional jump follows it.
fn tree(calls: &[(u32, RuleList)], arch: Arch) -> Result<BpfProgram, AssembleError> {
    if calls.len() <= LEAF {
        return leaf(calls, arch);
    }
    let (low, high) = calls.split_at(calls.len() / 2);
    let last = low.last().map_or(0, |(number, _)| *number);
    let (low, high) = (tree(low, arch)?, tree(high, arch)?);
    let skip = u32::try_from(low.len()).map_err(|_| AssembleError::TooLarge)?;
    let mut program = vec![jump_if(JUMP_IF_GREATER, last, 0, 1), statement(JUMP, skip)];
    program.extend(low);
    program.extend(high);
    Ok(program)
}

/// Returns the instructions of a leaf of the tree. Calls that are denied by their arguments come first; calls that are
/// always denied share an answer.
fn leaf(calls: &[(u32, RuleList)], arch: Arch) -> Result<BpfProgram, AssembleError> {
    let is_always = |rules: &RuleList| rules.when.iter().any(|tests| tests.is_empty());
    let mut program = BpfProgram::new();
    for (number, rules) in calls.iter().filter(|(_, rules)| !is_always(rules)) {
        program.extend(match same_argument(&rules.when) {
            Some((argument, comparisons)) => any_of(*number, argument, &comparisons, rules.answer)?,
            None => chain(*number, rules, arch)?,
        });
    }
    let always: Vec<_> = calls.iter().filter(|(_, rules)| is_always(rules)).collect();
    for (index, (number, rules)) in always.iter().enumerate() {
        // Skips the remaining calls, the first answer, and for the other errno that one too.
        let distance = always.len() - index + usize::from(rules.answer == Answer::NoSuchCall);
        program.push(jump_if(JUMP_IF_EQUAL, *number, offset(distance)?, 0));
    }
    program.push(statement(RETURN, RETURN_ALLOW));
    if !always.is_empty() {
        program.push(errno(Answer::Forbidden));
        program.push(errno(Answer::NoSuchCall));
    }
    Ok(program)
}

type Comparison = (u16, u32);

/// Returns an argument and comparisons, if all rules of a call compare this one argument with values or test its bits.
/// All bits are tested by one comparison.
fn same_argument(when: &[&[Test]]) -> Option<(u8, Vec<Comparison>)> {
    let (mut of, mut bits, mut comparisons) = (None, 0, vec![]);
    for tests in when {
        let argument = match **tests {
            [Test::Is(argument, value)] => {
                comparisons.push((JUMP_IF_EQUAL, value));
                argument
            }
            [Test::Masked(argument, mask, value)] if mask == value && mask.is_power_of_two() => {
                bits |= mask;
                argument
            }
            _ => return None,
        };
        if *of.get_or_insert(argument) != argument {
            return None;
        }
    }
    if bits != 0 {
        comparisons.push((JUMP_IF_ANY_BIT, bits));
    }
    of.map(|argument| (argument, comparisons))
}

fn any_of(
    number: u32,
    argument: u8,
    any: &[Comparison],
    answer: Answer,
) -> Result<BpfProgram, AssembleError> {
    let mut program =
        vec![jump_if(JUMP_IF_EQUAL, number, 0, offset(any.len() + 3)?), load_argument(argument)];
    for (index, (jump, operand)) in any.iter().enumerate() {
        program.push(jump_if(*jump, *operand, offset(any.len() - index)?, 0));
    }
    program.extend([statement(RETURN, RETURN_ALLOW), errno(answer)]);
    Ok(program)
}

fn load_argument(index: u8) -> sock_filter {
    statement(LOAD_WORD, 16 + 8 * u32::from(index))
}

fn offset(distance: usize) -> Result<u8, AssembleError> {
    u8::try_from(distance).map_err(|_| AssembleError::TooLarge)
}

const fn jump_if(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const fn errno(answer: Answer) -> sock_filter {
    statement(RETURN, RETURN_ERRNO | answer.errno())
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// Returns the instructions that check the architecture and deny unexamined numbers. The number stays loaded.
fn prologue(arch: Arch) -> Result<BpfProgram, AssembleError> {
    let mut program = empty(target(arch))?;
    program.truncate(ARCH_CHECK);
    program.push(statement(LOAD_WORD, 0));
    program.push(jump_if(JUMP_IF_GREATER, calls::NEWEST, 0, 3));
    program.push(jump_if(JUMP_IF_EQUAL, SKIPPED, 0, 1));
    program.push(statement(RETURN, RETURN_ALLOW));
    program.push(errno(Answer::NoSuchCall));
    Ok(program)
}

fn target(arch: Arch) -> TargetArch {
    match arch {
        Arch::X86_64 => TargetArch::x86_64,
        Arch::Aarch64 => TargetArch::aarch64,
    }
}

fn empty(arch: TargetArch) -> Result<BpfProgram, AssembleError> {
    let errno = SeccompAction::Errno(Answer::Forbidden.errno());
    Ok(SeccompFilter::new(BTreeMap::new(), SeccompAction::Allow, errno, arch)?.try_into()?)
}

/// Returns the instructions for a call that is denied by its arguments: those of seccompiler without its check of the
/// architecture, its loading of the number, and its last answer.
fn chain(number: u32, rules: &RuleList, arch: Arch) -> Result<BpfProgram, AssembleError> {
    let chain = rules.when.iter().map(|tests| rule(tests)).collect::<Result<_, _>>()?;
    let filter = SeccompFilter::new(
        BTreeMap::from([(i64::from(number), chain)]),
        SeccompAction::Allow,
        SeccompAction::Errno(rules.answer.errno()),
        target(arch),
    )?;
    let mut program: BpfProgram = filter.try_into()?;
    program.pop();
    program.drain(..=ARCH_CHECK);
    Ok(program)
}

fn rule(tests: &[Test]) -> Result<SeccompRule, AssembleError> {
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
