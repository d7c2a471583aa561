use proptest::prelude::*;

use super::execution::{Execution, Limits};
use super::grant::Grant;
use super::hosts::{HostName, HostRule, Hosts};
use super::lattice::Rights;
use super::network::{Network, Reach};
use crate::path::WirePath;

pub(super) fn path() -> impl Strategy<Value = WirePath> {
    proptest::collection::vec(prop_oneof!["a", "b", "c"], 0..4)
        .prop_map(|parts| WirePath::from(&format!("/{}", parts.join("/"))))
}

pub(super) fn paths() -> impl Strategy<Value = Vec<WirePath>> {
    proptest::collection::vec(path(), 0..4)
}

pub(super) fn rights() -> impl Strategy<Value = Rights> {
    let exec = prop_oneof![Just(Execution::Denied), Just(Execution::Allowed)];
    let limits =
        (0..3u64, 0..3u64).prop_map(|(timeout_ms, output_bytes)| Limits { timeout_ms, output_bytes });
    (paths(), paths(), paths(), paths(), network(), reach(), paths(), exec, limits).prop_map(
        |(read, hidden, write, protected, net, reach, sockets, exec, limits)| {
            Rights { read, hidden, write, protected, net, reach, sockets, exec, limits }.normalised()
        },
    )
}

pub(super) fn reach() -> impl Strategy<Value = Reach> {
    any::<[bool; 4]>().prop_map(|[host, lan, link_local, metadata]| Reach { host, lan, link_local, metadata })
}

pub(super) fn grant() -> impl Strategy<Value = Grant> {
    (paths(), network(), reach(), paths()).prop_map(|(write, net, reach, sockets)| Grant {
        write,
        net,
        reach,
        sockets,
    })
}

pub(super) fn host_name() -> impl Strategy<Value = HostName> {
    proptest::collection::vec(prop_oneof!["a", "b"], 1..4)
        .prop_map(|labels| labels.join(".").parse().unwrap())
}

pub(super) fn hosts() -> impl Strategy<Value = Hosts> {
    let rule = (any::<bool>(), host_name(), 80..82u16).prop_map(|(below, name, port)| {
        let text = format!("{}{name}:{port}", if below { "*." } else { "" });
        text.parse::<HostRule>().unwrap()
    });
    proptest::collection::vec(rule, 1..4).prop_map(|rules| Hosts::new(rules).unwrap())
}

pub(super) fn network() -> impl Strategy<Value = Network> {
    prop_oneof![Just(Network::Off), Just(Network::On), hosts().prop_map(Network::Hosts)]
}
