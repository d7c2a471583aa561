//! Denials in a command's output. Programs can print anything, so the output alone makes a denial only likely.
//!
//! A line counts only if its path is outside of the agent's access and file modes would have permitted the access. If
//! the worker repeats the access and the kernel gives the same error, the denial is proved. If the kernel permits it
//! then, there was no denial.

use complaint::{Line, REFUSALS, lines};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade};
use ipc::named::NamedPlace;
use ipc::path::WirePath;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};
use libc::{EACCES, EBUSY, EPERM, EROFS, EXDEV};

use super::calls::{refused_call, unpermitted_call};
use super::message::DenialMessage;
use super::process::refused_process;
use super::succeeded::despite_success;
use super::unreached::{UNREACHED, UNREACHED_HOST, unreached};
use crate::judgement::standing::is_kernel_tree;
use crate::judgement::{StandingRights, denial};

/// Maximum number of denials reported for one command.
pub(super) const MAX_DENIALS: usize = 4;

/// Returns the denials that a command most likely met, each once. Leaves out paths within the agent's access.
pub(in crate::judgement) fn likely(
    standing: &StandingRights,
    call: &ShellExec,
    result: &CommandResult,
) -> Vec<Denial> {
    let succeeded = result.exit == CommandExit::Code(0);
    let mut found: Vec<Denial> = Vec::new();
    if succeeded && result.named.is_empty() {
        return found;
    }
    let text = [result.head.as_str(), result.tail.as_str()];
    let lines = || lines(text);
    let paths = lines().filter_map(|line| {
        let named = || refused(standing, call, line, result);
        if succeeded {
            return named();
        }
        refused_call(standing, line.text)
            .or_else(|| refused_process(standing, line, &result.named))
            .or_else(named)
    });
    // A command that declares only to read never has a network, so it lacks no right. A command that succeeded did not
    // need a network.
    let networked = !succeeded && call.access != Access::Read && standing.rights.net.is_off();
    let addresses = lines().map(|line| line.text);
    let addresses = addresses
        .filter(|line| networked && unpermitted_call(standing, line).is_none())
        .filter_map(unreached);
    let addresses = addresses.map(|address| denial::unreachable(standing, &address, Grade::Likely));
    for denial in paths.chain(addresses) {
        if found.len() < MAX_DENIALS && !found.iter().any(|other| is_same(other, &denial)) {
            found.push(denial);
        }
    }
    if found.is_empty() && networked {
        found.extend(refused_socket(standing, lines().map(|line| line.text)));
    }
    found
}

/// Returns the denial of the first path outside of the agent's access that a line names; `None` if it names none.
fn refused(
    standing: &StandingRights,
    call: &ShellExec,
    line: Line<'_>,
    result: &CommandResult,
) -> Option<Denial> {
    let message = DenialMessage::new(call, line)?;
    // A worker could claim anything: a relative path is ignored.
    let places = || result.named.iter().filter(|place| place.path.as_path().is_absolute());
    let named = message.complaint().paths();
    let places: Vec<_> =
        named.iter().filter_map(|name| places().find(|place| place.named == **name)).collect();
    if message.errno() == EXDEV && !on_one_device(&places) {
        return None;
    }
    places.into_iter().find_map(|place| {
        let denial = missing_for(standing, &message, place)?;
        let denial = graded(standing, &message, place, denial)?;
        if result.exit == CommandExit::Code(0) {
            despite_success(&message, place, denial)
        } else {
            Some(denial)
        }
    })
}

/// Grades a denial by the kernel's answer when the worker repeats the access. `None` if the kernel permits it then.
fn graded(
    standing: &StandingRights,
    message: &DenialMessage<'_>,
    place: &NamedPlace,
    denial: Denial,
) -> Option<Denial> {
    match message.answer(place, denial.operation) {
        Some(0) => None,
        Some(errno) if message.errno() == errno && refuses_opening(standing, errno) => {
            Some(Denial { grade: Grade::Proved, errno: Some(errno), ..denial })
        }
        // In these directories the kernel has other reasons to deny. But only Landlock denies a device whose mode
        // permits access.
        _ if is_kernel_tree(&place.path) && !closes_device(standing, message, &place.path) => None,
        _ => Some(denial),
    }
}

fn closes_device(standing: &StandingRights, message: &DenialMessage<'_>, path: &WirePath) -> bool {
    standing.tier != Tier::Full && message.errno() == EACCES && path.is_within(&"/dev".into())
}

/// True if the sandbox gives this error when a file is opened.
fn refuses_opening(standing: &StandingRights, errno: i32) -> bool {
    errno == EACCES || (errno == EROFS && standing.tier == Tier::Full)
}

fn missing_for(standing: &StandingRights, message: &DenialMessage<'_>, place: &NamedPlace) -> Option<Denial> {
    let path = &place.path;
    if !standing.allows_read(path) {
        return missing_of_hidden(standing, message, place);
    }
    if message.errno() == EBUSY {
        return standing.holds(path).then(|| denial::immovable(standing, path, Grade::Likely));
    }
    if standing.allows_write(path) {
        // The owner of a file can change its mode, except for the set-id bits.
        let set_id = message.tells_of_mode() && message.errno() == EPERM && place.permits.own;
        return set_id.then(|| denial::no_set_id(path, Grade::Likely));
    }
    let is_ours = !machine_refuses(standing, path, message.errno())
        && message.is_about_writing(&place.named)
        && (!message.tells_of_owner() || standing.machine.is_of_root())
        && message.is_permitted(place);
    is_ours.then(|| of_place(standing, message, place))
}

/// Returns the denial of access to a hidden path; `None` if file modes deny the access as well.
fn missing_of_hidden(
    standing: &StandingRights,
    message: &DenialMessage<'_>,
    place: &NamedPlace,
) -> Option<Denial> {
    let path = &place.path;
    let permits = place.permits;
    // Nearly every complaint about a hidden path is about reading, so a write must be named explicitly.
    if message.tells_of_writing(&place.named) {
        let permitted = message.is_permitted(place) || standing.is_masked(path);
        return permitted.then(|| denial::unwritable(standing, path, Grade::Likely, None));
    }
    let permitted = permits.read || permits.execute || standing.is_masked(path);
    (permitted && !standing.machine.closes(path)).then(|| denial::unreadable(standing, path, Grade::Likely))
}

/// Returns the denial of a write. The hint suggests to grant the existing path, or the parent directory for a removal.
fn of_place(standing: &StandingRights, message: &DenialMessage<'_>, place: &NamedPlace) -> Denial {
    let path = &place.path;
    let denial =
        Denial { errno: None, ..denial::unwritable(standing, path, Grade::Likely, Some(message.errno())) };
    let nearest = place.nearest.as_ref().filter(|nearest| path.is_within(nearest));
    let denial = denial::granted_at(standing, denial, path, nearest.unwrap_or(path));
    if message.tells_of_removal() { of_removal(standing, denial, path) } else { denial }
}

/// True if the machine denies a write without the sandbox, too. Landlock never gives EROFS.
fn machine_refuses(standing: &StandingRights, path: &WirePath, errno: i32) -> bool {
    let not_ours = errno == EROFS && standing.tier != Tier::Full;
    not_ours || standing.machine.is_read_only(path)
}

/// Changes the hint of a denial so that it grants the parent directory, which has to be writable to remove a file.
fn of_removal(standing: &StandingRights, denial: Denial, path: &WirePath) -> Denial {
    match path.as_path().parent().map(WirePath::from).filter(|parent| !standing.allows_write(parent)) {
        Some(parent) if denial.grant.is_some() => {
            let missing_right = denial::right_to_write(standing, &parent).into();
            denial::granted_at(standing, Denial { missing_right, ..denial }, path, &parent)
        }
        _ => denial,
    }
}

/// Returns the denial of a socket in an interpreter's stack trace, the last line of which has the error alone.
fn refused_socket<'a>(standing: &StandingRights, mut lines: impl Iterator<Item = &'a str>) -> Option<Denial> {
    let mut seen = false;
    let refused = lines.any(|line| {
        seen |= line.contains("socket");
        let lower = line.to_ascii_lowercase();
        // With a broker, sockets can be created, but not used.
        let is_ours = |errno| errno == EACCES || (errno == EPERM && standing.tier == Tier::FloorUnmediated);
        let ends_so = |(phrase, errno): &(&str, _)| is_ours(*errno) && lower.trim_end().ends_with(phrase);
        seen && REFUSALS.iter().any(ends_so)
    });
    refused.then(|| denial::unreachable(standing, "the network", Grade::Likely))
}

pub fn declared_too_little(call: &ShellExec, result: &CommandResult) -> bool {
    let complains = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let phrases = REFUSALS.iter().map(|(phrase, _)| phrase).chain(&UNREACHED).chain(&UNREACHED_HOST);
        phrases.into_iter().any(|phrase| lower.contains(phrase))
    };
    call.access == Access::Read
        && result.exit != CommandExit::Code(0)
        && (complains(&result.head) || complains(&result.tail))
}

/// True if one grant would prevent both denials, or if both are for the same object.
pub fn is_same(one: &Denial, other: &Denial) -> bool {
    let grant = one.grant.is_some() && one.grant == other.grant;
    one.operation == other.operation && (grant || one.object == other.object)
}

/// True if there are several places, all on one device. Between devices, nothing can be moved or linked.
fn on_one_device(places: &[&NamedPlace]) -> bool {
    places.windows(2).all(|pair| pair[0].device == pair[1].device) && places.len() > 1
}
