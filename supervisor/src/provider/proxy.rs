//! The proxy that the environment names for an address, for messages: a failure on the way is often the proxy's.

use reqwest::Url;

use super::http::is_loopback;

/// The variables that name a proxy (curl(1), "ENVIRONMENT").
pub(crate) const VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The proxy on the way to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    /// The variable that names it.
    pub(crate) variable: &'static str,
    /// True if it is on this machine.
    pub(crate) is_local: bool,
}

impl Proxy {
    /// The proxy on the way to `url`.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        Self::among(url, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn among(url: &Url, value: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let host = url.host_str()?;
        let exceptions = value("NO_PROXY").or_else(|| value("no_proxy")).unwrap_or_default();
        if is_loopback(url) || exceptions.split(',').any(|exception| covers(exception.trim(), host)) {
            return None;
        }
        let prefix = format!("{}_proxy", url.scheme());
        let fits = |name: &&str| name.eq_ignore_ascii_case(&prefix) || name.eq_ignore_ascii_case("all_proxy");
        let (variable, address) =
            VARIABLES.into_iter().filter(fits).find_map(|name| Some((name, value(name)?)))?;
        let is_local = address_of(&address).is_some_and(|address| is_loopback(&address));
        Some(Self { variable, is_local })
    }
}

/// A proxy may be named without its scheme.
pub(crate) fn address_of(value: &str) -> Option<Url> {
    let url = if value.contains("://") { value.parse() } else { format!("http://{value}").parse() };
    url.ok().filter(Url::has_host)
}

/// True if an exception is this host, or a domain that contains it.
fn covers(exception: &str, host: &str) -> bool {
    let domain = exception.trim_start_matches('.');
    exception == "*"
        || !domain.is_empty()
            && host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str, set: &[(&str, &str)]) -> Option<(&'static str, bool)> {
        let value = |name: &str| Some(set.iter().find(|(known, _)| *known == name)?.1.to_owned());
        Proxy::among(&url.parse().unwrap(), &value).map(|proxy| (proxy.variable, proxy.is_local))
    }

    #[test]
    fn the_proxy_of_an_address_is_that_of_its_scheme_unless_it_is_an_exception() {
        let set = [("HTTPS_PROXY", "127.0.0.1:3128"), ("http_proxy", "http://proxy.example:80")];
        assert_eq!(proxy("https://api.example/v1", &set), Some(("HTTPS_PROXY", true)));
        assert_eq!(proxy("http://api.example", &set), Some(("http_proxy", false)));
        assert_eq!(proxy("http://127.0.0.1:8080", &set), None);
        assert_eq!(
            proxy("https://api.example", &[("all_proxy", "socks5://p:1")]),
            Some(("all_proxy", false))
        );
        for exception in ["*", "api.example", ".example", "a, example"] {
            let set = [("HTTPS_PROXY", "p:1"), ("NO_PROXY", exception)];
            assert_eq!(proxy("https://api.example", &set), None, "{exception}");
            assert!(proxy("https://apiexample.org", &set[..1]).is_some());
        }
        assert!(proxy("https://notexample", &[("HTTPS_PROXY", "p:1"), ("NO_PROXY", "example")]).is_some());
    }
}
