//! Protects the process, and removes keys from the environment while the process has only one thread.

#![expect(
    unsafe_code,
    reason = "the environment has no lock, and a key is overwritten where the kernel put it"
)]

use std::ffi::{CStr, CString};
use std::io;

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, setrlimit};
use secrecy::SecretString;

use super::Credential;

/// Environment variables that can contain a key.
pub(crate) const KEY_VARIABLES: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];

/// The key variable whose value is sent as `authorization: Bearer`, for gateways to the Messages API.
pub const AUTH_TOKEN: &str = KEY_VARIABLES[1];

#[derive(Clone, Debug, Default)]
pub struct TakenKeys {
    pub anthropic: Option<SecretString>,
    pub anthropic_token: Option<SecretString>,
    pub openai: Option<SecretString>,
}

impl TakenKeys {
    /// Returns variables and keys, for another of Bailiwick's own processes.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &SecretString)> {
        let keys = [&self.anthropic, &self.anthropic_token, &self.openai];
        KEY_VARIABLES.into_iter().zip(keys).filter_map(|(name, key)| Some((name, key.as_ref()?)))
    }
}

#[derive(Clone, Debug)]
pub struct TakenKey {
    pub secret: SecretString,
    pub variable: &'static str,
    pub credential: Credential,
}

/// Protects the process from ptrace and `/proc/PID/mem` of other processes of the user, and turns core files off.
pub fn harden_process() -> io::Result<()> {
    set_dumpable(false)?;
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, 0)?)
}

/// Takes the keys out of the environment, and overwrites them in `/proc/PID/environ`. Must be called before a second
/// thread starts, because access to the environment has no lock (environ(7)).
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

/// Overwrites the value of a variable on the initial stack, which `/proc/PID/environ` shows.
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
