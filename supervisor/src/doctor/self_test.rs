//! The attack on ourselves: sandbox-exec, confined like a worker, tries what must be denied, and says what happened.

use std::time::Duration;

use ipc::confinement::{Attempt, BrokerReport, RulesetReport};
use ipc::id::Generation;
use ipc::pipe::AsyncIncoming;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::{Check, State};
use crate::app::setup::Setup;
use crate::monitor::{BrokerProcess, Launch, Launched, Stdio};

/// The self-test takes milliseconds; one that hangs is a failure.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a self-test brought.
struct Outcome {
    ruleset: RulesetReport,
    attempts: Vec<Attempt>,
}

/// Kernel, Landlock, seccomp and the self-test, each as a check.
pub(super) async fn checks(setup: &Setup) -> Vec<Check> {
    match timeout(PATIENCE, attack(setup)).await {
        Ok(Ok(outcome)) => {
            vec![kernel(&outcome.ruleset), tier(&outcome.ruleset), self_test(&outcome.attempts)]
        }
        Ok(Err(error)) => vec![failed(&error.to_string())],
        Err(_) => vec![failed("it did not end within 10 s")],
    }
}

fn failed(why: &str) -> Check {
    if why.contains("cannot execute") {
        return Check::new("sandbox", State::Fail, format!("cannot confine anything here: {why}"))
            .remedy("put bailiwick, bailiwick-worker and sandbox-exec beside each other");
    }
    Check::new("sandbox", State::Fail, format!("cannot confine anything here: {why}")).remedy(
        "a kernel of 5.13 or later with Landlock enabled (lsm=…,landlock), and a container profile that allows \
         landlock_* and seccomp; --allow-degraded runs with what there is",
    )
}

fn kernel(ruleset: &RulesetReport) -> Check {
    let release = nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned());
    let release = release.unwrap_or_else(|_| "unknown".to_owned());
    let what = match ruleset.landlock_abi {
        0 => "no Landlock",
        1..=3 => "files",
        4 => "files, TCP ports",
        5 => "files, TCP ports, ioctl",
        6 => "files, TCP ports, ioctl, scopes",
        _ => "files, TCP ports, ioctl, scopes, audit",
    };
    let found = format!("{release}, Landlock ABI {} ({what})", ruleset.landlock_abi);
    let state = if ruleset.landlock_abi == 0 { State::Fail } else { State::Ok };
    Check::new("kernel", state, found)
}

fn tier(ruleset: &RulesetReport) -> Check {
    let found = format!(
        "{}: {} Landlock rules, {} seccomp rules{}",
        ruleset.tier,
        ruleset.rules,
        ruleset.seccomp_rules,
        if ruleset.missing.is_empty() {
            String::new()
        } else {
            format!("; missing: {}", ruleset.missing.join("; "))
        }
    );
    Check::new("tier", if ruleset.missing.is_empty() { State::Ok } else { State::Warn }, found)
}

fn self_test(attempts: &[Attempt]) -> Check {
    let (denied, open): (Vec<_>, Vec<_>) = attempts.iter().partition(|attempt| attempt.denied);
    let names = |attempts: &[&Attempt]| {
        let names: Vec<_> = attempts.iter().map(|attempt| attempt.act.as_str()).collect();
        names.join(", ")
    };
    if open.is_empty() && !denied.is_empty() {
        let found = format!(
            "a confined process could not: {}  ({} of {} denied by the kernel)",
            names(&denied),
            denied.len(),
            attempts.len()
        );
        return Check::new("self-test", State::Ok, found);
    }
    let found = format!(
        "a confined process COULD: {}  ({} of {} denied)",
        names(&open),
        denied.len(),
        attempts.len()
    );
    Check::new("self-test", State::Fail, found)
        .remedy("do not run agents here; report this with the kernel's version")
}

/// Runs the self-test under the rights that an agent's worker would have here.
async fn attack(setup: &Setup) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
    let mut command = vec![setup.programs.sandbox_exec.clone().into_os_string(), "--self-test".into()];
    // Its own log directory is a hidden place that exists on every machine.
    let secret = tempfile::NamedTempFile::new_in(&setup.directories.state)?;
    command.extend(["--self-test-hidden".into(), secret.path().as_os_str().to_owned()]);
    let launch =
        Launch { confinement: setup.confinement(setup.policy.standing()), command, stdio: Stdio::Piped };
    let Launched { pidfd, stdin, stdout, stderr, status } = setup.spawner.spawn(launch).await?;
    drop(stdin);
    let broker = BrokerProcess::new(pidfd)?;
    let mut reports: AsyncIncoming<_, BrokerReport> =
        AsyncIncoming::new(pipe::Receiver::from_owned_fd(status)?, Generation::default());
    let ruleset = match reports.receive().await? {
        Some(BrokerReport::Started { ruleset, .. }) => ruleset,
        Some(BrokerReport::Failed { stage, detail, .. }) => return Err(format!("{stage}: {detail}").into()),
        Some(BrokerReport::Ended { .. }) | None => return Err(last_words(stderr).await.into()),
    };
    let mut text = String::new();
    pipe::Receiver::from_owned_fd(stdout.ok_or("no output")?)?.read_to_string(&mut text).await?;
    broker.end().await?;
    Ok(Outcome { ruleset, attempts: attempts(&text)? })
}

async fn last_words(stderr: Option<std::os::fd::OwnedFd>) -> String {
    let mut text = Vec::new();
    if let Some(Ok(mut stderr)) = stderr.map(pipe::Receiver::from_owned_fd) {
        let _ = stderr.read_to_end(&mut text).await;
    }
    let text = String::from_utf8_lossy(&text);
    text.trim().lines().next_back().unwrap_or("sandbox-exec ended without a word").escape_debug().to_string()
}

/// One JSON object a line.
fn attempts(text: &str) -> Result<Vec<Attempt>, serde_json::Error> {
    text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str).collect()
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
        assert_eq!(check.state, State::Fail);
        assert_eq!(check.found, "a confined process COULD: open a socket  (1 of 2 denied)");
        assert_eq!(self_test(&[attempt("write the home", true)]).state, State::Ok);
    }

    #[test]
    fn a_self_test_that_tried_nothing_is_no_success() {
        assert_eq!(self_test(&[]).state, State::Fail);
    }
}
