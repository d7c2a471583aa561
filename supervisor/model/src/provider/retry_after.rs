//! How long a provider asks to wait before the next attempt (WIRE E3).

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The wait that the headers ask for: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.
///
/// Zero, a negative number and a date that is past ask for nothing: the caller's own back-off applies. Azure sends
/// `retry-after: 1` together with `retry-after-ms: 0`, and means the second.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return seconds(ms / 1000.0);
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(now).ok().filter(|wait| !wait.is_zero())
}

/// A positive number of seconds; one that no clock can hold is the longest wait there is.
fn seconds(number: f64) -> Option<Duration> {
    (number > 0.0)
        .then(|| Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX))
        .filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    type Case = (&'static [(&'static str, &'static str)], Option<Duration>);

    #[test]
    fn e3_every_form_of_the_wait() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 20:00:00 GMT").expect("a date");
        let ms = |ms| Some(Duration::from_millis(ms));
        let cases: &[Case] = &[
            (&[], None),
            (&[("retry-after", "2")], ms(2000)),
            (&[("retry-after", " 1.5 ")], ms(1500)),
            (&[("retry-after", "0")], None),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "1e300")], Some(Duration::MAX)),
            (&[("retry-after", "inf")], Some(Duration::MAX)),
            (&[("retry-after", "Sat, 21 Nov 2026 20:00:30 GMT")], ms(30_000)),
            (&[("retry-after", "Sat, 21 Nov 2026 19:59:59 GMT")], None),
            (&[("retry-after-ms", "250"), ("retry-after", "9")], ms(250)),
            (&[("retry-after-ms", "0"), ("retry-after", "1")], None),
            (&[("retry-after-ms", "x"), ("retry-after", "1")], ms(1000)),
        ];
        for (headers, expected) in cases {
            let map = headers.iter().map(|&(name, value)| {
                (name.parse().expect("a header name"), HeaderValue::from_static(value))
            });
            assert_eq!(retry_after(&map.collect(), now), *expected, "{headers:?}");
        }
    }
}
