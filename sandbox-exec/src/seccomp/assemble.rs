//! Makes one program of many rules; the build script's part, which the library compiles for its tests only.
//!
//! seccompiler turns rules into BPF; this file joins what it makes into one program, because each attached program costs a
//! fixed price at every start and at every call:
//!
//! 1. A foreign architecture (`int 0x80`) kills: its numbers mean other calls.
//! 2. A number beyond the newest that was looked at does not exist (`ENOSYS`), the x32 table from `0x4000_0000` on
//!    included.
//! 3. The rules, sorted by number, in blocks of [`BLOCK`] calls that are jumped over as a whole. The kernel walks the
//!    program once for every call number when it is attached (to find what is always allowed), so this is most of the cost
//!    of attaching.
//!
//! Each call is in exactly one place of a program, which is what makes joining sound; [`join`] checks it.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::rules::{Answer, Arch, Denial, Test, calls};

/// How many calls a block has.
const BLOCK: usize = 12;

/// Operations of classic BPF (`linux/bpf_common.h`).
const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER: u16 = 0x25;
const RETURN: u16 = 0x06;

/// Answers (`linux/seccomp.h`).
const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_ALLOW: u32 = 0x7fff_0000;

/// Load, compare, kill: how seccompiler begins every program.
const ARCH_CHECK: usize = 3;

/// Why a program cannot be made.
#[derive(Debug)]
pub enum AssembleError {
    /// seccompiler refused.
    Compile(BackendError),
    /// One call has two answers.
    TwoAnswers(&'static str),
    /// A number or a length is too large for the instruction that it belongs in.
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

/// The rules of one call.
struct Rules {
    answer: Answer,
    when: Vec<&'static [Test]>,
}

/// Joins the denials that an architecture has calls for into one program, and counts them; see the module.
pub fn join(denials: &[Denial], arch: Arch) -> Result<(BpfProgram, u32), AssembleError> {
    let mut by_number: BTreeMap<u32, Rules> = BTreeMap::new();
    let mut count = 0;
    for Denial { call, when, answer, .. } in denials {
        let Some(number) = call.number(arch) else { continue };
        let rules = by_number.entry(number).or_insert(Rules { answer: *answer, when: vec![] });
        if rules.answer != *answer {
            return Err(AssembleError::TwoAnswers(call.name));
        }
        rules.when.push(when);
        count += 1;
    }
    let by_number: Vec<_> = by_number.into_iter().collect();
    let mut program = prologue(arch)?;
    for block in by_number.chunks(BLOCK) {
        program.extend(assemble_block(block, arch)?);
    }
    program.push(statement(RETURN, RETURN_ALLOW));
    Ok((program, count))
}

/// The calls of a block, and the jump over them for the numbers beyond.
fn assemble_block(block: &[(u32, Rules)], arch: Arch) -> Result<BpfProgram, AssembleError> {
    let mut body = BpfProgram::new();
    for (number, rules) in block {
        if rules.when.iter().any(|tests| tests.is_empty()) {
            body.extend(always(*number, rules.answer));
        } else {
            body.extend(chain(*number, rules, arch)?);
        }
    }
    // Numbers are sorted: what is in this range and not in this block is in none.
    body.push(statement(RETURN, RETURN_ALLOW));
    let last = block.last().map_or(0, |(number, _)| *number);
    let mut whole = skip_beyond(last, body.len())?.to_vec();
    whole.extend(body);
    Ok(whole)
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// The architecture, then the numbers that nobody has looked at; leaves the number loaded.
fn prologue(arch: Arch) -> Result<BpfProgram, AssembleError> {
    let mut program = empty(target(arch))?;
    program.truncate(ARCH_CHECK);
    program.push(statement(LOAD_WORD, 0));
    program.push(sock_filter { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: calls::NEWEST });
    program.push(statement(RETURN, RETURN_ERRNO | Answer::NoSuchCall.errno()));
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

/// Jumps over `length` instructions if the number is greater than `last`. A conditional jump reaches only 255.
fn skip_beyond(last: u32, length: usize) -> Result<[sock_filter; 2], AssembleError> {
    let length = u32::try_from(length).map_err(|_| AssembleError::TooLarge)?;
    Ok([sock_filter { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: last }, statement(JUMP, length)])
}

/// The instructions of one call that is always denied: two, where seccompiler makes five.
fn always(number: u32, answer: Answer) -> [sock_filter; 2] {
    [
        sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: number },
        statement(RETURN, RETURN_ERRNO | answer.errno()),
    ]
}

/// The instructions of one call that is denied by its arguments, without what seccompiler puts around them: the
/// architecture check, the loading of the number, and the final answer.
fn chain(number: u32, rules: &Rules, arch: Arch) -> Result<BpfProgram, AssembleError> {
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
