//! Times for people, in the time zone of the machine.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns a time with its date: `2026-11-29 17:40`.
pub(crate) fn local(time: Timestamp) -> String {
    shown(time, TimeZone::system(), "%Y-%m-%d %H:%M")
}

/// Returns the time of an event without the year, as in `11-29 17:40`. `time_ms` is in milliseconds since the epoch.
pub(crate) fn of_log(time_ms: u64) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    time.map(|time| shown(time, TimeZone::system(), "%m-%d %H:%M")).unwrap_or_default()
}

fn shown(time: Timestamp, zone: TimeZone, form: &str) -> String {
    time.to_zoned(zone).strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;

    use super::*;

    #[test]
    fn a_time_is_told_in_the_zone_of_the_machine() {
        let zone = || TimeZone::fixed(Offset::constant(2));
        let time = Timestamp::from_second(1_795_996_800).unwrap();
        assert_eq!(shown(time, zone(), "%Y-%m-%d %H:%M"), "2026-11-30 02:00");
        assert_eq!(of_log(u64::MAX), "");
    }
}
