//! What this kernel offers, and what it leaves open.
//!
//! | Landlock ABI | kernel | what it lacks beside the ABI that follows | what that means here |
//! | --- | --- | --- | --- |
//! | 0 | < 5.13, or off | everything | refused, unless degraded: no path is held |
//! | 1 | 5.13 | REFER | named: nothing can be moved or linked between directories |
//! | 2 | 5.19 | TRUNCATE | held by seccomp: truncate(2), and opening to truncate without writing, are denied |
//! | 3 | 6.2 | TCP rules | held by seccomp: with the network off there is no socket at all |
//! | 4 | 6.7 | `IOCTL_DEV` | nothing: five harmless devices can be opened at all |
//! | 5 | 6.10 | scopes | refused, unless degraded: signals to the user's other processes. Abstract sockets are held by seccomp |
//! | 6 | 6.12 | audit flags | nothing |
//! | 7, 8 | 6.15, 7.0 | `RESOLVE_UNIX` | held by seccomp: there are no unix sockets |
//! | 9 | 7.1 | – | newer ABIs are used as 9 |
//!
//! Without seccomp (gVisor, a kernel built without it) a start is refused, unless degraded: sockets, namespaces and the
//! kernel's rarer doors are then open.

use ipc::rights::{Network, Rights};
use landlock::ABI;

/// The newest ABI that this program knows.
pub const NEWEST_ABI: u32 = ABI::V9 as u32;

/// The first ABI with signal scopes.
pub const SCOPES: u32 = ABI::V6 as u32;

/// The first ABI that denies truncation.
pub const TRUNCATE: u32 = ABI::V3 as u32;

/// What the kernel under this process offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The Landlock ABI, 0 for none, at most [`NEWEST_ABI`].
    pub abi: u32,
    /// Whether seccomp filters exist.
    pub seccomp: bool,
    /// Whether this process runs as uid 0, for which file modes deny nothing by owner.
    pub root: bool,
}

impl Platform {
    /// Asks the kernel.
    pub fn probe() -> Self {
        Self {
            abi: crate::system::landlock_abi().min(NEWEST_ABI),
            seccomp: crate::system::has_seccomp(),
            root: nix::unistd::geteuid().is_root(),
        }
    }

    /// The layers without which nothing starts, unless degraded; one sentence each.
    pub fn absent_layers(self) -> Vec<String> {
        let landlock = (self.abi == 0).then_some(
            "Landlock is not available: reads and writes are not confined (needs Linux 5.13 with lsm=landlock)",
        );
        let seccomp = (!self.seccomp).then_some(
            "seccomp filters are not available: sockets, namespaces and system calls are not confined",
        );
        let scopes = (self.abi < SCOPES).then_some(
            "Landlock has no scopes: signals to the user's other processes are not denied (needs Linux 6.12)",
        );
        landlock.into_iter().chain(scopes).chain(seccomp).map(str::to_owned).collect()
    }

    /// What the rights promise and this start does not enforce; one sentence each.
    pub fn missing(self, rights: &Rights) -> Vec<String> {
        let mut missing = self.absent_layers();
        let mut say = |when: bool, sentence: &str| {
            if when {
                missing.push(sentence.to_owned());
            }
        };
        say(self.abi == 1, "files cannot be moved or linked between directories (Landlock ABI 1)");
        say(true, "modes, owners, times and attributes of files outside the write roots are not protected");
        say(true, "unix sockets are denied inside the sandbox too, but for socketpair (no mediation yet)");
        say(
            rights.net == Network::Off,
            "sockets on loopback are denied inside the sandbox too (no mediation yet)",
        );
        say(
            rights.net == Network::On,
            "addresses are not checked: host loopback, link-local and metadata addresses can be reached",
        );
        say(
            !rights.protected.is_empty(),
            "protected paths inside the write roots are not denied by the kernel",
        );
        for root in &rights.write {
            for hidden in rights.hidden.iter().filter(|hidden| hidden.is_within(root)) {
                missing.push(format!(
                    "{hidden} is inside a write root: it cannot be read, but it can be replaced, and files made later \
                     beside it cannot be read"
                ));
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use ipc::rights::{Execution, Limits};

    use super::*;

    fn rights() -> Rights {
        Rights {
            read: vec!["/".into()],
            hidden: vec![],
            write: vec!["/p".into()],
            protected: vec![],
            net: Network::Off,
            reach: ipc::rights::Reach::default(),
            exec: Execution::Allowed,
            limits: Limits::default(),
        }
    }

    #[test]
    fn absent_layers_are_named() {
        let none = Platform { abi: 0, seccomp: false, root: false };
        assert_eq!(none.absent_layers().len(), 3);
        let before_scopes = Platform { abi: SCOPES - 1, seccomp: true, root: false }.absent_layers();
        assert!(before_scopes.len() == 1 && before_scopes[0].contains("signals"), "{before_scopes:?}");
        assert!(Platform { abi: SCOPES, seccomp: true, root: false }.absent_layers().is_empty());
    }

    #[test]
    fn each_abi_leaves_open_exactly_this() {
        let says = |abi, word: &str| {
            let platform = Platform { abi, seccomp: true, root: false };
            platform.missing(&rights()).iter().any(|sentence| sentence.contains(word))
        };
        let table = |word: &str| {
            (0..=NEWEST_ABI).map(|abi| u8::from(says(abi, word)).to_string()).collect::<String>()
        };
        assert_eq!(table("Landlock is not available"), "1000000000");
        assert_eq!(table("moved or linked"), "0100000000");
        assert_eq!(table("signals to"), "1111110000");
        assert_eq!(table("loopback"), "1111111111");
    }

    #[test]
    fn the_rights_decide_what_is_named() {
        let platform = Platform { abi: 7, seccomp: true, root: false };
        let all = Rights {
            hidden: vec!["/p/.env".into()],
            protected: vec!["/p/.git/hooks".into()],
            net: Network::On,
            ..rights()
        };
        let missing = platform.missing(&all).join("\n");
        assert!(missing.contains("addresses are not checked"));
        assert!(missing.contains("protected paths"));
        assert!(missing.contains("/p/.env is inside a write root"));
    }
}
