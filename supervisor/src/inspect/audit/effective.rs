//! The access that an agent really has, measured by attempts and compared with its declared access.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use gate::{ApprovalMode, StandingRights};
use ipc::confinement::{Attempt, Confinement, Tier};
use ipc::path::WirePath;
use ipc::probe::Outcome;
use ipc::rights::RightsSummary;
use serde::Serialize;

use super::places;
use crate::engine::driver::ruleset_digest;
use crate::engine::inside::{self, SelfTestTargets};
use crate::inspect::explain::{ExplainAnswer, ExplainError, ExplainPolicy, ExplainedPlace, PathExplained};

#[derive(Debug, Serialize)]
pub(super) struct EffectiveAccess {
    pub tier: Tier,
    pub mode: ApprovalMode,
    pub rights: RightsSummary,
    /// SHA-256 of the rules that the kernel enforces, in the form of a session's log.
    pub ruleset_digest: String,
    /// The reason why the tier is not `full`; `None` if it is `full`, or if another tier was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_full_tier: Option<String>,
    /// Security guarantees that this machine does not enforce.
    pub not_enforced: Vec<String>,
    /// Differences from the declared access, one sentence for each.
    pub differences: Vec<String>,
    pub paths: Vec<PathTried>,
    /// Results of attempts at actions that must always be denied.
    pub acts: Vec<Attempt>,
}

#[derive(Debug, Serialize)]
pub(super) struct PathTried {
    pub path: WirePath,
    /// Result of opening the file for reading.
    pub read: ExplainAnswer,
    /// Result of opening the file for writing.
    pub write: ExplainAnswer,
    /// Result of connecting to the socket; `None` if nothing listens there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<ExplainAnswer>,
}

impl EffectiveAccess {
    /// Makes all attempts in the sandbox of a session's worker. Fails if the sandbox cannot be set up.
    pub(super) async fn probe(place: &ExplainedPlace) -> Result<Self, ExplainError> {
        let confinement = place.setup.confinement(place.setup.policy.standing());
        Self::tried(place, confinement, |tier| place.standing(tier)).await
    }

    /// Makes all attempts in this sandbox, and compares the results with the declared access.
    pub(super) async fn tried(
        place: &ExplainedPlace,
        confinement: Confinement,
        standing: impl FnOnce(Tier) -> StandingRights,
    ) -> Result<Self, ExplainError> {
        let setup = &place.setup;
        let paths = places::of(setup, &confinement);
        let probes: Vec<_> = paths.iter().flat_map(|path| PathExplained::probes(path)).collect();
        let (ruleset, outcomes) = inside::try_all(setup, confinement.clone(), &probes).await?;
        let (_, acts) = inside::self_test(setup, confinement.clone(), SelfTestTargets::default()).await?;
        let standing = standing(ruleset.tier);
        let policy = place.policy(&standing);
        let tried = paths.iter().zip(outcomes.chunks(PathExplained::PROBES));
        let paths: Vec<_> = tried.map(|(path, outcomes)| PathTried::new(path, &policy, outcomes)).collect();
        let differences = paths.iter().flat_map(PathTried::differences);
        let open = acts
            .iter()
            .filter(|act| !act.denied)
            .map(|act| format!("wider than declared: a process in the sandbox could {}", act.act));
        Ok(Self {
            tier: ruleset.tier,
            mode: standing.mode(),
            rights: standing.summary(),
            ruleset_digest: ruleset_digest(&confinement, &ruleset),
            no_full_tier: ruleset.no_full_tier.as_ref().map(|reason| reason.detail.clone()),
            not_enforced: ruleset.missing.clone(),
            differences: differences.chain(open).collect(),
            paths,
            acts,
        })
    }

    pub(super) const fn is_as_declared(&self) -> bool {
        self.differences.is_empty()
    }
}

impl PathTried {
    fn new(path: &Path, policy: &ExplainPolicy<'_>, outcomes: &[Outcome]) -> Self {
        let PathExplained { path, read, write, connect, .. } = PathExplained::new(path, policy, outcomes);
        Self { path, read, write, connect }
    }

    fn differences(&self) -> Vec<String> {
        let acts =
            [("read", Some(&self.read)), ("write", Some(&self.write)), ("connect to", self.connect.as_ref())];
        let differences = acts.into_iter().filter_map(|(act, answer)| {
            let difference = answer?.difference()?;
            Some(format!("{difference}: {act} {}", self.path))
        });
        differences.collect()
    }
}

impl EffectiveAccess {
    fn verdict(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_as_declared() {
            let (paths, acts) = (self.paths.len(), self.acts.len());
            return writeln!(f, "as declared: tried {paths} paths and {acts} actions");
        }
        self.differences.iter().try_for_each(|difference| writeln!(f, "DIFFERENT {difference}"))
    }

    fn rows(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "read  write")?;
        for PathTried { path, read, write, connect } in &self.paths {
            write!(f, "{:<5} {:<6} {path}", read.in_effect(), write.in_effect())?;
            match connect {
                Some(connect) => writeln!(f, " (a socket; connect: {})", connect.in_effect())?,
                None => writeln!(f)?,
            }
        }
        for Attempt { act, denied, .. } in &self.acts {
            writeln!(f, "{:<12} {act}", if *denied { "denied" } else { "POSSIBLE" })?;
        }
        Ok(())
    }
}

impl Display for EffectiveAccess {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { tier, mode, rights, ruleset_digest, .. } = self;
        self.verdict(f)?;
        writeln!(f, "{tier} tier · mode {mode} · access: {rights}")?;
        writeln!(f, "ruleset {ruleset_digest}")?;
        self.no_full_tier.iter().try_for_each(|why| writeln!(f, "no full tier: {why}"))?;
        self.not_enforced.iter().try_for_each(|missing| writeln!(f, "not enforced: {missing}"))?;
        if f.alternate() { self.rows(f) } else { Ok(()) }
    }
}
