//! Denials, built from the access that an agent does not have.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;
use libc::{EACCES, EBUSY, EPERM};

use super::standing::is_git_config;
use super::{StandingRights, flags};

pub(super) fn unwritable(
    standing: &StandingRights,
    path: &WirePath,
    grade: Grade,
    errno: Option<i32>,
) -> Denial {
    Denial {
        layer: layer_of_write(standing, path, errno),
        operation: Operation::Write,
        object: Object::Path(path.clone()),
        program: None,
        missing_right: right_to_write(standing, path).into(),
        grant: flags::for_write(standing, path),
        grade,
        errno,
    }
}

/// Returns the denial with another hint: the flag for `place`, the directory in which the file `path` is created or
/// removed. No flag if hints must not suggest this directory.
pub(super) fn granted_at(
    standing: &StandingRights,
    denial: Denial,
    path: &WirePath,
    place: &WirePath,
) -> Denial {
    if denial.grant.is_none() {
        return denial;
    }
    match flags::wide_place(standing, place) {
        Some(rule) => {
            let missing = MissingRight::Write { path: path.clone(), closed_by: Some(rule) };
            Denial { missing_right: missing.into(), grant: None, ..denial }
        }
        None => Denial { grant: flags::for_write(standing, place), ..denial },
    }
}

/// Returns the right to change `path`. It includes the rule because of which the path cannot be granted, if any.
pub(super) fn right_to_write(standing: &StandingRights, path: &WirePath) -> MissingRight {
    let is_protected = standing.rights.protected.iter().any(|place| path.is_within(place));
    let closed_by = match () {
        () if is_protected
            || standing.is_in_levels(path)
            || standing.is_closed_by_mode(path) && standing.is_kept_in_every_mode(path) =>
        {
            Some(ClosedBy::Protected)
        }
        () if standing.is_closed_by_mode(path) => Some(ClosedBy::Mode),
        () => flags::wide_place(standing, path),
    };
    MissingRight::Write { path: path.clone(), closed_by }
}

pub(super) fn immovable(standing: &StandingRights, path: &WirePath, grade: Grade) -> Denial {
    Denial {
        missing_right: MissingRight::Move { path: path.clone() }.into(),
        grant: flags::for_write(standing, path)
            .filter(|_| is_git_config(path) || flags::for_setting(standing, path).is_some()),
        errno: None,
        ..unwritable(standing, path, grade, Some(EBUSY))
    }
}

/// Returns the denial of reading `path`, without a hint: no flag opens a hidden path.
pub(super) fn unreadable(standing: &StandingRights, path: &WirePath, grade: Grade) -> Denial {
    Denial {
        layer: layer_of_read(standing),
        operation: Operation::Read,
        object: Object::Path(path.clone()),
        program: None,
        missing_right: MissingRight::Read { path: path.clone() }.into(),
        grant: None,
        grade,
        errno: None,
    }
}

pub(super) fn unreachable(standing: &StandingRights, address: &str, grade: Grade) -> Denial {
    let layer = match standing.tier {
        Tier::Full => Layer::NetworkNamespace,
        Tier::Floor => Layer::Mediation,
        Tier::FloorUnmediated => Layer::Seccomp,
    };
    Denial {
        layer,
        operation: Operation::Network,
        object: Object::Address(address.to_owned()),
        program: None,
        missing_right: MissingRight::Network.into(),
        grant: flags::offered(standing, "--net on"),
        grade,
        errno: None,
    }
}

fn layer_of_read(standing: &StandingRights) -> Layer {
    match standing.tier {
        Tier::Full => Layer::Mask,
        Tier::Floor | Tier::FloorUnmediated => Layer::Landlock,
    }
}

/// Returns the layer that denied a write. In the full tier, a mount gives an error before Landlock does (EROFS, or
/// EXDEV for a move). EACCES comes from Landlock or from the mount over a hidden path.
fn layer_of_write(standing: &StandingRights, path: &WirePath, errno: Option<i32>) -> Layer {
    let hidden = standing.hidden_root(path).is_some();
    match (standing.tier, errno) {
        (Tier::Floor | Tier::FloorUnmediated, _) => Layer::Landlock,
        (Tier::Full, Some(EACCES | EPERM)) if !hidden => Layer::Landlock,
        (Tier::Full, _) if hidden => Layer::Mask,
        (Tier::Full, _) => Layer::Mounts,
    }
}

/// Returns the denial of setting a file's set-id bits, which no access permits.
pub(super) fn no_set_id(path: &WirePath, grade: Grade) -> Denial {
    Denial {
        layer: Layer::Seccomp,
        operation: Operation::Write,
        object: Object::Path(path.clone()),
        program: None,
        missing_right: MissingRight::SetId { path: path.clone() }.into(),
        grant: None,
        grade,
        errno: Some(EPERM),
    }
}

/// Returns a denial by Bailiwick itself, before the kernel is asked.
pub(super) fn by_policy(
    operation: Operation,
    object: Object,
    missing: MissingRight,
    grant: Option<String>,
) -> Denial {
    Denial {
        layer: Layer::Policy,
        operation,
        object,
        program: None,
        missing_right: missing.into(),
        grant,
        grade: Grade::Proved,
        errno: None,
    }
}
