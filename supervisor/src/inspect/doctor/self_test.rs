//! The self-test: sandbox-exec, confined like a worker, tries everything that must be denied, and reports the results.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use ipc::confinement::{Attempt, Bounds, Confinement, FullTierRefusal, RulesetReport, TierChoice};
use nix::sys::utsname::uname;
use nix::unistd::geteuid;

use super::machine::DoctorMachine;
use super::{CheckState, DoctorCheck, TierFound};
use crate::engine::inside::{self, InsideError};
use crate::engine::place::ProjectSandbox;

pub(super) struct Outcome {
    pub ruleset: RulesetReport,
    pub attempts: Vec<Attempt>,
}

/// Returns the checks for kernel, confinement and self-test, and the tested tier; `None` if nothing can be confined.
pub(super) async fn checks(setup: &ProjectSandbox) -> (Vec<DoctorCheck>, Option<TierFound>) {
    let Outcome { ruleset, attempts } = match attack(setup, setup.tier).await {
        Ok(outcome) => outcome,
        Err(error) => return (vec![failed(setup, &error)], None),
    };
    let best = match setup.tier {
        TierChoice::Floor => attack(setup, TierChoice::Best).await.ok().map(|outcome| outcome.ruleset),
        TierChoice::Best | TierChoice::Full => None,
    };
    let best = best.as_ref().unwrap_or(&ruleset);
    let found = TierFound {
        tested: ruleset.tier,
        runs_start_in: best.tier,
        no_full_tier: best.no_full_tier.as_ref().map(|reason| reason.detail.clone()),
    };
    let tier = tier(setup, &ruleset, best);
    let checks = vec![kernel(&ruleset), tier, bounds(&ruleset), self_test(&attempts)];
    (checks, Some(found))
}

/// Returns the check for a machine on which no self-test is possible.
pub(super) fn nothing_confined(why: impl std::fmt::Display) -> DoctorCheck {
    DoctorCheck::new("sandbox", CheckState::Fail, format!("no sandbox works here: {why}"))
}

pub(super) fn failed(setup: &ProjectSandbox, error: &InsideError) -> DoctorCheck {
    let check = nothing_confined(error);
    match error {
        InsideError::Spawn(_) => check.remedy("put bailiwick, bailiwick-worker and sandbox-exec into one directory"),
        InsideError::Refused { detail, refusal: Some(refusal), .. } => {
            DoctorCheck { found: format!("no full tier here, and --tier full allows no other: {detail}"), ..check }
                .remedy(format!("{}; without --tier full, runs start in the floor tier", refused(setup, Some(*refusal))))
        }
        InsideError::Refused { stage, .. } if stage == "platform" => check.remedy(
            "use a kernel of 5.13 or later with Landlock enabled (lsm=…,landlock), and a container profile that allows landlock_* and seccomp; --allow-degraded runs with what this machine can enforce",
        ),
        InsideError::Refused { .. } if setup.tier != TierChoice::Floor => {
            check.remedy("try --tier floor, and report this with the kernel's version")
        }
        _ => check.remedy("report this with the kernel's version"),
    }
}

/// Returns advice for a machine that refuses full confinement.
pub(super) fn refused(setup: &ProjectSandbox, refusal: Option<FullTierRefusal>) -> String {
    DoctorMachine::look().remedy(refusal, &setup.programs.sandbox_exec)
}

pub(super) fn release() -> String {
    let release = uname().map(|name| name.release().to_string_lossy().into_owned());
    release.unwrap_or_else(|_| "unknown".to_owned())
}

fn kernel(ruleset: &RulesetReport) -> DoctorCheck {
    let release = release();
    let what = match ruleset.landlock_abi {
        0 => "no Landlock",
        1..=3 => "files",
        4 => "files, TCP ports",
        5 => "files, TCP ports, ioctl",
        6 => "files, TCP ports, ioctl, scopes",
        _ => "files, TCP ports, ioctl, scopes, audit",
    };
    let found = format!("{release}, Landlock ABI {} ({what})", ruleset.landlock_abi);
    let state = if ruleset.landlock_abi == 0 { CheckState::Fail } else { CheckState::Ok };
    DoctorCheck::new("kernel", state, found)
}

/// Returns the check of the tested tier: whether real runs use the same tier, and what the tier does not enforce.
fn tier(setup: &ProjectSandbox, ruleset: &RulesetReport, best: &RulesetReport) -> DoctorCheck {
    let why = match (setup.tier, &best.no_full_tier) {
        (TierChoice::Floor, None) if best.tier != ruleset.tier => {
            format!(", as --tier floor demands; without this flag, runs start in the {} tier", best.tier)
        }
        (_, None) => ": runs start in this tier".to_owned(),
        (_, Some(reason)) => {
            format!(": runs use this tier, because there is no full tier here: {}", reason.detail)
        }
    };
    let missing = match ruleset.missing.as_slice() {
        [] => String::new(),
        missing => format!("; not enforced: {}", missing.join("; ")),
    };
    let RulesetReport { tier, rules, seccomp_rules, .. } = ruleset;
    let text = format!("{tier}{why}; {rules} Landlock rules, {seccomp_rules} seccomp rules{missing}");
    let is_whole = ruleset.missing.is_empty() && ruleset.no_full_tier.is_none();
    let state = if is_whole { CheckState::Ok } else { CheckState::Warn };
    let check = DoctorCheck::new("tier", state, text);
    match &best.no_full_tier {
        Some(reason) => check.remedy(format!("for the full tier: {}", refused(setup, reason.refusal))),
        None => check,
    }
}

/// Returns the check of the limits on processes and memory.
fn bounds(ruleset: &RulesetReport) -> DoctorCheck {
    let Bounds { processes, memory } = ruleset.bounds;
    let of_processes = processes.map(|most| format!("at most {most} processes"));
    let of_memory = memory.map(|most| format!("at most {} MiB of memory", most >> 20));
    let found = format!(
        "{}; {}",
        of_processes.as_deref().unwrap_or("processes not limited"),
        of_memory.as_deref().unwrap_or("memory not limited")
    );
    let check = DoctorCheck::new("bounds", CheckState::Ok, found);
    if processes.is_some() && memory.is_some() {
        return check;
    }
    // The test for systemd, from sd_booted(3).
    if !Path::new("/run/systemd/system").is_dir() {
        return check;
    }
    let user = if geteuid().is_root() { "" } else { "--user " };
    check.remedy(format!(
        "systemd-run {user}--same-dir --pty -p Delegate=yes -p DelegateSubgroup=main bailiwick (systemd 254 or later) limits both"
    ))
}

fn self_test(attempts: &[Attempt]) -> DoctorCheck {
    let (denied, open): (Vec<_>, Vec<_>) = attempts.iter().partition(|attempt| attempt.denied);
    let names = |attempts: &[&Attempt]| {
        let names: Vec<_> = attempts.iter().map(|attempt| attempt.act.as_str()).collect();
        names.join(", ")
    };
    if open.is_empty() && !denied.is_empty() {
        let found = format!(
            "a process in the sandbox could not: {}  ({} of {} blocked by the kernel)",
            names(&denied),
            denied.len(),
            attempts.len()
        );
        return DoctorCheck::new("self-test", CheckState::Ok, found);
    }
    let found = format!(
        "a process in the sandbox COULD: {}  ({} of {} denied)",
        names(&open),
        denied.len(),
        attempts.len()
    );
    DoctorCheck::new("self-test", CheckState::Fail, found)
        .remedy("do not run agents here; report this with the kernel's version")
}

/// Runs the self-test with the access of an agent's worker.
pub(super) async fn attack(setup: &ProjectSandbox, tier: TierChoice) -> Result<Outcome, InsideError> {
    // The secret is a hidden path: it is in Bailiwick's state directory, which exists on every machine.
    let secret = tempfile::NamedTempFile::new_in(&setup.directories.state)?;
    let confinement = Confinement { tier, ..setup.confinement(setup.policy.standing()) };
    let name = format!("bailiwick-doctor-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let targets = inside::SelfTestTargets { hidden: Some(secret.path()), abstract_name: Some(&name) };
    let (ruleset, attempts) = inside::self_test(setup, confinement, targets).await?;
    Ok(Outcome { ruleset, attempts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(act: &str, denied: bool) -> Attempt {
        Attempt { act: act.to_owned(), denied, errno: 13 }
    }

    #[test]
    fn one_open_door_fails_the_self_test() {
        let check = self_test(&[attempt("write the home", true), attempt("open a socket", false)]);
        assert_eq!(check.state, CheckState::Fail);
        assert_eq!(check.found, "a process in the sandbox COULD: open a socket  (1 of 2 denied)");
        assert_eq!(self_test(&[attempt("write the home", true)]).state, CheckState::Ok);
    }

    #[test]
    fn a_self_test_that_tried_nothing_is_no_success() {
        assert_eq!(self_test(&[]).state, CheckState::Fail);
    }
}
