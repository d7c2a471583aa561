//! Name resolution and connection to a host.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use ipc::gateway::GatewayFailure;
use ipc::rights::HostName;
use nix::errno::Errno;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time limit for the resolver.
const RESOLVE: Duration = Duration::from_secs(10);

// Time limits for one address and for all addresses of a host.
const ONE: Duration = Duration::from_secs(10);
const ALL: Duration = Duration::from_secs(20);

/// Time after which the next address is tried in parallel (RFC 8305 §8).
const NEXT: Duration = Duration::from_millis(250);

/// Network of the addresses that stand for names in a sandbox (RFC 2544). They are unused on the internet.
const STAND_INS: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// Looks up a host. Returns its addresses in the order in which they are to be tried.
pub(crate) async fn resolve(host: &HostName, port: u16) -> Result<Vec<SocketAddr>, GatewayFailure> {
    let question = (host.as_str().to_owned(), port);
    // A set, because it takes a question back that still waits for a thread when nobody waits for the answer any more.
    let mut lookup = JoinSet::new();
    lookup.spawn_blocking(move || question.to_socket_addrs().map(Vec::from_iter));
    let Ok(Some(Ok(Ok(addresses)))) = timeout(RESOLVE, lookup.join_next()).await else {
        return Err(GatewayFailure::Unresolved);
    };
    let addresses = in_order(addresses);
    if addresses.is_empty() { Err(GatewayFailure::Unresolved) } else { Ok(addresses) }
}

/// Removes placeholder addresses and alternates between IPv6 and IPv4, beginning with the family of the first address.
fn in_order(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let outside = addresses.into_iter().filter(|address| !stands_for_a_name(address.ip()));
    let mut ordered = Vec::new();
    let (mut turn, mut other): (VecDeque<_>, VecDeque<_>) = {
        let outside: Vec<_> = outside.collect();
        let is_v6 = outside.first().is_some_and(SocketAddr::is_ipv6);
        outside.into_iter().partition(|address| address.is_ipv6() == is_v6)
    };
    while let Some(address) = turn.pop_front() {
        if !ordered.contains(&address) {
            ordered.push(address);
        }
        if !other.is_empty() {
            std::mem::swap(&mut turn, &mut other);
        }
    }
    ordered
}

fn stands_for_a_name(address: IpAddr) -> bool {
    let (network, bits) = STAND_INS;
    let IpAddr::V4(address) = address.to_canonical() else { return false };
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits.into()
}

pub(crate) async fn connect(addresses: Vec<SocketAddr>) -> Result<(TcpStream, SocketAddr), GatewayFailure> {
    let end = Instant::now() + ALL;
    let mut attempts = JoinSet::new();
    let mut rest = addresses.into_iter();
    let mut failure = GatewayFailure::Unresolved;
    loop {
        if let Some(address) = rest.next() {
            failure = unreachable(address, Errno::ETIMEDOUT as i32);
            attempts.spawn(attempt(address));
        }
        tokio::select! {
            tried = attempts.join_next() => match tried {
                Some(Ok((address, Ok(socket)))) => return Ok((socket, address)),
                Some(Ok((address, Err(error)))) => {
                    failure = unreachable(address, error.raw_os_error().unwrap_or(Errno::ETIMEDOUT as i32));
                }
                Some(Err(_)) => {}
                None => return Err(failure),
            },
            () = sleep(NEXT), if rest.len() > 0 => {}
            () = sleep_until(end) => return Err(failure),
        }
    }
}

async fn attempt(address: SocketAddr) -> (SocketAddr, io::Result<TcpStream>) {
    let late = || Err(io::ErrorKind::TimedOut.into());
    (address, timeout(ONE, TcpStream::connect(address)).await.unwrap_or_else(|_| late()))
}

const fn unreachable(address: SocketAddr, errno: i32) -> GatewayFailure {
    GatewayFailure::Unreachable { address, errno }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(addresses: &str) -> String {
        let parse = |address: &str| SocketAddr::new(address.parse().unwrap(), 1);
        let ordered = in_order(addresses.split(' ').map(parse).collect());
        ordered.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn families_take_turns_and_the_resolver_says_which_is_first() {
        assert_eq!(ordered("::2 ::3 10.0.0.1 10.0.0.2 10.0.0.3"), "::2 10.0.0.1 ::3 10.0.0.2 10.0.0.3");
        assert_eq!(ordered("10.0.0.1 ::2 ::3 ::4"), "10.0.0.1 ::2 ::3 ::4");
        assert_eq!(ordered("10.0.0.1 10.0.0.1"), "10.0.0.1");
    }

    #[test]
    fn an_address_that_stands_for_a_name_is_no_answer() {
        assert_eq!(
            ordered("198.18.0.0 198.19.255.255 ::ffff:198.18.0.9 198.17.255.255 198.20.0.0"),
            "198.17.255.255 198.20.0.0"
        );
    }
}
