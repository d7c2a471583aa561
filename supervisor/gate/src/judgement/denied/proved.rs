//! Converts system calls that the broker denied to denials, with the missing access.

use complaint::lines;
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::place::Place;
use ipc::refusal::{Act, Refusal, Target};
use ipc::rights::{HostName, HostRule, Hosts, Network};
use ipc::tool::{Access, CommandResult, ShellExec};

use super::likely::{MAX_DENIALS, is_same, likely};
use super::unreached::host;
use crate::judgement::standing::is_kernel_tree;
use crate::judgement::{StandingRights, denial, flags, sockets};

/// Directories and sockets of services that the C library tries by itself and does not need.
const ASKED_IN_PASSING: [&str; 5] =
    ["/run/nscd", "/run/systemd/userdb", "/run/systemd/journal", "/dev/log", "/var/lib/sss/pipes"];

/// Suffix of the address of a name server (RFC 1035, 4.2).
const NAME_SERVER: &str = ":53";

/// Returns the denials that the broker reports, followed by denials that the command's output shows.
pub fn denials(standing: &StandingRights, call: &ShellExec, result: &CommandResult) -> Vec<Denial> {
    denials_but(standing, call, result, |_| false)
}

/// Returns the same denials as [`denials`], but begins with those for which `was_left` is false. The first of similar
/// denials represents the others.
pub fn denials_but(
    standing: &StandingRights,
    call: &ShellExec,
    result: &CommandResult,
    was_left: impl Fn(&Denial) -> bool,
) -> Vec<Denial> {
    let mut refused = refusals(standing, call, &result.refused);
    for denial in &mut refused {
        name_what_was_looked_up(denial, result);
    }
    refused.sort_by_key(was_left);
    let mut found = each_once(refused);
    let of_socket = |denial: &Denial| {
        denial.operation == Operation::Network
            || denial.operation == Operation::Share && matches!(denial.object, Object::Path(_))
    };
    let connecting = found.iter().any(of_socket);
    for likely in likely(standing, call, result) {
        // A host that was not found and an unreachable resolver are the same denial. A program that connects to a
        // unix socket may name a host.
        let known = connecting && likely.operation == Operation::Network;
        if found.len() < MAX_DENIALS && !known && !found.iter().any(|proved| is_same(proved, &likely)) {
            found.push(likely);
        }
    }
    found
}

#[cfg(test)]
pub(in crate::judgement) fn proved(
    standing: &StandingRights,
    call: &ShellExec,
    refused: &[Refusal],
) -> Vec<Denial> {
    each_once(refusals(standing, call, refused))
}

fn refusals(standing: &StandingRights, call: &ShellExec, refused: &[Refusal]) -> Vec<Denial> {
    // A command that declares only to read never has a network, so it lacks no right.
    let is_offline = call.access == Access::Read && !call.network.as_ref().is_some_and(Network::reaches_out);
    let refused = refused.iter().filter(|refusal| !(is_offline && refusal.is_of_internet()));
    refused.filter_map(|refusal| refused_by_rules(standing, refusal)).collect()
}

/// Returns the denial of a system call, with the missing access; `None` if the agent's access does not explain it.
pub fn refused_by_rules(standing: &StandingRights, refusal: &Refusal) -> Option<Denial> {
    let denial = match &refusal.object {
        Target::Internet(to, _) if refusal.act == Act::Accept => of_stranger(&to.ip().to_string()),
        Target::Internet(to, place) => of_address(standing, &to.to_string(), *place)?,
        Target::Host { name, port } => of_host(standing, name, *port)?,
        Target::Socket(path) if is_asked_in_passing(path) => return None,
        Target::Socket(path) => sockets::denial(standing, path),
        Target::Abstract(name) => {
            let name = String::from_utf8_lossy(name).escape_debug().to_string();
            of_other(Operation::Share, format!("the abstract socket @{name}"))
        }
        Target::File(path) => of_file(standing, path)?,
        Target::Process(number) => of_other(Operation::Signal, format!("process {number}")),
        Target::Object(phrase) => of_other(Operation::Share, phrase.clone()),
    };
    let program = refusal.program.escape_debug().to_string();
    let program = (!program.is_empty()).then_some(program);
    Some(Denial { program, errno: Some(refusal.errno), ..denial })
}

fn of_address(standing: &StandingRights, address: &str, place: Place) -> Option<Denial> {
    let off = standing.rights.net.is_off();
    let reach = match place {
        Place::Elsewhere => None,
        Place::Host => Some("--reach host"),
        Place::Lan => Some("--reach lan"),
        Place::LinkLocal => Some("--reach link-local"),
        Place::Metadata => Some("--reach metadata"),
    };
    // The session's start may have allowed the address for when the network is on. Then only the network is missing.
    let reach = reach.filter(|_| !(off && place.is_within(standing.reach)));
    let missing_right = match (off, reach) {
        (false, None) => return None,
        (false, Some(_)) => MissingRight::Reach { place },
        (true, None) => MissingRight::Network,
        (true, Some(_)) => MissingRight::NetworkAndReach { place },
    };
    let flags: Vec<_> = off.then_some("--net on").into_iter().chain(reach).collect();
    let layer = match (standing.tier, off) {
        (Tier::Full, true) => Layer::NetworkNamespace,
        _ => Layer::Mediation,
    };
    Some(Denial {
        layer,
        missing_right: missing_right.into(),
        grant: flags::offered(standing, &flags.join(" ")),
        ..denial::unreachable(standing, address, Grade::Proved)
    })
}

/// Returns the denial of a host or port that is not on the list of hosts. `None` if it is listed: the broker also
/// denies datagrams to it, but no access allows them, and programs use TCP instead.
fn of_host(standing: &StandingRights, name: &HostName, port: u16) -> Option<Denial> {
    if standing.rights.net.hosts().is_some_and(|hosts| hosts.allows(name, port)) {
        return None;
    }
    let rule = HostRule::exactly(name.clone(), port);
    let more = Hosts::new([rule.clone()]).map_or(Network::Off, Network::Hosts);
    let net = standing.rights.net.join(&more);
    Some(Denial {
        layer: Layer::Mediation,
        missing_right: MissingRight::Host { host: rule }.into(),
        grant: flags::offered(standing, &format!("--net {}", net.flag())),
        ..denial::unreachable(standing, &format!("{name}:{port}"), Grade::Proved)
    })
}

fn of_file(standing: &StandingRights, path: &WirePath) -> Option<Denial> {
    let is_ours =
        !standing.allows_write(path) && !is_kernel_tree(path) && !standing.machine.is_read_only(path);
    is_ours.then(|| Denial {
        layer: Layer::Mediation,
        ..denial::unwritable(standing, path, Grade::Proved, None)
    })
}

fn is_asked_in_passing(path: &WirePath) -> bool {
    ASKED_IN_PASSING.iter().any(|place| path.is_within(&WirePath::from(*place)))
}

fn each_once(all: Vec<Denial>) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for denial in all {
        if found.len() < MAX_DENIALS && !found.iter().any(|other| is_same(other, &denial)) {
            found.push(denial);
        }
    }
    found
}

/// Adds the looked-up host to the address of a name server. The output names the host. The broker does not know the
/// host, because the C library connects to the name server first.
fn name_what_was_looked_up(denial: &mut Denial, result: &CommandResult) {
    if let Object::Address(address) = &mut denial.object
        && address.ends_with(NAME_SERVER)
        && let Some(host) = lines([&result.head, &result.tail]).find_map(|line| host(line.text))
    {
        *address = format!("{address} (name server; the output mentions {host})");
    }
}

/// Returns the denial of access to an object of another program. No grant prevents it.
fn of_other(operation: Operation, what: String) -> Denial {
    Denial {
        layer: Layer::Mediation,
        operation,
        missing_right: MissingRight::OfAnotherProgram { operation }.into(),
        object: Object::Shared(what),
        program: None,
        grant: None,
        grade: Grade::Proved,
        errno: None,
    }
}

fn of_stranger(address: &str) -> Denial {
    Denial {
        object: Object::Address(address.to_owned()),
        missing_right: MissingRight::Accept.into(),
        ..of_other(Operation::Network, String::new())
    }
}
