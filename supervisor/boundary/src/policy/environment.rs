//! The environment of an agent's worker and its commands, computed from the agent's rights.
//!
//! It is computed for each agent, and again when its rights change, from values that were looked up once a session: agents of one
//! session may differ in it. Package managers use the project's lasting caches only under rights that include these caches and
//! the project, since others execute what is in them. Everybody else's caches are in their private temp.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc::confinement::Environment;
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::builds::Builds;
use super::caches::Fetched;
use super::defaults::Defaults;
use super::owner::Owner;

/// The environments of all agents of a session.
#[derive(Clone, Debug)]
pub struct Environments {
    /// The variables that the user passes and sets.
    pub said: Environment,
    /// The user that workers run as, where that is another one.
    pub owner: Option<Owner>,
    /// The directories of builds that the user's own environment names.
    pub builds: Builds,
    /// The caches that the user's own builds have filled.
    pub fetched: Fetched,
    /// Variables that programs need where nobody can help them.
    pub defaults: Option<Defaults>,
    /// The project.
    pub project: WirePath,
    /// The project's lasting caches.
    pub caches: Option<WirePath>,
}

impl Environments {
    /// Environments with nothing but what the user passes and sets, and private caches.
    pub fn new(said: Environment, project: WirePath) -> Self {
        let (builds, fetched) = (Builds::default(), Fetched::default());
        Self { said, owner: None, builds, fetched, defaults: None, project, caches: None }
    }

    /// The environment of an agent with these rights and this private temp.
    pub fn under(&self, rights: &Rights, temp: &WirePath) -> Environment {
        let mut environment = self.said.clone();
        if let Some(owner) = &self.owner {
            at_home(&mut environment, owner, temp.as_path());
        }
        let lasting = self.caches.as_ref();
        let lasting =
            lasting.filter(|caches| rights.allows_write(caches) && rights.allows_write(&self.project));
        let place =
            lasting.map_or_else(|| temp.as_path().join("caches"), |caches| caches.as_path().to_owned());
        self.fetched.lead(&mut environment, &place);
        self.builds.lead(&mut environment, &place);
        if let Some(defaults) = &self.defaults {
            defaults.complete(&mut environment, rights.net);
        }
        Environment { caches: lasting.cloned(), ..environment }
    }
}

/// Sets the variables that say who one is, unless the user did. Who has no home has one in the temp directory.
fn at_home(environment: &mut Environment, owner: &Owner, temp: &Path) {
    let home = owner.home.as_deref().unwrap_or(temp);
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
    use std::ffi::OsString;

    use ipc::confinement::Identity;

    use super::super::builds::BuildRoots;
    use super::*;

    const CACHES: &str = "/cache/projects/p";

    fn rights(write: &[&str]) -> Rights {
        let write = write.iter().map(|path| WirePath::from(*path)).collect();
        Rights { read: vec!["/".into()], write, ..Rights::default() }
    }

    fn value(environment: &Environment, name: &str) -> Option<String> {
        let found = environment.set.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    /// A session whose host has secrets in its environment, and a directory of builds.
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
        Environments { builds, caches: Some(CACHES.into()), ..Environments::new(said, "/p".into()) }
    }

    #[test]
    fn agents_of_one_session_have_environments_of_their_own() {
        let session = session();
        let writer = session.under(&rights(&["/p", "/t/1", CACHES]), &"/t/1".into());
        let reader = session.under(&rights(&["/t/2"]), &"/t/2".into());
        assert_eq!(writer.caches, Some(CACHES.into()));
        assert_eq!(value(&writer, "GOCACHE").as_deref(), Some("/cache/projects/p/go-build"));
        assert_eq!(value(&writer, "CARGO_TARGET_DIR").as_deref(), Some("/cache/projects/p/cargo-target"));
        assert_eq!(reader.caches, None);
        assert_eq!(value(&reader, "GOCACHE").as_deref(), Some("/t/2/caches/go-build"));
        assert_eq!(value(&reader, "CARGO_TARGET_DIR").as_deref(), Some("/t/2/caches/cargo-target"));
    }

    #[test]
    fn what_an_agent_is_led_to_is_its_own_to_write() {
        let session = session();
        for write in [&["/t/2"][..], &["/t/2", "/p"], &["/t/2", CACHES], &["/t/2", "/p/sub", CACHES]] {
            let environment = session.under(&rights(write), &"/t/2".into());
            assert_eq!(environment.caches, None, "{write:?}");
            let places = environment.set.iter().map(|(_, value)| value);
            assert!(places.clone().count() > 10);
            assert!(places.into_iter().all(|place| place.starts_with(b"/t/2/caches/")), "{write:?}");
        }
    }

    #[test]
    fn nothing_of_the_hosts_environment_is_taken_but_what_is_looked_for() {
        for write in [&["/t/1"][..], &["/t/1", "/p", CACHES]] {
            let environment = session().under(&rights(write), &"/t/1".into());
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
            let session = Environments { owner: Some(owner), ..Environments::new(said, "/p".into()) };
            let environment = session.under(&rights(&["/t/1"]), &"/t/1".into());
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
