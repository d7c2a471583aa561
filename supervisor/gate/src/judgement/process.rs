//! Another process, which a command was kept from signalling or looking into.
//!
//! In the full tier there is none to be seen. In the floor the rules' scope closes them, and nobody but the user's own are claimed:
//! another user's are closed by the kernel itself.

use complaint::{ErrorLine, Line};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::named::NamedPlace;
use libc::{EACCES, EPERM};

use super::StandingRights;

impl StandingRights {
    /// The denial that a line complains of, where it names a process.
    pub(super) fn refused_process(&self, line: Line<'_>, places: &[NamedPlace]) -> Option<Denial> {
        let complaint = ErrorLine::new(line).filter(|_| self.tier != Tier::Full)?;
        let errno = Some(complaint.errno).filter(|errno| [EACCES, EPERM].contains(errno))?;
        let (place, operation, answer) = if let Some(number) = complaint.process() {
            let place = places.iter().find(|place| place.named == format!("/proc/{number}"))?;
            (place, Operation::Signal, place.asked.write)
        } else {
            let names = complaint.paths();
            let is_of_one = |place: &&NamedPlace| {
                names.contains(&place.named.as_str()) && place.process().is_some() && self.may_look(place)
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

    /// To attach is more than to read, and a machine may keep that to ancestors by itself (Yama, `ptrace(2)`).
    /// What a program says of itself was looked for as another's.
    fn may_look(&self, place: &NamedPlace) -> bool {
        let is_own = ["/proc/self", "/proc/thread-self"].iter().any(|own| place.named.contains(own));
        !is_own && (self.machine.is_of_root() || !place.path.as_path().ends_with("mem"))
    }
}
