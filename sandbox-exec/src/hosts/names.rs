use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipc::gateway::{Arrival, PROXY};
use ipc::place::{DOMAIN, plain};
use ipc::rights::{HostName, Hosts};

use super::{OF_HOSTS, OF_PROXY, OWN, RESOLVER, ports};

/// Maximum number of names that have a placeholder address at a time.
const MOST: usize = 4096;

/// Maximum number of unlisted names that the user is asked about.
const MOST_ASKED: usize = 256;

/// Hosts that a program may reach, and their placeholder addresses.
#[derive(Debug)]
pub struct NamedHosts {
    hosts: Hosts,
    /// Ports at which the user is asked about hosts that are not on the list; empty if nobody is asked.
    asked: BTreeSet<u16>,
    /// Name of this machine, which resolves to 127.0.0.1.
    own: Option<HostName>,
    search: Vec<HostName>,
    given: Mutex<GivenAddresses>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    Address(Ipv4Addr),
    /// The name is unlisted, and no internet host can have it, so it gets no address.
    Unlisted,
    /// No placeholder address is free: every one may have an open connection.
    Exhausted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Inside,
    Allowed,
    /// The host is not on the list. Its connection is accepted, and waits until the user has answered.
    Asked(HostName),
    /// The host may not be reached. `None` if the placeholder address stands for no host.
    Denied(Option<HostName>),
}

#[derive(Debug)]
struct GivenAddresses {
    by_address: HashMap<u16, GivenAddress>,
    by_name: HashMap<HostName, u16>,
    /// Placeholder address that was assigned last, as the number in its last two bytes.
    last: u16,
    count: u64,
    asked: usize,
}

#[derive(Debug)]
struct GivenAddress {
    name: HostName,
    order: u64,
    /// True if a listed connection to the address may be open.
    connected: bool,
    /// Unlisted ports at which a connection to the address may be open.
    asked: BTreeSet<u16>,
    program: String,
}

impl NamedHosts {
    /// Creates the table for a list of hosts. `own` is the name of this machine.
    pub fn new(hosts: Hosts, own: Option<HostName>) -> Self {
        Self { hosts, asked: BTreeSet::new(), own, search: vec![], given: Mutex::new(GivenAddresses::new()) }
    }

    #[must_use]
    pub fn asking(self) -> Self {
        let asked = ports(&self.hosts, true);
        Self { asked, ..self }
    }

    /// Sets the search domains (`search` of resolv.conf(5)). A name in one exists only if listed: programs append these
    /// domains to each name and try the result first.
    #[must_use]
    pub(crate) fn searched(self, search: Vec<HostName>) -> Self {
        Self { search, ..self }
    }

    /// Returns the placeholder address of a name: a free one, or that of the oldest name without a connection.
    pub(super) fn resolve(&self, name: &HostName) -> Resolved {
        let is_local = name.as_str().rsplit('.').next() == Some("localhost");
        if is_local || self.own.as_ref() == Some(name) {
            return Resolved::Address(Ipv4Addr::LOCALHOST);
        }
        // A name that is not on the list has an address too, at which each connection is denied. So the report of the
        // denial has the process and the name. A name without a dot is none of the internet, and one of `arpa` is no
        // host's.
        let is_no_host = name.as_str().rsplit_once('.').is_none_or(|(_, last)| last == "arpa");
        let is_no_host = is_no_host || self.search.iter().any(|domain| name.is_below(domain));
        let is_listed = || self.hosts.rules().iter().any(|rule| rule.names(name));
        if is_no_host && name.as_str() != PROXY.0 && !is_listed() {
            return Resolved::Unlisted;
        }
        let number = self.given().give(name);
        number.map_or(Resolved::Exhausted, |number| Resolved::Address(address(number)))
    }

    /// Decides if a call may reach the address `to`. `connects` is false for datagrams; `program` names the caller.
    pub(crate) fn judge(
        &self,
        to: SocketAddr,
        connects: bool,
        program: impl FnOnce() -> String,
    ) -> Permission {
        let IpAddr::V4(ip) = plain(to.ip()) else { return Permission::Inside };
        if ip == OWN || !matches!(ip.octets(), [198, 18 | 19, ..]) {
            return Permission::Inside;
        }
        if (ip, to.port()) == (RESOLVER, DOMAIN) {
            return Permission::Allowed;
        }
        let mut given = self.given();
        let has_room = given.asked < MOST_ASKED;
        let Some(entry) = given.entry(ip) else { return Permission::Denied(None) };
        let name = entry.name.clone();
        if !connects {
            return Permission::Denied(Some(name));
        }
        if self.allows(&name, to.port()) {
            (entry.connected, entry.program) = (true, program());
            return Permission::Allowed;
        }
        let is_new = entry.asked.is_empty();
        if name.as_str() == PROXY.0 || !self.asked.contains(&to.port()) || is_new && !has_room {
            return Permission::Denied(Some(name));
        }
        (entry.connected, entry.program) = (true, program());
        entry.asked.insert(to.port());
        given.asked += usize::from(is_new);
        Permission::Asked(name)
    }

    /// Returns the host at a placeholder address, if it may be reached at the port or the user is asked about it.
    pub(crate) fn arrival(&self, at: SocketAddr) -> Option<Arrival> {
        let (IpAddr::V4(ip), port) = (at.ip(), at.port()) else { return None };
        let mut given = self.given();
        let may_pass = |entry: &GivenAddress| self.allows(&entry.name, port) || entry.asked.contains(&port);
        let entry = given.entry(ip).filter(|entry| may_pass(entry))?;
        entry.connected = true;
        Some(Arrival { name: entry.name.clone(), port, program: entry.program.clone() })
    }

    fn allows(&self, name: &HostName, port: u16) -> bool {
        (name.as_str(), port) == PROXY || self.hosts.allows(name, port)
    }

    fn given(&self) -> MutexGuard<'_, GivenAddresses> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivenAddresses {
    /// Returns a table in which only the proxy has an address.
    fn new() -> Self {
        let mut given = Self {
            by_address: HashMap::new(),
            by_name: HashMap::new(),
            last: last_bytes(OF_PROXY) - 1,
            count: 0,
            asked: 0,
        };
        if let Ok(proxy) = PROXY.0.parse() {
            given.give(&proxy);
            given.by_address.values_mut().for_each(|proxy| proxy.connected = true);
        }
        given
    }

    fn entry(&mut self, ip: Ipv4Addr) -> Option<&mut GivenAddress> {
        let [first, second, ..] = ip.octets();
        let is_of_hosts = OF_HOSTS.octets().starts_with(&[first, second]);
        is_of_hosts.then(|| self.by_address.get_mut(&last_bytes(ip)))?
    }

    fn give(&mut self, name: &HostName) -> Option<u16> {
        if let Some(number) = self.by_name.get(name) {
            return Some(*number);
        }
        if self.by_address.len() > MOST {
            let unused = self.by_address.iter().filter(|(_, entry)| !entry.connected);
            let oldest = *unused.min_by_key(|(_, entry)| entry.order)?.0;
            let entry = self.by_address.remove(&oldest)?;
            self.by_name.remove(&entry.name);
        }
        self.last = self.next();
        self.count += 1;
        let entry = GivenAddress {
            name: name.clone(),
            order: self.count,
            connected: false,
            asked: BTreeSet::new(),
            program: String::new(),
        };
        self.by_address.insert(self.last, entry);
        self.by_name.insert(name.clone(), self.last);
        Some(self.last)
    }

    /// Returns the next free number of an address. Skips the first and last, which are network and broadcast.
    fn next(&self) -> u16 {
        let mut number = self.last;
        loop {
            number = if number >= u16::MAX - 1 { 1 } else { number + 1 };
            if !self.by_address.contains_key(&number) {
                return number;
            }
        }
    }
}

fn address(number: u16) -> Ipv4Addr {
    let [first, second, ..] = OF_HOSTS.octets();
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(first, second, high, low)
}

const fn last_bytes(address: Ipv4Addr) -> u16 {
    let [_, _, high, low] = address.octets();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &str) -> NamedHosts {
        let hosts = Hosts::new(list.split(' ').map(|rule| rule.parse().unwrap())).unwrap();
        NamedHosts::new(hosts, Some("machine".parse().unwrap()))
    }

    fn resolved(hosts: &NamedHosts, name: &str) -> Resolved {
        hosts.resolve(&name.parse().unwrap())
    }

    fn number(hosts: &NamedHosts, name: &str) -> u16 {
        let Resolved::Address(ip) = resolved(hosts, name) else { panic!("{name} has no address") };
        let [198, 19, high, low] = ip.octets() else { panic!("{name} is {ip}") };
        u16::from_be_bytes([high, low])
    }

    fn judged(hosts: &NamedHosts, to: &str, connects: bool) -> Permission {
        hosts.judge(to.parse().unwrap(), connects, || "curl".to_owned())
    }

    #[test]
    fn names_of_the_list_have_addresses() {
        let hosts = hosts("a.example *.b.example:80");
        for (name, expected) in [("a.example", 1), ("x.b.example", 2), ("a.example", 1), ("y.b.example", 3)] {
            assert_eq!(number(&hosts, name), expected, "{name}");
        }
        for name in ["machines", "a", "example", "1.0.19.198.in-addr.arpa"] {
            assert_eq!(resolved(&hosts, name), Resolved::Unlisted, "{name}");
        }
        for (name, expected) in [("b.example", 4), ("x.a.example", 5), ("localhost.example", 6)] {
            assert_eq!(number(&hosts, name), expected, "{name}");
            let denied = Permission::Denied(Some(name.parse().unwrap()));
            assert_eq!(judged(&hosts, &format!("198.19.0.{expected}:443"), true), denied);
        }
        for name in ["localhost", "x.localhost", "machine"] {
            assert_eq!(resolved(&hosts, name), Resolved::Address(Ipv4Addr::LOCALHOST), "{name}");
        }
    }

    #[test]
    fn an_address_is_judged_by_its_name_and_port() {
        let hosts = hosts("a.example a.example:53 b.example:80");
        assert_eq!((number(&hosts, "a.example"), number(&hosts, "b.example")), (1, 2));
        let denied = |name: Option<&str>| Permission::Denied(name.map(|name| name.parse().unwrap()));
        for (to, connects, expected) in [
            ("198.19.0.1:443", true, Permission::Allowed),
            ("[::ffff:198.19.0.1]:443", true, Permission::Allowed),
            ("198.19.0.1:53", true, Permission::Allowed),
            ("198.19.0.1:53", false, denied(Some("a.example"))),
            ("198.19.0.1:80", true, denied(Some("a.example"))),
            ("198.19.0.2:443", true, denied(Some("b.example"))),
            ("198.19.0.3:443", true, denied(None)),
            ("198.18.0.0:443", true, denied(None)),
            ("198.18.0.2:443", true, denied(None)),
            ("198.18.0.2:53", true, Permission::Allowed),
            ("198.18.0.2:53", false, Permission::Allowed),
            ("198.18.0.1:443", true, Permission::Inside),
            ("198.17.255.255:443", true, Permission::Inside),
            ("198.20.0.0:443", false, Permission::Inside),
            ("127.0.0.1:53", true, Permission::Inside),
            ("[::198.19.0.1]:443", true, Permission::Inside),
        ] {
            assert_eq!(judged(&hosts, to, connects), expected, "{to}");
        }
    }

    #[test]
    fn an_arrival_has_the_name_and_the_program_that_came_last() {
        let hosts = hosts("a.example");
        number(&hosts, "a.example");
        let at = "198.19.0.1:443".parse().unwrap();
        judged(&hosts, "198.19.0.1:443", true);
        let arrival = hosts.arrival(at).unwrap();
        assert_eq!((arrival.name.as_str(), arrival.port, &*arrival.program), ("a.example", 443, "curl"));
        for none in ["198.19.0.1:80", "198.19.0.2:443", "198.18.0.2:443", "[::ffff:198.19.0.1]:443"] {
            assert_eq!(hosts.arrival(none.parse().unwrap()), None, "{none}");
        }
    }

    #[test]
    fn connections_beyond_the_list_are_asked_about_where_somebody_may_be() {
        let hosts = hosts("a.example a.example:9").asking();
        for (at, name) in (1..).zip(["a.example", "b.example", "c.example"]) {
            assert_eq!(number(&hosts, name), at);
        }
        let asked = |name: &str| Permission::Asked(name.parse().unwrap());
        let denied = |name: &str| Permission::Denied(Some(name.parse().unwrap()));
        assert_eq!(hosts.arrival("198.19.0.2:443".parse().unwrap()), None, "before it is judged");
        for (to, connects, expected) in [
            ("198.19.0.1:443", true, Permission::Allowed),
            ("198.19.0.1:80", true, asked("a.example")),
            ("198.19.0.2:443", true, asked("b.example")),
            ("198.19.0.2:443", false, denied("b.example")),
            ("198.19.0.2:9", true, asked("b.example")),
            ("198.19.0.2:10", true, denied("b.example")),
            ("198.19.0.9:443", true, Permission::Denied(None)),
            ("198.18.0.2:443", true, Permission::Denied(None)),
        ] {
            assert_eq!(judged(&hosts, to, connects), expected, "{to}");
        }
        let arrival = hosts.arrival("198.19.0.2:443".parse().unwrap()).unwrap();
        assert_eq!((arrival.name.as_str(), &*arrival.program), ("b.example", "curl"));
        for none in ["198.19.0.2:80", "198.19.0.3:443"] {
            assert_eq!(hosts.arrival(none.parse().unwrap()), None, "{none}");
        }
    }

    #[test]
    fn the_proxy_has_an_address_of_its_own_and_one_port() {
        let hosts = hosts("a.example").asking();
        assert_eq!(
            judged(&hosts, "198.19.255.254:1080", true),
            Permission::Allowed,
            "before it was asked for"
        );
        assert_eq!(number(&hosts, PROXY.0), 0xfffe);
        let denied = Permission::Denied(Some(PROXY.0.parse().unwrap()));
        assert_eq!(judged(&hosts, "198.19.255.254:443", true), denied);
        assert_eq!(judged(&hosts, "198.19.255.254:1080", false), denied);
        let arrival = hosts.arrival("198.19.255.254:1080".parse().unwrap()).unwrap();
        assert_eq!((arrival.name.as_str(), arrival.port, &*arrival.program), (PROXY.0, PROXY.1, "curl"));
        assert_eq!(hosts.arrival("198.19.255.254:443".parse().unwrap()), None);
    }

    #[test]
    fn names_beyond_the_list_leave_addresses_for_others() {
        let hosts = hosts("a.example").asking();
        for n in 1..=10_000 {
            let [high, low] = number(&hosts, &format!("n{n}.example")).to_be_bytes();
            let judged = judged(&hosts, &format!("198.19.{high}.{low}:443"), true);
            assert_eq!(matches!(judged, Permission::Asked(_)), n <= MOST_ASKED, "{n}: {judged:?}");
        }
        number(&hosts, "a.example");
    }

    #[test]
    fn the_oldest_address_without_connections_gives_way() {
        let hosts = hosts("*.a *.b:80");
        for n in 1..=MOST {
            assert_eq!(usize::from(number(&hosts, &format!("n{n}.a"))), n);
        }
        assert_eq!(judged(&hosts, "198.19.0.1:443", true), Permission::Allowed);
        // To look a name up once more makes it no younger.
        number(&hosts, "n2.a");
        assert_eq!(usize::from(number(&hosts, "new.a")), MOST + 1, "no address is given again at once");
        assert_eq!(judged(&hosts, "198.19.0.2:443", true), Permission::Denied(None));
        assert_eq!(number(&hosts, "n1.a"), 1);
        assert_eq!(usize::from(number(&hosts, "n2.a")), MOST + 2);
        for n in (1..=MOST + 2).filter(|n| ![2, 3].contains(n)) {
            let [high, low] = u16::try_from(n).unwrap().to_be_bytes();
            judged(&hosts, &format!("198.19.{high}.{low}:443"), true);
        }
        assert_eq!(resolved(&hosts, "x.a"), Resolved::Exhausted);
        assert_eq!(number(&hosts, "n1.a"), 1);
    }

    #[test]
    fn names_below_a_searched_domain_exist_only_if_the_list_has_them() {
        let hosts = hosts("a.example db.corp.example:1 *.x.corp.example");
        let hosts = hosts.searched(vec!["corp.example".parse().unwrap(), "local".parse().unwrap()]);
        for none in ["a.example.corp.example", "corp.corp.example", "a.example.local"] {
            assert_eq!(resolved(&hosts, none), Resolved::Unlisted, "{none}");
        }
        for some in ["a.example", "db.corp.example", "y.x.corp.example", "corp.example", "b.example"] {
            assert!(matches!(resolved(&hosts, some), Resolved::Address(_)), "{some}");
        }
    }

    #[test]
    fn all_addresses_have_their_turn_and_none_is_taken_from_a_name() {
        let hosts = hosts("*.a");
        assert_eq!(number(&hosts, "first.a"), 1);
        hosts.given().last = u16::MAX - 3;
        assert_eq!(["x.a", "y.a", "z.a"].map(|name| number(&hosts, name)), [u16::MAX - 2, 2, 3]);
    }
}
