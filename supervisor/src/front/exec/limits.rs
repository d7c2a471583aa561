//! Limits of a run that come from the project's settings file, and that no flag can raise.

use agent::core::EndReason;

use crate::settings::config::{ConfigOrigin, Effective};

/// The reason for which a run ends at a limit, and the limit's key in the settings file.
const KEYS: [(EndReason, &str); 4] = [
    (EndReason::StepLimit, "limits.max_steps"),
    (EndReason::TokenLimit, "limits.max_tokens"),
    (EndReason::CostLimit, "limits.max_usd"),
    (EndReason::TimeLimit, "limits.timeout_s"),
];

/// The project's limits: the reason for which a run ends at each, and a text that names the key in the settings file.
#[derive(Debug, Default)]
pub(super) struct ProjectLimits(Vec<(EndReason, String)>);

impl ProjectLimits {
    pub(super) fn of(effective: &Effective) -> Self {
        let of_project = |(reason, key): (EndReason, &str)| {
            let settled = effective.get(key)?;
            let is_projects = matches!(settled.origin, ConfigOrigin::Project(_));
            is_projects
                .then(|| (reason, format!("{} sets {key}, and no flag can raise this limit", settled.origin)))
        };
        Self(KEYS.into_iter().filter_map(of_project).collect())
    }

    pub(super) fn next_step(&self, reason: EndReason) -> Option<String> {
        let (_, limit) = self.0.iter().find(|(of, _)| *of == reason)?;
        Some(format!("{limit}: change the limit there, or give a smaller task"))
    }
}
