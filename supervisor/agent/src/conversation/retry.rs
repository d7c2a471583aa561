//! The delay before the next attempt of a failed request, computed without I/O.

use std::time::Duration;

use super::ProviderError;

/// Delay after the first failure if the provider requests none.
const FIRST: Duration = Duration::from_millis(500);
/// Maximum delay if the provider requests none. The vendor's SDK has the same maximum.
const CAP: Duration = Duration::from_secs(8);
/// Maximum delay after an overload or rate-limit error if the provider requests none.
const OVERLOAD_CAP: Duration = Duration::from_mins(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub attempts: u32,
    /// Maximum delay that a provider may request; a longer one ends the attempts at once.
    pub longest_wait: Duration,
    /// Maximum total delay in one turn.
    pub budget: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Number of the failed attempt, from 1.
    pub attempt: u32,
    /// Total time for which the turn has waited before earlier attempts.
    pub waited: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GiveUp {
    /// The request is not retryable: another attempt would fail in the same way.
    #[error("another attempt would fail the same way")]
    Pointless,
    #[error("given up after {0} attempts")]
    Attempts(u32),
    /// The provider requests a longer delay than is allowed.
    #[error("the provider asks to wait {} s, and Bailiwick waits at most {} s at once (retries.longest_wait_s)", .asked.as_secs(), .longest.as_secs())]
    LongWait { asked: Duration, longest: Duration },
    /// The turn has waited for the maximum time.
    #[error("given up: a turn waits for its provider no longer than {} s in all (retries.budget_s)", .0.as_secs())]
    Budget(Duration),
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 8, longest_wait: Duration::from_mins(5), budget: Duration::from_hours(1) }
    }
}

impl RetryPolicy {
    /// Returns the delay until the next attempt, or the reason why there is none.
    ///
    /// Unless the provider requests a delay, the first one is half a second and each later one twice as long. `jitter`
    /// (0 to 1) shortens the delay by up to a quarter, so that clients do not return all at once.
    pub fn delay(&self, tried: Tried, error: &ProviderError, jitter: f64) -> Result<Duration, GiveUp> {
        let Tried { attempt, waited } = tried;
        // Another attempt would send a conversation of the same length.
        if !error.retryable || error.is_context_overflow() {
            return Err(GiveUp::Pointless);
        }
        if attempt >= self.attempts {
            return Err(GiveUp::Attempts(attempt));
        }
        let wait = match error.retry_after {
            Some(asked) if asked > self.longest_wait => {
                return Err(GiveUp::LongWait { asked, longest: self.longest_wait });
            }
            Some(asked) => asked,
            None => back_off(attempt, is_overload(error), jitter),
        };
        if waited.saturating_add(wait) > self.budget { Err(GiveUp::Budget(self.budget)) } else { Ok(wait) }
    }
}

fn back_off(attempt: u32, overloaded: bool, jitter: f64) -> Duration {
    let cap = if overloaded { OVERLOAD_CAP } else { CAP };
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    // `clamp` returns NaN for NaN, so it is ruled out first.
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

    const fn tried(attempt: u32) -> Tried {
        Tried { attempt, waited: Duration::ZERO }
    }

    fn waits(error: &ProviderError, jitter: f64) -> Vec<Option<f64>> {
        let policy = RetryPolicy::default();
        let wait = |attempt| policy.delay(tried(attempt), error, jitter).ok();
        (1..=8).map(|attempt| wait(attempt).map(|wait| wait.as_secs_f64())).collect()
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
        // The status decides, whatever kind a gateway names.
        let busy = ProviderError { status: Some(429), ..error("too_many", true, None) };
        assert_eq!(waits(&busy, 0.0)[6], Some(32.0));
        let patient = RetryPolicy { attempts: 100, ..RetryPolicy::default() };
        let wait = patient.delay(tried(99), &error("overloaded_error", true, None), f64::NAN);
        assert_eq!(wait, Ok(Duration::from_mins(1)));
    }

    #[test]
    fn e3_the_providers_wait_is_honoured_up_to_the_cap_and_beyond_it_given_up() {
        let policy = RetryPolicy::default();
        let delay = |after| policy.delay(tried(1), &error("rate_limit_error", true, Some(after)), 1.0);
        assert_eq!(delay(2), Ok(Duration::from_secs(2)));
        assert_eq!(delay(300), Ok(Duration::from_mins(5)));
        let why = delay(3600).unwrap_err().to_string();
        assert_eq!(
            why,
            "the provider asks to wait 3600 s, and Bailiwick waits at most 300 s at once (retries.longest_wait_s)"
        );
        let endless = ProviderError { retry_after: Some(Duration::MAX), ..error("x", true, None) };
        let careless = RetryPolicy { longest_wait: Duration::MAX, ..policy };
        assert_eq!(careless.delay(tried(1), &endless, 0.0), Err(GiveUp::Budget(policy.budget)));
    }

    #[test]
    fn e3_a_turn_waits_no_longer_than_its_budget_in_all() {
        let policy = RetryPolicy { budget: Duration::from_secs(10), ..RetryPolicy::default() };
        let after = |waited| {
            let tried = Tried { attempt: 1, waited: Duration::from_secs(waited) };
            policy.delay(tried, &error("rate_limit_error", true, Some(4)), 0.0)
        };
        assert_eq!(after(6), Ok(Duration::from_secs(4)));
        assert_eq!(after(7), Err(GiveUp::Budget(Duration::from_secs(10))));
        let none = RetryPolicy { budget: Duration::ZERO, ..policy };
        assert!(none.delay(tried(1), &error("connection", true, None), 0.0).is_err());
    }

    #[test]
    fn e2_what_is_not_retryable_is_never_tried_again() {
        let bad_key = error("authentication_error", false, Some(1));
        assert_eq!(RetryPolicy::default().delay(tried(1), &bad_key, 0.0), Err(GiveUp::Pointless));
    }
}
