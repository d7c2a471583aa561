//! The API key: from the environment or a file, and kept in memory that is overwritten after use.

mod harden;
mod redact;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use zeroize::Zeroizing;

use protocol::shell_word::shell_word;

pub use redact::Redactor;

pub use harden::AUTH_TOKEN;
#[cfg(test)]
pub(crate) use harden::KEY_VARIABLES;
pub use harden::{TakenKey, TakenKeys, harden_process, take_keys};

/// The header that contains the key, if the API has more than one. A request has only one of these headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credential {
    /// The API's own header: `x-api-key` for the Messages API.
    #[default]
    ApiKey,
    /// `authorization: Bearer`, which many gateways accept.
    Bearer,
}

#[derive(Clone, Debug)]
pub struct ApiKey {
    pub secret: SecretString,
    /// Variable or file from which the key was read, for error messages.
    pub origin: String,
    pub credential: Credential,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "no API key found\n  hint: set {variable}, or put the key into {} (mode 0600). No key yet? Try: bailiwick demo",
        shell_word(.file)
    )]
    Missing { variable: &'static str, file: PathBuf },
    #[error("the key file {file} has mode {mode:o}; other users could read the file\n  hint: chmod 600 {}", shell_word(.file))]
    Exposed { file: PathBuf, mode: u32 },
    #[error(
        "the key file {file} belongs to uid {owner}, not to you\n  hint: create the file again as your user, with mode 0600"
    )]
    Foreign { file: PathBuf, owner: u32 },
    #[error("cannot read the key file {file}: {source}")]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("the key from {origin} is empty\n  hint: set the key, on one line")]
    Empty { origin: String },
    #[error(
        "the key from {origin} has characters that a key cannot have\n  hint: check for line breaks, spaces or quotes around the key"
    )]
    Malformed { origin: String },
}

/// Returns the key that the variable had at the start of the process, else that of the key file.
pub fn find_key(taken: Option<TakenKey>, variable: &'static str, file: &Path) -> Result<ApiKey, KeyError> {
    use secrecy::ExposeSecret;
    let key = match taken {
        Some(TakenKey { secret, variable, credential }) => {
            ApiKey { secret, origin: variable.to_owned(), credential }
        }
        None => read_key_file(variable, file)?,
    };
    let text = key.secret.expose_secret();
    if text.is_empty() {
        return Err(KeyError::Empty { origin: key.origin });
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeyError::Malformed { origin: key.origin });
    }
    Ok(key)
}

fn read_key_file(variable: &'static str, file: &Path) -> Result<ApiKey, KeyError> {
    let unreadable = |source| KeyError::Unreadable { file: file.to_owned(), source };
    let opened = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(file);
    let mut opened = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(KeyError::Missing { variable, file: file.to_owned() });
        }
        opened => opened.map_err(unreadable)?,
    };
    let meta = opened.metadata().map_err(unreadable)?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed { file: file.to_owned(), mode });
    }
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(KeyError::Foreign { file: file.to_owned(), owner: meta.uid() });
    }
    let mut text = Zeroizing::new(String::new());
    (&mut opened).take(16 << 10).read_to_string(&mut text).map_err(unreadable)?;
    let secret = SecretString::from(text.trim().to_owned());
    Ok(ApiKey { secret, origin: file.display().to_string(), credential: Credential::ApiKey })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::ExposeSecret;

    use super::*;

    fn taken(key: &str) -> TakenKey {
        TakenKey { secret: key.into(), variable: "ANTHROPIC_API_KEY", credential: Credential::ApiKey }
    }

    fn key_file(mode: u32, text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("anthropic.key");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        (directory, file)
    }

    #[test]
    fn the_variable_wins_over_the_file() {
        let (_directory, file) = key_file(0o600, "from-file\n");
        let key = find_key(Some(taken("from-variable")), "ANTHROPIC_API_KEY", &file).unwrap();
        assert_eq!(key.secret.expose_secret(), "from-variable");
        let key = find_key(None, "ANTHROPIC_API_KEY", &file).unwrap();
        assert_eq!(key.secret.expose_secret(), "from-file");
    }

    #[test]
    fn an_exposed_missing_or_malformed_key_is_refused_with_the_remedy() {
        let (_directory, file) = key_file(0o644, "k");
        let error = find_key(None, "ANTHROPIC_API_KEY", &file).unwrap_err().to_string();
        assert!(error.contains("has mode 644") && error.contains("chmod 600"), "{error}");
        let error = find_key(None, "ANTHROPIC_API_KEY", Path::new("/nonexistent/k")).unwrap_err().to_string();
        assert!(error.contains("set ANTHROPIC_API_KEY") && error.contains("bailiwick demo"), "{error}");
        let (_directory, empty) = key_file(0o600, "\n");
        let error = find_key(None, "ANTHROPIC_API_KEY", &empty).unwrap_err().to_string();
        assert!(error.contains(" is empty\n  hint: "), "{error}");
        let error = find_key(Some(taken("a\nb")), "ANTHROPIC_API_KEY", &file).unwrap_err().to_string();
        assert!(error.contains("line breaks") && !error.contains("a\nb"), "{error}");
    }

    #[test]
    fn debug_output_does_not_hold_the_key() {
        let (secret, origin) = ("canary-1234".into(), "x".to_owned());
        let key = ApiKey { secret, origin, credential: Credential::ApiKey };
        assert!(!format!("{key:?}").contains("canary"));
    }
}
