//! Assembly of the instructions for all calls into one program.
//!
//! When a program is attached, the kernel walks it once for every call number, to find the calls that are always
//! allowed. So numbers are found by binary search, and calls that are always mediated share one answer in each leaf.

use std::collections::BTreeMap;

use nix::libc::{self, c_int, sock_filter};

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
// Offsets of the halves of the fifth argument (`struct seccomp_data`); on both architectures the low one is first.
pub(super) const ADDRESS_LOW: u32 = 16 + 4 * 8;
pub(super) const ADDRESS_HIGH: u32 = ADDRESS_LOW + 4;
/// Offset of the first argument's lower half, which has flags or a family.
pub(super) const FLAGS: u32 = 16;
// Offsets of the second argument, whose low half is a command, a type or a level; and of the third, a name.
pub(super) const COMMAND: u32 = 16 + 8;
pub(super) const NAME: u32 = 16 + 2 * 8;

/// Architecture of native calls, as seccomp reports it: `AUDIT_ARCH_X86_64`, `AUDIT_ARCH_AARCH64` (linux/audit.h).
pub(super) const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };

const LEAF: usize = 8;

type FilteredCall<'a> = (u32, &'a [sock_filter]);

pub(super) fn program(by_number: &BTreeMap<u32, Vec<sock_filter>>) -> Vec<sock_filter> {
    let calls: Vec<FilteredCall<'_>> =
        by_number.iter().map(|(number, body)| (*number, body.as_slice())).collect();
    let mut program =
        vec![load(ARCHITECTURE), equal(NATIVE, 1, 0), answer(libc::SECCOMP_RET_KILL_PROCESS), load(NUMBER)];
    add_tree(&mut program, &calls);
    program
}

/// Appends the instructions that find a call by its number, by binary search down to the leaves. A conditional jump
/// skips at most 255 instructions, so an unconditional jump follows it.
fn add_tree(program: &mut Vec<sock_filter>, calls: &[FilteredCall<'_>]) {
    if calls.len() <= LEAF {
        return add_leaf(program, calls);
    }
    let (low, high) = calls.split_at(calls.len() / 2);
    let last = low.last().map_or(0, |(number, _)| *number);
    program.push(statement(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 1, last));
    let skip = program.len();
    program.push(jump(0));
    add_tree(program, low);
    program[skip] = jump(program.len() - skip - 1);
    add_tree(program, high);
}

fn add_leaf(program: &mut Vec<sock_filter>, calls: &[FilteredCall<'_>]) {
    let is_always = |body: &[sock_filter]| body.first() == Some(&answer(libc::SECCOMP_RET_USER_NOTIF));
    let (always, by_arguments): (Vec<_>, Vec<_>) =
        calls.iter().copied().partition(|(_, body)| is_always(body));
    for (number, body) in by_arguments {
        program.extend([equal(number, 1, 0), jump(body.len() + 1)]);
        program.extend(body);
        program.push(answer(libc::SECCOMP_RET_ALLOW));
    }
    for (index, (number, _)) in always.iter().enumerate() {
        // Skips the remaining calls and the first answer.
        program.push(equal(*number, u8::try_from(always.len() - index).unwrap_or(u8::MAX), 0));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    if !always.is_empty() {
        program.push(answer(libc::SECCOMP_RET_USER_NOTIF));
    }
}

pub(in crate::mediate) fn jump(over: usize) -> sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JA, 0, 0, u32::try_from(over).unwrap_or(u32::MAX))
}

pub(super) fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

pub(super) fn and(bits: c_int) -> sock_filter {
    statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, bits.cast_unsigned())
}

/// Returns an instruction that skips `then` instructions if the loaded value is `value`, else `otherwise` instructions.
pub(in crate::mediate) fn equal(value: u32, then: u8, otherwise: u8) -> sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, otherwise, value)
}

pub(in crate::mediate) fn answer(action: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

#[expect(clippy::cast_possible_truncation, reason = "the codes of linux/filter.h are below 0x100")]
pub(in crate::mediate) fn statement(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}
