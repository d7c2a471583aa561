//! What is hidden by default: credentials, keys, histories, other people's homes, and our own state.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipc::path::WirePath;
use nix::unistd::{AccessFlags, access};

use super::links::Links;
use crate::directories::Directories;

/// Below the user's own home. Names that do not exist are hidden all the same: they may come to be.
const IN_HOME: &[&str] = &[
    // Keys and agents.
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".local/share/keyrings",
    ".vault-token",
    // Clouds and clusters.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".config/doctl",
    ".oci",
    ".boto",
    ".s3cfg",
    ".terraform.d",
    ".config/rclone",
    // Registries and forges.
    ".docker",
    ".config/containers",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".pip",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    // Databases.
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".pg_service.conf",
    // Browsers and mail.
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".thunderbird",
    ".local/share/evolution",
    // Shell histories.
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".lesshst",
    ".viminfo",
    // Other agents.
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/opencode",
    ".local/share/opencode",
    ".aider",
    ".config/github-copilot",
    ".cursor",
    ".continue",
];

/// Of the system: readable for root, and some of it for everybody.
const OF_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/docker",
    "/etc/kubernetes",
    "/run/secrets",
    "/var/run/secrets",
    "/run/credentials",
    "/run/user",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/spool/cron",
    "/var/backups",
];

/// What the defaults depend on.
#[derive(Clone, Debug)]
pub struct Host {
    /// The user's own homes, canonical: what `HOME` says, and what the password database says.
    pub homes: Vec<PathBuf>,
    /// The homes of other users, canonical.
    pub other_homes: Vec<PathBuf>,
    /// Whether we are root, whom modes deny nothing that root owns.
    pub is_root: bool,
}

/// The hidden paths of a session.
#[derive(Clone, Debug)]
pub struct HiddenPaths(pub Vec<WirePath>);

impl Host {
    /// Looks at this machine; `home` is the value of `HOME`, `worker` the home of whom workers run as, if that is another
    /// user.
    pub fn probe(home: Option<OsString>, worker: Option<PathBuf>) -> Self {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let claimed = home.map(PathBuf::from).filter(|home| home.is_absolute());
        let mut homes: Vec<_> = claimed
            .into_iter()
            .chain(user.map(|user| user.dir))
            .chain(worker)
            .filter_map(|home| fs::canonicalize(home).ok())
            .filter(|home| home != Path::new("/"))
            .collect();
        homes.dedup();
        let other_homes = all_homes().into_iter().filter(|other| !homes.contains(other)).collect();
        Self { homes, other_homes, is_root: nix::unistd::geteuid().is_root() }
    }
}

impl HiddenPaths {
    /// The defaults, our own directories, and what the user adds; `project` decides whose home is another's.
    pub fn new(host: &Host, directories: &Directories, project: &Path, more: &[PathBuf]) -> Self {
        let in_home = host.homes.iter().flat_map(|home| IN_HOME.iter().map(|name| home.join(name)));
        let of_system = OF_SYSTEM.iter().map(PathBuf::from).filter(|path| host.is_root || is_readable(path));
        // The owner's home is not "another user's" for a project inside it.
        let others = host.other_homes.iter().filter(|other| !project.starts_with(other)).cloned();
        let own = [&directories.config, &directories.state, &directories.cache].map(PathBuf::clone);
        let all: Vec<_> =
            in_home.chain(of_system).chain(others).chain(own).chain(more.iter().cloned()).collect();
        // A rule is on an inode, and the name may lead elsewhere.
        let mut links = Links::expecting(all.iter().map(PathBuf::as_path));
        Self(all.iter().map(|path| WirePath::from(links.follow(path).path)).collect())
    }
}

/// Whether a plain user can read it. What modes keep from us needs no rule, and the rules beside each path of /etc are
/// most of what a start costs.
fn is_readable(path: &Path) -> bool {
    access(path, AccessFlags::R_OK).is_ok()
}

/// Root's home and everything in /home that belongs to a user.
fn all_homes() -> Vec<PathBuf> {
    let entries = fs::read_dir("/home").into_iter().flatten().flatten();
    let is_home =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() >= 1000);
    let mut homes: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_home(path)).collect();
    homes.push(PathBuf::from("/root"));
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(project: &str) -> Vec<String> {
        let host = Host {
            homes: vec!["/nowhere/me".into()],
            other_homes: vec!["/nowhere/you".into()],
            is_root: true,
        };
        let place = |name: &str| PathBuf::from("/nowhere/me/.b").join(name);
        let directories = Directories { config: place("c"), state: place("s"), cache: place("k") };
        let paths = HiddenPaths::new(&host, &directories, Path::new(project), &["/nowhere/more".into()]);
        paths.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn credentials_other_homes_and_our_own_state_are_hidden() {
        let hidden = hidden("/nowhere/me/p");
        for path in ["/nowhere/me/.ssh", "/etc/shadow", "/nowhere/you", "/nowhere/me/.b/s", "/nowhere/more"] {
            assert!(hidden.iter().any(|found| found == path), "{path} in {hidden:?}");
        }
    }

    #[test]
    fn the_owners_home_of_a_project_is_not_anothers() {
        assert!(!hidden("/nowhere/you/p").iter().any(|found| found == "/nowhere/you"));
    }

    #[test]
    fn a_hidden_path_behind_a_link_is_hidden_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let host = Host { homes: vec![root.join("link")], other_homes: vec![], is_root: false };
        let directories =
            Directories { config: root.join("c"), state: root.join("s"), cache: root.join("k") };
        let hidden = HiddenPaths::new(&host, &directories, &root.join("p"), &[]);
        assert!(hidden.0.contains(&root.join("real/.ssh").into()), "{hidden:?}");
    }
}
