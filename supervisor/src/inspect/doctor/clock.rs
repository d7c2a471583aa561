//! Checks the clock: with a wrong date, certificates seem invalid. A machine without a battery starts in 1970.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::{CheckState, DoctorCheck};

/// Tolerated difference from a server's clock. The server sends whole seconds, with some delay.
const SKEW: Duration = Duration::from_mins(5);

/// Time by which a file's date may be in the future. Archives store local times, which can differ by hours.
const A_DAY: Duration = Duration::from_hours(24);

/// Maximum age of Bailiwick's programs. If they are older, the clock is probably wrong.
const A_LIFE: Duration = Duration::from_hours(20 * 365 * 24);

const REMEDY: &str = "set the clock, as with timedatectl set-ntp true: TLS refuses certificates that are not yet valid, or have expired";

/// Checks that the time is plausible, compared with the date of Bailiwick's programs.
pub(super) fn check() -> DoctorCheck {
    let made = std::env::current_exe().and_then(|program| program.metadata()?.modified()).ok();
    judge(SystemTime::now(), made)
}

fn judge(now: SystemTime, made: Option<SystemTime>) -> DoctorCheck {
    let shown = shown(now);
    let is_before = made.and_then(|made| made.duration_since(now).ok()).is_some_and(|early| early > A_DAY);
    let is_late = made.and_then(|made| now.duration_since(made).ok()).is_some_and(|late| late > A_LIFE);
    match (is_before, is_late) {
        (true, _) => DoctorCheck::new(
            "clock",
            CheckState::Warn,
            format!("{shown}: before the date of Bailiwick's programs"),
        )
        .remedy(REMEDY),
        (_, true) => DoctorCheck::new(
            "clock",
            CheckState::Warn,
            format!("{shown}: decades after the date of Bailiwick's programs"),
        )
        .remedy(REMEDY),
        _ => DoctorCheck::new("clock", CheckState::Ok, shown),
    }
}

/// Returns a message if this machine's clock and a server's time differ by more than [`SKEW`].
pub(super) fn skew(now: SystemTime, server: SystemTime) -> Option<String> {
    let (apart, word) = match now.duration_since(server) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (apart > SKEW).then(|| format!("the clock is {} s {word} the server's", apart.as_secs()))
}

fn shown(time: SystemTime) -> String {
    Timestamp::try_from(time)
        .map_or_else(|_| "out of range".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_time_before_the_programs_were_made_is_not_plausible() {
        let made = Some(at(1_790_000_000));
        let state = |now| judge(at(now), made).state;
        assert_eq!(
            [state(1_790_000_000), state(1_790_000_000 - 3600), state(1_800_000_000)],
            [CheckState::Ok; 3]
        );
        assert_eq!([state(0), state(1_790_000_000 - 200_000), state(4_000_000_000)], [CheckState::Warn; 3]);
        assert_eq!(judge(at(0), None).state, CheckState::Ok, "nothing is known of them");
        assert_eq!(
            judge(at(0), made).found,
            "1970-01-01 00:00:00 UTC: before the date of Bailiwick's programs"
        );
    }

    #[test]
    fn a_server_tells_how_far_off_it_is() {
        assert_eq!(skew(at(1000), at(1290)), None);
        assert_eq!(skew(at(1000), at(1400)).as_deref(), Some("the clock is 400 s behind the server's"));
        assert_eq!(skew(at(5000), at(1000)).as_deref(), Some("the clock is 4000 s ahead of the server's"));
    }
}
