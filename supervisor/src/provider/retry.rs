//! Whether and when a failed attempt is made again: a pure policy (WIRE E2, E3).

use std::time::Duration;

use super::ProviderError;

/// The first wait of our own.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait of our own (the vendor's SDK takes the same).
const CAP: Duration = Duration::from_secs(8);
/// The longest wait of our own where the provider is overloaded: waiting is then what helps.
const OVERLOAD_CAP: Duration = Duration::from_mins(1);

/// When to try again, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts there are in all.
    pub max_attempts: u32,
    /// The longest wait that a provider may ask for; one that asks for more is given up.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 8, longest_wait: Duration::from_mins(5) }
    }
}

impl RetryPolicy {
    /// How long to wait after attempt number `attempt` (from 1) failed, or `None` to give up.
    ///
    /// The provider's own wait is honoured as it is; ours grows from half a second and is shortened by up to a quarter
    /// by `jitter` (0 to 1), so that many clients do not return at once.
    pub fn delay(&self, attempt: u32, error: &ProviderError, jitter: f64) -> Option<Duration> {
        if !error.retryable || attempt >= self.max_attempts {
            return None;
        }
        match error.retry_after {
            Some(wait) => (wait <= self.longest_wait).then_some(wait),
            None => Some(back_off(attempt, is_overload(error), jitter)),
        }
    }
}

fn back_off(attempt: u32, overloaded: bool, jitter: f64) -> Duration {
    let cap = if overloaded { OVERLOAD_CAP } else { CAP };
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    // A NaN clamps to itself, so it is ruled out first.
    let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
    doubled.min(cap).mul_f64(1.0 - 0.25 * jitter)
}

fn is_overload(error: &ProviderError) -> bool {
    matches!(error.status, Some(429 | 529))
        || matches!(error.kind.as_str(), "overloaded_error" | "rate_limit_error")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: &str, retryable: bool, retry_after: Option<u64>) -> ProviderError {
        let retry_after = retry_after.map(Duration::from_secs);
        ProviderError { retryable, retry_after, ..ProviderError::new(kind, "x") }
    }

    fn waits(error: &ProviderError, jitter: f64) -> Vec<Option<f64>> {
        let policy = RetryPolicy::default();
        (1..=8).map(|attempt| policy.delay(attempt, error, jitter).map(|wait| wait.as_secs_f64())).collect()
    }

    #[test]
    fn e3_own_waits_double_up_to_eight_seconds_and_end_after_the_last_attempt() {
        let ours = [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0].map(Some);
        assert_eq!(waits(&error("api_error", true, None), 0.0), [&ours[..], &[None]].concat());
        assert_eq!(waits(&error("connection", true, None), 1.0)[..2], [Some(0.375), Some(0.75)]);
    }

    #[test]
    fn e3_an_overloaded_provider_is_given_up_to_a_minute() {
        let ours = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(Some);
        assert_eq!(waits(&error("overloaded_error", true, None), 0.0), [&ours[..], &[None]].concat());
        let patient = RetryPolicy { max_attempts: 100, ..RetryPolicy::default() };
        let wait = patient.delay(99, &error("overloaded_error", true, None), f64::NAN);
        assert_eq!(wait, Some(Duration::from_mins(1)));
    }

    #[test]
    fn e3_the_providers_wait_is_honoured_up_to_the_cap_and_beyond_it_given_up() {
        let policy = RetryPolicy::default();
        let delay = |after| policy.delay(1, &error("rate_limit_error", true, Some(after)), 1.0);
        assert_eq!(delay(2), Some(Duration::from_secs(2)));
        assert_eq!(delay(300), Some(Duration::from_mins(5)));
        assert_eq!(delay(301), None);
    }

    #[test]
    fn e2_what_is_not_retryable_is_never_tried_again() {
        assert_eq!(
            RetryPolicy::default().delay(1, &error("authentication_error", false, Some(1)), 0.0),
            None
        );
    }
}
