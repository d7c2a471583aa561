//! Parses the addresses of git remotes. A push to a local repository runs that repository's hooks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::references::{home, steps};

/// Schemes of the URL transports that are built into git.
const SCHEMES: &[&[u8]] = &[b"https", b"http", b"ssh", b"git", b"file", b"git+ssh", b"ssh+git"];

/// Suffixes that git appends, one after the other, to find a repository at a path (`enter_repo`).
const SUFFIXES: &[&str] = &["", ".git", "/.git", ".git/.git"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// Address on another machine, reached by a transport that is built into git.
    Remote,
    /// Local path. Git takes a word for a local path, too, unless the word is the name of a known remote.
    Local(PathBuf),
    /// Helper program, option, or a form that git might understand differently from this parser.
    Strange,
}

impl Address {
    /// Parses the address of a remote as git does (`url_is_local_not_ssh`, `transport_get`).
    pub(super) fn of(value: &[u8]) -> Self {
        if value.first().is_none_or(|first| *first == b'-') || value.iter().any(u8::is_ascii_control) {
            return Self::Strange;
        }
        let find = |needle: &[u8]| value.windows(needle.len()).position(|window| window == needle);
        let is_name =
            |at: usize| value[..at].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        if find(b"::").is_some_and(is_name) {
            return Self::Strange;
        }
        match find(b"://") {
            Some(at) => Self::of_url(&value[..at].to_ascii_lowercase(), &value[at + 3..]),
            None if is_of_host(value) => Self::Remote,
            None => Self::of_path(value),
        }
    }

    fn of_url(scheme: &[u8], rest: &[u8]) -> Self {
        if !SCHEMES.contains(&scheme) || rest.first() == Some(&b'-') {
            return Self::Strange;
        }
        if scheme != b"file" {
            return Self::Remote;
        }
        match decoded(rest) {
            // Git takes the host of a `file:` URL for a part of the path.
            Some(path) => {
                let path = Path::new(OsStr::from_bytes(&path)).to_owned();
                Self::Local(Path::new("/").join(path.strip_prefix("/").unwrap_or(&path)))
            }
            None => Self::Strange,
        }
    }

    fn of_path(value: &[u8]) -> Self {
        let Some(rest) = value.strip_prefix(b"~") else {
            return Self::Local(PathBuf::from(OsStr::from_bytes(value)));
        };
        match (rest.strip_prefix(b"/"), home()) {
            (Some(rest), Some(home)) => Self::Local(home.join(OsStr::from_bytes(rest))),
            _ => Self::Strange,
        }
    }
}

/// True for an address of the form `host:path`: the first colon comes before the first slash.
fn is_of_host(value: &[u8]) -> bool {
    value.iter().find(|byte| [b':', b'/'].contains(byte)) == Some(&b':')
}

/// Decodes percent escapes. `None` if an escape is invalid, or stands for a control character.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut found = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            found.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let value = digit(bytes.next())? * 16 + digit(bytes.next())?;
        found.push(u8::try_from(value).ok().filter(|byte| !byte.is_ascii_control())?);
    }
    Some(found)
}

/// Directories that are searched for repositories, and directories that agents may write. With these, local paths are
/// judged that a configuration names as a remote or an object store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    pub(super) searched: &'a [PathBuf],
    pub(super) writable: &'a [PathBuf],
}

impl Ground<'_> {
    /// True if a remote at `path` is harmless: the search finds its repository, or no agent can write there. A relative
    /// path is resolved against `directory` and each directory above it.
    pub(super) fn is_open(self, directory: &Path, path: &Path) -> bool {
        let tops = self.searched.iter().map(PathBuf::as_path);
        let mut bases = directory.ancestors().take_while(|base| self.is_searched(base)).chain(tops);
        bases.all(|base| SUFFIXES.iter().all(|suffix| self.leads_to_open_place(base, path, suffix)))
    }

    /// True if the object store at `path` is harmless as an alternate of the store `objects`. Git also reads the refs
    /// in the repository of an alternate.
    pub(super) fn has_open_store(self, objects: &Path, path: &Path) -> bool {
        self.is_end_open(objects, path, |end| end.ends_with(".git/objects") || !is_in_git(end))
    }

    fn leads_to_open_place(self, base: &Path, path: &Path, suffix: &str) -> bool {
        // Git never resolves an address against a directory inside of `.git`.
        if base.components().any(|step| step.as_os_str() == ".git") {
            return true;
        }
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        self.is_end_open(base, Path::new(&name), |end| !is_in_git(end))
    }

    fn is_end_open(self, base: &Path, path: &Path, is_seen: impl Fn(&Path) -> bool) -> bool {
        steps(base, path)
            .last()
            .is_none_or(|end| (self.is_searched(end) && is_seen(end)) || !self.is_writable(end))
    }

    fn is_searched(self, path: &Path) -> bool {
        self.searched.iter().any(|root| path.starts_with(root))
    }

    fn is_writable(self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }
}

fn is_in_git(path: &Path) -> bool {
    let mut steps = path.components().skip_while(|step| step.as_os_str() != ".git");
    steps.next().is_some() && steps.next().is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn local(path: &str) -> Address {
        Address::Local(PathBuf::from(path))
    }

    #[test]
    fn addresses_are_read_as_git_reads_them() {
        for (value, address) in [
            ("https://example.org/a", Address::Remote),
            ("git@example.org:a/b.git", Address::Remote),
            ("[::1]:a", Address::Remote),
            ("origin", local("origin")),
            ("../a", local("../a")),
            ("./a:b", local("./a:b")),
            ("file:///srv/a", local("/srv/a")),
            ("file:///p/%2egit/x", local("/p/.git/x")),
            ("file:///p/%0a", Address::Strange),
            ("file:///p/%zz", Address::Strange),
            ("ext::sh -c x", Address::Strange),
            ("-oProxyCommand=x", Address::Strange),
            ("odd://x", Address::Strange),
            ("~other/x", Address::Strange),
            ("", Address::Strange),
        ] {
            assert_eq!(Address::of(value.as_bytes()), address, "{value}");
        }
    }

    #[test]
    fn a_local_path_is_open_in_the_project_or_where_no_agent_writes() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let [project, cache, other] = ["project", "cache", "other"].map(|name| place.join(name));
        for directory in [&project, &cache, &other] {
            fs::create_dir(directory).unwrap();
        }
        fs::create_dir_all(project.join(".git/modules/m")).unwrap();
        symlink("../cache/r", project.join("link")).unwrap();
        symlink("../cache/r", project.join("bare.git")).unwrap();
        let (searched, writable) = ([project.clone()], [project.clone(), cache.clone()]);
        let ground = Ground { searched: &searched, writable: &writable };
        let open = |path: &Path| ground.is_open(&project.join(".git"), path);
        for path in ["a", "../other/a", "sub/a.git", "."] {
            assert!(open(Path::new(path)), "{path}");
        }
        assert!(open(&other.join("a")));
        for path in ["../cache/r", "link", "link/x", "bare", ".git/modules/m", "a/../.git/x"] {
            assert!(!open(Path::new(path)), "{path}");
        }
        assert!(!open(&cache.join("r")));
    }
}
