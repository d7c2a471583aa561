//! Denied access to other processes: signals and `/proc`.
//!
//! In the full tier, a command sees no other processes. In the other tiers, Landlock's scopes deny access to them. Only
//! processes of the same user count, since the kernel protects others anyway.

use complaint::{ErrorLine, Line};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::named::NamedPlace;
use libc::{EACCES, EPERM};

use crate::judgement::StandingRights;

/// Returns the denial of access to a process that a line reports; `None` if it reports none.
pub(super) fn refused_process(
    standing: &StandingRights,
    line: Line<'_>,
    places: &[NamedPlace],
) -> Option<Denial> {
    let complaint = ErrorLine::new(line).filter(|_| standing.tier != Tier::Full)?;
    let errno = Some(complaint.errno).filter(|errno| [EACCES, EPERM].contains(errno))?;
    let (place, operation, answer) = if let Some(number) = complaint.process() {
        let place = places.iter().find(|place| place.named == format!("/proc/{number}"))?;
        (place, Operation::Signal, place.asked.write)
    } else {
        let names = complaint.paths();
        let is_of_one = |place: &&NamedPlace| {
            names.contains(&place.named.as_str()) && place.process().is_some() && may_look(standing, place)
        };
        let place = places.iter().find(is_of_one)?;
        (place, Operation::Share, place.asked.read)
    };
    let grade = match answer {
        Some(0) => return None,
        Some(again) if again == errno => Grade::Proved,
        _ => Grade::Likely,
    };
    let object = match operation {
        Operation::Signal => Object::Shared(format!("process {}", place.process()?)),
        _ => Object::Path(place.path.clone()),
    };
    place.permits.own.then(|| Denial {
        layer: Layer::Landlock,
        operation,
        object,
        program: None,
        missing_right: MissingRight::OfAnotherProgram { operation }.into(),
        grant: None,
        grade,
        errno: Some(errno),
    })
}

/// True if nothing but the sandbox denies reading a file of a process in `/proc`. False for its memory, which the
/// machine may reserve to ancestors (Yama, `ptrace(2)`), and for `/proc/self`, where a program reads about itself.
fn may_look(standing: &StandingRights, place: &NamedPlace) -> bool {
    let is_own = ["/proc/self", "/proc/thread-self"].iter().any(|own| place.named.contains(own));
    !is_own && (standing.machine.is_of_root() || !place.path.as_path().ends_with("mem"))
}
