//! `bailiwick doctor`: checks what this machine enforces, by attacks from inside a real sandbox.

mod cgroups;
mod checks;
mod clock;
mod machine;
mod network;
mod profile;
mod promises;
mod relay;
mod self_test;
mod servers;
mod surroundings;

use std::io::Write;

use ipc::confinement::Tier;
use model::secrets::TakenKeys;
use serde::Serialize;

pub(crate) use self::promises::PromisesPage;
use crate::engine::place::ProjectSandbox;

#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// The tier of confinement; `None` if nothing can be confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierFound>,
    pub checks: Vec<DoctorCheck>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TierFound {
    pub tested: Tier,
    pub runs_start_in: Tier,
    /// The reason why the tier is not `full`; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_full_tier: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DoctorCheck {
    pub name: &'static str,
    pub state: CheckState,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckState {
    Ok,
    /// Something is missing, but Bailiwick can be used.
    Warn,
    Fail,
}

impl DoctorCheck {
    fn new(name: &'static str, state: CheckState, found: impl Into<String>) -> Self {
        Self { name, state, found: found.into(), remedy: None }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Splits an error message into its cause and its hint.
fn parted(why: &str) -> (&str, &str) {
    why.split_once("\n  hint: ").unwrap_or((why, "see SECURITY.md"))
}

impl Diagnosis {
    pub(crate) async fn make(setup: &ProjectSandbox, keys: &TakenKeys, asks_api: bool) -> Self {
        let (mut checks, tier) = self_test::checks(setup).await;
        checks.extend(profile::profile());
        checks.extend([surroundings::check(), cgroups::check()]);
        checks.extend([checks::shell(), checks::git(setup).await, checks::terminal()]);
        checks.extend([checks::key(setup, keys), network::proxies(), network::authorities()]);
        checks.extend(relay::check(setup).await);
        if asks_api {
            checks.push(network::api(&checks::base_url(setup)).await);
        }
        checks.extend([
            checks::settings(setup),
            checks::state_directory(setup),
            checks::temp_directory(setup),
        ]);
        checks.extend(servers::check(setup));
        checks.push(clock::check());
        Self { tier, checks }
    }

    /// Runs the checks that are possible on a machine where nothing can be confined.
    pub(crate) fn of_nothing(why: &str) -> Self {
        let (found, next) = parted(why);
        let mut checks = vec![self_test::nothing_confined(found).remedy(next)];
        checks.extend(profile::profile());
        checks.extend([surroundings::check(), cgroups::check(), checks::shell(), checks::terminal()]);
        checks.extend([network::proxies(), network::authorities(), clock::check()]);
        Self { tier: None, checks }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.checks.iter().any(|check| check.state == CheckState::Fail)
    }

    /// Prints one line for each check, with its advice below.
    pub(crate) fn print(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        for DoctorCheck { name, state, found, remedy } in &self.checks {
            let state = match state {
                CheckState::Ok => "ok",
                CheckState::Warn => "warn",
                CheckState::Fail => "FAIL",
            };
            writeln!(out, "{state:<5} {name:<11} {found}")?;
            if let Some(remedy) = remedy {
                writeln!(out, "      {:<11} hint: {remedy}", "")?;
            }
        }
        out.flush()
    }
}
