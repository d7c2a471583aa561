//! Environment variables without which programs would fail, wait or ask in a sandbox. The user's values take
//! precedence.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc::confinement::Environment;
use ipc::rights::Network;

use super::builds::is_named;

/// Variables that turn off retries, each with its value. Without a network, retries would take up to a minute.
const TRIES: &[(&str, &str)] = &[
    ("BUN_CONFIG_HTTP_RETRY_COUNT", "0"),
    ("BUNDLE_RETRY", "0"),
    ("CARGO_NET_RETRY", "0"),
    ("CONDA_REMOTE_MAX_RETRIES", "0"),
    ("NUGET_ENHANCED_MAX_NETWORK_TRY_COUNT", "1"),
    ("PIP_RETRIES", "0"),
    ("RUSTUP_MAX_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("YARN_HTTP_RETRY", "0"),
    ("npm_config_fetch_retries", "0"),
];

/// Variables that name certificates of authorities. Passed on only if the file is readable, since tools fail otherwise.
const AUTHORITIES: &[&str] = &[
    "AWS_CA_BUNDLE",
    "BUNDLE_SSL_CA_CERT",
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "COMPOSER_CAFILE",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HEX_CACERTS_PATH",
    "HTTPLIB2_CA_CERTS",
    "JULIA_SSL_CA_ROOTS_PATH",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "PERL_LWP_SSL_CA_FILE",
    "PERL_LWP_SSL_CA_PATH",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "YARN_HTTPS_CA_FILE_PATH",
    "npm_config_cafile",
];

/// Variable that keeps tar, run as uid 0, from changing the owners of files, which the sandbox denies.
const TAR: (&str, &str) = ("TAR_OPTIONS", "--no-same-owner");

/// Editor for programs without a terminal: prints an error and fails. Programs may also split this command into words.
const NO_EDITOR: &str = "sh -c 'echo \"no editor: nobody sits at a terminal here; pass the text by a flag, or set EDITOR to a program\" >&2; exit 1'";

/// Settings of git, each with its value. They override the editor in the user's configuration, but not `GIT_EDITOR`,
/// `VISUAL`, `EDITOR` and `git -c`. Git appends a file name to the command (git-var(1)).
const GIT_SETTINGS: &[(&str, &str)] = &[
    ("core.editor", r#"e() { eval "${VISUAL:-${EDITOR:-false}} \"\$@\""; }; e"#),
    ("sequence.editor", r#"s() { eval "$(git var GIT_EDITOR) \"\$@\""; }; s"#),
];

#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// True if commands run in a terminal that a person uses.
    attended: bool,
    tar: Option<Vec<u8>>,
    pass: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub struct Commands {
    pub attended: bool,
    pub as_root: bool,
}

impl Defaults {
    /// Finds the variables that the user has set already. `value` returns the value of a variable; `is_hidden` is true
    /// for a canonical path that is hidden from commands.
    pub fn find(
        value: impl Fn(&str) -> Option<OsString>,
        commands: Commands,
        is_hidden: impl Fn(&Path) -> bool,
    ) -> Self {
        // Users often set several variables to the same file.
        let mut known = HashMap::new();
        let mut can_be_read = |path: OsString| {
            *known.entry(path).or_insert_with_key(|path| {
                let path = Path::new(path);
                let place = path.canonicalize().ok().filter(|place| path.is_absolute() && !is_hidden(place));
                place.is_some_and(|place| File::open(place).is_ok())
            })
        };
        let authorities: Vec<_> =
            AUTHORITIES.iter().filter(|name| value(name).is_some_and(&mut can_be_read)).collect();
        let said = TRIES.iter().map(|(name, _)| name).filter(|name| value(name).is_some());
        let (tar, no_owner) = TAR;
        let tar = commands.as_root.then(|| {
            let said = value(tar).map(|said| [said.as_bytes(), b" "].concat()).unwrap_or_default();
            [&said, no_owner.as_bytes()].concat()
        });
        Self {
            attended: commands.attended,
            tar,
            pass: authorities.into_iter().chain(said).copied().collect(),
        }
    }

    pub fn complete(&self, environment: &mut Environment, net: &Network) {
        let tries = TRIES.iter().filter(|_| net.is_off());
        let tries = tries.filter(|(name, _)| !self.pass.contains(name));
        let mut set: Vec<_> =
            tries.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        set.extend(self.tar.iter().map(|options| (TAR.0.to_owned(), options.clone())));
        set.extend(self.editors(environment));
        set.retain(|(name, _)| !is_named(environment, name));
        environment.set.extend(set);
        environment.pass.extend(self.pass.iter().map(ToString::to_string));
    }

    /// Returns the variables for editors; without git's settings if the user sets some, since git numbers the
    /// variables.
    fn editors(&self, environment: &Environment) -> Vec<(String, Vec<u8>)> {
        if self.attended {
            return Vec::new();
        }
        let mut set = vec![("EDITOR".to_owned(), NO_EDITOR.into())];
        if !is_named(environment, "GIT_CONFIG_COUNT") {
            set.push(("GIT_CONFIG_COUNT".to_owned(), GIT_SETTINGS.len().to_string().into()));
            for (at, (key, value)) in GIT_SETTINGS.iter().enumerate() {
                set.push((format!("GIT_CONFIG_KEY_{at}"), (*key).into()));
                set.push((format!("GIT_CONFIG_VALUE_{at}"), (*value).into()));
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Output};

    use super::*;

    const AGENT: Commands = Commands { attended: false, as_root: false };

    fn completed(host: &[(&str, &str)], commands: Commands, net: Network) -> Environment {
        completed_from(Environment::default(), host, commands, net)
    }

    fn completed_from(
        said: Environment,
        host: &[(&str, &str)],
        commands: Commands,
        net: Network,
    ) -> Environment {
        let value =
            |name: &str| host.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value));
        let mut environment = said;
        Defaults::find(value, commands, |path| path.ends_with("hidden.pem")).complete(&mut environment, &net);
        environment
    }

    fn value(environment: &Environment, name: &str) -> Option<String> {
        let found = environment.set.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn nothing_is_tried_again_while_the_network_is_off_unless_the_user_says_so() {
        for &(name, none) in TRIES {
            let off = completed(&[], AGENT, Network::Off);
            assert_eq!(value(&off, name).as_deref(), Some(none));
            assert_eq!(value(&completed(&[], AGENT, Network::On), name), None, "{name}");
            let said = completed(&[(name, "7")], AGENT, Network::Off);
            assert_eq!((value(&said, name), said.pass), (None, vec![name.to_owned()]));
            let flag = Environment { set: vec![(name.to_owned(), b"7".to_vec())], ..Environment::default() };
            let flag = completed_from(flag, &[], AGENT, Network::Off);
            assert_eq!(flag.set.iter().filter(|(set, _)| set == name).count(), 1);
            assert_eq!(value(&flag, name).as_deref(), Some("7"));
        }
    }

    #[test]
    fn authorities_pass_where_they_can_be_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        for name in ["ca.pem", "hidden.pem"] {
            fs::write(path(name), "").unwrap();
        }
        fs::create_dir(path("certs")).unwrap();
        for (value, passes) in [
            (path("ca.pem"), true),
            (path("certs"), true),
            (path("hidden.pem"), false),
            (path("missing.pem"), false),
            ("ca.pem".to_owned(), false),
            ("ghp_0123456789abcdefghij".to_owned(), false),
            ("-----BEGIN CERTIFICATE-----".to_owned(), false),
            (String::new(), false),
        ] {
            for name in AUTHORITIES {
                let environment = completed(&[(name, &value)], AGENT, Network::On);
                assert_eq!(environment.pass.contains(&(*name).to_owned()), passes, "{name}={value}");
            }
        }
    }

    #[test]
    fn tar_gives_no_files_away_as_root() {
        let root = Commands { as_root: true, ..AGENT };
        let with =
            |said: &[(&str, &str)], commands| value(&completed(said, commands, Network::Off), "TAR_OPTIONS");
        assert_eq!(with(&[], root).as_deref(), Some("--no-same-owner"));
        assert_eq!(
            with(&[("TAR_OPTIONS", "--exclude=x")], root).as_deref(),
            Some("--exclude=x --no-same-owner")
        );
        assert_eq!(with(&[], AGENT), None);
    }

    /// Runs a command line in a repository whose configured editor must not start.
    fn git(environment: &Environment, line: &str) -> Output {
        let place = tempfile::tempdir().unwrap();
        fs::write(
            place.path().join("config"),
            "[core]\n\teditor = touch started; false\n[user]\n\tname = t\n\temail = t@t\n",
        )
        .unwrap();
        let setup = "git init -q . && echo 1 > a && git add a && git commit -qm first && echo 2 > a && \
                     git commit -qam second && ";
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{setup}{line}; status=$?; test ! -e started && exit $status")]);
        shell.current_dir(place.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        shell.env("GIT_CONFIG_GLOBAL", place.path().join("config")).env("GIT_CONFIG_NOSYSTEM", "1");
        for (name, value) in &environment.set {
            shell.env(name, String::from_utf8_lossy(value).into_owned());
        }
        shell.output().unwrap()
    }

    #[test]
    fn an_editor_that_nobody_sits_at_ends_at_once() {
        let environment = completed(&[("EDITOR", "vi"), ("VISUAL", "vi")], AGENT, Network::Off);
        for line in
            ["git commit --allow-empty", "git rebase -i --root", "git commit --amend", "git tag -a v1"]
        {
            let output = git(&environment, line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("no editor: nobody sits"), "{line}: {said}");
        }
    }

    #[test]
    fn an_editor_that_the_command_names_is_taken() {
        let environment = completed(&[], AGENT, Network::Off);
        for line in [
            "GIT_EDITOR=true git commit --amend",
            "EDITOR=true git commit --amend",
            "VISUAL=true git commit --amend",
            "git -c core.editor=true commit --amend",
            "EDITOR=\"sed -i 's/second/it is mine/'\" git commit --amend",
            "GIT_SEQUENCE_EDITOR=true git rebase -i --root",
            "GIT_EDITOR=true git rebase -i --root",
            "EDITOR=true git rebase -i --root",
            "git -c core.editor=true rebase -i --root",
            "git -c sequence.editor=true rebase -i --root",
            "git commit --allow-empty -m third",
        ] {
            let output = git(&environment, line);
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let quoted =
            "EDITOR='printf \"%s\\n\" \"two words\" >' git commit --amend -q && git log -1 --format=%s";
        assert_eq!(git(&environment, quoted).stdout, b"two words\n");
    }

    #[test]
    fn who_sits_at_the_terminal_or_names_an_editor_keeps_it() {
        let attended = completed(&[], Commands { attended: true, ..AGENT }, Network::Off);
        assert!(!attended.set.iter().any(|(name, _)| name == "EDITOR" || name.starts_with("GIT_")));
        let pass = vec!["EDITOR".to_owned(), "GIT_CONFIG_COUNT".to_owned()];
        let said = completed_from(Environment { pass, ..Environment::default() }, &[], AGENT, Network::Off);
        assert!(!said.set.iter().any(|(name, _)| name == "EDITOR" || name.starts_with("GIT_")));
    }
}
