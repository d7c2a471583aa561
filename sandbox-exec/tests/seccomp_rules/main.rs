//! Attacks on every seccomp rule, as root and as a plain user. Without the filter the kernel itself checks the call;
//! with the filter, the filter must deny it. The test fails for a rule that no attack tests alone, and for an attack
//! that tests no rule.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod rows;

use std::fs::File;
use std::io::{Read, Write};

use ipc::confinement::Tier;
use nix::errno::Errno;
use nix::libc;
#[cfg(target_arch = "x86_64")]
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, getuid, pipe, setgroups, setresgid, setresuid, setsid};
use sandbox_exec::seccomp::rules::{self, Arch, Case, Denial, RuleKind};
use sandbox_exec::seccomp::{Policy, Program};

use rows::{OWN_PID, Row};

const PLAIN_UID: u32 = 12345;

fn arch() -> Arch {
    Arch::ALL.into_iter().find(|arch| arch.name() == std::env::consts::ARCH).unwrap()
}

fn policy(case: Case) -> Policy {
    Policy {
        machines_network: case.network,
        root: case.root,
        truncate: case.truncate,
        neighbours: case.neighbours,
        tier: match (case.full, case.mediated) {
            (true, _) => Tier::Full,
            (false, true) => Tier::Floor,
            (false, false) => Tier::FloorUnmediated,
        },
    }
}

fn program(kind: RuleKind, case: Case) -> Program {
    let policy = policy(case);
    match kind {
        RuleKind::Standing => Program::standing(policy),
        RuleKind::ReadOnly => Program::read_only(policy),
        RuleKind::Offline => Program::offline(policy),
        RuleKind::NoExecution => Program::no_execution(),
        RuleKind::ReadOnlyOnline => Program::read_only_online(policy),
    }
}

fn programs() -> Vec<(String, Program, Vec<Denial>)> {
    let mut all: Vec<(String, Program, Vec<Denial>)> = vec![];
    for kind in RuleKind::ALL {
        for case in Case::all() {
            let program = program(kind, case);
            let mut denials = rules::denials(kind, case);
            denials.retain(|denial| denial.call.number(arch()).is_some());
            let debug = format!("{program:?}");
            if !all.iter().any(|(_, other, _)| format!("{other:?}") == debug) {
                all.push((format!("{kind:?}, {case:?}"), program, denials));
            }
        }
    }
    all
}

fn rows() -> Vec<Row> {
    let mut rows = rows::all();
    rows.retain(|row| row.call.number(arch()).is_some());
    rows
}

fn users() -> Vec<Option<u32>> {
    if getuid().is_root() {
        return vec![None, Some(PLAIN_UID)];
    }
    eprintln!("skipped: not on this machine: root, who sees the rules on what is root's");
    vec![None]
}

/// Runs `act` in a child process, as `user` if given; returns its output and status. `act` may only make system calls,
/// since the child is a copy of one of several threads.
fn in_child(user: Option<u32>, act: impl Fn(&mut dyn FnMut(&[u8]))) -> (Vec<u8>, WaitStatus) {
    let (output, input) = pipe().unwrap();
    // SAFETY: the child makes system calls only, and never returns.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let _session = setsid();
            let mut input = File::from(input);
            if user.is_none_or(|uid| become_user(uid).is_ok()) {
                act(&mut |bytes| drop(input.write_all(bytes)));
            }
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(input);
            let mut bytes = vec![];
            File::from(output).read_to_end(&mut bytes).unwrap();
            (bytes, waitpid(child, None).unwrap())
        }
    }
}

fn become_user(uid: u32) -> nix::Result<()> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)
}

fn make(row: &Row) -> i32 {
    let Some(number) = row.call.number(arch()) else { return i32::MAX };
    let own_pid = u64::from(std::process::id());
    let arguments = row.arguments.map(|value| if value == OWN_PID { own_pid } else { value });
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the table's arguments name no memory, and nothing else that could be changed.
    let result = unsafe { libc::syscall(number.into(), first, second, third, fourth, fifth, sixth) };
    if result == -1 { Errno::last_raw() } else { 0 }
}

fn errnos(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())).collect()
}

fn filter_errno(denial: &Denial) -> i32 {
    denial.answer.errno().cast_signed()
}

fn hit<'a>(denials: &'a [Denial], row: &Row) -> Vec<&'a Denial> {
    let arguments = row.arguments.map(|value| if value == OWN_PID { 1 } else { value });
    denials.iter().filter(|denial| denial.call == row.call && denial.holds(&arguments)).collect()
}

#[test]
fn every_rule_is_attacked_alone_and_every_row_attacks_one() {
    let (rows, programs) = (rows(), programs());
    for (name, _, denials) in &programs {
        for denial in denials {
            // Two tables may have the same rule: it is one.
            let alone = |row: &&Row| {
                let hit = hit(denials, row);
                !hit.is_empty()
                    && hit.iter().all(|other| other.call == denial.call && other.when == denial.when)
            };
            assert!(rows.iter().any(|row| alone(&row)), "nothing attacks {denial:?} alone ({name})");
        }
    }
    for row in &rows {
        assert!(
            programs.iter().any(|(.., denials)| !hit(denials, row).is_empty()),
            "{row:?} attacks nothing"
        );
    }
}

#[test]
fn without_the_filter_every_attack_reaches_the_kernel() {
    let programs = programs();
    for user in users() {
        let root = user.is_none() && getuid().is_root();
        for row in rows().iter().filter(|row| root || !row.for_root) {
            let (bytes, status) = in_child(user, |say| say(&make(row).to_le_bytes()));
            let [errno] = errnos(&bytes)[..] else { panic!("{row:?} as {user:?}: {status:?}") };
            for denial in programs.iter().flat_map(|(.., denials)| hit(denials, row)) {
                assert_ne!(errno, filter_errno(denial), "{row:?} as {user:?}: nothing is seen of the filter");
            }
        }
    }
}

#[test]
fn with_the_filter_every_attack_gets_its_answer() {
    let rows = rows();
    let mut attacks = 0;
    for (name, program, denials) in programs() {
        let denied: Vec<_> = rows
            .iter()
            .filter_map(|row| hit(&denials, row).first().map(|denial| (*row, filter_errno(denial))))
            .collect();
        for user in users() {
            let (bytes, status) = in_child(user, |say| {
                if program.attach().is_ok() {
                    for (row, _) in &denied {
                        say(&make(row).to_le_bytes());
                    }
                }
            });
            let answers = errnos(&bytes);
            assert_eq!(answers.len(), denied.len(), "{name} as {user:?}: {status:?}");
            for ((row, expected), answer) in denied.iter().zip(answers) {
                assert_eq!(answer, *expected, "{row:?} as {user:?}: {name}");
            }
            attacks += denied.len();
        }
    }
    assert!(attacks > 1000, "{attacks} attacks");
}

/// Makes a 32-bit call (`int 0x80`) with number 20. This is `getpid` there, but another call on x86-64.
#[cfg(target_arch = "x86_64")]
fn getpid_of_i386() -> i32 {
    let result: i32;
    // SAFETY: getpid has no arguments; the kernel may change r8–r11 on this way in.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") 20 => result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    result
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_table_of_i386_kills() {
    for user in users() {
        let (bytes, status) = in_child(user, |say| {
            let is_own = getpid_of_i386() == std::process::id().cast_signed();
            say(&[u8::from(is_own)]);
        });
        if bytes != [1] {
            assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGSEGV, _)), "{bytes:?} {status:?}");
            eprintln!("skipped: not on this machine: the table of i386");
            return;
        }
        for (name, program, _) in programs() {
            let (bytes, status) = in_child(user, |say| {
                if program.attach().is_ok() {
                    say(b"attached");
                    getpid_of_i386();
                    say(b", and alive");
                }
            });
            assert_eq!(String::from_utf8(bytes).unwrap(), "attached", "{name}");
            assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGSYS, _)), "{name}: {status:?}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn getpid_of_x32() -> i32 {
    // SAFETY: getpid has no arguments.
    let result = unsafe { libc::syscall(0x4000_0000 + libc::SYS_getpid) };
    if result == -1 { Errno::last_raw() } else { 0 }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_table_of_x32_does_not_exist() {
    for user in users() {
        let (bytes, _) = in_child(user, |say| say(&getpid_of_x32().to_le_bytes()));
        if errnos(&bytes) != [0] {
            eprintln!(
                "skipped: not on this machine: the x32 table, so that its absence shows nothing of the filter"
            );
        }
        for (name, program, _) in programs() {
            let (bytes, status) = in_child(user, |say| {
                if program.attach().is_ok() {
                    say(&getpid_of_x32().to_le_bytes());
                }
            });
            assert_eq!(errnos(&bytes), [libc::ENOSYS], "{name}: {status:?}");
        }
    }
}
