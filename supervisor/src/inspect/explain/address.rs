//! The policy for a network address. No name is looked up, and no packet is sent.

use std::fs;
use std::net::SocketAddr;

use ipc::confinement::Tier;
use ipc::place::{Place, is_resolver, resolvers};
use ipc::rights::{HostRule, Hosts, Network, Reach};
use serde::Serialize;

use super::ExplainPolicy;
use super::answer::{ExplainAnswer, ExplainVerdict};
use super::origins::default;
use super::subject::NamedSubject;

#[derive(Debug, Serialize)]
pub(super) struct AddressExplained {
    pub address: String,
    /// Kind of the address, such as this machine or a private network; `None` for a name, which is not looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'static str>,
    pub connect: ExplainAnswer,
}

impl AddressExplained {
    pub(super) fn new(address: &NamedSubject, policy: &ExplainPolicy<'_>) -> Self {
        match address {
            NamedSubject::Literal(literal) => {
                let place = Place::of(*literal);
                let shown = if literal.port() == 0 { literal.ip().to_string() } else { literal.to_string() };
                Self {
                    address: shown,
                    place: Some(word(place)),
                    connect: literal_answer(*literal, place, policy),
                }
            }
            NamedSubject::Name(name, port) => Self {
                address: format!("{name}:{port}"),
                place: None,
                connect: name_answer(name, *port, policy),
            },
        }
    }
}

const fn word(place: Place) -> &'static str {
    match place {
        Place::Host => "this machine itself",
        Place::Lan => "an address of a private network",
        Place::LinkLocal => "a link-local or multicast address",
        Place::Metadata => "an address at which clouds hand out credentials",
        Place::Elsewhere => "elsewhere",
    }
}

fn literal_answer(address: SocketAddr, place: Place, policy: &ExplainPolicy<'_>) -> ExplainAnswer {
    let rights = policy.standing.rights();
    let net = policy.origins.of_key("rights.net");
    match &rights.net {
        Network::Off => return off(place, format!("--net on{}", reached(place, policy)), policy),
        Network::Hosts(hosts) => {
            let because = format!("the network is on only for {hosts}, by name and not by address");
            let grant = Some(format!("--net on{}", reached(place, policy)));
            return ExplainAnswer {
                grant,
                origin: Some(net),
                ..ExplainAnswer::new(ExplainVerdict::Denied, because)
            };
        }
        Network::On => {}
    }
    if policy.standing.tier() == Tier::FloorUnmediated {
        return ExplainAnswer::allowed(
            "the network is on, and in this tier addresses are not checked",
            Some(net),
        );
    }
    let known = resolvers(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    if is_resolver(address, &known) {
        return ExplainAnswer::allowed(
            "this is the machine's resolver, which agents can always reach with the network on",
            Some(net),
        );
    }
    let Some(reach) = reach(place) else {
        return ExplainAnswer::allowed("the network is on", Some(net));
    };
    if place.is_within(rights.reach) {
        let origin = policy.origins.of_element("rights.reach", reach);
        return ExplainAnswer::allowed(format!("agents can reach {}", word(place)), origin);
    }
    let own =
        if place == Place::Host { "; but servers started in the same sandbox can be reached" } else { "" };
    let because = format!("the network is on, but not for {}{own}", word(place));
    let grant = Some(format!("--reach {reach}"));
    ExplainAnswer { grant, origin: default(), ..ExplainAnswer::new(ExplainVerdict::Denied, because) }
}

/// Returns the value of `--reach` that allows this kind of address; `None` if none is needed.
const fn reach(place: Place) -> Option<&'static str> {
    match place {
        Place::Host => Some("host"),
        Place::Lan => Some("lan"),
        Place::LinkLocal => Some("link-local"),
        Place::Metadata => Some("metadata"),
        Place::Elsewhere => None,
    }
}

/// Returns the flag `--reach` that is missing for this kind of address; empty if none is missing.
fn reached(place: Place, policy: &ExplainPolicy<'_>) -> String {
    let missing = reach(place).filter(|_| !place.is_within(policy.standing.reach()));
    missing.map(|reach| format!(" --reach {reach}")).unwrap_or_default()
}

fn off(place: Place, grant: String, policy: &ExplainPolicy<'_>) -> ExplainAnswer {
    let has_loopback = policy.standing.tier() != Tier::FloorUnmediated;
    let (verdict, because) = match place {
        Place::Host if has_loopback => (
            ExplainVerdict::Depends,
            "the network is off: on its own loopback, a command can reach servers that the command itself started, and none of the machine's",
        ),
        _ => (ExplainVerdict::Denied, "the network is off"),
    };
    ExplainAnswer {
        grant: Some(grant),
        origin: Some(policy.origins.of_key("rights.net")),
        ..ExplainAnswer::new(verdict, because)
    }
}

/// Returns the flags with which a program could reach a host. A present list of hosts stays in the flags.
fn flags(rule: Option<HostRule>, now: Option<&Hosts>, policy: &ExplainPolicy<'_>) -> String {
    let has_lists = policy.standing.tier() != Tier::FloorUnmediated;
    let rules = rule
        .filter(|_| has_lists)
        .map(|rule| now.map(Hosts::rules).unwrap_or_default().iter().cloned().chain([rule]));
    let net = rules.and_then(Hosts::new).map_or(Network::On, Network::Hosts);
    format!("--net {}{}", net.flag(), reached(Place::Elsewhere, policy))
}

/// Returns the answer for a host name. The addresses of the name are judged again at each connection.
fn name_answer(name: &str, port: u16, policy: &ExplainPolicy<'_>) -> ExplainAnswer {
    let rights = policy.standing.rights();
    let net = policy.origins.of_key("rights.net");
    // RFC 6761, 6.3: `localhost` is a special-use name.
    let place = if name.eq_ignore_ascii_case("localhost") { Place::Host } else { Place::Elsewhere };
    let rule = name.parse().ok().filter(|_| place == Place::Elsewhere);
    let rule = rule.map(|name| HostRule::exactly(name, port));
    match &rights.net {
        Network::Off => return off(place, flags(rule, None, policy), policy),
        Network::Hosts(hosts) => {
            let is_listed = rule.as_ref().is_some_and(|rule| hosts.allows(rule.name(), port));
            if is_listed {
                let because = "the network is on for this host, at any public address";
                return ExplainAnswer::allowed(because, Some(net));
            }
            let because = format!("the network is on only for {hosts}");
            let grant = Some(flags(rule, Some(hosts), policy));
            return ExplainAnswer {
                grant,
                origin: Some(net),
                ..ExplainAnswer::new(ExplainVerdict::Denied, because)
            };
        }
        Network::On => {}
    }
    let everywhere = Reach { host: true, lan: true, link_local: true, metadata: true };
    if rights.reach == everywhere {
        return ExplainAnswer::allowed("the network is on, for every address of this name", Some(net));
    }
    let because =
        "the network is on; the name was not looked up: pass the host's address to have the address judged";
    ExplainAnswer { origin: Some(net), ..ExplainAnswer::new(ExplainVerdict::Depends, because) }
}
