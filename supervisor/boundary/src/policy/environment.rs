//! Environment of an agent's worker and its commands, computed from the agent's access.
//!
//! Variables make package managers, builds and tools use directories of the agent's [level of access](super::levels),
//! since files there are executed later. Workers of the lowest level have their caches in the private temp directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, Environment};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Rights};

use super::builds::Builds;
use super::caches::Fetched;
use super::defaults::Defaults;
use super::levels::{Level, LevelPlaces};
use super::owner::Owner;

/// Environment variable that holds the path of the ssh agent's socket.
const SSH_AGENT: &str = "SSH_AUTH_SOCK";

/// Returns the path of the ssh agent's socket, links resolved; `None` without one. `value` gives a variable's value.
pub fn ssh_agent(value: impl Fn(&str) -> Option<OsString>) -> Option<WirePath> {
    value(SSH_AGENT).and_then(|path| std::fs::canonicalize(path).ok()).map(WirePath::from)
}

const CACHES: &str = "caches";

#[derive(Clone, Debug)]
pub struct Environments {
    /// Variables that the user's flags and settings set or pass on.
    pub said: Environment,
    pub owner: Option<Owner>,
    pub builds: Builds,
    pub fetched: Fetched,
    pub defaults: Option<Defaults>,
    /// Path in the user's `SSH_AUTH_SOCK`, with links resolved; `None` if the variable is not set.
    pub ssh_agent: Option<WirePath>,
    /// Directories of the levels of access. `None` if all caches are in private temp directories.
    pub places: Option<LevelPlaces>,
}

impl Environments {
    pub fn new(said: Environment) -> Self {
        let (builds, fetched) = (Builds::default(), Fetched::default());
        Self { said, owner: None, builds, fetched, defaults: None, ssh_agent: None, places: None }
    }

    /// Returns the environment of a program that has no level of access, with all caches in `temp`.
    pub fn beside(&self, temp: &WirePath, net: &Network) -> Environment {
        self.leading_to(&temp.as_path().join(CACHES), temp.as_path(), net)
    }

    /// Adds the environment of the confinement's level of access, and makes the directory of that level writable. The
    /// grant `approved` counts as a part of the level.
    #[must_use]
    pub fn at_level(&self, confinement: Confinement, approved: Option<&Grant>) -> Confinement {
        let Some(temp) = confinement.temp.clone() else { return confinement };
        let Some(places) = &self.places else {
            let environment = self.beside(&temp, &confinement.rights.net);
            let environment = self.with_agent(environment, &confinement.rights, approved);
            return Confinement { environment, ..confinement };
        };
        let root = WirePath::from(places.root());
        let mut rights = confinement.rights;
        rights.write.retain(|own| !own.is_within(&root));
        let level = Rights { write: without(&rights.write, &temp), ..rights.clone() };
        let level = Level::of(level.with_grant(&approved.cloned().unwrap_or_default()), approved.is_some());
        let (place, home) = if level.is_lowest() {
            (temp.as_path().join(CACHES), temp.as_path().to_owned())
        } else {
            let place = made(places, &level);
            rights.write.push((&place).into());
            rights = rights.normalised();
            (place.clone(), place)
        };
        let environment =
            Environment { caches: Some((&place).into()), ..self.leading_to(&place, &home, &rights.net) };
        let environment = self.with_agent(environment, &rights, approved);
        Confinement { rights, environment, ..confinement }
    }

    /// Passes on `SSH_AUTH_SOCK` if `rights` or the grant `approved` allow connections to the ssh agent's socket.
    fn with_agent(
        &self,
        mut environment: Environment,
        rights: &Rights,
        approved: Option<&Grant>,
    ) -> Environment {
        let reaches = |agent: &WirePath| {
            rights.allows_socket(agent) || approved.is_some_and(|grant| grant.sockets.contains(agent))
        };
        if self.ssh_agent.as_ref().is_some_and(reaches) {
            environment.pass.push(SSH_AGENT.to_owned());
        }
        environment
    }

    fn leading_to(&self, place: &Path, home: &Path, net: &Network) -> Environment {
        let mut environment = self.said.clone();
        if let Some(owner) = &self.owner {
            at_home(&mut environment, owner, home);
        }
        self.fetched.lead(&mut environment, place);
        self.builds.lead(&mut environment, place);
        if let Some(defaults) = &self.defaults {
            defaults.complete(&mut environment, net);
        }
        environment
    }
}

fn without(roots: &[WirePath], private: &WirePath) -> Vec<WirePath> {
    roots.iter().filter(|root| *root != private).cloned().collect()
}

/// Creates the directory of a level. A failure is only logged, since the worker then fails to start.
fn made(places: &LevelPlaces, level: &Level) -> PathBuf {
    places.make(level).unwrap_or_else(|error| {
        let place = places.place(level);
        tracing::warn!(place = %place.display(), %error, "cannot make the directory of a level of access");
        place
    })
}

/// Sets `HOME` and similar variables to those of the user that workers run as, unless the user sets them. If that user
/// has no home, sets `instead`, since shells and tools execute files in a home.
fn at_home(environment: &mut Environment, owner: &Owner, instead: &Path) {
    let home = owner.home.as_deref().unwrap_or(instead);
    let mut said = vec![("HOME", home.as_os_str().as_bytes().to_vec())];
    for name in ["USER", "LOGNAME"] {
        let value = owner.name.clone().unwrap_or_else(|| owner.identity.uid.to_string());
        said.push((name, value.into_bytes()));
    }
    for (name, value) in said {
        let named = environment.pass.iter().any(|passed| passed == name)
            || environment.set.iter().any(|(set, _)| set == name);
        if !named {
            environment.set.push((name.to_owned(), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use ipc::confinement::Identity;
    use ipc::rights::Network;

    use super::super::builds::BuildRoots;
    use super::*;

    fn rights(write: &[&str]) -> Rights {
        let write = write.iter().map(|path| WirePath::from(*path)).collect();
        Rights { read: vec!["/".into()], write, ..Rights::default() }
    }

    fn value(environment: &Environment, name: &str) -> Option<String> {
        let found = environment.set.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    fn session() -> Environments {
        let host = |name: &str| {
            let value = match name {
                "CARGO_TARGET_DIR" => "/build/target",
                "PATH" => "/bin",
                _ => "a secret",
            };
            (name == "CARGO_TARGET_DIR" || name.ends_with("_KEY")).then(|| OsString::from(value))
        };
        let said = Environment { pass: vec!["NAMED".to_owned()], ..Environment::default() };
        let around = BuildRoots { project: Path::new("/p"), write: &[], home: None };
        let builds = Builds::find(host, &said, around);
        Environments { builds, ..Environments::new(said) }
    }

    fn confined(rights: Rights, temp: &str) -> Confinement {
        Confinement { temp: Some(temp.into()), ..Confinement::new(rights.normalised(), "/p".into()) }
    }

    fn with_places() -> (Environments, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let places = Some(LevelPlaces::new(root.path().to_owned(), None));
        (Environments { places, ..session() }, root)
    }

    #[test]
    fn what_an_agent_is_led_to_belongs_to_its_level_and_is_its_own_to_write() {
        let (session, root) = with_places();
        let above = root.path().to_str().unwrap();
        let mut seen = BTreeSet::new();
        for (write, net) in [
            (&["/t/1", "/p"][..], Network::Off),
            (&["/t/1", "/p"], Network::On),
            (&["/t/1"], Network::On),
            (&["/t/1", "/p", "/w"], Network::Off),
        ] {
            let plain = Rights { net: net.clone(), ..rights(write) };
            let marked = Rights { net: net.clone(), ..rights(&[write, &[above]].concat()) };
            let found = session.at_level(confined(plain, "/t/1"), None);
            assert_eq!(found, session.at_level(confined(marked, "/t/1"), None), "the place is all of it");
            assert_eq!(found, session.at_level(found.clone(), None), "its place is no right of its own");
            let place = found.environment.caches.clone().unwrap();
            assert!(place.as_path().is_dir() && place.is_within(&above.into()));
            assert_eq!(found.rights.write.len(), write.len() + 1, "{:?}", found.rights.write);
            assert!(found.rights.write.contains(&place));
            let led: Vec<_> = found.environment.set.iter().map(|(_, value)| value).collect();
            assert!(led.len() > 10 && led.iter().all(|value| holds(value, place.as_bytes())), "{led:?}");
            // An approved command, with and without the network, has other directories.
            let online = Grant { net: Network::On, ..Grant::default() };
            for grant in [Grant::default(), online] {
                let approved = session.at_level(found.clone(), Some(&grant));
                assert_eq!(approved.rights.net, net, "the one-shot adds the grant");
                seen.insert(approved.environment.caches.unwrap());
            }
            seen.insert(place);
        }
        assert_eq!(seen.len(), 9, "{seen:?}");
    }

    #[test]
    fn the_variable_of_the_ssh_agent_is_passed_to_programs_that_reach_it() {
        let session = Environments { ssh_agent: Some("/run/agent".into()), ..session() };
        let passes = |sockets: &[&str], approved: Option<&Grant>| {
            let sockets = sockets.iter().map(WirePath::from).collect();
            let confinement = confined(Rights { sockets, ..rights(&["/t/1"]) }, "/t/1");
            session.at_level(confinement, approved).environment.pass.contains(&SSH_AGENT.to_owned())
        };
        let grant = Grant { sockets: vec!["/run/agent".into()], ..Grant::default() };
        assert!(passes(&["/run/agent"], None) && passes(&[], Some(&grant)));
        assert!(!passes(&["/run/other"], None) && !passes(&[], Some(&Grant::default())));
    }

    /// Tests that each path in the environment of a level is writable only in levels with at least the same access.
    #[test]
    fn nothing_that_a_level_is_led_to_is_writable_by_one_with_fewer_rights() {
        let (session, _root) = with_places();
        let owner = Owner { identity: Identity { uid: 1, gid: 1 }, name: None, home: None };
        let session = Environments { owner: Some(owner), ..session };
        let roots: [&[&str]; 5] = [&[], &["/p"], &["/p/src"], &["/p", "/w"], &["/w"]];
        let grants = [None, Some(Network::Off), Some(Network::On)];
        let grants = grants.map(|net| net.map(|net| Grant { net, ..Grant::default() }));
        let mut levels = Vec::new();
        for (root, net) in roots.iter().flat_map(|root| [(root, Network::Off), (root, Network::On)]) {
            for grant in &grants {
                let rights = Rights { net: net.clone(), ..rights(&[root, &["/t/1"][..]].concat()) };
                let whole = rights.with_grant(&grant.clone().unwrap_or_default());
                let own = Rights { write: without(&whole.write, &"/t/1".into()), ..whole };
                let confined = session.at_level(confined(rights, "/t/1"), grant.as_ref());
                levels.push((Level::of(own, grant.is_some()), confined));
            }
        }
        let mut pairs = 0;
        for (reader, led) in &levels {
            let values =
                led.environment.set.iter().flat_map(|(_, value)| value.split(|b| b":=, ".contains(b)));
            let places =
                values.filter(|value| value.starts_with(b"/")).map(|path| WirePath::from(path.to_vec()));
            let places: Vec<_> = places.collect();
            assert!(places.len() > 10);
            for (writer, fewer) in levels.iter().filter(|(writer, _)| !writer.covers(reader)) {
                pairs += 1;
                let open = places.iter().find(|place| fewer.rights.allows_write(place));
                assert_eq!(open, None, "{writer:?} writes what {reader:?} executes");
            }
        }
        assert!(pairs > 400, "{pairs}");
    }

    fn holds(value: &[u8], place: &[u8]) -> bool {
        value.windows(place.len()).any(|part| part == place)
    }

    #[test]
    fn the_caches_of_the_lowest_level_are_in_the_private_temp() {
        let (several, _root) = with_places();
        let lowest = several.at_level(confined(rights(&["/t/2"]), "/t/2"), None);
        assert_eq!(lowest.rights.write, [WirePath::from("/t/2")]);
        assert_eq!(lowest.environment.caches, Some("/t/2/caches".into()));
        assert_eq!(value(&lowest.environment, "GOCACHE").as_deref(), Some("/t/2/caches/go-build"));
        assert_eq!(
            value(&lowest.environment, "CARGO_TARGET_DIR").as_deref(),
            Some("/t/2/caches/cargo-target")
        );
        // With a single level, all caches are in the private temp directory, and nothing is copied to it.
        let one = session().at_level(confined(rights(&["/t/2", "/p"]), "/t/2"), None);
        assert_eq!(one.environment.set, lowest.environment.set);
        assert_eq!(one.environment.caches, None);
    }

    #[test]
    fn nothing_of_the_hosts_environment_is_taken_but_what_is_looked_for() {
        let (several, _root) = with_places();
        for write in [&["/t/1"][..], &["/t/1", "/p"]] {
            let environment = several.at_level(confined(rights(write), "/t/1"), None).environment;
            assert_eq!(environment.pass, ["NAMED"]);
            let text = format!("{:?}", environment.set);
            let bytes = format!("{:?}", b"a secret");
            assert!(!text.contains(bytes.trim_matches(['[', ']'])) && !text.contains("_KEY"), "{text}");
        }
    }

    #[test]
    fn who_works_as_another_is_at_home_there_unless_the_user_says_otherwise() {
        let identity = Identity { uid: 12345, gid: 12345 };
        let owner = Owner { identity, name: Some("me".to_owned()), home: Some("/home/me".into()) };
        let set = |said: Environment, owner: Owner| {
            let session = Environments { owner: Some(owner), ..Environments::new(said) };
            let environment = session.at_level(confined(rights(&["/t/1"]), "/t/1"), None).environment;
            ["HOME", "USER", "LOGNAME"].map(|name| value(&environment, name).unwrap_or_default())
        };
        assert_eq!(set(Environment::default(), owner.clone()), ["/home/me", "me", "me"]);
        let said = Environment {
            set: vec![("HOME".to_owned(), b"/x".to_vec())],
            pass: vec!["USER".to_owned()],
            caches: None,
        };
        let nobody = Owner { name: None, home: None, ..owner };
        assert_eq!(set(said, nobody.clone()), ["/x", "", "12345"]);
        assert_eq!(set(Environment::default(), nobody)[0], "/t/1");
    }
}
