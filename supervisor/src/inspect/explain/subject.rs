//! The subject of an explanation: a path, an address or a command.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipc::path::WirePath;

use crate::settings::args::SubjectArg;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExplainSubject {
    Path(PathBuf),
    Address(NamedSubject),
    Command(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedSubject {
    /// A numeric address. The port is 0 if none was given.
    Literal(SocketAddr),
    /// A host name and a port. The name is not looked up.
    Name(String, u16),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubjectError {
    #[error("nothing to explain\n  hint: name a path, HOST:PORT, or a command in quotes")]
    Nothing,
    /// The word has a NUL byte.
    #[error("{0:?} has a NUL byte, which no path, address or command can have")]
    Nul(String),
    #[error("{0:?} is not an address\n  hint: HOST:PORT, as 127.0.0.1:8080, [::1]:443 or example.org:443")]
    NoAddress(String),
    #[error("{0:?} is not UTF-8, so this cannot be a command\n  hint: --as path, if this is a path")]
    NotText(String),
}

impl ExplainSubject {
    /// Determines the kind of the subject, from a flag or else from its form: an address is written as one, a path has
    /// a slash or exists in the project, and everything else is a command.
    pub(super) fn of(
        what: &OsStr,
        kind: Option<SubjectArg>,
        project: &WirePath,
    ) -> Result<Self, SubjectError> {
        let shown = || what.to_string_lossy().into_owned();
        if what.as_encoded_bytes().contains(&0) {
            return Err(SubjectError::Nul(shown()));
        }
        if what.as_encoded_bytes().trim_ascii().is_empty() {
            return Err(SubjectError::Nothing);
        }
        let path = || Self::Path(project.as_path().join(what));
        let command = || what.to_str().map(str::to_owned).map(Self::Command);
        match kind {
            Some(SubjectArg::Path) => Ok(path()),
            Some(SubjectArg::Command) => command().ok_or_else(|| SubjectError::NotText(shown())),
            Some(SubjectArg::Address) => what
                .to_str()
                .and_then(address)
                .map(Self::Address)
                .ok_or_else(|| SubjectError::NoAddress(shown())),
            None if is_path(what, project) => Ok(path()),
            None => match what.to_str() {
                Some(text) => Ok(address(text).map_or_else(|| Self::Command(text.to_owned()), Self::Address)),
                None => Ok(path()),
            },
        }
    }
}

/// True if the word is written as a path, or names something that exists in the project.
fn is_path(what: &OsStr, project: &WirePath) -> bool {
    let bytes = what.as_encoded_bytes();
    let is_word = !bytes.iter().any(u8::is_ascii_whitespace);
    let begins = ["/", "./", "../"].iter().any(|start| bytes.starts_with(start.as_bytes()));
    let is_url = bytes.windows(3).any(|part| part == b"://");
    let exists = || project.as_path().join(what).symlink_metadata().is_ok();
    [&b"."[..], b".."].contains(&bytes) || is_word && (begins || bytes.contains(&b'/') && !is_url) || exists()
}

/// Parses `HOST:PORT`, a numeric address without a port, or the host part of a URL; `None` for other text.
fn address(text: &str) -> Option<NamedSubject> {
    let authority = |rest: &str| rest.split(['/', '?', '#']).next().map(str::to_owned);
    if let Some((scheme, rest)) = text.split_once("://") {
        let port = [("http", 80), ("https", 443)].iter().find(|(known, _)| *known == scheme)?.1;
        let host = authority(rest)?;
        return address(&host).or_else(|| named(&host, port));
    }
    if let Ok(literal) = text.parse::<SocketAddr>() {
        return Some(NamedSubject::Literal(literal));
    }
    if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Some(NamedSubject::Literal(SocketAddr::new(ip, 0)));
    }
    let (host, port) = text.rsplit_once(':')?;
    named(host, port.parse().ok()?)
}

fn named(host: &str, port: u16) -> Option<NamedSubject> {
    let is_part = |c: char| c.is_alphanumeric() || "-._".contains(c);
    (!host.is_empty() && host.chars().all(is_part)).then(|| NamedSubject::Name(host.to_owned(), port))
}

pub(super) fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(what: &str) -> String {
        match ExplainSubject::of(OsStr::new(what), None, &"/nonexistent/p".into()) {
            Ok(ExplainSubject::Path(path)) => format!("path {}", path.display()),
            Ok(ExplainSubject::Address(NamedSubject::Literal(address))) => format!("address {address}"),
            Ok(ExplainSubject::Address(NamedSubject::Name(name, port))) => format!("name {name} {port}"),
            Ok(ExplainSubject::Command(command)) => format!("command {command}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_form_tells_what_it_is() {
        for (what, is) in [
            ("/etc/x", "path /etc/x"),
            ("src/main.rs", "path /nonexistent/p/src/main.rs"),
            (".", "path /nonexistent/p/."),
            ("127.0.0.1:80", "address 127.0.0.1:80"),
            ("[::1]:443", "address [::1]:443"),
            ("::1", "address [::1]:0"),
            ("10.0.0.1", "address 10.0.0.1:0"),
            ("example.org:443", "name example.org 443"),
            ("https://example.org/a?b", "name example.org 443"),
            ("http://127.0.0.1:8080/x", "address 127.0.0.1:8080"),
            ("cargo test", "command cargo test"),
            ("make", "command make"),
            ("cat /etc/x", "command cat /etc/x"),
            ("example.org:https", "command example.org:https"),
        ] {
            assert_eq!(subject(what), is, "{what}");
        }
    }

    #[test]
    fn what_is_nothing_is_an_error() {
        assert!(subject(" ").starts_with("nothing to explain"));
        let of = |what: &str, kind| ExplainSubject::of(OsStr::new(what), Some(kind), &"/p".into());
        assert!(matches!(of("x y", SubjectArg::Address), Err(SubjectError::NoAddress(_))));
        assert_eq!(of("make", SubjectArg::Path), Ok(ExplainSubject::Path("/p/make".into())));
        assert_eq!(of("/bin/ls", SubjectArg::Command), Ok(ExplainSubject::Command("/bin/ls".to_owned())));
        assert!(matches!(of("a\0b", SubjectArg::Path), Err(SubjectError::Nul(_))));
    }
}
