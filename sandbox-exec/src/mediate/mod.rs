//! The mediator performs calls for confined programs that no rule of the kernel can judge.
//!
//! `connect` and `sendmsg` have their destination behind a pointer, which a seccomp program cannot follow, and below
//! ABI 9 Landlock does not know unix sockets. So [`Filter`] sends these calls to a listener; the broker, which is
//! outside the domain, copies the arguments once, judges the copy, performs the call on a duplicate of the caller's own
//! socket, and answers. No call that needs a decision is left to the kernel, since the caller's memory can change after
//! it was read.
//!
//! The mediated calls, by case and file. Landlock scopes signals and abstract names from ABI 6 on; "host" is a sandbox
//! in the host's network namespace: the floor tier, and the full tier with the machine's network.
//!
//! | calls | mediated | file |
//! | --- | --- | --- |
//! | `connect`, `sendmsg`, `sendmmsg`; `sendto` with an address | always | `act` |
//! | `bind`, `accept`, `accept4` | host | `listen`; a path's file: `unix/socket_file` |
//! | `socket` of the internet | host, unless the network is on; `setsockopt` of filters is denied then | `broker_sockets/create` |
//! | `socket`, `bind`, `clone` with a shared table | a container's profile denies `pidfd_getfd(2)`; some kinds of `socketpair` are denied then | `broker_sockets` |
//! | System V: `shmget`, `semop`, `msgsnd` … | floor | `sysv` |
//! | `kill`, `tgkill`, `pidfd_send_signal` … | below ABI 6 | `signals` |
//! | `fcntl` and `ioctl` that name the owner of a descriptor | below ABI 6 | `signals/owner` |
//! | `chmod`, `chown`, `utimensat`, `setxattr` …, `ioctl` of flags; `access` for writing | floor | `files/metadata` |
//! | `chmod` … with the set-group-ID bit | full tier | `files/metadata` |
//!
//! * `filter`: the seccomp program that sends calls here. `call`: one call, its caller, its arguments, and the threads.
//!   `act`, `listen`: performs calls on sockets.
//! * `rules`: decides on destinations. `files/tree`: by path. `net`: on the host's network. `unix`: processes that
//!   answer at a unix socket, and whether the kernel judges abstract names.
//! * `kernel`: what the kernel says of processes and sockets. `refusals`: reports of denials.
//!
//! Objects inside the sandbox are identified by the kernel's whole key, never by a part of it that another object may
//! have as well (`tests/mediate/keys.rs` and `names.rs` attack each part):
//!
//! | object | the kernel's key | look-up | possible changes in between |
//! | --- | --- | --- | --- |
//! | abstract unix socket | network namespace, type, name | the call itself, which Landlock's scope denies; below ABI 6 `sock_diag` for the one that answers, by its cookie, before and after | nothing; below ABI 6 the host may take a name that is given up: a connection to it is undone, a datagram is not |
//! | unix socket by path | mount, inode | opened (`O_PATH`), and reached by that descriptor | nothing |
//! | internet socket | network namespace, protocol, family, address, port, device | `sock_diag` for all that might receive, by their cookies, before and after | the host may take a port that is given up: as above; not one that a datagram socket is connected to |
//! | client of a connection | its socket; on abstract names the process that connected it | its cookie, by the addresses of both ends; `SO_PEERCRED`, which has to be this very process | nothing |
//! | object of System V | ipc namespace, kind, number | the table of the objects that were made here | removed from outside, its number may come again 65,536 objects later |
//! | process, thread | pid namespace, number | held by a pidfd; the caller by its call, which still waits | nothing |
//! | file | mount, inode | held open (`O_PATH`), by the kernel's own name of it | nothing |
//!
//! A socket of another network namespace, or of another protocol than TCP and UDP, which must have been handed in,
//! leads nowhere.
//!
//! The mediator ends with the last process under the filter. If it dies, calls fail with `ENOSYS`.
//!
//! Visible to a program: Landlock rules of its own do not bind calls that are performed here; one end of a pair of unix
//! sockets, or of a connection, gets no name, and one that is bound by `/proc/self/fd` is named by another number; a
//! peer sees the broker's pid (`SO_PEERCRED`, `SCM_CREDENTIALS`); `MSG_ZEROCOPY` fails with `ENOBUFS`; a handler runs,
//! and a process stops, up to 50 ms late while a call waits; on the host's network a connection to an abstract name
//! fails, below ABI 6, with `ECONNREFUSED` if its listener is closed in that moment; a caller that is not dumpable gets
//! `EPERM`, unless this process may trace it (`CAP_SYS_PTRACE` in the user namespace). In the host's network namespace
//! with the network off, also: no socket can be given a filter (`SO_ATTACH_FILTER` …: `EPERM`); a datagram is lost if
//! another socket inside is bound to its port in that moment; at most 1024 ports of datagram sockets are connected to,
//! or send to others. With the network on, the mediator does not see datagrams that processes outside send to a port of
//! the sandbox, nor a port that the kernel chooses for `listen` or `IP_BIND_ADDRESS_NO_PORT`: no call from inside leads
//! there.
//!
//! If the mediator creates all sockets ([`Sockets::Made`]), also: pairs of datagram sockets are denied; a datagram, and
//! a message with an address, passes along no descriptors but sockets that are not connected; `sendmsg` on a connection
//! fails with `EPERM`, after a second, if its process has several threads and any process inside has a datagram socket;
//! `connect` on a connection that was started without waiting returns `EISCONN` the first time, too; a port is free for
//! the host up to a second after its socket was closed, and then its queued peers are reset (invisible to processes
//! that connect or bind inside); a socket that was handed in cannot accept, bind, connect or send datagrams; a process
//! shares its table of descriptors (`CLONE_FILES`) with one other at most; where signals are mediated, `F_SETOWN_EX`,
//! `FIOSETOWN` and `SIOCSPGRP` fail with `EPERM` on all but sockets that are not connected (`F_SETOWN` does not); more
//! than 4096 sockets that are not connected fail (`ENOBUFS`).

mod act;
mod broker_sockets;
mod call;
mod files;
mod filter;
mod kernel;
mod listen;
mod net;
mod refusals;
mod rules;
mod signals;
mod sysv;
mod unix;

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use ipc::refusal::Act;
use ipc::rights::{Network, Reach};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use act::MediatedCall;
use broker_sockets::BrokerSockets;
pub use broker_sockets::access::Sockets;
use call::address::Address;
use call::caller::Caller;
use call::listener::{Listener, Notification, NotificationAnswer};
use call::socket::SocketKind;
use call::threads::{self, Turn, WorkerPool};
use call::waiting::{self, Waiting};
use files::metadata::Metadata;
use files::tree::ProcessTree;
pub use filter::Filter;
use filter::FilteredCalls;
pub use kernel::probe::has_listener;
use net::host::HostNetwork;
pub(crate) use net::led::Led;
pub use refusals::Refusals;
use rules::{MediationRules, Net};
use signals::Signals;
use sysv::Objects;
pub(crate) use unix::listeners::Listeners;
pub(crate) use unix::stranger::Stranger;

use crate::domain::Domain;
use crate::hosts::NamedHosts;
use crate::privilege::clear_capabilities;

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what is mediated here need not be there, each for its own reason"
)]
pub struct Mediation {
    pub net: Network,
    pub reach: Reach,
    /// Directories in which unix sockets may be reached and metadata changed, as canonical paths of this process.
    pub writable: Vec<PathBuf>,
    pub hidden: Vec<PathBuf>,
    /// Granted unix sockets of other programs, as canonical paths.
    pub reached: Vec<PathBuf>,
    pub host_network: bool,
    /// True if a Landlock scope denies this process abstract unix sockets outside the sandbox.
    pub scoped: bool,
    /// True if System V objects are mediated, since the programs have no ipc namespace.
    pub objects: bool,
    /// True if signals are mediated (Landlock has no scope for them). This process then adopts orphaned descendants.
    pub signals: bool,
    /// True if metadata may be changed only in `writable`, since no mount protects other files.
    pub metadata: bool,
    pub sockets: Sockets,
    /// Landlock domain in which socket files are created; `None` if none may be created.
    pub domain: Option<Arc<Domain>>,
    /// Hosts that may be reached by name from the programs' private network; `None` if there are none.
    pub hosts: Option<Arc<NamedHosts>>,
    /// Hosts that may be reached by name from the host's network namespace; `None` if there are none.
    pub led: Option<Arc<Led>>,
}

impl Mediation {
    pub fn filter(&self) -> Filter {
        let calls = FilteredCalls::new(self.host_network);
        let calls = if self.keeps_strangers_out() { calls.with_guarded_sockets() } else { calls };
        let calls = if self.sockets.are_made() { calls.with_made_sockets() } else { calls };
        let calls = if self.objects { calls.with_objects() } else { calls };
        let calls = if self.signals { calls.with_signals() } else { calls };
        let calls = if self.metadata { calls.with_metadata() } else { calls.with_set_group_id() };
        calls.filter()
    }

    #[must_use]
    pub(crate) fn with_domain(self, domain: Domain) -> Self {
        Self { domain: Some(Arc::new(domain)), ..self }
    }
}

impl Mediation {
    /// True if the program's sockets may receive only from sockets of the same sandbox. That is so in the host's
    /// network namespace, if the program may not use the network.
    fn keeps_strangers_out(&self) -> bool {
        self.host_network && !self.net.is_the_machines()
    }
}

#[derive(Debug)]
pub struct Mediator {
    threads: Weak<Shared>,
    objects: Option<Arc<Objects>>,
}

#[derive(Debug)]
struct Shared {
    listener: Listener,
    rules: MediationRules,
    objects: Option<Arc<Objects>>,
    signals: Option<Signals>,
    metadata: Metadata,
    domain: Option<Arc<Domain>>,
    refusals: Refusals,
    made: Option<BrokerSockets>,
    waiting: Waiting,
    watched: Mutex<bool>,
    crew: WorkerPool,
}

impl Mediator {
    /// Starts threads that mediate, and that take no signals. Raises the limit of open descriptors, and blocks the last
    /// real-time signal in the calling thread.
    ///
    /// Must run in the mount, pid and network namespaces of the mediated programs, as their user, outside their
    /// Landlock domain or in an outer one. Its threads drop every capability, and may look at programs without any, in
    /// the sense of ptrace(2).
    pub fn start(listener: OwnedFd, mediation: Mediation, refusals: Refusals) -> io::Result<Self> {
        waiting::prepare_interruption()?;
        let network = if mediation.host_network {
            Net::Host(Box::new(HostNetwork::new(
                &mediation.net,
                mediation.reach,
                mediation.scoped,
                mediation.led,
            )?))
        } else {
            Net::Private(mediation.hosts)
        };
        let made = match mediation.sockets {
            Sockets::Made(handed_in) => Some(BrokerSockets::new(handed_in)?),
            Sockets::Duplicated => None,
        };
        allow_many_descriptors()?;
        let tree = ProcessTree::new(mediation.writable, mediation.hidden).with_sockets(mediation.reached);
        let shared = Arc::new(Shared {
            listener: Listener::new(listener),
            rules: MediationRules::new(tree, network)?,
            objects: mediation.objects.then(Arc::default),
            signals: mediation.signals.then(Signals::new),
            metadata: Metadata::new()?,
            domain: mediation.domain,
            refusals,
            made,
            waiting: Waiting::default(),
            watched: Mutex::default(),
            crew: WorkerPool::default(),
        });
        if shared.made.is_some() {
            let holding = Arc::clone(&shared);
            thread::Builder::new().name("sockets".into()).spawn(move || holding.watch_sockets())?;
        }
        threads::begin(&shared)?;
        Ok(Self { threads: Arc::downgrade(&shared), objects: shared.objects.clone() })
    }

    pub fn wait(&self) {
        if let Some(shared) = self.threads.upgrade() {
            shared.crew.wait();
        }
    }
}

impl Drop for Mediator {
    fn drop(&mut self) {
        if let Some(objects) = &self.objects {
            objects.remove_all();
        }
    }
}

impl Shared {
    fn serve(&self, turn: &Turn<'_>) -> bool {
        // Without a working listener the mediator can only end: calls then fail.
        let Ok(Some(notification)) = self.listener.receive() else {
            self.waiting.end();
            if let Some(made) = &self.made {
                made.registry.end();
            }
            return false;
        };
        // A panic on a caller's input must not end the mediator of all others.
        let answer = catch_unwind(AssertUnwindSafe(|| self.mediate(&notification, turn)));
        self.listener.answer(notification.id, answer.unwrap_or(NotificationAnswer::Failed(Errno::EIO)));
        if let Some(made) = &self.made {
            made.answered(notification.thread);
        }
        true
    }

    fn mediate(&self, notification: &Notification, turn: &Turn<'_>) -> NotificationAnswer {
        if let Some(made) = &self.made {
            made.is_back(notification.thread);
        }
        if let Some(is_denied) = self.metadata.denies_writing(self.rules.tree(), notification) {
            let denied = NotificationAnswer::Failed(Errno::EACCES);
            return if is_denied { denied } else { NotificationAnswer::GoesOn };
        }
        if let Some(acted) = self.metadata.act(self.rules.tree(), &self.listener, notification) {
            return match acted {
                Ok(()) => NotificationAnswer::Value(0),
                Err(hindrance) => NotificationAnswer::Failed(self.refusals.tell(
                    notification.thread,
                    Act::Change,
                    hindrance,
                )),
            };
        }
        let caller = Caller::of(&self.listener, notification, self.made.as_ref());
        let arguments = notification.arguments;
        MediatedCall { shared: self, caller, arguments, turn, held: None }.act(notification)
    }

    fn let_go_of_closed(&self, address: &Address) {
        if let Some(made) = &self.made {
            made.let_go_of_closed(address);
        }
    }

    fn settle(&self, socket: &OwnedFd, kind: SocketKind) {
        if let Some(made) = &self.made
            && !kind.takes_addresses()
        {
            made.settle(socket);
        }
    }

    fn watch_sockets(&self) {
        if let (Some(made), Ok(())) = (&self.made, clear_capabilities()) {
            made.registry.watch();
        }
    }

    /// Starts the thread that watches waiting calls, if it does not run yet. `ENOBUFS` if it cannot be started.
    fn have_watched(self: &Arc<Self>) -> Result<(), Errno> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !*watched {
            let watching = Arc::clone(self);
            let begun = thread::Builder::new().name("signals".into()).spawn(move || watching.watch());
            begun.map_err(|_| Errno::ENOBUFS)?;
            *watched = true;
        }
        Ok(())
    }

    fn watch(self: &Arc<Self>) {
        // This thread takes no signals either: all of them are the main thread's.
        if waiting::allow_interruption().is_ok() && clear_capabilities().is_ok() {
            self.waiting.watch(&self.listener, |lead| threads::relieve(self, lead));
        }
    }
}

/// Raises the limit of open descriptors: each waiting call holds some.
fn allow_many_descriptors() -> Result<(), Errno> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)
}
