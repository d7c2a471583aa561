//! Decides if an agent may fetch a page, by the hosts that the agent may reach.

use ipc::denial::{Denial, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::rights::{Grant, Hosts, Network};
use protocol::approval::AskKind;

use super::denial::by_policy;
use super::{Ask, StandingRights, Verdict, flags};
use crate::tools::{FETCH_URL, FetchCall, PermittedFetch};

pub(super) fn judge(standing: &StandingRights, call: &FetchCall, asks: bool) -> Verdict {
    let is_permitted = standing.rights.net.covers(&Network::Hosts(call.url.rule().into()));
    match (is_permitted, asks) {
        (true, true) if standing.confirm_shell => {
            Verdict::Ask(Ask { kind: AskKind::Fetch, grant: Grant::default() })
        }
        (true, _) => Verdict::Run,
        (false, true) => {
            let net = Network::Hosts(call.url.rules());
            let grant = Grant { net, reach: standing.reach, ..Grant::default() };
            Verdict::Ask(Ask { kind: AskKind::Fetch, grant })
        }
        (false, false) => {
            let (url, rule) = (&call.url, call.url.rule());
            let flag = flags::for_network(standing, &Network::Hosts(rule.clone().into()));
            let object = Object::Address(format!("{}:{}", url.host(), url.port()));
            let missing = MissingRight::Host { host: rule };
            let denial = by_policy(Operation::Network, object, missing, flags::offered(standing, &flag));
            Verdict::Deny(Denial { program: Some(FETCH_URL.to_owned()), ..denial })
        }
    }
}

/// Returns the fetch with the hosts that it may reach. `approved` is the grant of an approval, if any.
pub fn permit(standing: &StandingRights, call: FetchCall, approved: Option<&Grant>) -> PermittedFetch {
    let rights = approved.map_or_else(|| standing.rights.clone(), |grant| standing.rights.with_grant(grant));
    let wanted = call.url.rules();
    let hosts = match &rights.net {
        Network::Hosts(hosts) => hosts.meet(&wanted),
        Network::On => Some(wanted),
        Network::Off => None,
    };
    // The verdict permitted the page itself, so its host is never missing.
    let hosts = hosts.unwrap_or_else(|| Hosts::from(call.url.rule()));
    PermittedFetch { url: call.url, hosts, reach: rights.reach, is_approved: approved.is_some() }
}
