//! Protects promisor remotes, from which git fetches missing objects in any command, even `git status`.
//!
//! An agent without network access could put data into the address of such a remote, and the person's git would send
//! the data. So a promisor on another machine must be one of the person's, with an unchanged address.

use std::collections::BTreeSet;

use super::addresses::Address;
use super::config::GitConfigEntry;
use super::keys::is_off;

#[derive(Debug, Default)]
pub(super) struct Promised<'a>(BTreeSet<&'a [u8]>);

impl<'a> Promised<'a> {
    pub(super) fn of(entries: &'a [GitConfigEntry]) -> Self {
        Self(entries.iter().filter_map(promised_by).collect())
    }

    /// True if an entry makes a remote on another machine a promisor, or sets the address of a known promisor. `all`
    /// are all entries of the repository; `None` if other files contain some of them.
    pub(super) fn leads_away(&self, entry: &GitConfigEntry, all: Option<&[GitConfigEntry]>) -> bool {
        let makes = promised_by(entry).is_some_and(|name| !all.is_some_and(|all| is_near(name, all)));
        let is_of_promisor = |name| all.is_none() || self.0.contains(name);
        makes || address(entry).is_some_and(|(name, value)| is_of_promisor(name) && !is_local(value))
    }
}

/// Returns the name of the remote that an entry makes a promisor (`promisor_remote_config` of git), if any.
fn promised_by(entry: &GitConfigEntry) -> Option<&[u8]> {
    let (section, remote, key, value) = entry.meaning();
    match (section, remote, key) {
        (b"remote", Some(remote), b"promisor") => (!is_off(value.unwrap_or(b"true"))).then_some(remote),
        (b"remote", Some(remote), b"partialclonefilter") => Some(remote),
        (b"extensions", None, b"partialclone") => value,
        _ => None,
    }
}

/// True if addresses of a remote are configured and all of them are local paths.
fn is_near(name: &[u8], all: &[GitConfigEntry]) -> bool {
    let mut addresses = all.iter().filter_map(address).filter(|(remote, _)| *remote == name).peekable();
    addresses.peek().is_some() && addresses.all(|(_, value)| is_local(value))
}

fn is_local(value: &[u8]) -> bool {
    matches!(Address::of(value), Address::Local(_))
}

fn address(entry: &GitConfigEntry) -> Option<(&[u8], &[u8])> {
    match entry.meaning() {
        (b"remote", Some(remote), b"url", value) => Some((remote, value.unwrap_or_default())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tripwire::config::parse;

    fn away(before: &str, text: &str) -> Vec<String> {
        away_in(before, text, true)
    }

    fn away_in(before: &str, text: &str, is_whole: bool) -> Vec<String> {
        let (before, entries) = (parse(before.as_bytes()).unwrap(), parse(text.as_bytes()).unwrap());
        let (promised, all) = (Promised::of(&before), is_whole.then_some(&entries[..]));
        entries.iter().filter(|entry| promised.leads_away(entry, all)).map(GitConfigEntry::name).collect()
    }

    #[test]
    fn what_one_file_promises_another_can_address() {
        let near = "[remote \"o\"]\nurl = ../x\npromisor = true";
        assert_eq!(away_in("", near, false), ["remote.o.promisor"]);
        assert_eq!(away_in("", "[remote \"o\"]\nurl = https://h/x", false), ["remote.o.url"]);
        assert_eq!(away_in("", "[remote \"o\"]\nurl = ../x", false), [""; 0]);
    }

    #[test]
    fn a_promisor_elsewhere_leads_away_and_one_that_is_near_does_not() {
        let elsewhere = "[remote \"o\"]\nurl = https://h/x\n";
        for (text, keys) in [
            ("[remote \"o\"]\npromisor", &["remote.o.promisor"][..]),
            ("[remote \"o\"]\npartialclonefilter = blob:none", &["remote.o.partialclonefilter"]),
            ("[extensions]\npartialClone = o", &["extensions.partialclone"]),
            ("[remote \"o\"]\npromisor = false", &[]),
            ("[remote \"other\"]\nurl = ../x\npromisor = true", &[]),
            ("[remote \"other\"]\nurl = ../x\nurl = ssh://h/x\npromisor = true", &["remote.other.promisor"]),
        ] {
            assert_eq!(away("", &format!("{elsewhere}{text}")), keys, "{text}");
        }
        assert_eq!(away("", "[remote \"o\"]\npromisor"), ["remote.o.promisor"], "its address is elsewhere");
    }

    #[test]
    fn a_promisor_of_the_persons_stays_where_it_was() {
        let own = "[remote \"o\"]\nurl = https://h/x\npromisor = true\n[remote \"p\"]\nurl = https://h/y\n";
        assert_eq!(away(own, own), ["remote.o.url", "remote.o.promisor"]);
    }
}
