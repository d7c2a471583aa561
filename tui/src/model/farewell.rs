use std::time::Duration;

use super::Model;
use crate::moment::UiTime;

/// Returns the line about the session that stays in the terminal after its end. Example: `Ended · 12 min · 4 files ·
/// +18 -5 · $0.41 · 2 things were blocked (bailiwick audit)`.
pub(super) fn text(model: &Model) -> String {
    let account = model.agents.spent_in_all();
    let blocked = match model.agents.each().map(|(_, view)| view.denied.len()).sum::<usize>() {
        0 => None,
        1 => Some("1 thing was blocked (bailiwick audit)".to_owned()),
        many => Some(format!("{many} things were blocked (bailiwick audit)")),
    };
    let parts = [
        Some("Ended".to_owned()),
        Some(lasted(model.now.since(UiTime::default()))),
        model.changes.summary(),
        account.money().filter(|_| account.usage.total() > 0),
        blocked,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn lasted(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}
