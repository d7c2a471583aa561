//! Compares the result of an attempt in the sandbox with the gate's judgement.

use ipc::confinement::Tier;
use ipc::denial::Operation;
use ipc::path::WirePath;
use ipc::probe::Outcome;
use libc::{EACCES, EPERM, EROFS};
use nix::errno::Errno;

use super::answer::{ExplainAnswer, ExplainVerdict, TriedAct};
use super::judge::Judge;
use super::origins::default;

impl Judge<'_> {
    /// Adds an attempt's result to the answer, which becomes a denial if the kernel denies what the policy allows.
    pub(super) fn compare(
        &self,
        operation: Operation,
        answer: ExplainAnswer,
        outcome: Option<&Outcome>,
    ) -> ExplainAnswer {
        let tried = outcome.map(|outcome| self.tried(outcome));
        let is_absent = matches!(&tried, Some(TriedAct::Failed { error }) if error == "ENOENT");
        if is_absent && !self.exists {
            return answer;
        }
        let closes = is_absent && !self.is_in_own_tmp() || matches!(tried, Some(TriedAct::Refused { .. }));
        let answer = self.unheld(operation, ExplainAnswer { tried, ..answer });
        if !closes || answer.verdict != ExplainVerdict::Allowed {
            return answer;
        }
        let because = closed(&self.real, operation).to_owned();
        let narrower = !["/dev", "/proc"].iter().any(|tree| self.real.is_within(&WirePath::from(*tree)));
        ExplainAnswer { verdict: ExplainVerdict::Denied, because, narrower, origin: default(), ..answer }
    }

    /// Adjusts the answer for the floor tier, which has no mounts of its own and enforces less than the full tier.
    fn unheld(&self, operation: Operation, answer: ExplainAnswer) -> ExplainAnswer {
        let rights = self.policy.standing.rights();
        let within = |roots: &[WirePath]| roots.iter().any(|root| self.real.is_within(root));
        let hidden = self.policy.standing.hidden_root(&self.real).is_some();
        let protected = within(&rights.protected);
        let why = match operation {
            // The rules do not prevent that the names in a hidden directory are listed.
            Operation::Read if hidden && self.real.as_path().is_dir() => {
                "the names in this directory can be listed, but none of its files can be read"
            }
            Operation::Write if !within(&rights.write) => return answer,
            Operation::Write if hidden => "this path can be replaced, but not read",
            Operation::Write if protected => {
                "the kernel does not block changes, but they are undone after the call"
            }
            _ => return answer,
        };
        let is_open = (answer.verdict, &answer.tried) == (ExplainVerdict::Denied, &Some(TriedAct::Done));
        if !is_open || self.policy.standing.tier() == Tier::Full {
            return answer;
        }
        let because = format!("{}; in this tier {why}", answer.because);
        ExplainAnswer { verdict: ExplainVerdict::Depends, because, ..answer }
    }

    fn tried(&self, outcome: &Outcome) -> TriedAct {
        let (errno, permitted_by_mode) = match outcome {
            Outcome::Done => return TriedAct::Done,
            Outcome::Untried { why } => return TriedAct::Untried { why: why.clone() },
            Outcome::Refused { errno, permitted_by_mode } => (*errno, *permitted_by_mode),
        };
        let error = format!("{:?}", Errno::from_raw(errno));
        let standing = self.policy.standing;
        // In the full tier, the mount over a hidden path has a mode that permits nothing.
        let is_masked = standing.tier() == Tier::Full && standing.hidden_root(&self.real).is_some();
        match (errno, permitted_by_mode || is_masked) {
            (EACCES | EPERM | EROFS, true) => TriedAct::Refused { error },
            (EACCES | EPERM | EROFS, false) => TriedAct::NotPermitted { error },
            _ => TriedAct::Failed { error },
        }
    }

    /// Returns the answer for a connection; `None` if the path is no socket.
    pub(super) fn connect(&self, outcome: Option<&Outcome>) -> Option<ExplainAnswer> {
        let tried = outcome.map(|outcome| self.tried(outcome));
        self.connectable().map(|answer| ExplainAnswer { tried, ..answer })
    }

    /// True if the path leads to another file inside the sandbox, because the sandbox has its own `/tmp`.
    pub(super) fn is_in_own_tmp(&self) -> bool {
        let setup = self.policy.setup;
        let hosts = &setup.policy;
        let confinement = setup.confinement(hosts.standing());
        let private = confinement.has_private_tmp(self.policy.standing.tier());
        let roots = confinement.rights.write.iter().filter(|root| **root != hosts.temp);
        let shown = roots.chain([&hosts.project]);
        private && self.real.is_within(&"/tmp".into()) && !{ shown }.any(|root| self.real.is_within(root))
    }
}

/// Returns the reason why the kernel denies an action that the policy allows.
fn closed(path: &WirePath, operation: Operation) -> &'static str {
    let within = |tree: &str| path.is_within(&WirePath::from(tree));
    match operation {
        _ if within("/dev") => {
            "the sandbox's /dev has only harmless devices of the host, and devices of its own"
        }
        _ if within("/proc") => "the sandbox has its own /proc, which shows no other processes",
        Operation::Write => {
            "the kernel blocks this write: the path is below a writable directory, but not one of the directory's own files"
        }
        _ => {
            "the kernel blocks this: the path is next to a hidden path, and was created after the sandbox, or is another name of a hidden file"
        }
    }
}
