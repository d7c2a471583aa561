//! What the supervisor does to itself before anything else, while it is still single-threaded.
//!
//! Unsafe: the environment has no lock, and a key is overwritten where the kernel put it.

use std::ffi::{CStr, CString};
use std::io;

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, setrlimit};
use secrecy::SecretString;

use crate::provider::{Credential, ProviderKind};

/// The variables that can hold a key.
const KEY_VARIABLES: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];

/// The variable whose value goes out as `authorization: Bearer`: what gateways before the Messages API want.
const AUTH_TOKEN: &str = KEY_VARIABLES[1];

/// The keys that were in the environment.
#[derive(Clone, Debug, Default)]
pub struct TakenKeys {
    /// `ANTHROPIC_API_KEY`.
    pub anthropic: Option<SecretString>,
    /// `ANTHROPIC_AUTH_TOKEN`.
    pub anthropic_token: Option<SecretString>,
    /// `OPENAI_API_KEY`.
    pub openai: Option<SecretString>,
}

/// A key that was in the environment.
#[derive(Clone, Debug)]
pub struct TakenKey {
    /// The key.
    pub secret: SecretString,
    /// The variable that held it.
    pub variable: &'static str,
    /// How it is sent.
    pub credential: Credential,
}

impl TakenKeys {
    /// The key of a provider: one, for a request carries one (WIRE R1).
    pub fn of(&self, provider: ProviderKind) -> Option<TakenKey> {
        let key = |secret: &SecretString, variable, credential| TakenKey {
            secret: secret.clone(),
            variable,
            credential,
        };
        let usual = |secret| key(secret, provider.key_variable(), Credential::ApiKey);
        let token = |secret| key(secret, AUTH_TOKEN, Credential::Bearer);
        match provider {
            ProviderKind::Anthropic => {
                self.anthropic.as_ref().map(usual).or_else(|| self.anthropic_token.as_ref().map(token))
            }
            ProviderKind::OpenAi | ProviderKind::Responses => self.openai.as_ref().map(usual),
        }
    }

    /// What a person should know of keys that were set and are not used.
    pub fn notice(&self, provider: ProviderKind) -> Option<String> {
        let both = self.anthropic.is_some() && self.anthropic_token.is_some();
        let variable = provider.key_variable();
        (both && provider == ProviderKind::Anthropic)
            .then(|| format!("{variable} and {AUTH_TOKEN} are both set: {variable} is used"))
    }
}

/// Makes the process non-dumpable (no ptrace, no `/proc/PID/mem` for others of our uid) and forbids core files.
pub fn harden_process() -> io::Result<()> {
    set_dumpable(false)?;
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, 0)?)
}

/// Takes the keys out of the environment: the variables are gone, and so are their bytes in `/proc/PID/environ`.
///
/// Must be called before any other thread exists: environ(7) has no lock.
pub fn take_keys() -> TakenKeys {
    let [anthropic, anthropic_token, openai] = KEY_VARIABLES.map(take);
    TakenKeys { anthropic, anthropic_token, openai }
}

fn take(name: &str) -> Option<SecretString> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    let c_name = CString::new(name).ok()?;
    wipe(&c_name);
    // SAFETY: the caller is the only thread of the process.
    unsafe { std::env::remove_var(name) };
    value.map(SecretString::from)
}

/// Overwrites the value of a variable where it lies: on the initial stack, which `/proc/PID/environ` shows for good.
fn wipe(name: &CStr) {
    // SAFETY: the name is a C string, and no other thread changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: getenv gives a C string; its bytes up to the NUL are ours to overwrite.
    unsafe {
        let length = libc::strlen(value);
        for offset in 0..length {
            value.add(offset).write_volatile(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(anthropic: Option<&str>, token: Option<&str>) -> TakenKeys {
        let [anthropic, anthropic_token] = [anthropic, token].map(|key| key.map(SecretString::from));
        TakenKeys { anthropic, anthropic_token, openai: None }
    }

    #[test]
    fn every_key_variable_is_taken_out_of_the_environment() {
        let mut variables = ProviderKind::ALL.map(ProviderKind::key_variable).to_vec();
        variables.push(AUTH_TOKEN);
        assert!(variables.iter().all(|variable| KEY_VARIABLES.contains(variable)), "{variables:?}");
    }

    #[test]
    fn r1_one_key_is_used_and_the_token_only_where_there_is_no_other() {
        use secrecy::ExposeSecret;
        let of = |keys: &TakenKeys| {
            keys.of(ProviderKind::Anthropic)
                .map(|key| (key.secret.expose_secret().to_owned(), key.variable, key.credential))
        };
        let key = ("k".to_owned(), "ANTHROPIC_API_KEY", Credential::ApiKey);
        assert_eq!(of(&keys(Some("k"), Some("t"))), Some(key));
        assert_eq!(
            of(&keys(None, Some("t"))),
            Some(("t".to_owned(), "ANTHROPIC_AUTH_TOKEN", Credential::Bearer))
        );
        assert!(of(&keys(None, None)).is_none());
    }

    #[test]
    fn a_token_that_is_not_used_is_told_once_both_are_set() {
        let both = keys(Some("k"), Some("t"));
        let said = both.notice(ProviderKind::Anthropic).expect("a notice");
        assert_eq!(
            said,
            "ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are both set: ANTHROPIC_API_KEY is used"
        );
        assert_eq!(both.notice(ProviderKind::OpenAi), None);
        assert_eq!(keys(None, Some("t")).notice(ProviderKind::Anthropic), None);
        assert!(both.of(ProviderKind::OpenAi).is_none(), "no key of another provider");
    }
}
