use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use super::BenchError;

#[derive(Debug, Default, Serialize)]
pub(crate) struct BenchReport {
    pub rows: Vec<Measurement>,
    pub ratios: Vec<Ratio>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    pub subject: &'static str,
    pub samples: usize,
    pub p10: f64,
    pub median: f64,
    pub unit: &'static str,
}

/// Measured figure with its target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ratio {
    pub what: String,
    pub value: f64,
    /// Maximum value that meets the target.
    pub target: f64,
}

impl Measurement {
    /// Summarises durations. The figures are in microseconds.
    pub(crate) fn of_times(subject: &'static str, samples: &[Duration]) -> Self {
        let samples: Vec<_> = samples.iter().map(|sample| sample.as_secs_f64() * 1e6).collect();
        Self::of(subject, "µs", &samples)
    }

    pub(crate) fn of(subject: &'static str, unit: &'static str, samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: usize| sorted.get(sorted.len() * share / 100).copied().unwrap_or(f64::NAN);
        Self { subject, samples: sorted.len(), p10: at(10), median: at(50), unit }
    }
}

impl BenchReport {
    /// Adds a target for the factor between the tenth percentiles of two measurements, given by their indices in
    /// `rows`.
    pub(crate) fn factor(&mut self, ours: usize, floor: usize, target: f64) {
        if let (Some(ours), Some(floor)) = (self.rows.get(ours), self.rows.get(floor)) {
            let what = format!("{} / {}", ours.subject, floor.subject);
            let value = ours.p10 / floor.p10;
            self.ratios.push(Ratio { what, value, target });
        }
    }

    /// Adds a target for the factor between the medians of two measurements, given by their indices in `rows`.
    pub(crate) fn factor_of_medians(&mut self, ours: usize, floor: usize, target: f64) {
        if let (Some(ours), Some(floor)) = (self.rows.get(ours), self.rows.get(floor)) {
            let what = format!("{} / {}, medians", ours.subject, floor.subject);
            let value = ours.median / floor.median;
            self.ratios.push(Ratio { what, value, target });
        }
    }

    /// Adds a target for a single value.
    pub(crate) fn absolute(&mut self, what: &str, value: f64, target: f64) {
        self.ratios.push(Ratio { what: what.to_owned(), value, target });
    }
}

/// Name of a measurement, and the function that makes the measurement once and returns the measured duration.
pub(super) type BenchSubject<'a> = (&'static str, Box<dyn FnMut() -> Result<Duration, BenchError> + 'a>);

/// Runs the subjects in turn, `rounds` times, so that a disturbance affects all of them. Discards a first round.
pub(super) fn interleaved(
    rounds: usize,
    subjects: &mut [BenchSubject<'_>],
) -> Result<Vec<Measurement>, BenchError> {
    rested(rounds, Duration::ZERO, subjects)
}

/// Runs the subjects as [`interleaved`] does, but pauses before each, so that processes and memory of the previous
/// subject are gone.
pub(super) fn rested(
    rounds: usize,
    rest: Duration,
    subjects: &mut [BenchSubject<'_>],
) -> Result<Vec<Measurement>, BenchError> {
    let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
    for round in 0..=rounds {
        for ((name, once), samples) in subjects.iter_mut().zip(&mut samples) {
            thread::sleep(rest);
            let took = once().map_err(|error| format!("{name}: {error}"))?;
            if round > 0 {
                samples.push(took);
            }
        }
    }
    Ok(subjects
        .iter()
        .zip(samples)
        .map(|((name, _), samples)| Measurement::of_times(name, &samples))
        .collect())
}

pub(super) fn timed(act: impl FnOnce() -> Result<(), BenchError>) -> Result<Duration, BenchError> {
    let began = Instant::now();
    act()?;
    Ok(began.elapsed())
}

/// Returns the CPU time that this thread, this process, or all reaped children have used until now (getrusage(2)).
pub(super) fn cpu_time(who: UsageWho) -> Result<Duration, BenchError> {
    let usage = getrusage(who)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_samples() {
        let samples: Vec<f64> = (0..100).rev().map(f64::from).collect();
        let row = Measurement::of("x", "µs", &samples);
        assert_eq!((row.samples, row.p10, row.median), (100, 10.0, 50.0));
        assert!(Measurement::of("x", "µs", &[]).p10.is_nan());
    }

    #[test]
    fn subjects_take_turns_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let subject = |name: char| {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(name);
                Ok(Duration::from_micros(1))
            })
        };
        let rows = interleaved(2, &mut [("a", subject('a')), ("b", subject('b'))]).unwrap();
        assert_eq!(order.borrow().iter().collect::<String>(), "ababab");
        assert_eq!(rows[0].samples, 2);
    }
}
