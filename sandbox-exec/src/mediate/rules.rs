//! Where a call may lead, and whom it may bring in.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use ipc::place::Place;
use ipc::refusal::Target as Refused;
use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::address::{Address, Meaning};
use super::caller::Caller;
use super::host::{HostNetwork, Inside};
use super::refusals::Denied;
use super::socket::{self, SocketKind};
use super::tree::{ProcessTree, by_descriptor};

/// What the mediated programs may reach.
#[derive(Debug)]
pub(super) struct MediationRules {
    tree: ProcessTree,
    network: Net,
    /// The cookie of the network namespace, if the kernel tells (Linux 5.14).
    namespace: Option<u64>,
}

/// Whose the network namespace is.
#[derive(Debug)]
pub(super) enum Net {
    /// The host's, with rules for it.
    Host(Box<HostNetwork>),
    /// Private: all names in it are from inside; but paths lead out of it, and so do sockets that were made outside and handed in.
    Private,
}

impl Net {
    fn host(&self) -> Option<&HostNetwork> {
        match self {
            Self::Host(host) => Some(host),
            Self::Private => None,
        }
    }
}

/// Where a call leads.
#[derive(Debug)]
pub(super) struct Target {
    /// The address to act on.
    pub(super) address: Address,
    /// Where on this machine that is, if only what is from inside may be there.
    pub(super) inside: Option<SocketAddr>,
    /// Which socket has it, if it is an abstract name and the kernel does not judge.
    named: Option<u64>,
    /// What the address names, which must stay open until then.
    _held: Option<OwnedFd>,
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        Self { address, inside: None, named: None, _held: None }
    }
}

impl MediationRules {
    /// Rules for a tree and the network of the namespace that this process is in.
    pub(super) fn new(tree: ProcessTree, network: Net) -> Result<Self, Errno> {
        let namespace = socket::network(&socket::netlink(libc::NETLINK_ROUTE)?).ok();
        Ok(Self { tree, network, namespace })
    }

    /// Where the programs may write.
    pub(super) fn tree(&self) -> &ProcessTree {
        &self.tree
    }

    /// Where an address leads that `socket` is to connect or send to.
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

    /// Fails with `EACCES` for a socket that was made in another network namespace and handed in: names are those of its own one.
    /// Where the kernel does not tell, none leads anywhere from a private one.
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

    /// An address without a family dissolves an association; what is no internet address at all the kernel refuses. Ports are asked
    /// about in TCP and UDP: other protocols, of sockets that were handed in, have ports of their own.
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
            let Inside { at, .. } = inside;
            return Ok(Target { inside: Some(at), ..Address::of_internet(at).into() });
        }
        Ok(address.into())
    }

    /// Whether what is connected to is on this machine, where only a full queue has it wait.
    pub(super) fn answers_at_once(&self, kind: SocketKind, target: &Target) -> bool {
        !kind.is_internet() || target.inside.is_some() || self.network.host().is_none()
    }

    /// Does what a connection to inside needs before it is begun.
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
            // A listener whose queue is full answers later; by then it may be another.
            (_, Some(_)) => socket::ask_once_more(socket),
            (_, None) => Ok(()),
        }
    }

    /// Whether a connection that was begun has led where it was to lead.
    pub(super) fn has_led_inside(&self, kind: SocketKind, target: &Target) -> bool {
        match (self.network.host(), target.inside, target.address.meaning()) {
            (Some(host), Some(inside), _) => host.has_led_inside(kind, inside),
            (Some(host), None, Meaning::Abstract(name)) if kind.family == libc::AF_UNIX => {
                host.admit_abstract(kind.style, name).is_ok_and(|named| named == target.named)
            }
            _ => true,
        }
    }

    /// Keeps everybody outside from a socket that no program has yet.
    pub(super) fn guard(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        self.network.host().map_or(Ok(()), |host| host.guard(socket, kind))
    }

    /// Binds a socket.
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

    /// Why an address could not be taken.
    pub(super) fn hindrance_of_bind(&self, kind: SocketKind, address: &Address, errno: Errno) -> Denied {
        match (self.network.host(), address.meaning()) {
            (Some(host), Meaning::Internet(own)) if kind.is_internet() => host.hindrance_of_bind(own, errno),
            _ => errno.into(),
        }
    }

    /// Why a target was not reached: in a private network there is no way to anywhere else, and on the host's the kernel denies abstract
    /// names.
    pub(super) fn hindrance_of_way(&self, kind: SocketKind, target: &Target, errno: Errno) -> Denied {
        match (&self.network, target.address.meaning()) {
            (Net::Host(host), Meaning::Abstract(name)) if errno == Errno::EPERM => {
                host.hindrance_of_name(kind.style, name)
            }
            (Net::Private, Meaning::Internet(to)) if errno == Errno::ENETUNREACH => {
                Denied::Rules { target: Refused::Internet(to, Place::of(to)), errno }
            }
            _ => errno.into(),
        }
    }

    /// Whether the other end of an accepted connection may be let in.
    pub(super) fn knows(&self, accepted: &OwnedFd, kind: SocketKind, peer: &Address) -> bool {
        self.network.host().is_none_or(|host| host.knows(accepted, kind, peer))
    }

    /// Whether control data of this level and name may go along.
    pub(super) fn allows_control(&self, kind: SocketKind, level: c_int, name: c_int) -> bool {
        self.network.host().is_none() || super::listen::is_harmless(kind, level, name)
    }
}

#[cfg(test)]
mod tests {
    use ipc::rights::{Network, Reach};
    use nix::sys::socket::{Backlog, listen};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    use super::*;
    use crate::mediate::caller::tests::with_own_calls;

    fn rules() -> MediationRules {
        let network = Net::Host(Box::new(HostNetwork::new(Network::On, Reach::default(), false).unwrap()));
        MediationRules::new(ProcessTree::new(vec![], vec![]), network).unwrap()
    }

    /// A listener from inside, a client, and the name that the first one has.
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

    /// Denies this thread to ask it.
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
