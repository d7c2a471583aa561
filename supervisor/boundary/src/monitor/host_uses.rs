use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ipc::gateway::{Arrival, GatewayFailure, GatewayReport, PROXY};
use protocol::event::HostUse;
use tokio::time::timeout;

use super::gateway::Gateway;

/// Maximum number of combinations of host, port and program that are counted and reported.
const MOST: usize = 1024;

/// Maximum time to wait for the next report of a gateway after the program that used the gateway has ended.
const LAST_REPORTS: Duration = Duration::from_millis(20);

/// Maximum number of reports that are read after that program has ended: one or two per open connection.
const MOST_LAST_REPORTS: usize = 2048;

/// Maximum number of characters of a connecting program's name.
const LONGEST: usize = 64;

type Key = (String, u16, String);

#[derive(Debug, Default)]
pub struct HostUses {
    uses: BTreeMap<Key, HostUse>,
    open: HashMap<u64, Key>,
}

impl HostUses {
    /// Counts a report. Returns the counts if it is the first connection or failure of a program with a host, else
    /// `None`.
    pub fn count(&mut self, report: GatewayReport) -> Option<HostUse> {
        match report {
            GatewayReport::Ready | GatewayReport::Asked { .. } => None,
            GatewayReport::Connected { connection, arrival, address } => {
                let (key, found) = self.of(&arrival)?;
                found.connections += 1;
                found.address.get_or_insert_with(|| address.to_string());
                let first = (found.connections == 1).then(|| found.clone());
                self.open.insert(connection, key);
                first
            }
            GatewayReport::Ended { connection, sent, received, failure } => {
                let key = self.open.remove(&connection)?;
                let found = self.uses.get_mut(&key)?;
                found.sent = found.sent.saturating_add(sent);
                found.received = found.received.saturating_add(received);
                failure.and_then(|failure| failed(found, &failure))
            }
            GatewayReport::Failed { arrival, failure } => {
                let (_, found) = self.of(&arrival)?;
                failed(found, &failure)
            }
        }
    }

    /// Counts the last reports of a gateway whose program has ended, then ends the gateway.
    pub async fn end_gateway(&mut self, mut gateway: Gateway) {
        // The program's ends of the connections are closed by now, so a working gateway soon reports their byte counts.
        for _ in 0..MOST_LAST_REPORTS {
            let Ok(Some(report)) = timeout(LAST_REPORTS, gateway.next()).await else { break };
            self.count(report);
        }
        // An error means that the process has ended.
        let _ = gateway.end(self.uses.values().cloned().collect()).await;
    }

    pub fn all(self) -> Vec<HostUse> {
        self.uses.into_values().collect()
    }

    fn of(&mut self, arrival: &Arrival) -> Option<(Key, &mut HostUse)> {
        let program: String = arrival.program.escape_debug().take(LONGEST).collect();
        let key = (arrival.name.to_string(), arrival.port, program);
        if self.uses.len() >= MOST && !self.uses.contains_key(&key) {
            return None;
        }
        let (host, port, program) = key.clone();
        let found = self.uses.entry(key.clone()).or_insert_with(|| HostUse {
            host,
            port,
            program,
            ..HostUse::default()
        });
        Some((key, found))
    }
}

fn failed(found: &mut HostUse, failure: &GatewayFailure) -> Option<HostUse> {
    found.failures += 1;
    found.failure = Some(match failure {
        GatewayFailure::NoFirstMessage if found.host == PROXY.0 => {
            "the proxy accepts only CONNECT and SOCKS5 with the name of a host".to_owned()
        }
        failure => words(failure),
    });
    (found.failures == 1).then(|| found.clone())
}

fn words(failure: &GatewayFailure) -> String {
    match failure {
        GatewayFailure::NotListed => "the host is not on the list".to_owned(),
        GatewayFailure::Unresolved => "the name has no address".to_owned(),
        GatewayFailure::Unreachable { address, errno } => {
            let errno = nix::errno::Errno::from_raw(*errno);
            format!("{address} cannot be reached: {}", errno.desc())
        }
        GatewayFailure::OtherName { said: Some(said) } => {
            format!("the first bytes of the connection name another host, {said}")
        }
        GatewayFailure::OtherName { said: None } => {
            "the first bytes of the connection name no host".to_owned()
        }
        GatewayFailure::TooMany => "too many connections at a time".to_owned(),
        GatewayFailure::NoFirstMessage => {
            "the program sent no first message of its protocol in time".to_owned()
        }
        GatewayFailure::ClientClosed => {
            "the program closed the connection before the host answered".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(name: &str, program: &str) -> Arrival {
        Arrival { name: name.parse().unwrap(), port: 443, program: program.to_owned() }
    }

    #[test]
    fn the_first_use_of_a_host_is_told_at_once_and_the_bytes_at_the_end() {
        let mut uses = HostUses::default();
        let connected = |connection, program| GatewayReport::Connected {
            connection,
            arrival: arrival("a.example", program),
            address: "192.0.2.1:443".parse().unwrap(),
        };
        let first = uses.count(connected(1, "curl")).unwrap();
        assert_eq!((first.host.as_str(), first.port, first.connections), ("a.example", 443, 1));
        assert_eq!(uses.count(connected(2, "curl")), None);
        assert!(uses.count(connected(3, "git")).is_some());
        let ended =
            |connection, failure| GatewayReport::Ended { connection, sent: 10, received: 20, failure };
        assert_eq!(uses.count(ended(1, None)), None);
        let broken = uses.count(ended(2, Some(GatewayFailure::OtherName { said: None }))).unwrap();
        assert_eq!(broken.failure.as_deref(), Some("the first bytes of the connection name no host"));
        assert_eq!(uses.count(ended(2, None)), None, "a number that is not open");
        let refused =
            GatewayReport::Failed { arrival: arrival("b.example", "x"), failure: GatewayFailure::Unresolved };
        assert!(uses.count(refused.clone()).is_some() && uses.count(refused).is_none());
        let mut misused = HostUses::default();
        let arrival = Arrival { name: PROXY.0.parse().unwrap(), port: PROXY.1, program: "apt".to_owned() };
        let failed = GatewayReport::Failed { arrival, failure: GatewayFailure::NoFirstMessage };
        assert!(
            misused
                .count(failed)
                .unwrap()
                .failure
                .unwrap()
                .starts_with("the proxy accepts only CONNECT and SOCKS5")
        );
        let all = uses.all();
        let bytes: Vec<_> =
            all.iter().map(|one| (one.program.as_str(), one.sent, one.received, one.failures)).collect();
        assert_eq!(bytes, [("curl", 20, 40, 1), ("git", 0, 0, 0), ("x", 0, 0, 2)]);
    }

    #[test]
    fn what_a_gateway_says_takes_bounded_memory() {
        let mut uses = HostUses::default();
        for number in 0..2 * MOST {
            uses.count(GatewayReport::Failed {
                arrival: arrival("a.example", &number.to_string()),
                failure: GatewayFailure::TooMany,
            });
        }
        assert_eq!(uses.all().len(), MOST);
    }
}
