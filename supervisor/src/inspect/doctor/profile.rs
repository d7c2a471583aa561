//! Checks for system calls that a container engine or service manager denies, with the consequences and the remedy.
//! Each call is made with arguments for which it has no effect.

use boundary::system::harmless;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use super::{CheckState, DoctorCheck};

struct ProfileCall {
    name: &'static str,
    without: &'static str,
    /// Option of Docker or Podman with which the container may make this call.
    option: &'static str,
    probe: fn() -> Result<(), Errno>,
}

const SECCOMP: &str = "--security-opt seccomp=PROFILE";

const CALLS: [ProfileCall; 5] = [
    ProfileCall {
        name: "landlock_create_ruleset",
        without: "files are not protected",
        option: SECCOMP,
        probe: harmless::landlock,
    },
    ProfileCall {
        name: "seccomp",
        without: "system calls are not filtered",
        option: SECCOMP,
        probe: harmless::seccomp,
    },
    ProfileCall {
        name: "unshare",
        without: "no full tier",
        option: SECCOMP,
        probe: || unshare(CloneFlags::empty()),
    },
    ProfileCall {
        name: "pidfd_getfd",
        without: "the broker makes the sandbox's sockets itself, and mediates more calls",
        option: "--cap-add SYS_PTRACE",
        probe: harmless::pidfd_getfd,
    },
    ProfileCall {
        name: "process_vm_readv",
        without: "the broker reads through /proc, which takes longer",
        option: "--cap-add SYS_PTRACE",
        probe: harmless::process_vm_readv,
    },
];

/// Checks for system calls that a filter denies; `None` if no filter is active.
pub(super) fn profile() -> Option<DoctorCheck> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    is_filtered.then(|| check(&CALLS.iter().filter(|call| is_denied((call.probe)())).collect::<Vec<_>>()))
}

fn check(denied: &[&ProfileCall]) -> DoctorCheck {
    if denied.is_empty() {
        return DoctorCheck::new(
            "profile",
            CheckState::Ok,
            "system calls are filtered, but none that Bailiwick uses is blocked",
        );
    }
    let found: Vec<_> = denied.iter().map(|call| format!("{} ({})", call.name, call.without)).collect();
    let mut options: Vec<_> = denied.iter().map(|call| call.option).collect();
    options.dedup();
    let found = format!("the program that started Bailiwick blocks {}", found.join(", "));
    DoctorCheck::new("profile", CheckState::Ok, found).remedy(format!(
        "with Docker or Podman, {} would allow these calls, and weaken the container's isolation",
        options.join(" and ")
    ))
}

/// True if a filter denied the call. The kernel itself would give another error, because the arguments are invalid.
fn is_denied(answer: Result<(), Errno>) -> bool {
    matches!(answer, Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_invalid_was_not_denied() {
        assert!(!is_denied(Ok(())) && !is_denied(Err(Errno::EBADF)) && !is_denied(Err(Errno::ESRCH)));
        assert!(is_denied(Err(Errno::EPERM)) && is_denied(Err(Errno::ENOSYS)));
    }

    #[test]
    fn each_denied_call_is_named_with_what_it_costs_and_each_option_once() {
        let check = check(&CALLS.iter().skip(2).collect::<Vec<_>>());
        assert!(check.found.starts_with(
            "the program that started Bailiwick blocks unshare (no full tier), \
            pidfd_getfd ("
        ));
        let remedy = check.remedy.unwrap();
        assert!(remedy.contains("--security-opt seccomp=PROFILE and --cap-add SYS_PTRACE would"), "{remedy}");
    }
}
