//! Denials that the user has left as they are.
//!
//! A command that carries on without what it was denied may try it in each of its runs: a tool that reports to its
//! makers, a cache in the home. Nobody is asked about that twice in a session. A command that fails is asked about each
//! time.

use ipc::denial::{Denial, Object, Operation};
use ipc::path::WirePath;
use ipc::rights::Grant;

/// The denials that were left.
#[derive(Debug, Default)]
pub(super) struct Declined {
    places: Vec<WirePath>,
    others: Vec<DeclinedAttempt>,
}

/// A program, and an object that it was denied: the same address may stand for another purpose of another program.
#[derive(Debug, PartialEq, Eq)]
struct DeclinedAttempt {
    operation: Operation,
    program: Option<String>,
    object: Object,
}

impl Declined {
    /// Remembers a denial that was left: for a write the place that would have been granted, as a whole.
    pub(super) fn add(&mut self, denial: &Denial, grant: &Grant) {
        if self.covers(denial) {
            return;
        }
        match &denial.object {
            Object::Path(path) if denial.operation == Operation::Write => {
                let place = grant.write.iter().find(|place| path.is_within(place));
                self.places.push(place.unwrap_or(path).clone());
            }
            _ => self.others.push(DeclinedAttempt::of(denial)),
        }
    }

    /// True if the same was left before.
    pub(super) fn covers(&self, denial: &Denial) -> bool {
        match &denial.object {
            Object::Path(path) if denial.operation == Operation::Write => {
                self.places.iter().any(|place| path.is_within(place))
            }
            _ => self.others.contains(&DeclinedAttempt::of(denial)),
        }
    }
}

impl DeclinedAttempt {
    fn of(denial: &Denial) -> Self {
        let Denial { operation, program, object, .. } = denial;
        Self { operation: *operation, program: program.clone(), object: object.clone() }
    }
}
