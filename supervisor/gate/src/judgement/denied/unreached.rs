use core::net::IpAddr;

/// Messages about an unreachable host, in lower case.
pub(super) const UNREACHED: [&str; 9] = [
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "failed to lookup address",
    "dns error",
    "socket: operation not permitted",
    "socket: permission denied",
    "connect: permission denied",
    "failed to establish a new connection",
];

/// Messages about an unreachable host, in lower case, that end right before its name.
pub(super) const UNREACHED_HOST: [&str; 10] = [
    "could not resolve hostname",
    "could not resolve host",
    "couldn't resolve host",
    "unable to resolve host address",
    "getaddrinfo eai_again",
    "getaddrinfo enotfound",
    "enetunreach",
    "unknownhostexception",
    "dial tcp: lookup",
    "connect fail for",
];

/// Curl's messages for any failure to connect, in lower case.
const NOT_CONNECTED: [&str; 2] = ["couldn't connect to server", "could not connect to server"];

/// Phrases in lower case that end right before the name of a host, and do not say that the host was unreachable.
const HOST: [&str; 3] = ["dial tcp", "connect to host", "failed to connect to"];

pub(super) fn unreached(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let named = || UNREACHED_HOST.iter().chain(&HOST).find_map(|before| after(line, &lower, before));
    if !UNREACHED.iter().chain(&UNREACHED_HOST).any(|phrase| says(&lower, phrase)) {
        // curl gives the same message for every reason: only an address shows that the host is not this machine.
        let is_silent = NOT_CONNECTED.iter().any(|phrase| lower.contains(phrase));
        return named().filter(|named| is_silent && is_elsewhere(named)).map(str::to_owned);
    }
    Some(named().or_else(|| parameter(line)).unwrap_or("the network").to_owned())
}

/// Returns the host that could not be looked up, if a line names it.
pub(super) fn host(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    let tells = UNREACHED.iter().chain(&UNREACHED_HOST).any(|phrase| says(&lower, phrase));
    let named = || UNREACHED_HOST.iter().chain(&HOST).find_map(|before| after(line, &lower, before));
    let is_name =
        |name: &&str| name.chars().all(is_of_an_address) && name.contains(|c: char| c.is_ascii_alphabetic());
    tells.then(|| named().or_else(|| parameter(line))).flatten().filter(is_name)
}

/// True if the line contains the phrase. A phrase `socket: …` counts only at the beginning or after a colon.
fn says(lower: &str, phrase: &str) -> bool {
    let is_call = |at: usize| !phrase.starts_with("socket: ") || is_apart(&lower[..at]);
    lower.match_indices(phrase).any(|(at, _)| is_call(at))
}

/// True if the text `before` is empty or ends with a colon, so that a new part of the message begins after it.
fn is_apart(before: &str) -> bool {
    before.is_empty() || before.ends_with(": ")
}

fn is_elsewhere(named: &str) -> bool {
    let address: Option<IpAddr> = named.trim_matches(['[', ']']).parse().ok();
    address.is_some_and(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Returns the name after the phrase: `…: NAME`, `… NAME: …`, `… ‘NAME’`.
fn after<'a>(line: &'a str, lower: &str, phrase: &str) -> Option<&'a str> {
    let rest = line.get(lower.rfind(phrase)? + phrase.len()..)?;
    let rest = rest.trim_start_matches([':', ' ', '\'', '"', '‘', '(']);
    let name = rest.split(|c: char| !is_of_an_address(c)).next()?.trim_end_matches([':', '.']);
    is_host(name).then_some(name)
}

/// Returns the name in `HTTPSConnectionPool(host='NAME', port=443)`, a message of Python's urllib3.
fn parameter(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("host='")?;
    rest.split_once('\'').map(|(name, _)| name).filter(|name| is_host(name))
}

fn is_of_an_address(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".-_:[]".contains(c)
}

/// True if a word could be a host or an address. False for words that often follow the phrases.
fn is_host(name: &str) -> bool {
    let plain = name.len() <= 253 && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    plain && !["name", "no", "lookup", "on", "for", "tcp", "failed"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_looked_up_is_a_name() {
        let table = [
            ("curl: (6) Could not resolve host: example.org", Some("example.org")),
            (
                "HTTPSConnectionPool(host='pypi.org', port=443): Failed to establish a new connection: x",
                Some("pypi.org"),
            ),
            ("HTTPSConnectionPool(host='a\u{1b}[2J', port=443): Failed to establish a new connection", None),
            ("Error: connect ENETUNREACH 192.0.2.1:80 - Local (0.0.0.0:0)", None),
            ("connect: Network is unreachable", None),
            ("example.org", None),
        ];
        for (line, name) in table {
            assert_eq!(host(line), name, "{line:?}");
        }
    }

    #[test]
    fn programs_name_the_host_in_their_own_ways() {
        let table = [
            ("curl: (6) Could not resolve host: example.org", "example.org"),
            ("fatal: unable to access 'https://h/': Could not resolve host: h", "h"),
            ("wget: unable to resolve host address ‘x.org’", "x.org"),
            ("npm error getaddrinfo EAI_AGAIN registry.npmjs.org", "registry.npmjs.org"),
            ("Error: getaddrinfo ENOTFOUND api.example.org", "api.example.org"),
            ("Error: connect ENETUNREACH 192.0.2.1:80 - Local (0.0.0.0:0)", "192.0.2.1:80"),
            ("ssh: connect to host git.example port 22: Network is unreachable", "git.example"),
            ("java.net.UnknownHostException: example.org", "example.org"),
            (
                "go: x: Get \"https://p/\": dial tcp: lookup proxy.golang.org on 192.0.2.53:53: dial udp",
                "proxy.golang.org",
            ),
            ("dial tcp 192.0.2.1:443: connect: network is unreachable", "192.0.2.1:443"),
            ("dial tcp [2001:db8::1]:443: connect: network is unreachable", "[2001:db8::1]:443"),
            (
                "HTTPSConnectionPool(host='pypi.org', port=443): Max retries: Failed to establish a new connection: x",
                "pypi.org",
            ),
            ("curl: (7) Immediate connect fail for 192.0.2.1: Permission denied", "192.0.2.1"),
            (
                "curl: (7) Failed to connect to 192.0.2.1 port 80 after 0 ms: Couldn't connect to server",
                "192.0.2.1",
            ),
            (
                "curl: (7) Failed to connect to 2001:db8::1 port 80 after 0 ms: Could not connect to server",
                "2001:db8::1",
            ),
            ("connect: Network is unreachable", "the network"),
            ("bash: connect: Permission denied", "the network"),
            ("OSError: [Errno 101] Network is unreachable", "the network"),
            ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "the network"),
        ];
        for (line, host) in table {
            assert_eq!(unreached(line).as_deref(), Some(host), "{line}");
        }
        for other in [
            "connect: Connection refused",
            "HTTP 404",
            "host: permission denied",
            "the socket: permission denied",
            "",
        ] {
            assert_eq!(unreached(other), None, "{other}");
        }
        for own in ["127.0.0.1", "::1", "0.0.0.0", "localhost", "name-of-hosts"] {
            let line = format!("curl: (7) Failed to connect to {own} port 80: Couldn't connect to server");
            assert_eq!(unreached(&line), None, "{own}");
        }
    }
}
