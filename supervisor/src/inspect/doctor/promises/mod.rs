//! `bailiwick doctor --promises`: which promise of SECURITY.md holds on this machine, by whom it is kept, and what would give the rest.
//!
//! A promise holds as its row of the [`table`] says for the tier that the self-test was made in, unless an act of the self-test that
//! belongs to it succeeded.

mod judge;
mod table;
mod text;

use ipc::confinement::{RulesetReport, Tier};
use serde::Serialize;

use self::judge::PromiseGround;
use self::table::PROMISES;
use super::self_test::{self, Outcome};
use super::{checks, parted};
use crate::engine::inside;
use crate::engine::place::ProjectSandbox;

#[derive(Clone, Copy, Debug)]
struct Promise {
    name: &'static str,
    says: &'static str,
    /// Its holders in the full tier and in the floor.
    holders: [Holder; 2],
    /// Acts of the self-test that would break it.
    acts: &'static [&'static str],
}

/// The part that keeps a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// The kernel, by these means.
    Kernel(&'static str),
    /// The broker, by these means.
    Broker(&'static str),
    /// The kernel where Landlock has scopes, and the broker before that.
    Scopes { kernel: &'static str, broker: &'static str },
    /// Bailiwick's processes outside of the sandbox.
    Supervisor(&'static str),
    /// The kernel where a control group is delegated, and nobody elsewhere.
    Groups,
    /// The kernel where processes are limited, and nobody elsewhere.
    Processes,
    /// The kernel where memory is limited, and nobody elsewhere.
    Memory,
    /// Nobody, for this reason: the full tier's alone.
    Nobody(&'static str),
}

#[derive(Debug, Serialize)]
pub(crate) struct PromisesPage {
    /// The tier, where programs can be confined at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    kernel: String,
    /// The Landlock ABI in force; 0 without Landlock.
    landlock_abi: u32,
    /// Each promise of SECURITY.md.
    promises: Vec<PromiseHere>,
    /// True if agents can be confined here and no act of the self-test succeeded, whether a promise names it or not.
    #[serde(skip)]
    usable: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct PromiseHere {
    name: &'static str,
    says: &'static str,
    /// The part that keeps it.
    held_by: HeldBy,
    /// The means, or the reason for which it is not kept.
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The acts against it that were tried and denied.
    denied: Vec<String>,
}

/// The part that keeps a promise here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum HeldBy {
    Kernel,
    Broker,
    /// Bailiwick's processes outside of the sandbox.
    Supervisor,
    Nobody,
}

impl PromisesPage {
    /// Tries what the self-test tries, and judges each promise by it.
    pub(crate) async fn make(setup: &ProjectSandbox) -> Self {
        match self_test::attack(setup, setup.tier).await {
            Ok(outcome) => Self::of(&outcome, has_own_group(setup).await, full_tier(setup, &outcome)),
            Err(error) => {
                let failed = self_test::failed(setup, &error);
                Self::of_nothing(&failed.found, failed.remedy)
            }
        }
    }

    fn of(Outcome { ruleset, attempts }: &Outcome, own_group: bool, full_tier: String) -> Self {
        let tried: Vec<_> = ruleset.attempts.iter().chain(attempts).collect();
        let RulesetReport { tier, landlock_abi, bounds, .. } = *ruleset;
        let ground = PromiseGround { tier, landlock_abi, bounds, own_group, full_tier };
        Self {
            tier: Some(tier),
            kernel: self_test::release(),
            landlock_abi,
            promises: PROMISES.iter().map(|promise| ground.judge(promise, &tried)).collect(),
            usable: tried.iter().all(|attempt| attempt.denied),
        }
    }

    /// The page where no place can be made to confine anything in.
    pub(crate) fn of_refusal(why: &str) -> Self {
        let (found, next) = parted(why);
        Self::of_nothing(found, Some(next.to_owned()))
    }

    /// The page of a machine on which nothing starts.
    fn of_nothing(found: &str, remedy: Option<String>) -> Self {
        let nothing = |promise: &Promise| PromiseHere {
            name: promise.name,
            says: promise.says,
            held_by: HeldBy::Nobody,
            why: format!("no agent starts here: {found}"),
            remedy: remedy.clone(),
            denied: Vec::new(),
        };
        let promises = PROMISES.iter().map(nothing).collect();
        Self { tier: None, kernel: self_test::release(), landlock_abi: 0, promises, usable: false }
    }

    /// True if agents can be confined here and no act of the self-test succeeded.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }
}

/// The remedy for what the floor leaves open.
fn full_tier(setup: &ProjectSandbox, Outcome { ruleset, .. }: &Outcome) -> String {
    match &ruleset.no_full_tier {
        Some(reason) => format!("for the full tier: {}", self_test::refused(setup, reason.refusal)),
        None => {
            "bailiwick doctor --promises --tier full shows whether this machine has the full tier".to_owned()
        }
    }
}

/// True if a program of the floor is in a control group of its own, as it sees itself.
async fn has_own_group(setup: &ProjectSandbox) -> bool {
    let Some(cat) = checks::on_path("cat") else { return false };
    let confinement = setup.confinement(setup.policy.standing());
    let command = vec![cat.into_os_string(), "/proc/self/cgroup".into()];
    let said = inside::run_program(setup, confinement, command, Vec::new()).await;
    said.is_ok_and(|said| {
        said.output.lines().any(|line| line.starts_with("0::/") && line.contains("/bailiwick-"))
    })
}

#[cfg(test)]
mod tests;
