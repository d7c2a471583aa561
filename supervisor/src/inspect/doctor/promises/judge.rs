//! Judges if a promise of SECURITY.md holds, from the report of a confined start and the attempts made in it.

use ipc::confinement::{Attempt, Bounds, Tier};

use super::{HeldBy, Holder, Promise, PromiseHere};

/// First Landlock ABI with scopes for signals and abstract unix sockets.
const SCOPES: u32 = 6;

const DELEGATE: &str =
    "use a delegated control group: systemd-run --user -p Delegate=yes -p DelegateSubgroup=main";

#[derive(Clone, Debug)]
pub(super) struct PromiseGround {
    pub tier: Tier,
    pub landlock_abi: u32,
    pub bounds: Bounds,
    /// True if each confined program has a control group of its own.
    pub own_group: bool,
    /// Advice for promises that only the full tier keeps.
    pub full_tier: String,
}

impl PromiseGround {
    pub(super) fn judge(&self, promise: &Promise, tried: &[&Attempt]) -> PromiseHere {
        let (denied, open): (Vec<_>, Vec<_>) = tried
            .iter()
            .filter(|attempt| promise.acts.contains(&attempt.act.as_str()))
            .partition(|a| a.denied);
        let names = |attempts: Vec<&&Attempt>| {
            let mut names: Vec<_> = attempts.into_iter().map(|attempt| attempt.act.clone()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let verdict = if open.is_empty() { self.verdict(promise) } else { broken(&names(open)) };
        let PromiseVerdict { held_by, why, remedy } = verdict;
        let Promise { name, says, .. } = *promise;
        PromiseHere { name, says, held_by, why, remedy, denied: names(denied) }
    }

    fn verdict(&self, promise: &Promise) -> PromiseVerdict {
        let [full, floor] = promise.holders;
        match self.tier {
            Tier::Full => self.by(full),
            Tier::Floor => self.by(floor),
            Tier::FloorUnmediated => match floor {
                Holder::Broker(_) => {
                    PromiseVerdict::open("the kernel gives the broker no listener", UNMEDIATED)
                }
                Holder::Scopes { .. } if self.landlock_abi < SCOPES => PromiseVerdict::open(
                    "the kernel gives the broker no listener, and Landlock has no scopes",
                    UNMEDIATED,
                ),
                other => self.by(other),
            },
        }
    }

    fn by(&self, holder: Holder) -> PromiseVerdict {
        match holder {
            Holder::Kernel(means) => PromiseVerdict::held(HeldBy::Kernel, means),
            Holder::Broker(means) => PromiseVerdict::held(HeldBy::Broker, means),
            Holder::Supervisor(means) => PromiseVerdict::held(HeldBy::Supervisor, means),
            Holder::Scopes { kernel, .. } if self.landlock_abi >= SCOPES => {
                PromiseVerdict::held(HeldBy::Kernel, kernel)
            }
            Holder::Scopes { broker, .. } => PromiseVerdict::held(HeldBy::Broker, broker),
            Holder::Groups if self.own_group => PromiseVerdict::held(
                HeldBy::Kernel,
                "the next start in the same control group ends the processes that survived",
            ),
            Holder::Groups => PromiseVerdict::open(
                "a daemon can survive then, because no control group is delegated",
                DELEGATE,
            ),
            Holder::Processes if self.bounds.processes.is_some() => PromiseVerdict::held(
                HeldBy::Kernel,
                "the setting limits.processes bounds the number of processes",
            ),
            Holder::Processes => PromiseVerdict::open(
                "the kernel limits processes only in a delegated control group, or in the full tier for a user who is not root (Linux 5.14)",
                DELEGATE,
            ),
            Holder::Memory if self.bounds.memory.is_some() => {
                PromiseVerdict::held(HeldBy::Kernel, "the setting limits.memory_bytes bounds memory")
            }
            Holder::Memory => PromiseVerdict::open("no control group is delegated", DELEGATE),
            Holder::Nobody(why) => PromiseVerdict::open(why, &self.full_tier),
        }
    }
}

const UNMEDIATED: &str =
    "start Bailiwick outside of any program that has a seccomp listener; bailiwick doctor shows more causes";

struct PromiseVerdict {
    held_by: HeldBy,
    why: String,
    remedy: Option<String>,
}

impl PromiseVerdict {
    fn held(held_by: HeldBy, means: &str) -> Self {
        Self { held_by, why: means.to_owned(), remedy: None }
    }

    fn open(why: &str, remedy: &str) -> Self {
        Self { held_by: HeldBy::Nobody, why: why.to_owned(), remedy: Some(remedy.to_owned()) }
    }
}

fn broken(acts: &[String]) -> PromiseVerdict {
    let why = format!("a process in the sandbox could {}", acts.join(", "));
    PromiseVerdict::open(&why, "do not run agents here; report this with the kernel's version")
}
