//! Denials about which the person was asked, and in spite of which the person allowed no access.
//!
//! A command may try a denied access again in each run, and succeed without it: telemetry, for example, or a cache in
//! the home directory. The person is asked about such an access once in a session. If a command fails, the person is
//! asked each time.

use ipc::denial::{Denial, Object, Operation};
use ipc::path::WirePath;
use ipc::rights::Grant;

#[derive(Debug, Default)]
pub(super) struct Declined {
    places: Vec<WirePath>,
    others: Vec<DeclinedAttempt>,
}

/// A denied object, with the program: another program may need the same object for another purpose.
#[derive(Debug, PartialEq, Eq)]
struct DeclinedAttempt {
    operation: Operation,
    program: Option<String>,
    object: Object,
}

impl Declined {
    /// Records a denial that the person did not lift. That of a write covers the whole path in `grant`.
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

    /// True if a recorded denial covers `denial`.
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
