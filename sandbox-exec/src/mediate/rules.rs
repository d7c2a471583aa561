//! Rules about destinations of calls, and about peers that connect.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ipc::place::Place;
use ipc::refusal::Target as Refused;
use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::call::address::{Address, Meaning};
use super::call::caller::Caller;
use super::call::socket::{self, SocketKind};
use super::files::tree::{ProcessTree, by_descriptor};
use super::net::host::{HostNetwork, Inside};
use super::refusals::Denied;
use crate::hosts::{NamedHosts, Permission};

#[derive(Debug)]
pub(super) struct MediationRules {
    tree: ProcessTree,
    network: Net,
    /// Cookie of this process's network namespace; `None` if the kernel does not report it (before Linux 5.14).
    namespace: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Net {
    Host(Box<HostNetwork>),
    /// Private network namespace: its abstract names and addresses belong to the sandbox, except placeholder addresses
    /// of hosts. Paths and inherited sockets can still lead out.
    Private(Option<Arc<NamedHosts>>),
}

impl Net {
    fn host(&self) -> Option<&HostNetwork> {
        match self {
            Self::Host(host) => Some(host),
            Self::Private(_) => None,
        }
    }

    fn hosts(&self) -> Option<&NamedHosts> {
        match self {
            Self::Host(_) => None,
            Self::Private(hosts) => hosts.as_deref(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) inside: Option<SocketAddr>,
    named: Option<u64>,
    /// True if the address is a placeholder for a host, so that the connection may have to wait.
    is_host: bool,
    pub(super) asked: Option<Denied>,
    _held: Option<OwnedFd>,
}

#[derive(Debug, Default)]
pub(super) struct HostAddress {
    pub(super) asked: Option<Denied>,
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        Self { address, inside: None, named: None, is_host: false, asked: None, _held: None }
    }
}

impl MediationRules {
    pub(in crate::mediate) fn new(tree: ProcessTree, network: Net) -> Result<Self, Errno> {
        let namespace = socket::network(&socket::netlink(libc::NETLINK_ROUTE)?).ok();
        Ok(Self { tree, network, namespace })
    }

    pub(super) fn tree(&self) -> &ProcessTree {
        &self.tree
    }

    pub(super) fn target(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        address: Address,
    ) -> Result<Target, Denied> {
        self.contains(socket)?;
        match kind.family {
            libc::AF_UNIX => self.unix(caller, kind, address),
            libc::AF_INET | libc::AF_INET6 => self.internet(caller, socket, kind, address),
            libc::AF_NETLINK => Ok(address.into()),
            _ => Err(Errno::EACCES.into()),
        }
    }

    /// Checks that a socket belongs to this network namespace. Fails with `EACCES` for a socket handed in from another,
    /// where the same address means another socket. If the kernel reports no cookies of namespaces, every socket fails
    /// in a private network, since it could be handed in.
    fn contains(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let is_told = self.namespace.is_some() || self.network.host().is_some();
        if is_told && socket::network(socket).ok() == self.namespace { Ok(()) } else { Err(Errno::EACCES) }
    }

    fn unix(&self, caller: &Caller<'_>, kind: SocketKind, address: Address) -> Result<Target, Denied> {
        match (address.meaning(), self.network.host()) {
            (Meaning::Path(path), _) => {
                let found = self.tree.open(&caller.path(path)?)?;
                let address = Address::of_path(by_descriptor(&found));
                Ok(Target { _held: Some(found), ..address.into() })
            }
            (Meaning::Abstract(name), Some(host)) => {
                let named = host.admit_abstract(kind.style, name)?;
                Ok(Target { named, ..address.into() })
            }
            _ => Ok(address.into()),
        }
    }

    /// Judges an internet address. An address without a family dissolves an association; the kernel denies those of
    /// other families. Protocols other than TCP and UDP are denied: their ports are not looked up.
    fn internet(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        address: Address,
    ) -> Result<Target, Denied> {
        if !socket::is_tcp_or_udp(socket, kind)? {
            return Err(Errno::EACCES.into());
        }
        if let (Some(host), Meaning::Internet(to)) = (self.network.host(), address.meaning())
            && let Some(inside) = host.admit(caller, socket, kind, to)?
        {
            if kind.style == libc::SOCK_DGRAM {
                host.introduce(caller, socket, &inside)?;
            }
            let Inside { at, named, .. } = inside;
            let (is_host, asked) = (named.is_some(), named.and_then(|named| named.asked));
            return Ok(Target { inside: Some(at), is_host, asked, ..Address::of_internet(at).into() });
        }
        match (self.network.hosts(), address.meaning()) {
            (Some(hosts), Meaning::Internet(to)) => named(hosts, caller, kind, address, to),
            _ => Ok(address.into()),
        }
    }

    /// True if a target is on this machine: only a full queue can delay a connection to it.
    pub(in crate::mediate) fn answers_at_once(&self, kind: SocketKind, target: &Target) -> bool {
        !kind.is_internet() || !target.is_host && (target.inside.is_some() || self.network.host().is_none())
    }

    pub(super) fn prepare(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        target: &Target,
    ) -> Result<(), Errno> {
        match (self.network.host(), target.inside) {
            (Some(host), Some(inside)) if kind.style == libc::SOCK_DGRAM => {
                host.reserve(socket, kind, inside, caller)
            }
            // A listener whose queue is full answers later; by then it may be another, except for ours.
            (_, Some(_)) if !target.is_host => socket::ask_once_more(socket),
            (_, _) => Ok(()),
        }
    }

    pub(in crate::mediate) fn has_led_inside(&self, kind: SocketKind, target: &Target) -> bool {
        match (self.network.host(), target.inside, target.address.meaning()) {
            (Some(host), Some(inside), _) => host.has_led_inside(kind, inside),
            (Some(host), None, Meaning::Abstract(name)) if kind.family == libc::AF_UNIX => {
                host.admit_abstract(kind.style, name).is_ok_and(|named| named == target.named)
            }
            _ => true,
        }
    }

    pub(in crate::mediate) fn guard(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        self.network.host().map_or(Ok(()), |host| host.guard(socket, kind))
    }

    pub(super) fn bind(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        address: &Address,
    ) -> Result<(), Errno> {
        match self.network.host() {
            Some(host) => host.bind(caller, socket, kind, address),
            None => socket::bind(socket, address),
        }
    }

    pub(in crate::mediate) fn hindrance_of_bind(
        &self,
        kind: SocketKind,
        address: &Address,
        errno: Errno,
    ) -> Denied {
        match (self.network.host(), address.meaning()) {
            (Some(host), Meaning::Internet(own)) if kind.is_internet() => host.hindrance_of_bind(own, errno),
            _ => errno.into(),
        }
    }

    /// Returns the denial of a target that the kernel could not reach: in a private network there are no other
    /// machines, and on the host's network the kernel denies abstract names.
    pub(super) fn hindrance_of_way(&self, kind: SocketKind, target: &Target, errno: Errno) -> Denied {
        match (&self.network, target.address.meaning()) {
            (Net::Host(host), Meaning::Abstract(name)) if errno == Errno::EPERM => {
                host.hindrance_of_name(kind.style, name)
            }
            (Net::Private(_), Meaning::Internet(to)) if errno == Errno::ENETUNREACH => {
                Denied::Rules { target: Refused::Internet(to, Place::of(to)), errno }
            }
            _ => errno.into(),
        }
    }

    pub(in crate::mediate) fn knows(&self, accepted: &OwnedFd, kind: SocketKind, peer: &Address) -> bool {
        self.network.host().is_none_or(|host| host.knows(accepted, kind, peer))
    }

    pub(super) fn allows_control(&self, kind: SocketKind, level: c_int, name: c_int) -> bool {
        self.network.host().is_none() || super::listen::is_harmless(kind, level, name)
    }
}

fn named(
    hosts: &NamedHosts,
    caller: &Caller<'_>,
    kind: SocketKind,
    address: Address,
    to: SocketAddr,
) -> Result<Target, Denied> {
    let named = hosted(hosts, caller, kind, to)?;
    let is_host = named.is_some();
    Ok(Target { is_host, asked: named.and_then(|named| named.asked), ..address.into() })
}

/// Returns the host that a placeholder address stands for; `None` for another address.
pub(super) fn hosted(
    hosts: &NamedHosts,
    caller: &Caller<'_>,
    kind: SocketKind,
    to: SocketAddr,
) -> Result<Option<HostAddress>, Denied> {
    let host = |name| Refused::Host { name, port: to.port() };
    match hosts.judge(to, kind.is_stream(), || caller.program()) {
        Permission::Inside => Ok(None),
        Permission::Allowed => Ok(Some(HostAddress::default())),
        Permission::Asked(name) => {
            // The caller sees its connection reset if the answer is no.
            Ok(Some(HostAddress {
                asked: Some(Denied::Rules { target: host(name), errno: Errno::ECONNRESET }),
            }))
        }
        Permission::Denied(name) => {
            let target = name.map_or_else(|| Refused::Internet(to, Place::Elsewhere), host);
            Err(Denied::Rules { target, errno: Errno::ECONNREFUSED })
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::rights::{Network, Reach};
    use nix::sys::socket::{Backlog, listen};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    use super::*;
    use crate::mediate::call::caller::tests::with_own_calls;

    fn rules() -> MediationRules {
        let network =
            Net::Host(Box::new(HostNetwork::new(&Network::On, Reach::default(), false, None).unwrap()));
        MediationRules::new(ProcessTree::new(vec![], vec![]), network).unwrap()
    }

    /// Makes a listener that these rules know as a socket of the sandbox. Returns its kind, the listener with a socket
    /// for a client, and its name.
    fn own(rules: &MediationRules, family: c_int, name: &Address) -> (SocketKind, [OwnedFd; 2], Address) {
        let kind = SocketKind { family, style: libc::SOCK_STREAM };
        let [listener, client] = [(); 2].map(|()| socket::make(kind.family, kind.style, 0).unwrap());
        with_own_calls(|caller| rules.bind(caller, &listener, kind, name)).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        let name = socket::own_name(&listener).unwrap();
        (kind, [listener, client], name)
    }

    #[test]
    fn an_abstract_name_that_was_given_up_meanwhile_leads_nowhere() {
        let rules = rules();
        let (kind, [listener, client], name) = own(&rules, libc::AF_UNIX, &Address::unnamed());
        assert!(matches!(name.meaning(), Meaning::Abstract(_)));
        let target = with_own_calls(|caller| rules.target(caller, &client, kind, name)).unwrap();
        assert!(rules.has_led_inside(kind, &target));
        drop(listener);
        crate::tests::comes_true(|| !rules.has_led_inside(kind, &target));
    }

    fn deny_sockets() {
        let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let architecture = std::env::consts::ARCH.try_into().unwrap();
        let calls = [(libc::SYS_socket, vec![])].into();
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, denied, architecture).unwrap();
        apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    }

    #[test]
    fn where_the_kernel_does_not_answer_nobody_is_inside() {
        let rules = rules();
        let address = Address::of_internet("127.0.0.1:0".parse().unwrap());
        let all = [own(&rules, libc::AF_UNIX, &Address::unnamed()), own(&rules, libc::AF_INET, &address)];
        let targets = || {
            all.each_ref().map(|(kind, [_, client], name)| {
                with_own_calls(|caller| rules.target(caller, client, *kind, name.clone())).is_ok()
            })
        };
        assert_eq!(targets(), [true; 2]);
        deny_sockets();
        assert_eq!(targets(), [false; 2]);
    }
}
