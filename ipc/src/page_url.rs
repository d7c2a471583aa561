//! The URL of a page that an agent requests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::rights::{HostError, HostName, HostRule, Hosts};

/// Maximum length of a URL in bytes. Characters that are not ASCII count in their escaped form.
pub const MAX_URL: usize = 4 << 10;

const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// An HTTP or HTTPS URL with a host name and without a user name, as printable ASCII: other characters in path and
/// query are escaped. The fragment is removed, since no server gets it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageUrl {
    encrypted: bool,
    host: HostName,
    port: u16,
    /// Path and query, beginning with `/`.
    target: String,
}

/// The reason why a text is no [`PageUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The scheme is not `http` or `https`.
    #[error("a URL must begin with https:// or http://")]
    Scheme,
    /// There is a user name or password before the host.
    #[error("a URL with a user name or password before the host is not fetched")]
    User,
    /// The host is not valid.
    #[error("the host of the URL cannot be used: {0}")]
    Host(#[from] HostError),
    /// The port is not a number from 1 to 65535.
    #[error("the port of the URL is not a number from 1 to 65535")]
    Port,
    /// The URL has a character that is not permitted in URLs, and that browsers and servers interpret differently.
    #[error("a URL cannot have {0:?}")]
    Character(char),
    /// The URL exceeds [`MAX_URL`].
    #[error("the URL is longer than {MAX_URL} bytes")]
    TooLong,
}

impl PageUrl {
    /// True if the scheme is `https`.
    pub const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Returns the host, without the port.
    pub const fn host(&self) -> &HostName {
        &self.host
    }

    /// Returns the port, which is the default of the scheme if the URL names none.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns path and query, as in the first line of an HTTP request.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns host and port, as in the HTTP field `Host`: without the port if it is the default of the scheme.
    pub fn authority(&self) -> String {
        let usual = if self.encrypted { HTTPS } else { HTTP };
        if self.port == usual { self.host.to_string() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Returns the rule that permits this URL's host and port, and no others.
    pub fn rule(&self) -> HostRule {
        HostRule::exactly(self.host.clone(), self.port)
    }

    /// Returns rules for this URL. For HTTP at port 80 they also permit HTTPS, to which many servers redirect.
    pub fn rules(&self) -> Hosts {
        let encrypted =
            (!self.encrypted && self.port == HTTP).then(|| HostRule::exactly(self.host.clone(), HTTPS));
        let own = Hosts::from(self.rule());
        encrypted.map_or_else(|| own.clone(), |rule| own.join(&rule.into()))
    }

    /// True if a redirect to `other` leads to the same host, with the same or better encryption.
    pub fn may_lead_to(&self, other: &Self) -> bool {
        let same = (self.encrypted, self.port) == (other.encrypted, other.port);
        let secured = !self.encrypted && other.encrypted;
        self.host == other.host && (same || secured)
    }

    /// Resolves a reference in this page, as in `Location` (RFC 3986 §5.2). Fails if the result is no valid URL.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let scheme = if self.encrypted { "https:" } else { "http:" };
        let base = format!("{scheme}//{}", self.authority());
        let path = self.target.split('?').next().unwrap_or_default();
        let reference = reference.split('#').next().unwrap_or_default();
        if let Some((before, _)) = reference.split_once(':')
            && !before.contains(['/', '?'])
        {
            reference.parse()
        } else if reference.starts_with("//") {
            format!("{scheme}{reference}").parse()
        } else if reference.starts_with('/') {
            format!("{base}{reference}").parse()
        } else if reference.starts_with('?') {
            format!("{base}{path}{reference}").parse()
        } else if reference.is_empty() {
            Ok(self.clone())
        } else {
            let directory = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/");
            format!("{base}{directory}{reference}").parse()
        }
    }
}

impl FromStr for PageUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.len() > MAX_URL {
            return Err(UrlError::TooLong);
        }
        // URL parsers differ in these characters, so another host could be reached than the one that is shown.
        if let Some(odd) = text.chars().find(|&c| c == '\\' || c == ' ' || c.is_control()) {
            return Err(UrlError::Character(odd));
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err(UrlError::User);
        }
        let (host, port) = host_and_port(authority)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let mut target = without_dots(&escaped(path));
        if let Some(query) = query {
            target.push('?');
            target.push_str(&escaped(query));
        }
        let port = port.unwrap_or(if encrypted { HTTPS } else { HTTP });
        let url = Self { encrypted, host, port, target };
        if url.to_string().len() > MAX_URL { Err(UrlError::TooLong) } else { Ok(url) }
    }
}

fn host_and_port(authority: &str) -> Result<(HostName, Option<u16>), UrlError> {
    let (host, port) = match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => return Err(HostError::Literal.into()),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let number = |port: &str| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        port.parse().ok().filter(|&port| digits && port > 0).ok_or(UrlError::Port)
    };
    Ok((host.parse()?, port.map(number).transpose()?))
}

/// Escapes every byte that a path or query cannot have. Existing escapes stay.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%[]".contains(&byte);
    let one = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// Returns a path without `.` and `..` (RFC 3986 §5.2.4), beginning with `/`.
fn without_dots(path: &str) -> String {
    let mut kept = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment.to_ascii_lowercase().replace("%2e", ".").as_str() {
            "." => {}
            ".." => drop(kept.pop()),
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

impl TryFrom<String> for PageUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl From<PageUrl> for String {
    fn from(url: PageUrl) -> Self {
        url.to_string()
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.target)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<String, UrlError> {
        text.parse::<PageUrl>().map(|url| url.to_string())
    }

    #[test]
    fn a_url_is_read_in_one_form() {
        for (text, expected) in [
            ("https://docs.example", "https://docs.example/"),
            ("HTTPS://Docs.EXAMPLE.:443/a", "https://docs.example/a"),
            ("http://docs.example:80?q=1#part", "http://docs.example/?q=1"),
            ("http://docs.example:8080/a", "http://docs.example:8080/a"),
            ("https://docs.example:80/", "https://docs.example:80/"),
            (
                "https://docs.example/ü?q=漢&r=\"<\u{202e}",
                "https://docs.example/%C3%BC?q=%E6%BC%A2&r=%22%3C%E2%80%AE",
            ),
            ("https://docs.example/a/./b/../../../c/..", "https://docs.example/"),
            ("https://docs.example/a/%2E%2e/b", "https://docs.example/b"),
            ("https://docs.example/a%20b?x=../y@z:1", "https://docs.example/a%20b?x=../y@z:1"),
            ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_as_another_host_is_no_url() {
        let host = |text: &str| matches!(read(text), Err(UrlError::Host(_)));
        for text in [
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]:443/",
            "https:///etc/passwd",
            "https://docs..example/",
            "https://dоcs.example/",
            "https://docs.example%2eevil.example/",
            "https://docs\u{ff0e}example/",
            "https://docs.example\u{200b}/",
        ] {
            assert!(host(text), "{text}: {:?}", read(text));
        }
        for text in
            ["https://docs.example@evil.example/", "https://u:p@docs.example/", "https://@docs.example"]
        {
            assert_eq!(read(text), Err(UrlError::User), "{text}");
        }
        for text in
            ["file:///etc/passwd", "ftp://a.example/", "docs.example/a", "javascript:1", "", "//a.example"]
        {
            assert_eq!(read(text), Err(UrlError::Scheme), "{text}");
        }
        for (text, odd) in [
            ("https://docs.example\\@evil.example/", '\\'),
            ("https://docs.example/a b", ' '),
            ("https://docs.example/\r\nHost: evil.example", ' '),
            ("https://docs.example/\0", '\0'),
            ("https://docs.example/\u{1b}[2J", '\u{1b}'),
            ("https://docs.exa\tmple/", '\t'),
        ] {
            let error = read(text);
            assert!(matches!(error, Err(UrlError::Character(_))), "{text:?} has {odd:?}: {error:?}");
        }
        for text in [
            "https://docs.example:/",
            "https://docs.example:0/",
            "https://docs.example:65536/",
            "https://docs.example:+1/",
        ] {
            assert_eq!(read(text), Err(UrlError::Port), "{text}");
        }
        assert_eq!(read(&format!("https://docs.example/{}", "a".repeat(MAX_URL))), Err(UrlError::TooLong));
        assert_eq!(
            read(&format!("https://docs.example/{}", "ü".repeat(MAX_URL / 4))),
            Err(UrlError::TooLong)
        );
    }

    #[test]
    fn a_reference_is_read_against_its_page() {
        let page: PageUrl = "https://docs.example/a/b?q".parse().unwrap();
        for (reference, expected) in [
            ("c", "https://docs.example/a/c"),
            ("../c", "https://docs.example/c"),
            ("/c?x", "https://docs.example/c?x"),
            ("?x", "https://docs.example/a/b?x"),
            ("#part", "https://docs.example/a/b?q"),
            ("//evil.example/x", "https://evil.example/x"),
            ("http://docs.example/", "http://docs.example/"),
            ("c?x=http://evil.example", "https://docs.example/a/c?x=http://evil.example"),
        ] {
            assert_eq!(
                page.join(reference).map(|url| url.to_string()).as_deref(),
                Ok(expected),
                "{reference}"
            );
        }
        for reference in
            ["file:///etc/passwd", "data:text/html,x", "//127.0.0.1/", "https://u@docs.example/", "/\\evil"]
        {
            assert!(page.join(reference).is_err(), "{reference}");
        }
    }

    #[test]
    fn a_redirect_stays_with_its_host_and_never_gives_encryption_up() {
        let leads = |from: &str, to: &str| from.parse::<PageUrl>().unwrap().may_lead_to(&to.parse().unwrap());
        assert!(leads("https://a.example/", "https://a.example/b"));
        assert!(leads("http://a.example/", "https://a.example/"));
        assert!(!leads("https://a.example/", "http://a.example/"));
        assert!(!leads("https://a.example/", "https://a.example:8443/"));
        assert!(!leads("https://a.example/", "https://b.a.example/"));
        assert_eq!(
            "http://a.example/".parse::<PageUrl>().unwrap().rules().to_string(),
            "a.example:80 a.example"
        );
        assert_eq!(
            "http://a.example:8080/".parse::<PageUrl>().unwrap().rules().to_string(),
            "a.example:8080"
        );
    }

    proptest! {
        #[test]
        fn a_url_is_printable_and_read_again_as_itself(text in "https?://[a-z.]{1,8}(:[0-9]{1,5})?\\PC{0,40}") {
            if let Ok(url) = text.parse::<PageUrl>() {
                let shown = url.to_string();
                prop_assert!(shown.bytes().all(|byte| byte.is_ascii_graphic()), "{}", shown);
                prop_assert_eq!(shown.parse::<PageUrl>(), Ok(url));
            }
        }
    }
}
