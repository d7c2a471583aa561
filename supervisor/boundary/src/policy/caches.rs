//! Private caches of package managers, one per project and level of access, set by environment variables.
//!
//! Agents can only read the user's own caches, since a manipulated file there would be executed in another project.
//! `CARGO_HOME` and `XDG_CACHE_HOME` are left unchanged: cargo works with a read-only home, and tools read data such as
//! language models in the cache directory.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ipc::confinement::Environment;
use ipc::path::WirePath;
use ipc::text::hexadecimal;
use sha2::{Digest, Sha256};

use super::hidden::HiddenPaths;
use crate::system::file_handle;
use crate::tripwire::beneath::open_root;

/// Name of the subdirectory of the cache directory that holds the caches of all projects.
const PROJECTS: &str = "projects";
const SESSIONS: &str = "sessions";

/// Name and content of the file that explains the cache directory to people and backup programs
/// (<https://bford.info/cachedir/>).
const TAG: (&str, &str) = (
    "CACHEDIR.TAG",
    "Signature: 8a477f597d28d172789f06886806bc55\n\
     # Made by bailiwick: what agents' package managers fetched and built, one directory in projects/ for each project.\n\
     # All of it may be deleted while no session runs.\n",
);

/// Name that no file has. Hiding it makes sandbox-exec permit only existing siblings, so that later ones are hidden.
const NOTHING: &str = ".nothing";

/// Environment variables of package managers, each with the name of its directory in the private caches.
const VARIABLES: &[(&str, &str)] = &[
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("YARN_GLOBAL_FOLDER", "yarn-global"),
    ("PNPM_HOME", "pnpm"),
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("DENO_DIR", "deno"),
    ("UV_CACHE_DIR", "uv"),
    ("PIP_CACHE_DIR", "pip"),
    ("GRADLE_USER_HOME", "gradle"),
    ("CCACHE_DIR", "ccache"),
    ("SCCACHE_DIR", "sccache"),
];

/// Creates the directory for a project's caches. Agents can write to its subdirectories, but not to the directory
/// itself.
pub fn make_caches(cache: &Path, project: &Path) -> io::Result<PathBuf> {
    let place = cache.join(PROJECTS).join(name(project));
    make(cache, &place)?;
    fs::canonicalize(place)
}

/// Creates the directory for the caches that last one session. Each session removes its own caches at its end.
pub fn make_sessions(cache: &Path) -> io::Result<PathBuf> {
    let place = cache.join(SESSIONS);
    make(cache, &place)?;
    fs::canonicalize(place)
}

fn make(cache: &Path, place: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    let (tag, text) = TAG;
    match File::create_new(cache.join(tag)) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns a readable directory name that is unique to a project. A new checkout at the same path gets another name,
/// since files in the old caches must not be executed for it.
fn name(project: &Path) -> String {
    let digest = Sha256::new().chain_update(project.as_os_str().as_bytes());
    let digest = digest.chain_update([0]).chain_update(identity(project)).finalize();
    let digest = hexadecimal(&digest[..8]);
    let plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let last = project.file_name().unwrap_or_default().to_string_lossy();
    let last: String = last.chars().filter(plain).take(32).collect();
    format!("{last}-{digest}")
}

/// Returns the identity of a project's directory: its file handle, which is never reused, or else its inode.
fn identity(project: &Path) -> Vec<u8> {
    let Ok(directory) = open_root(project) else { return Vec::new() };
    let inode = || fs::symlink_metadata(project).map_or(0, |found| found.ino());
    file_handle(&directory).unwrap_or_else(|_| inode().to_ne_bytes().to_vec())
}

impl HiddenPaths {
    /// Hides the parent of all private temp directories, and all caches except `own`, those of the project. The rest of
    /// the cache directory is in the list of default hidden paths.
    #[must_use]
    pub fn around_own(mut self, own: Option<&Path>, temps: &Path) -> Self {
        let is_hidden = |place: &&Path| self.0.iter().any(|path| path.as_path() == *place);
        let of_caches = || own?.parent()?.parent();
        if let Some(cache) = temps.parent().filter(is_hidden).or_else(of_caches) {
            let (projects, tag) = (own.and_then(Path::parent), cache.join(TAG.0));
            self.0.retain(|path| path.as_path() != cache);
            self.0.extend(
                beside(cache).filter(|path| *path != tag && Some(&**path) != projects).map(WirePath::from),
            );
            let projects = projects.map(beside).into_iter().flatten();
            self.0.extend(projects.filter(|path| Some(&**path) != own).map(WirePath::from));
        }
        self.0.push(temps.into());
        self
    }
}

/// Returns the entries of a directory, and [`NOTHING`] to hide entries that are created later.
fn beside(place: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.chain([place.join(NOTHING)])
}

/// The user's own caches that some package managers can read in addition to the private ones.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    variables: Vec<(&'static str, Vec<u8>)>,
    maven: Option<Vec<u8>>,
}

impl Fetched {
    /// Looks for the user's caches in a home directory. `proxies` is the user's `GOPROXY`, unused if it has a password.
    pub fn find(home: Option<&Path>, proxies: Option<OsString>) -> Self {
        let Some(home) = home else { return Self::default() };
        let exists = |path: &str| Some(home.join(path)).filter(|path| path.is_dir() && is_one_word(path));
        let mut variables = Vec::new();
        // Go's module cache has the layout of a proxy (go.dev/ref/mod#module-cache).
        if let Some(modules) = exists("go/pkg/mod/cache/download") {
            let said = proxies.filter(|said| !said.is_empty() && !said.as_bytes().contains(&b'@'));
            let rest = said.unwrap_or_else(|| "https://proxy.golang.org,direct".into());
            let all = [b"file://", bytes(&modules).as_slice(), b",", rest.as_bytes()].concat();
            variables.push(("GOPROXY", all));
        }
        // "Sharing the read-only dependency cache" of Gradle's manual.
        if exists(".gradle/caches/modules-2").is_some() {
            variables.push(("GRADLE_RO_DEP_CACHE", bytes(&home.join(".gradle/caches"))));
        }
        let tail = exists(".m2/repository")
            .map(|own| [b" -Dmaven.repo.local.tail=", bytes(&own).as_slice()].concat());
        Self { variables, maven: Some(tail.unwrap_or_default()) }
    }

    /// Sets variables of package managers to directories in `place`, except those that the user sets.
    pub fn lead(&self, environment: &mut Environment, place: &Path) {
        let private = VARIABLES.iter().map(|(variable, name)| (*variable, bytes(&place.join(name))));
        let private = private.chain(self.variables.iter().cloned()).chain(self.maven(place));
        for (variable, value) in private {
            let said = environment.pass.iter().chain(environment.set.iter().map(|(name, _)| name));
            if !said.into_iter().any(|name| name == variable) {
                environment.set.push((variable.to_owned(), value));
            }
        }
    }

    /// Returns the variable that sets Maven's caches, which Maven before 3.9 ignores. `None` if there is no home, or if
    /// Maven would split the path into words.
    fn maven(&self, place: &Path) -> Option<(&'static str, Vec<u8>)> {
        let own = place.join("maven");
        let tail = self.maven.as_ref().filter(|_| is_one_word(&own))?;
        Some(("MAVEN_ARGS", [b"-Dmaven.repo.local=", bytes(&own).as_slice(), tail].concat()))
    }
}

fn is_one_word(path: &Path) -> bool {
    let falls_apart = |byte: &u8| byte.is_ascii_whitespace() || b",|%\"'\\".contains(byte);
    !path.as_os_str().as_bytes().iter().any(falls_apart)
}

pub(super) fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn value(environment: &Environment, name: &str) -> Option<String> {
        let found = environment.set.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn each_project_has_a_directory_of_its_own_and_sees_no_other() {
        let place = tempfile::tempdir().unwrap();
        let cache = fs::canonicalize(place.path()).unwrap();
        let [a, b] =
            ["/home/me/a/p", "/home/me/b/p"].map(|project| make_caches(&cache, Path::new(project)).unwrap());
        assert_ne!(a, b);
        assert_eq!(a, make_caches(&cache, Path::new("/home/me/a/p")).unwrap(), "the same next time");
        fs::create_dir(cache.join("other")).unwrap();
        let whole = HiddenPaths(vec!["/h".into(), (&cache).into()]);
        let around = |own, temps: &Path, expected: &[&Path]| {
            let hidden: BTreeSet<_> = whole.clone().around_own(own, temps).0.into_iter().collect();
            assert_eq!(hidden, expected.iter().map(WirePath::from).collect());
        };
        let [nothing, other, temps, projects] =
            [".nothing", "other", "temps", "projects"].map(|name| cache.join(name));
        let (none_beside, hidden) = (projects.join(".nothing"), Path::new("/h"));
        around(Some(&a), &temps, &[hidden, &nothing, &other, &temps, &none_beside, &b]);
        around(None, &temps, &[hidden, &nothing, &other, &temps, &projects]);
        let elsewhere = Path::new("/tmp/bailiwick-1");
        around(Some(&a), elsewhere, &[hidden, &nothing, &other, elsewhere, &none_beside, &b]);
        around(None, elsewhere, &[hidden, &cache, elsewhere]);
    }

    #[test]
    fn the_directory_says_what_it_is_once() {
        let cache = tempfile::tempdir().unwrap();
        make_caches(cache.path(), Path::new("/p")).unwrap();
        let tag = cache.path().join("CACHEDIR.TAG");
        assert!(fs::read(&tag).unwrap().starts_with(b"Signature: 8a477f597d28d172789f06886806bc55\n"));
        fs::write(&tag, "mine").unwrap();
        make_caches(cache.path(), Path::new("/q")).unwrap();
        assert_eq!(fs::read(&tag).unwrap(), b"mine");
    }

    #[test]
    fn a_checkout_that_was_made_anew_is_another_project() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().join("p");
        let named = || {
            fs::create_dir(&project).unwrap();
            let made = name(&project);
            assert_eq!(made, name(&project));
            fs::remove_dir(&project).unwrap();
            made
        };
        // A file system may reuse an inode.
        assert_eq!([(); 8].map(|()| named()).into_iter().collect::<BTreeSet<_>>().len(), 8);
    }

    #[test]
    fn names_are_of_plain_characters_and_tell_projects_apart() {
        let names = ["/a/p", "/b/p", "/p \n\u{fc}", "/p"].map(|project| name(Path::new(project)));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4);
        assert!(names.iter().all(|name| name.starts_with("p-") && name.len() == 18), "{names:?}");
    }

    #[test]
    fn every_variable_has_a_place_of_its_own_and_the_user_wins() {
        let set = vec![("GOCACHE".to_owned(), b"/mine".to_vec())];
        let mut environment = Environment { pass: vec!["PIP_CACHE_DIR".to_owned()], set, caches: None };
        Fetched::find(None, None).lead(&mut environment, Path::new("/c"));
        let places: BTreeSet<_> = environment.set.iter().map(|(_, place)| place).collect();
        assert_eq!(places.len(), VARIABLES.len() - 1);
        assert_eq!(value(&environment, "GOCACHE").as_deref(), Some("/mine"));
        assert_eq!(value(&environment, "PIP_CACHE_DIR"), None);
        assert_eq!(value(&environment, "npm_config_cache").as_deref(), Some("/c/npm"));
        assert!(!environment.set.iter().any(|(name, _)| name == "CARGO_HOME" || name == "XDG_CACHE_HOME"));
    }

    #[test]
    fn what_the_user_fetched_is_read_where_it_is() {
        let home = tempfile::tempdir().unwrap();
        let lead = |home: &Path| {
            let mut environment = Environment::default();
            Fetched::find(Some(home), None).lead(&mut environment, Path::new("/c"));
            environment
        };
        let nothing = lead(home.path());
        assert_eq!(value(&nothing, "GOPROXY"), None);
        assert_eq!(value(&nothing, "MAVEN_ARGS").as_deref(), Some("-Dmaven.repo.local=/c/maven"));
        for place in ["go/pkg/mod/cache/download", ".gradle/caches/modules-2", ".m2/repository"] {
            fs::create_dir_all(home.path().join(place)).unwrap();
        }
        let warm = lead(home.path());
        let home = home.path().display();
        let proxy = format!("file://{home}/go/pkg/mod/cache/download,https://proxy.golang.org,direct");
        assert_eq!(value(&warm, "GOPROXY"), Some(proxy));
        let own = |said: &str| {
            let mut environment = Environment::default();
            Fetched::find(Some(Path::new(&home.to_string())), Some(said.into()))
                .lead(&mut environment, Path::new("/c"));
            value(&environment, "GOPROXY").unwrap().rsplit_once("download").unwrap().1.to_owned()
        };
        assert_eq!(own("https://go.example,off"), ",https://go.example,off");
        assert_eq!(own("https://me:word@go.example"), ",https://proxy.golang.org,direct");
        assert_eq!(value(&warm, "GRADLE_RO_DEP_CACHE"), Some(format!("{home}/.gradle/caches")));
        let arguments = format!("-Dmaven.repo.local=/c/maven -Dmaven.repo.local.tail={home}/.m2/repository");
        assert_eq!(value(&warm, "MAVEN_ARGS"), Some(arguments));
    }
}
