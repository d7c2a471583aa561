//! The network in a person's words: `off`, `on`, or a list of hosts and presets such as `@pypi,docs.example`.

use ipc::rights::{HostError, HostRule, Hosts, MAX_RULES, Network, RightsChange};

/// A named list of hosts, which people can use in place of the list.
#[derive(Clone, Copy, Debug)]
pub struct HostPreset {
    /// The word for `--net` and the settings, with its `@`.
    pub name: &'static str,
    /// The rules, each with the reason for it.
    pub rules: &'static [(&'static str, &'static str)],
}

/// All named lists of hosts.
pub const PRESETS: &[HostPreset] = &[
    HostPreset {
        name: "@pypi",
        rules: &[("pypi.org", "the package index of pip and uv"), ("files.pythonhosted.org", "the packages")],
    },
    HostPreset {
        name: "@crates",
        rules: &[
            ("index.crates.io", "the sparse index of cargo"),
            ("static.crates.io", "the packages"),
            ("crates.io", "`cargo search`, and downloads by old versions of cargo"),
        ],
    },
    HostPreset { name: "@npm", rules: &[("registry.npmjs.org", "index and packages of npm, pnpm and yarn")] },
    HostPreset {
        name: "@go",
        rules: &[
            ("proxy.golang.org", "modules"),
            ("sum.golang.org", "their checksums"),
            ("go.dev", "names of toolchains"),
            ("dl.google.com", "downloads of toolchains, by redirection from go.dev"),
        ],
    },
    HostPreset {
        name: "@debian",
        rules: &[
            ("deb.debian.org:80", "index and packages of apt"),
            ("deb.debian.org", "index and packages of apt, by HTTPS"),
            ("security.debian.org:80", "security updates"),
            ("security.debian.org", "security updates, by HTTPS"),
        ],
    },
    HostPreset {
        name: "@github",
        rules: &[
            ("github.com", "git, and pages that redirect to downloads"),
            ("api.github.com", "the API"),
            ("codeload.github.com", "archives of source code"),
            ("objects.githubusercontent.com", "large files of git"),
            ("release-assets.githubusercontent.com", "files of releases"),
            ("raw.githubusercontent.com", "single files"),
        ],
    },
];

/// Reason that a text names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkWordError {
    /// An entry is no host.
    #[error("{entry:?} is not a host: {source}")]
    Host {
        /// The entry as the person wrote it.
        entry: String,
        /// The fault of the entry.
        source: HostError,
    },
    /// A preset that does not exist.
    #[error("there is no preset {0:?}; there are {presets}", presets = names())]
    Preset(String),
    /// A rule for all names of a public suffix.
    #[error("{0:?} would allow every host that anyone registers below that name; name each host instead")]
    Suffix(String),
    /// A single label without a port, which may be a mistyped word instead of a host.
    #[error("{0:?} is neither off nor on, and a host without a dot needs a port")]
    Word(String),
    /// The list has no entry, or too many.
    #[error(transparent)]
    List(HostError),
}

fn names() -> String {
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

/// Parses `off`, `on`, or a list as [`hosts`] does.
pub fn network(text: &str) -> Result<Network, NetworkWordError> {
    match text {
        "off" => Ok(Network::Off),
        "on" => Ok(Network::On),
        list => hosts(list.split([',', ' ']).filter(|entry| !entry.is_empty())).map(Network::Hosts),
    }
}

/// Parses a change of the network: `off`, `on`, a list that replaces the present one, or a list to add after a `+`.
pub fn change(text: &str) -> Result<RightsChange, NetworkWordError> {
    match text.strip_prefix('+') {
        Some(list) => match network(list)? {
            Network::Hosts(hosts) => Ok(RightsChange::AddHosts { hosts, reach: None }),
            Network::Off | Network::On => Err(NetworkWordError::Word(list.to_owned())),
        },
        None => Ok(RightsChange::Network { net: network(text)?, reach: None }),
    }
}

/// Parses a list of hosts (`NAME`, `NAME:PORT`, `*.NAME`, `*.NAME:PORT`) and presets.
pub fn hosts<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Hosts, NetworkWordError> {
    let mut rules = Vec::new();
    for entry in entries {
        if entry.starts_with('@') {
            let preset = PRESETS.iter().find(|preset| preset.name == entry);
            let preset = preset.ok_or_else(|| NetworkWordError::Preset(entry.to_owned()))?;
            for (text, _) in preset.rules {
                rules.push(rule(text)?);
            }
        } else {
            rules.push(rule(entry)?);
        }
    }
    if rules.len() > MAX_RULES {
        return Err(NetworkWordError::List(HostError::TooMany));
    }
    Hosts::new(rules).ok_or(NetworkWordError::List(HostError::NoRule))
}

/// Returns the first rule for all names below a public suffix, if there is one. No agent may have such a rule.
pub fn too_wide(net: &Network) -> Option<&HostRule> {
    let rules = net.hosts().map(Hosts::rules).unwrap_or_default();
    rules.iter().find(|rule| is_too_wide(rule))
}

fn is_too_wide(rule: &HostRule) -> bool {
    rule.is_for_names_below() && is_public_suffix(rule.name().as_str())
}

fn rule(entry: &str) -> Result<HostRule, NetworkWordError> {
    let rule: HostRule =
        entry.parse().map_err(|source| NetworkWordError::Host { entry: entry.to_owned(), source })?;
    if !entry.contains(['.', ':']) {
        return Err(NetworkWordError::Word(entry.to_owned()));
    }
    if is_too_wide(&rule) {
        return Err(NetworkWordError::Suffix(entry.to_owned()));
    }
    Ok(rule)
}

/// True for a public suffix, below which people register names: `com`, `co.uk`, `github.io`, and each single label.
fn is_public_suffix(name: &str) -> bool {
    !name.contains('.') || psl::suffix_str(name) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_network_or_an_error_that_says_why() {
        let flag = |text: &str| network(text).map(|net| net.flag()).map_err(|error| error.to_string());
        for (text, expected) in [
            ("off", "off"),
            ("on", "on"),
            ("docs.example", "docs.example"),
            ("b.example:80, a.example", "a.example,b.example:80"),
            ("@npm,*.docs.example", "*.docs.example,registry.npmjs.org"),
            ("@pypi", "files.pythonhosted.org,pypi.org"),
            ("db:5432", "db:5432"),
            ("*.a.b.example:8443", "*.a.b.example:8443"),
        ] {
            assert_eq!(flag(text).map(sorted), Ok(sorted(expected.to_owned())), "{text}");
        }
        for (text, expected) in [
            ("", "the list of hosts is empty"),
            (",", "the list of hosts is empty"),
            ("@nope", r#"there is no preset "@nope"; there are @pypi, @crates, @npm, @go, @debian, @github"#),
            ("ON", r#""ON" is neither off nor on, and a host without a dot needs a port"#),
            (
                "*.com",
                r#""*.com" would allow every host that anyone registers below that name; name each host instead"#,
            ),
            (
                "*.co.uk",
                r#""*.co.uk" would allow every host that anyone registers below that name; name each host instead"#,
            ),
            (
                "*.github.io",
                r#""*.github.io" would allow every host that anyone registers below that name; name each host instead"#,
            ),
            (
                "*.internal",
                r#""*.internal" would allow every host that anyone registers below that name; name each host instead"#,
            ),
            (
                "a.example,10.0.0.1",
                "\"10.0.0.1\" is not a host: an address is not a host name; `--reach` is for addresses of this \
                machine and its neighbours",
            ),
            ("https://a.example", r#""https://a.example" is not a host: '/' cannot be part of a host name"#),
        ] {
            assert_eq!(flag(text), Err(expected.to_owned()), "{text}");
        }
    }

    fn sorted(flag: String) -> Vec<String> {
        let mut entries: Vec<_> = flag.split(',').map(ToOwned::to_owned).collect();
        entries.sort_unstable();
        entries
    }

    #[test]
    fn every_preset_is_a_list_of_hosts_and_none_is_for_names_below() {
        for preset in PRESETS {
            let hosts = hosts([preset.name]).unwrap();
            assert_eq!(hosts.rules().len(), preset.rules.len(), "{}", preset.name);
            assert!(!hosts.rules().iter().any(HostRule::is_for_names_below), "{}", preset.name);
        }
    }
}
