//! Finds the proxy in the environment. An invalid value is an error, since a request must never bypass a proxy.

use std::env;
use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use super::http::is_loopback;

/// Variables that name a proxy (curl(1), "ENVIRONMENT").
pub const VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Variables with the addresses that are reached without the proxy, called exceptions below.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub variable: &'static str,
    pub url: Url,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error(
        "cannot use the proxy in {0}: the value is not an address\n  hint: {0}=http://proxy.example:3128, or unset {0}"
    )]
    Unreadable(&'static str),
    #[error(
        "cannot use the proxy in {variable}: the proxy's address begins with {scheme}, and only http and https are supported\n  hint: {variable}=http://proxy.example:3128, or unset {variable}"
    )]
    Scheme { variable: &'static str, scheme: String },
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a password.
        f.debug_struct("Proxy").field("variable", &self.variable).finish_non_exhaustive()
    }
}

impl Proxy {
    pub fn of(url: &Url) -> Result<Option<Self>, ProxyError> {
        // A value in another encoding is an invalid address, and not a missing one.
        let value = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self::among(url, &|name| value(name).filter(|value| !value.trim().is_empty()))
    }

    fn among(url: &Url, value: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, ProxyError> {
        let exceptions = EXCEPTIONS.into_iter().find_map(value).unwrap_or_default();
        let mut exceptions = exceptions.split([',', ' ', '\t']).map(str::trim);
        if !url.has_host() || is_loopback(url) || exceptions.any(|exception| covers(exception, url)) {
            return Ok(None);
        }
        let prefix = format!("{}_proxy", url.scheme());
        let fits = |name: &&str| name.eq_ignore_ascii_case(&prefix) || name.eq_ignore_ascii_case("all_proxy");
        let named = VARIABLES.into_iter().filter(fits).find_map(|name| Some((name, value(name)?)));
        let Some((variable, address)) = named else { return Ok(None) };
        let url = address_of(&address).ok_or(ProxyError::Unreadable(variable))?;
        match url.scheme() {
            "http" | "https" => Ok(Some(Self { variable, url })),
            scheme => Err(ProxyError::Scheme { variable, scheme: scheme.to_owned() }),
        }
    }

    pub fn is_local(&self) -> bool {
        is_loopback(&self.url)
    }

    pub fn has_user(&self) -> bool {
        !self.url.username().is_empty()
    }
}

/// Parses the address of a proxy, whose scheme may be missing. `None` if the address is invalid, also for a value such
/// as `ht!tp:/x`, which the parser of URLs would accept.
pub fn address_of(value: &str) -> Option<Url> {
    let value = value.trim();
    let url: Url =
        if value.contains("://") { value.parse() } else { format!("http://{value}").parse() }.ok()?;
    let is_of_host = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    let host = url.host_str().filter(|host| !host.is_empty() && host.chars().all(is_of_host))?;
    let has_path = !matches!(url.path(), "" | "/") || url.query().is_some();
    (!host.is_empty() && !has_path && !value.contains(char::is_whitespace)).then_some(url)
}

/// True if the URL's host is the exception, belongs to its domain, or has an address in its network.
fn covers(exception: &str, url: &Url) -> bool {
    let exception = exception.to_lowercase();
    let host = url.host_str().unwrap_or_default().to_lowercase();
    let address: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    if exception == "*" {
        return true;
    }
    if let Some(address) = address {
        let (network, length) = exception.split_once('/').unwrap_or((&exception, ""));
        let (network, port) = with_port(network);
        let network: Option<IpAddr> = network.trim_start_matches('[').trim_end_matches(']').parse().ok();
        return is_port(port, url) && network.is_some_and(|network| contains(network, length, address));
    }
    let (name, port) = with_port(&exception);
    let domain = name.trim_start_matches("*.").trim_start_matches('.');
    !domain.is_empty()
        && is_port(port, url)
        && host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Splits an exception into name and port. The port is empty if the exception has none.
fn with_port(exception: &str) -> (&str, &str) {
    match exception.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
        _ => (exception, ""),
    }
}

fn is_port(port: &str, url: &Url) -> bool {
    port.is_empty() || port.parse() == Ok(url.port_or_known_default().unwrap_or_default())
}

/// True if the network contains the address. If `length` is empty, the network is a single address.
fn contains(network: IpAddr, length: &str, address: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let ((network_bits, most), (address_bits, _)) = (bits(network), bits(address));
    let length = if length.is_empty() { Some(most) } else { length.parse().ok().filter(|it| *it <= most) };
    let Some(length) = length.filter(|_| network.is_ipv4() == address.is_ipv4()) else { return false };
    let differing = network_bits ^ address_bits;
    differing.checked_shr(128 - length).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(url: &str, set: &[(&str, &str)]) -> Result<Option<Proxy>, ProxyError> {
        let value = |name: &str| Some(set.iter().find(|(known, _)| *known == name)?.1.to_owned());
        Proxy::among(&url.parse().unwrap(), &value)
    }

    fn proxy(url: &str, set: &[(&str, &str)]) -> Option<(&'static str, bool)> {
        among(url, set).unwrap().map(|proxy| (proxy.variable, proxy.is_local()))
    }

    #[test]
    fn the_proxy_of_an_address_is_that_of_its_scheme_unless_it_is_an_exception() {
        let set = [("HTTPS_PROXY", "127.0.0.1:3128"), ("http_proxy", "http://proxy.example:80")];
        assert_eq!(proxy("https://api.example/v1", &set), Some(("HTTPS_PROXY", true)));
        assert_eq!(proxy("http://api.example", &set), Some(("http_proxy", false)));
        assert_eq!(proxy("http://127.0.0.1:8080", &set), None);
        assert_eq!(
            proxy("https://api.example", &[("all_proxy", " https://p:1/ ")]),
            Some(("all_proxy", false))
        );
        for exception in
            ["*", "api.example", ".example", "a, example", "*.example", "API.Example", "a b api.example:443"]
        {
            let set = [("HTTPS_PROXY", "p:1"), ("NO_PROXY", exception)];
            assert_eq!(proxy("https://api.example", &set), None, "{exception}");
            assert!(proxy("https://apiexample.org", &set[..1]).is_some());
        }
        for exception in ["example", "pi.example", "api.example:80", "", ",", "10.0.0.0/8"] {
            let set = [("HTTPS_PROXY", "p:1"), ("NO_PROXY", exception)];
            assert!(proxy("https://notexample", &set).is_some(), "{exception}");
        }
    }

    #[test]
    fn a_network_is_an_exception_for_the_addresses_in_it() {
        for (exception, address, expected) in [
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3:8443", "10.1.2.3", false),
            ("192.168.1.0/33", "192.168.1.1", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("fd00::/8", "[fd12::1]", true),
            ("fd00::/8", "[fe80::1]", false),
            ("fd12::1", "[fd12::1]", true),
        ] {
            let set = [("HTTPS_PROXY", "p:1"), ("no_proxy", exception)];
            assert_eq!(
                proxy(&format!("https://{address}"), &set).is_none(),
                expected,
                "{exception} {address}"
            );
        }
    }

    #[test]
    fn z7_a_proxy_that_cannot_be_used_is_an_error_and_never_none() {
        for value in [
            "ht!tp:/x y",
            "http://",
            "://",
            "http://:80",
            "http://p:99999",
            "\u{fffd}\u{fffd} x",
            "http://a b:1",
        ] {
            let error = among("https://api.example", &[("HTTPS_PROXY", value)]).expect_err(value);
            assert_eq!(error, ProxyError::Unreadable("HTTPS_PROXY"), "{value}");
        }
        for (value, scheme) in [("socks5h://me:geheim@p:1", "socks5h"), ("ftp://p:1", "ftp")] {
            let error = among("https://api.example", &[("all_proxy", value)]).expect_err(value);
            assert_eq!(error, ProxyError::Scheme { variable: "all_proxy", scheme: scheme.to_owned() });
            assert!(!format!("{error}{error:?}").contains("geheim"));
        }
        let known =
            among("https://api.example", &[("HTTPS_PROXY", "http://me:geheim@p:1")]).unwrap().unwrap();
        assert!(known.has_user() && !format!("{known:?}").contains("geheim"));
    }
}
