//! Features of this kernel, and the layers that replace a missing one.
//!
//! | Landlock ABI | kernel | missing feature of the next ABI | replaced in the floor tier by | in the full tier by |
//! | --- | --- | --- | --- | --- |
//! | 0 | < 5.13, or off | all of Landlock | nothing: a start fails unless degraded | mounts, except for files hidden later: the same |
//! | 1 | 5.13 | REFER | nothing: no file can be moved or linked to another directory | the same |
//! | 2 | 5.19 | TRUNCATE | seccomp | seccomp, and outside the write roots mounts |
//! | 3 | 6.2 | TCP rules | the broker, which mediates | a network namespace |
//! | 4 | 6.7 | `IOCTL_DEV` | not needed: only five harmless devices can be opened | the same |
//! | 5 | 6.10 | scopes | the broker, which mediates signals and looks up the sockets with abstract names | a pid namespace, and the broker |
//! | 6 | 6.12 | audit flags | not needed | not needed |
//! | 7, 8 | 6.15, 7.0 | `RESOLVE_UNIX` | the broker, which mediates | the broker, which mediates |
//! | 9 | 7.1 | – | newer ABIs are used as 9 | |
//!
//! Without seccomp (gVisor, a kernel built without it) a start fails unless it may be degraded: sockets, namespaces
//! and rarely used system calls are then unrestricted. Without a seccomp listener for the broker a start in the floor
//! tier fails unless it may be degraded: then seccomp denies every socket but connected pairs.

use ipc::confinement::Tier;
use ipc::rights::Rights;
use landlock::ABI;
use nix::errno::Errno;

use crate::system;

pub const NEWEST_ABI: u32 = ABI::V9 as u32;

/// First Landlock ABI with signal scopes.
pub const SCOPES: u32 = ABI::V6 as u32;

/// First Landlock ABI that denies truncation.
pub const TRUNCATE: u32 = ABI::V3 as u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    pub abi: u32,
    pub no_landlock: Option<Errno>,
    pub no_seccomp: Option<Errno>,
    /// True if a seccomp filter of this process can have a listener.
    pub listener: bool,
    pub root: bool,
}

impl Platform {
    pub fn probe() -> Self {
        let landlock = system::landlock_abi();
        Self {
            abi: landlock.unwrap_or(0).min(NEWEST_ABI),
            no_landlock: landlock.err(),
            no_seccomp: system::seccomp().err(),
            listener: system::has_listeners(),
            root: nix::unistd::geteuid().is_root(),
        }
    }

    pub fn seccomp(self) -> bool {
        self.no_seccomp.is_none()
    }

    /// Limits the Landlock ABI to `abi`, if the kernel's is newer. `None` leaves the kernel's.
    #[must_use]
    pub fn lowered(self, abi: Option<u32>) -> Self {
        Self { abi: abi.map_or(self.abi, |abi| abi.min(self.abi)), ..self }
    }

    pub fn mediates(self, tier: Tier) -> bool {
        self.seccomp() && self.listener && tier != Tier::FloorUnmediated
    }

    /// True if Landlock or the mediator limits to which processes programs and their commands can send signals.
    fn bounds_signals(self, tier: Tier) -> bool {
        self.abi >= SCOPES || self.mediates(tier)
    }

    /// Returns a sentence for each missing layer without which a start fails, unless it is allowed to be degraded.
    pub fn absent_layers(self, tier: Tier) -> Vec<String> {
        let landlock = (self.abi == 0).then(|| no_landlock(tier, self.no_landlock));
        let scopes = (!self.bounds_signals(tier) && tier != Tier::Full).then(|| NO_BOUND.to_owned());
        let seccomp = self.no_seccomp.map(no_seccomp);
        let listener = (self.seccomp() && !self.mediates(tier)).then(|| no_listener(tier));
        landlock.into_iter().chain(scopes).chain(seccomp).chain(listener).collect()
    }

    pub fn missing(self, rights: &Rights, tier: Tier) -> Vec<String> {
        let mut missing = self.absent_layers(tier);
        let full = tier == Tier::Full;
        let mut say = |when: bool, sentence: &str| {
            if when {
                missing.push(sentence.to_owned());
            }
        };
        say(self.abi == 1, "files cannot be moved or linked between directories (Landlock ABI 1)");
        say(
            full && !self.bounds_signals(tier),
            "a command can signal its own worker (needs Linux 6.12, or seccomp)",
        );
        say(
            tier == Tier::FloorUnmediated,
            "modes, owners, times and attributes of files outside the write roots are not protected",
        );
        say(
            tier == Tier::FloorUnmediated && rights.net.is_the_machines(),
            "addresses are not checked: host loopback, private, link-local and metadata addresses can be reached",
        );
        let protected = if full {
            "new protected files, such as git hooks, are not blocked by the kernel"
        } else {
            "protected files inside the write roots are not blocked by the kernel"
        };
        say(!rights.protected.is_empty(), protected);
        missing.extend(hidden_in_write_roots(rights, tier));
        missing
    }
}

const NO_BOUND: &str = "neither Landlock nor a broker bounds signals: those to the user's other processes are not denied \
                        (needs Linux 6.12, or seccomp with a listener)";

fn no_landlock(tier: Tier, why: Option<Errno>) -> String {
    let open = match tier {
        Tier::Floor | Tier::FloorUnmediated => "reads and writes are not confined",
        Tier::Full => "what is hidden later, and a command from its own worker, are not held",
    };
    let why = match why {
        None => "it was asked for without".to_owned(),
        Some(Errno::ENOSYS) => {
            "ENOSYS: the kernel, or a container's profile, does not know it; needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK"
                .to_owned()
        }
        Some(Errno::EOPNOTSUPP) => {
            "EOPNOTSUPP: it is switched off; landlock has to be in lsm= of the kernel's command line".to_owned()
        }
        Some(errno) => format!("{errno:?}: a seccomp profile denies it; it has to allow landlock_*"),
    };
    format!("Landlock is not available: {open} ({why})")
}

fn no_seccomp(why: Errno) -> String {
    let why = match why {
        Errno::ENOSYS | Errno::EINVAL => "the kernel has none; needs CONFIG_SECCOMP_FILTER",
        _ => "a seccomp profile denies it; it has to allow seccomp",
    };
    format!(
        "seccomp filters are not available: sockets, namespaces and system calls are not confined ({why})"
    )
}

fn no_listener(tier: Tier) -> String {
    let open = match tier {
        Tier::Full => "unix sockets of this machine, and with the network on its addresses, can be reached",
        Tier::Floor | Tier::FloorUnmediated => {
            "sockets are denied inside the sandbox too, but for socketpair"
        }
    };
    format!(
        "seccomp gives the broker no listener: {open} (another program above this one has the listener, or the kernel has none)"
    )
}

fn hidden_in_write_roots(rights: &Rights, tier: Tier) -> impl Iterator<Item = String> {
    let replaced = match tier {
        Tier::Full => "",
        Tier::Floor | Tier::FloorUnmediated => "it cannot be read, but it can be replaced, and ",
    };
    let hidden = rights.hidden.iter();
    let inside = hidden.filter(|hidden| rights.write.iter().any(|root| hidden.is_within(root)));
    inside.map(move |hidden| {
        format!("{hidden} is inside a write root: {replaced}files made later beside it cannot be read")
    })
}

#[cfg(test)]
mod tests {
    use ipc::rights::Network;

    use super::*;

    fn rights() -> Rights {
        Rights { read: vec!["/".into()], write: vec!["/p".into()], ..Rights::default() }
    }

    fn platform(abi: u32) -> Platform {
        Platform { abi, no_landlock: None, no_seccomp: None, listener: true, root: false }
    }

    const FLOOR: Tier = Tier::Floor;
    const UNMEDIATED: Tier = Tier::FloorUnmediated;

    #[test]
    fn absent_layers_are_named() {
        let none = Platform { no_seccomp: Some(Errno::EINVAL), ..platform(0) };
        assert_eq!(none.absent_layers(FLOOR).len(), 3);
        assert_eq!(none.absent_layers(Tier::Full).len(), 2);
        let before_scopes = platform(SCOPES - 1);
        assert!(before_scopes.absent_layers(FLOOR).is_empty());
        assert!(before_scopes.absent_layers(Tier::Full).is_empty());
        let layers = before_scopes.absent_layers(UNMEDIATED);
        assert!(layers.len() == 2 && layers[0].contains("signals"), "{layers:?}");
        let neither = Platform { no_seccomp: Some(Errno::EINVAL), ..before_scopes };
        assert!(neither.absent_layers(FLOOR)[0].contains("signals"));
        let enough = platform(SCOPES);
        assert!(enough.absent_layers(FLOOR).is_empty());
        let layers = enough.absent_layers(UNMEDIATED);
        assert!(layers.len() == 1 && layers[0].contains("listener"), "{layers:?}");
    }

    #[test]
    fn an_abi_is_only_ever_lowered() {
        let platform = platform(6);
        assert_eq!([None, Some(3), Some(9)].map(|abi| platform.lowered(abi).abi), [6, 3, 6]);
    }

    fn table(tier: Tier, word: &str) -> String {
        let says = |abi| {
            let platform = platform(abi);
            platform.missing(&rights(), tier).iter().any(|sentence| sentence.contains(word))
        };
        (0..=NEWEST_ABI).map(|abi| u8::from(says(abi)).to_string()).collect()
    }

    #[test]
    fn each_abi_leaves_open_exactly_this() {
        for (word, floor, full) in [
            ("Landlock is not available", "1000000000", "1000000000"),
            ("moved or linked", "0100000000", "0100000000"),
            ("bounds signals", "0000000000", "0000000000"),
            ("its own worker (needs", "0000000000", "0000000000"),
            ("modes, owners", "0000000000", "0000000000"),
        ] {
            assert_eq!((table(FLOOR, word), table(Tier::Full, word)), (floor.into(), full.into()), "{word}");
        }
        assert_eq!(table(UNMEDIATED, "modes, owners"), "1111111111");
    }

    #[test]
    fn the_rights_decide_what_is_named() {
        let platform = platform(7);
        let all = Rights {
            hidden: vec!["/p/.env".into()],
            protected: vec!["/p/.git/hooks".into()],
            net: Network::On,
            ..rights()
        };
        assert!(platform.missing(&all, UNMEDIATED).join("\n").contains("addresses are not checked"));
        let missing = platform.missing(&all, FLOOR).join("\n");
        assert!(!missing.contains("addresses are not checked"));
        assert!(missing.contains("protected files inside"));
        assert!(missing.contains("/p/.env is inside a write root: it cannot be read, but"));
        let missing = platform.missing(&all, Tier::Full).join("\n");
        assert!(missing.contains("new protected files"));
        assert!(missing.contains("/p/.env is inside a write root: files made later"));
    }
}
