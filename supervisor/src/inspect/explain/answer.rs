//! The answer of `bailiwick explain` about one action, with its reason.

use ipc::denial::{Denial, Layer};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExplainVerdict {
    Allowed,
    /// Allowed after the person has approved the action.
    Asked,
    Denied,
    Depends,
}

impl ExplainVerdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "yes",
            Self::Asked => "asked",
            Self::Denied => "no",
            Self::Depends => "depends",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ExplainAnswer {
    pub verdict: ExplainVerdict,
    pub because: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Flag that would allow this action and nothing else; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedAct>,
    /// True if the kernel denies an action that the policy allows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub narrower: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum TriedAct {
    Done,
    /// The sandbox denied the action.
    Refused {
        error: String,
    },
    /// Normal file permissions deny the action.
    NotPermitted {
        error: String,
    },
    /// The action failed without a denial, for example because its target is missing.
    Failed {
        error: String,
    },
    /// The action was not tried.
    Untried {
        why: String,
    },
}

impl ExplainAnswer {
    pub(super) fn allowed(because: impl Into<String>, origin: Option<String>) -> Self {
        Self { origin, ..Self::new(ExplainVerdict::Allowed, because) }
    }

    pub(super) fn new(verdict: ExplainVerdict, because: impl Into<String>) -> Self {
        Self {
            verdict,
            because: because.into(),
            origin: None,
            layer: None,
            grant: None,
            tried: None,
            narrower: false,
        }
    }

    /// Returns the answer for an action that the gate denies.
    pub(super) fn denied(denial: &Denial, because: impl Into<String>, origin: Option<String>) -> Self {
        let (layer, grant) = (Some(denial.layer), denial.grant.clone());
        Self { origin, layer, grant, ..Self::new(ExplainVerdict::Denied, because) }
    }

    /// Returns `wider` if the attempt succeeded against the policy, `narrower` if only the kernel denies it; or `None`.
    pub(crate) fn difference(&self) -> Option<&'static str> {
        match (self.verdict, &self.tried) {
            (ExplainVerdict::Denied | ExplainVerdict::Asked, Some(TriedAct::Done)) => Some("wider"),
            _ if self.narrower => Some("narrower"),
            _ => None,
        }
    }

    /// Returns the result of the attempt in one word.
    pub(crate) const fn in_effect(&self) -> &'static str {
        match &self.tried {
            Some(TriedAct::Done) => "yes",
            Some(TriedAct::Refused { .. }) => "no",
            Some(TriedAct::NotPermitted { .. }) => "modes",
            Some(TriedAct::Failed { .. }) | None => "-",
            Some(TriedAct::Untried { .. }) => "?",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_although_it_may_not_be_is_a_difference() {
        let of = |verdict, tried| {
            ExplainAnswer { tried: Some(tried), ..ExplainAnswer::new(verdict, "") }.difference()
        };
        let refused = || TriedAct::Refused { error: "EACCES".to_owned() };
        for verdict in [ExplainVerdict::Denied, ExplainVerdict::Asked] {
            assert_eq!((of(verdict, TriedAct::Done), of(verdict, refused())), (Some("wider"), None));
        }
        assert_eq!(of(ExplainVerdict::Allowed, TriedAct::Done), None);
        let narrower = ExplainAnswer { narrower: true, ..ExplainAnswer::new(ExplainVerdict::Denied, "") };
        assert_eq!(narrower.difference(), Some("narrower"));
    }
}
