//! Decides if an agent may fetch a page: by the hosts that it may reach.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::rights::{Grant, Hosts, Network};
use protocol::approval::AskKind;

use super::judge::{Ask, Verdict, refused};
use super::standing::StandingRights;
use crate::tools::{FETCH_URL, FetchCall, PermittedFetch};

impl StandingRights {
    pub(super) fn judge_fetch(&self, call: &FetchCall, asks: bool) -> Verdict {
        let is_permitted = self.rights.net.covers(&Network::Hosts(call.url.rule().into()));
        match (is_permitted, asks) {
            (true, true) if self.confirm_shell => {
                Verdict::Ask(Ask { kind: AskKind::Fetch, grant: Grant::default() })
            }
            (true, _) => Verdict::Run,
            (false, true) => {
                let net = Network::Hosts(call.url.rules());
                let grant = Grant { net, reach: self.reach, ..Grant::default() };
                Verdict::Ask(Ask { kind: AskKind::Fetch, grant })
            }
            (false, false) => {
                let (url, rule) = (&call.url, call.url.rule());
                let flag = self.flag_for_network(&Network::Hosts(rule.clone().into()));
                let object = Object::Address(format!("{}:{}", url.host(), url.port()));
                let missing = MissingRight::Host { host: rule };
                let denial = refused(Operation::Network, object, missing, self.offered(&flag));
                Verdict::Deny(Denial { program: Some(FETCH_URL.to_owned()), ..denial })
            }
        }
    }

    /// The flag that adds a network. A floor tier without mediation has no lists of hosts.
    pub(super) fn flag_for_network(&self, more: &Network) -> String {
        match self.tier {
            Tier::Full | Tier::Floor => format!("--net {}", self.rights.net.join(more).flag()),
            Tier::FloorUnmediated => "--net on".to_owned(),
        }
    }

    /// `approved` is the grant of an approval.
    pub fn permit(&self, call: FetchCall, approved: Option<&Grant>) -> PermittedFetch {
        let rights = approved.map_or_else(|| self.rights.clone(), |grant| self.rights.with_grant(grant));
        let wanted = call.url.rules();
        let hosts = match &rights.net {
            Network::Hosts(hosts) => hosts.meet(&wanted),
            Network::On => Some(wanted),
            Network::Off => None,
        };
        // Never less than was judged: the page itself.
        let hosts = hosts.unwrap_or_else(|| Hosts::from(call.url.rule()));
        PermittedFetch { url: call.url, hosts, reach: rights.reach, is_approved: approved.is_some() }
    }
}
