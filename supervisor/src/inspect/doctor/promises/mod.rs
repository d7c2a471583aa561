//! `bailiwick doctor --promises`: the promises of SECURITY.md that hold on this machine, the parts that enforce them,
//! and remedies for the others.

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
    /// The parts of Bailiwick that enforce the promise: in the full tier, then in the floor tier.
    holders: [Holder; 2],
    /// Names of the attempts in the self-test that try to break the promise.
    acts: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// The kernel, by this mechanism.
    Kernel(&'static str),
    /// The broker, by this mechanism. The broker is the sandbox-exec process around a program.
    Broker(&'static str),
    /// The kernel if Landlock has scopes, otherwise the broker.
    Scopes { kernel: &'static str, broker: &'static str },
    /// Unconfined processes of Bailiwick, by this mechanism.
    Supervisor(&'static str),
    /// The kernel if a control group is delegated, otherwise nothing.
    Groups,
    /// The kernel if the number of processes is limited, otherwise nothing.
    Processes,
    /// The kernel if memory is limited, otherwise nothing.
    Memory,
    /// No part of Bailiwick, for this reason. Only the full tier enforces the promise.
    Nobody(&'static str),
}

#[derive(Debug, Serialize)]
pub(crate) struct PromisesPage {
    /// The tier of confinement; `None` if nothing can be confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    kernel: String,
    /// The Landlock ABI in force; 0 without Landlock.
    landlock_abi: u32,
    /// The result for each promise of SECURITY.md.
    promises: Vec<PromiseHere>,
    #[serde(skip)]
    usable: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct PromiseHere {
    name: &'static str,
    says: &'static str,
    held_by: HeldBy,
    /// The mechanism that enforces the promise, or the reason why it does not hold.
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Attempts to break the promise that the sandbox denied.
    denied: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum HeldBy {
    Kernel,
    Broker,
    /// Unconfined processes of Bailiwick.
    Supervisor,
    Nobody,
}

impl PromisesPage {
    /// Runs the self-test, and judges each promise by the results.
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

    pub(crate) fn of_refusal(why: &str) -> Self {
        let (found, next) = parted(why);
        Self::of_nothing(found, Some(next.to_owned()))
    }

    /// Returns the page for a machine on which nothing can be confined.
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

    /// True if agents can be confined on this machine, and no attempt of the self-test succeeded.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }
}

/// Returns advice for promises that the floor tier does not keep.
fn full_tier(setup: &ProjectSandbox, Outcome { ruleset, .. }: &Outcome) -> String {
    match &ruleset.no_full_tier {
        Some(reason) => format!("for the full tier: {}", self_test::refused(setup, reason.refusal)),
        None => {
            "bailiwick doctor --promises --tier full shows whether this machine has the full tier".to_owned()
        }
    }
}

/// True if a confined program has a control group of its own.
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
