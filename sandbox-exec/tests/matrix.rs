//! Tests that compare the tables of SECURITY.md with the code, and try each row that this machine can produce.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use common::place::{Place, as_each_user, errors, text};
use ipc::confinement::Tier;
use nix::errno::Errno;
use nix::libc;
use sandbox_exec::platform::{NEWEST_ABI, Platform};
use sandbox_exec::stage::Stage;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

fn machine(abi: u32) -> Platform {
    Platform { abi, no_landlock: None, no_seccomp: None, listener: true, root: false }
}

fn faults() -> Vec<(&'static str, Platform)> {
    let whole = machine(NEWEST_ABI);
    let landlock = |errno| Platform { no_landlock: Some(errno), ..machine(0) };
    let seccomp = |errno| Platform { no_seccomp: Some(errno), ..whole };
    vec![
        ("Landlock: kernel too old, or unknown to a container's profile", landlock(Errno::ENOSYS)),
        ("Landlock: not in `lsm=`", landlock(Errno::EOPNOTSUPP)),
        ("Landlock: denied by a profile", landlock(Errno::EPERM)),
        ("seccomp: not in the kernel", seccomp(Errno::EINVAL)),
        ("seccomp: denied by a profile", seccomp(Errno::EPERM)),
        ("user notification: none, or taken", Platform { listener: false, ..whole }),
        ("the same, below ABI 6", Platform { listener: false, ..machine(5) }),
    ]
}

fn floor(platform: Platform) -> Tier {
    if platform.seccomp() && platform.listener { Tier::Floor } else { Tier::FloorUnmediated }
}

fn verdict(platform: Platform, tier: Tier) -> String {
    if platform.absent_layers(tier).is_empty() { format!("starts {tier}") } else { "refused".to_owned() }
}

/// Returns four columns of a row in the first table: the verdicts with and without namespaces and seccomp listeners.
fn columns(platform: Platform) -> [String; 4] {
    let deaf = Platform { listener: false, ..platform };
    [(platform, true), (deaf, true), (platform, false), (deaf, false)].map(|(platform, namespaces)| {
        verdict(platform, if namespaces { Tier::Full } else { floor(platform) })
    })
}

fn matrix() -> String {
    let mut table = "| Landlock ABI | namespaces | namespaces, no notification | no namespaces | neither |\n\
                     | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut row = |name: &str, platform| {
        writeln!(table, "| {name} | {} |", columns(platform).join(" | ")).unwrap();
    };
    for abi in 0..NEWEST_ABI {
        row(&abi.to_string(), machine(abi));
    }
    row(&format!("{NEWEST_ABI} and newer"), machine(NEWEST_ABI));
    row("any, without seccomp", Platform { no_seccomp: Some(Errno::EINVAL), ..machine(NEWEST_ABI) });
    table
}

fn refusals() -> String {
    let mut table = "| missing | full | floor |\n| --- | --- | --- |\n".to_owned();
    for (name, platform) in faults() {
        let [full, floor] = [Tier::Full, floor(platform)].map(|tier| platform.absent_layers(tier).join("; "));
        writeln!(table, "| {name} | {full} | {floor} |").unwrap();
    }
    table
}

#[test]
fn the_tables_of_security_md_are_the_codes() {
    let security = std::fs::read_to_string("../SECURITY.md").unwrap();
    for table in [matrix(), refusals()] {
        assert!(security.contains(&table), "SECURITY.md has to say:\n{table}");
    }
}

/// Rule of a machine's own seccomp profile: `call` fails with `errno`, always or if an argument has the bits.
#[derive(Clone, Copy)]
struct Answers {
    call: libc::c_long,
    bits: Option<(u8, u64)>,
    errno: Errno,
}

impl Answers {
    fn program(self) -> BpfProgram {
        let condition = |(argument, bits): (u8, u64)| {
            let operator = SeccompCmpOp::MaskedEq(bits);
            let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, bits).unwrap();
            SeccompRule::new(vec![condition]).unwrap()
        };
        let rules = [(self.call, self.bits.map(condition).into_iter().collect())].into();
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let errno = SeccompAction::Errno((self.errno as i32).cast_unsigned());
        SeccompFilter::new(rules, SeccompAction::Allow, errno, arch).unwrap().try_into().unwrap()
    }
}

fn run(place: &Place, flags: &[&str], answers: Answers) -> Output {
    let mut command: Command = place.sandbox(flags);
    let program = answers.program();
    // SAFETY: attaching a program makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            seccompiler::apply_filter(&program).map_err(|_| std::io::Error::last_os_error())
        });
    }
    command.args(["/bin/bash", "-c", "echo ran"]).output().unwrap()
}

#[test]
fn each_machine_that_lacks_something_is_refused_with_these_words() {
    let landlock = |errno| Answers { call: libc::SYS_landlock_create_ruleset, bits: None, errno };
    let seccomp = |errno| Answers { call: libc::SYS_seccomp, bits: None, errno };
    let listener =
        Answers { bits: Some((1, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)), ..seccomp(Errno::EINVAL) };
    let made = [
        (landlock(Errno::ENOSYS), &[][..]),
        (landlock(Errno::EOPNOTSUPP), &[]),
        (landlock(Errno::EPERM), &[]),
        (seccomp(Errno::EINVAL), &[]),
        (seccomp(Errno::EPERM), &[]),
        (listener, &[]),
        (listener, &["--landlock-abi", "5"]),
    ];
    as_each_user(|place| {
        for ((name, platform), (answers, flags)) in faults().into_iter().zip(made) {
            let tier = if place.full() { Tier::Full } else { floor(platform) };
            let sentences = platform.absent_layers(tier);
            let refused = run(place, flags, answers);
            assert_eq!(
                refused.status.code(),
                Some(Stage::Platform.code().into()),
                "{name}: {}",
                errors(&refused)
            );
            let said = format!("platform: {}; --allow-degraded starts all the same", sentences.join("; "));
            assert!(errors(&refused).contains(&said), "{name}: {}", errors(&refused));
            assert_eq!(text(&refused), "", "{name}");
            let degraded = run(place, &[flags, &["--allow-degraded"]].concat(), answers);
            assert_eq!(text(&degraded), "ran\n", "{name}: {}", errors(&degraded));
        }
    });
}

#[test]
fn a_machine_that_lacks_nothing_but_namespaces_starts_in_the_floor_at_every_abi() {
    as_each_user(|place| {
        if place.full() {
            return;
        }
        for abi in 1..=NEWEST_ABI {
            let flags = ["--tier", "best", "--landlock-abi", &abi.to_string()];
            let answers = Answers {
                call: libc::SYS_clone,
                bits: Some((0, u64::try_from(libc::CLONE_NEWUSER).unwrap())),
                errno: Errno::EPERM,
            };
            let output = run(place, &flags, answers);
            assert_eq!(text(&output), "ran\n", "{abi}: {}", errors(&output));
            let full = run(place, &["--tier", "full"], answers);
            assert_eq!(full.status.code(), Some(Stage::Namespaces.code().into()), "{}", errors(&full));
        }
    });
}
