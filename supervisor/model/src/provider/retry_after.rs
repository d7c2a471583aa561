//! The delay that a provider requests before the next attempt.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Returns the delay in `retry-after-ms`, or in `retry-after` as seconds, with a unit, or as an HTTP date.
///
/// `None` for zero, a negative number and a past date. If both headers are present, as with `retry-after: 1` and
/// `retry-after-ms: 0` from Azure, the milliseconds count.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return seconds(ms / 1000.0);
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    // Some gateways send a number with a unit.
    if let Some(wait) = duration(text) {
        return seconds(wait);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(now).ok().filter(|wait| !wait.is_zero())
}

/// Lower-case phrases before a delay in a message.
const BEFORE: [&str; 7] = [
    "try again in",
    "try again after",
    "retry in",
    "retry after",
    "please wait",
    "available in",
    "retrydelay",
];

/// Returns the delay in a message such as "Please try again in 1m2.5s", for errors without a header; else `None`.
pub(crate) fn wait_in_words(message: &str) -> Option<Duration> {
    let message = message.to_lowercase();
    let behind = BEFORE.iter().find_map(|words| Some(message.split_once(words)?.1))?;
    let text = behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '"' | '~'));
    seconds(duration(text)?)
}

/// Parses a duration in seconds: `20s`, `1m2.5s`, `579ms`, `2 minutes`. `None` without a unit.
fn duration(text: &str) -> Option<f64> {
    let (mut rest, mut sum) = (text.trim_start(), None);
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().ok()?;
        let behind = rest[end..].trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let unit = match &behind[..end] {
            "ms" | "milliseconds" | "millisecond" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + number * unit);
        rest = behind[end..].trim_start();
    }
    sum
}

/// Returns the duration of `number` seconds; `None` unless positive. Too large a number gives the longest duration.
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
            (&[("retry-after", "2s")], ms(2000)),
            (&[("retry-after", "1m")], ms(60_000)),
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

    /// Rate-limit errors without a header name the delay in their message.
    #[test]
    fn e3_a_wait_in_words_is_found() {
        let ms = |ms| Some(Duration::from_millis(ms));
        for (server, words, expected) in [
            (
                "OpenAI",
                "Rate limit reached for m on tokens per min (TPM): Limit 300000, Used 286751. Please try again in 579ms.",
                ms(579),
            ),
            (
                "OpenAI",
                "Limit 1500000, Used 1484072, Requested 16144. Please try again in 1m9.696s. Visit",
                ms(69_696),
            ),
            ("Groq", "Limit 15000, Used 11972, Requested 4351. Please try again in 5.289s. Visit", ms(5_289)),
            ("Groq", "Please try again in 1h2m3s", ms(3_723_000)),
            (
                "Azure",
                "Requests have exceeded the token rate limit. Please retry after 20 seconds.",
                ms(20_000),
            ),
            ("Gemini", "You exceeded your current quota. Please retry in 34.5s.", ms(34_500)),
            ("Gemini", "details: [{\"retryDelay\": \"7s\"}]", ms(7_000)),
            ("a gateway", "Too many requests, please wait 2 minutes", ms(120_000)),
            ("a gateway", "Rate limit: try again in 3 sec", ms(3_000)),
            ("no unit", "try again in 20", None),
            ("no number", "Please try again later", None),
            ("no wait", "Please try again in a moment. 5s is the limit", None),
            ("nothing", "try again in 0s", None),
            ("other numbers", "Limit 6000, Requested 7000 in 60s", None),
        ] {
            assert_eq!(wait_in_words(words), expected, "{server}: {words}");
        }
    }
}
