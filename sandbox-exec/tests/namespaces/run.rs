//! Runs of a program in the full tier, as the supervisor runs a worker.

use std::process::Output;

use ipc::confinement::{BrokerReport, Confinement, Tier};

use crate::common::order::{encoded, order, ordered};
use crate::common::place::{Place, errors, in_tier_as_each_user, text};

pub(crate) fn in_full(test: impl Fn(&Place)) {
    in_tier_as_each_user(Tier::Full, test);
}

/// Runs a script with a private temp directory. `change` changes the confinement before the start.
pub(crate) fn run(
    place: &Place,
    change: impl Fn(&mut Confinement),
    script: &str,
) -> (Output, Vec<BrokerReport>) {
    let mut confinement = order(place);
    place.make("temp/.keep", "");
    confinement.temp = Some(place.path("temp").into());
    confinement.rights.write.push(place.path("temp").into());
    change(&mut confinement);
    ordered(place, &encoded(&confinement), &["/bin/bash", "-c", script])
}

pub(crate) fn said(place: &Place, change: impl Fn(&mut Confinement), script: &str) -> String {
    let (output, reports) = run(place, change, script);
    let Output { status, .. } = &output;
    assert!(status.success(), "{script}: {status}: {}{}{reports:?}", text(&output), errors(&output));
    text(&output)
}
