//! Reads the kernel's settings for the reasons why this machine refuses full confinement, and for the remedies.

use std::fs;
use std::path::Path;

use ipc::confinement::{FullTierRefusal, FullTierStep};
use libc::{EINVAL, ENOSPC, ENOSYS, EPERM, EUSERS};

/// Kinds of namespaces that full confinement needs. Each has its own limit (namespaces(7), `/proc/sys/user`).
const KINDS: [&str; 6] = ["user", "mnt", "pid", "ipc", "uts", "net"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    /// The limit on the number of these namespaces is zero.
    NoneOf(&'static str),
    /// Only root may create user namespaces: `kernel.unprivileged_userns_clone`, a patch of Debian and others.
    RootOnly,
    /// Programs without an `AppArmor` profile lose their capabilities in user namespaces:
    /// `kernel.apparmor_restrict_unprivileged_userns`, Ubuntu 23.10 and later.
    Profiled,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DoctorMachine {
    off: Vec<Switch>,
    container: bool,
    /// True if a filter already applies to the system calls of this process (`Seccomp:` in `proc_pid_status(5)`).
    filtered: bool,
}

impl DoctorMachine {
    pub(super) fn look() -> Self {
        let is = |path: String, value: &str| read(&path).as_deref() == Some(value);
        let kernel = |name: &str, value| is(format!("/proc/sys/kernel/{name}"), value);
        let none = |kind: &&str| is(format!("/proc/sys/user/max_{kind}_namespaces"), "0");
        let mut off: Vec<_> = KINDS.into_iter().filter(none).map(Switch::NoneOf).collect();
        off.extend(kernel("unprivileged_userns_clone", "0").then_some(Switch::RootOnly));
        off.extend(kernel("apparmor_restrict_unprivileged_userns", "1").then_some(Switch::Profiled));
        let status = read("/proc/self/status").unwrap_or_default();
        let filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
        Self { off, container: is_container(), filtered }
    }

    /// Returns advice for a machine that refuses full confinement. `program` is the path of sandbox-exec.
    pub(super) fn remedy(&self, refusal: Option<FullTierRefusal>, program: &Path) -> String {
        if self.off.is_empty() {
            return self.guess(refusal).to_owned();
        }
        let steps: Vec<_> = self.off.iter().map(|switch| switch.remedy(program)).collect();
        steps.join("; and ")
    }

    /// Returns the probable cause of a refusal that no kernel setting explains.
    fn guess(&self, refusal: Option<FullTierRefusal>) -> &'static str {
        let is = |errno| refusal.is_some_and(|refusal| refusal.errno == Some(errno));
        let of_proc = refusal.is_some_and(|refusal| refusal.step == FullTierStep::MountProc);
        if of_proc && is(EPERM) {
            // A process that does not see all of /proc must not mount another one (the kernel's `mount_too_revealing`).
            "give the container an unmasked /proc: with Docker --security-opt systempaths=unconfined, with Podman unmask=ALL; this weakens the container's isolation"
        } else if self.container && !is(ENOSPC) {
            "use a container profile that allows namespaces and mounts in them: with Docker or Podman, --security-opt seccomp=unconfined, apparmor=unconfined and systempaths=unconfined; this weakens the container's isolation"
        } else if is(ENOSPC) || is(EUSERS) {
            "end programs that have namespaces of this user, or raise user.max_user_namespaces; namespaces can be nested 32 deep at most"
        } else if is(EINVAL) {
            "use a kernel with user, mount, pid, ipc, uts and network namespaces (CONFIG_USER_NS and others)"
        } else if is(ENOSYS) {
            "use Linux 5.12 or later, or allow the mount calls in the seccomp filter that blocks them here"
        } else if self.filtered {
            "the program that started Bailiwick filters system calls (seccomp) and must allow namespaces, as RestrictNamespaces= of systemd does"
        } else {
            "a security module's policy, or a chroot, refuses namespaces here: see the kernel's log, and clone(2) under EPERM"
        }
    }
}

impl Switch {
    fn remedy(self, program: &Path) -> String {
        match self {
            Self::NoneOf(kind) => format!("sysctl -w user.max_{kind}_namespaces=15000"),
            Self::RootOnly => "sysctl -w kernel.unprivileged_userns_clone=1".to_owned(),
            Self::Profiled => format!(
                "add an AppArmor profile that allows namespaces to Bailiwick (in /etc/apparmor.d: `abi <abi/4.0>, profile bailiwick \
                 {} flags=(unconfined) {{ userns, }}`), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
                program.display()
            ),
        }
    }
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

/// True if there are signs of a container engine: files of Docker or Podman, or the variable of systemd's container
/// interface.
fn is_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].into_iter().any(|path| Path::new(path).exists())
        || ["container", "KUBERNETES_SERVICE_HOST"].into_iter().any(|name| std::env::var_os(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(step: FullTierStep, machine: &DoctorMachine, errno: i32) -> String {
        let refusal = FullTierRefusal { step, errno: Some(errno) };
        machine.remedy(Some(refusal), Path::new("/opt/sandbox-exec"))
    }

    fn remedy(machine: &DoctorMachine, errno: i32) -> String {
        at(FullTierStep::Other, machine, errno)
    }

    fn off(switches: &[Switch]) -> DoctorMachine {
        DoctorMachine { off: switches.to_owned(), ..DoctorMachine::default() }
    }

    #[test]
    fn each_switch_has_its_own_remedy() {
        let none = off(&[Switch::NoneOf("user"), Switch::NoneOf("net")]);
        assert_eq!(
            remedy(&none, ENOSPC),
            "sysctl -w user.max_user_namespaces=15000; and sysctl -w user.max_net_namespaces=15000"
        );
        assert_eq!(remedy(&off(&[Switch::RootOnly]), EPERM), "sysctl -w kernel.unprivileged_userns_clone=1");
        let apparmor = remedy(&off(&[Switch::Profiled]), libc::EACCES);
        assert!(
            apparmor.contains("profile bailiwick /opt/sandbox-exec flags=(unconfined) { userns, }"),
            "{apparmor}"
        );
        assert!(apparmor.ends_with("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"), "{apparmor}");
    }

    #[test]
    fn where_no_switch_is_off_the_error_number_tells() {
        let bare = DoctorMachine::default();
        let container = DoctorMachine { container: true, filtered: true, ..DoctorMachine::default() };
        let service = DoctorMachine { filtered: true, ..DoctorMachine::default() };
        for (machine, errno, word) in [
            (&container, EPERM, "--security-opt seccomp=unconfined"),
            (&container, ENOSPC, "nested 32 deep"),
            (&service, EPERM, "RestrictNamespaces="),
            (&bare, ENOSPC, "raise user.max_user_namespaces"),
            (&bare, EINVAL, "CONFIG_USER_NS"),
            (&bare, ENOSYS, "Linux 5.12"),
            (&bare, EPERM, "chroot"),
        ] {
            let remedy = remedy(machine, errno);
            assert!(remedy.contains(word), "{machine:?} {errno}: {remedy}");
        }
        let masked = at(FullTierStep::MountProc, &bare, EPERM);
        assert!(masked.contains("systempaths=unconfined") && masked.contains("unmask=ALL"), "{masked}");
        assert!(!masked.contains("seccomp="), "the profile let it come so far: {masked}");
    }
}
