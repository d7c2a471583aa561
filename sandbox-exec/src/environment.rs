//! Environment of a confined program: an allowlist of variables for development.
//!
//! A listed variable passes unless it looks like a credential. A variable that the user names always passes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use ipc::confinement::Environment;

const NAMES: &[&str] = &[
    // session
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "TMPDIR",
    "BASH_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    // look of output
    "TERM",
    "COLORTERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    // builds
    "CI",
    "DEBIAN_FRONTEND",
    "SOURCE_DATE_EPOCH",
    "CC",
    "CXX",
    "CPP",
    "AR",
    "AS",
    "LD",
    "NM",
    "RANLIB",
    "STRIP",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "CMAKE_PREFIX_PATH",
    "CMAKE_GENERATOR",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Python
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "PYTEST_ADDOPTS",
    // Rust, Go, Java, JavaScript, Ruby, Perl
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_JOBS",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "GOPATH",
    "GOROOT",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "GOMODCACHE",
    "GOCACHE",
    "JAVA_HOME",
    "JDK_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "NODE_PATH",
    "NODE_OPTIONS",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "PERL5LIB",
    // environment of the program: without it a test uses another database
    "NODE_ENV",
    "RAILS_ENV",
    "RACK_ENV",
    "APP_ENV",
    "MIX_ENV",
    "FLASK_APP",
    "FLASK_DEBUG",
    "DJANGO_SETTINGS_MODULE",
    "ASPNETCORE_ENVIRONMENT",
    "DOTNET_ENVIRONMENT",
    // more languages
    "UV_PYTHON",
    "DOTNET_ROOT",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ANDROID_NDK_HOME",
    "R_LIBS",
    "R_LIBS_USER",
    "JULIA_PROJECT",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    // sources of packages
    "GOPROXY",
    "GOPRIVATE",
    "GONOPROXY",
    "GOSUMDB",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "npm_config_registry",
];

const PREFIXES: &[&str] = &["LC_", "CONDA_", "PYENV_"];

/// Substrings of variable names that mark a credential.
const CREDENTIAL_NAMES: &[&str] =
    &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "_AUTH", "COOKIE"];

// Suffixes and prefixes of names of credentials.
const CREDENTIAL_ENDS: &[&str] = &["_KEY", "_PAT", "_SOCK"];
const CREDENTIAL_BEGINNINGS: &[&str] = &["AWS_", "DBUS_", "SSH_", "GPG_", "KUBE"];

/// Prefixes of the usual kinds of secret keys in variable values.
const KEY_BEGINNINGS: &[&[u8]] = &[
    b"sk-",
    b"sk_live_",
    b"rk_live_",
    b"ghp_",
    b"gho_",
    b"ghu_",
    b"ghs_",
    b"ghr_",
    b"github_pat_",
    b"glpat-",
    b"xoxb-",
    b"xoxp-",
    b"xapp-",
    b"AKIA",
    b"ASIA",
    b"AIza",
    b"npm_",
    b"pypi-",
    b"hf_",
    b"eyJ",
    b"dop_v1_",
    b"shpat_",
];

/// Minimum length of a secret key in bytes. A key must also have a digit, unlike names of directories.
const KEY_LENGTH: usize = 20;

/// Returns the variables of a program: those of `ours` that pass, then those that are set explicitly. `TMPDIR` becomes
/// `temp`; `is_of_temp` is true for paths in that directory.
pub fn build(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    environment: &Environment,
    temp: Option<&Path>,
    is_of_temp: impl Fn(&Path) -> bool,
) -> Vec<(OsString, OsString)> {
    let mut set: Vec<(OsString, OsString)> =
        temp.map(|temp| ("TMPDIR".into(), temp.into())).into_iter().collect();
    for (name, value) in &environment.set {
        set.retain(|(earlier, _)| earlier != OsStr::new(name));
        set.push((name.into(), OsString::from_vec(value.clone())));
    }
    let passing = |(name, value): (OsString, OsString)| {
        let is_named = environment.pass.iter().any(|pass| OsStr::new(pass) == name);
        let harmless = || is_harmless(&name, &value).then(|| outside(&name, &value, &is_of_temp)).flatten();
        let value = if is_named { value } else { harmless()? };
        Some((name, value))
    };
    let is_set = |name: &OsStr| set.iter().any(|(other, _)| other == name);
    let mut all: Vec<_> = ours.into_iter().filter(|(name, _)| !is_set(name)).filter_map(passing).collect();
    all.extend(set);
    all
}

/// Returns a value without its paths in the private temp directory; `None` if nothing is left. A program does not see
/// that directory under the host's path, and commands with less access may have created what a search path names there.
/// `HOME` stays as it is, since programs need one.
fn outside(name: &OsStr, value: &OsStr, is_of_temp: impl Fn(&Path) -> bool) -> Option<OsString> {
    let is_outside =
        |place: &&[u8]| !place.starts_with(b"/") || !is_of_temp(Path::new(OsStr::from_bytes(place)));
    let places = value.as_bytes().split(|byte| *byte == b':');
    if name == "HOME" || places.clone().all(|place| is_outside(&place)) {
        return Some(value.to_owned());
    }
    let left: Vec<_> = places.filter(is_outside).collect();
    (!left.is_empty()).then(|| OsString::from_vec(left.join(&b':')))
}

fn is_harmless(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    listed && !names_credential(name) && !holds_credential(value.as_bytes())
}

fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CREDENTIAL_NAMES.iter().any(|mark| name.contains(mark))
        || CREDENTIAL_ENDS.iter().any(|end| name.ends_with(end))
        || CREDENTIAL_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

fn holds_credential(value: &[u8]) -> bool {
    let is_key = |word: &[u8]| {
        word.len() >= KEY_LENGTH
            && word.iter().any(u8::is_ascii_digit)
            && KEY_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
    };
    let within = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    value.windows(11).any(|window| window == b"-----BEGIN ")
        || names_user_in_url(value)
        || value.split(|byte| !within(byte)).any(is_key)
}

fn names_user_in_url(value: &[u8]) -> bool {
    value.windows(3).enumerate().filter(|(_, window)| *window == b"://").any(|(at, _)| {
        let authority = value[at + 3..].split(|byte| matches!(byte, b'/' | b'?' | b'#' | b' ')).next();
        authority.is_some_and(|authority| authority.contains(&b'@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ours: &[(&str, &str)], environment: &Environment) -> Vec<String> {
        let ours = ours.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        build(ours, environment, None, |_| false)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_development_needs_passes() {
        let ours = [
            ("PATH", "/opt/sk-learn-environments/bin:/usr/bin"),
            ("HOME", "/home/me"),
            ("LC_CTYPE", "C.UTF-8"),
            ("CONDA_PREFIX", "/opt/conda"),
            ("VIRTUAL_ENV", "/p/.venv"),
            ("CFLAGS", "-O2 -g"),
            ("NODE_ENV", "test"),
            ("DJANGO_SETTINGS_MODULE", "site.settings.test"),
            ("PIP_INDEX_URL", "https://packages.example/simple"),
            ("R_LIBS", "/opt/r/lib"),
        ];
        let all: Vec<_> = ours.iter().map(|(name, _)| *name).collect();
        assert_eq!(names(&ours, &Environment::default()), all);
    }

    #[test]
    fn everything_else_is_dropped() {
        let ours = [
            ("ANTHROPIC_API_KEY", "x"),
            ("AWS_PROFILE", "x"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"),
            ("EDITOR", "vi"),
            ("LD_PRELOAD", "/x.so"),
            ("XDG_RUNTIME_DIR", "/run/user/1000"),
            ("DISPLAY", ":0"),
        ];
        assert!(names(&ours, &Environment::default()).is_empty());
    }

    #[test]
    fn credentials_do_not_pass_under_a_name_that_does() {
        let ours = [
            ("CONDA_TOKEN", "x"),
            ("LC_API_KEY", "x"),
            ("CFLAGS", "-DKEY=sk-ant-api03-abcdefghijkl"),
            ("LANG", "ghp_0123456789abcdefghij"),
            ("RUST_LOG", "-----BEGIN OPENSSH PRIVATE KEY-----"),
            ("NODE_OPTIONS", "--proxy=https://me:hunter2@proxy.example"),
            ("PIP_INDEX_URL", "https://me:hunter2@packages.example/simple"),
            ("UV_INDEX_URL", "https://a-token-of-no-known-form@packages.example/simple"),
            ("GOPROXY", "https://ghp_0123456789abcdefghij@go.example"),
            ("npm_config_registry", "https://packages.example/?key=npm_0123456789abcdefghij"),
        ];
        assert!(names(&ours, &Environment::default()).is_empty());
    }

    #[test]
    fn nothing_that_passes_leads_to_the_private_temp() {
        let of = |name: &str, value: &str| {
            let (ours, none) = ([(name.into(), value.into())], Environment::default());
            let built =
                build(ours, &none, None, |place| place.starts_with("/tmp") && !place.starts_with("/tmp/p"));
            built.into_iter().next().map(|(_, value)| value.into_string().unwrap())
        };
        for (name, value, expected) in [
            ("PATH", "/tmp/bin:/usr/bin::/tmp/p/.venv/bin:/tmp:bin", Some("/usr/bin::/tmp/p/.venv/bin:bin")),
            ("BASH_ENV", "/tmp/env", None),
            ("CARGO_HOME", "/tmp/cargo", None),
            ("CARGO_HOME", "/tmpx/cargo", Some("/tmpx/cargo")),
            ("HOME", "/tmp/home", Some("/tmp/home")),
            ("CFLAGS", "-I/tmp/include -O2", Some("-I/tmp/include -O2")),
        ] {
            assert_eq!(of(name, value).as_deref(), expected, "{name}={value}");
        }
    }

    #[test]
    fn what_the_user_names_wins() {
        let environment = Environment {
            pass: vec!["OPENAI_API_KEY".into()],
            set: vec![("LANG".into(), b"C".to_vec()), ("EXTRA".into(), b"\xff".to_vec())],
            caches: None,
        };
        let ours = [("OPENAI_API_KEY", "sk-0123456789abcdefghij"), ("LANG", "de_DE.UTF-8")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let built = build(ours, &environment, Some(Path::new("/t")), |_| true);
        let show: Vec<_> =
            built.iter().map(|(name, value)| format!("{}={:?}", name.display(), value)).collect();
        assert_eq!(
            show,
            [
                r#"OPENAI_API_KEY="sk-0123456789abcdefghij""#,
                r#"TMPDIR="/t""#,
                r#"LANG="C""#,
                r#"EXTRA="\xFF""#
            ]
        );
    }
}
