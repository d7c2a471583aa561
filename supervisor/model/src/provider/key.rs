use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::ProviderError;
use crate::secrets::Redactor;

/// Minimum length of a key whose last characters are shown.
const RECOGNISABLE: usize = 12;

#[derive(Default)]
pub struct ProviderApiKey {
    secret: Option<SecretString>,
    origin: String,
}

/// Error for a key with characters that an HTTP header cannot have.
#[derive(Debug, thiserror::Error)]
#[error(
    "the API key from {origin} has characters that a key cannot have: set the key again, on one line and without spaces"
)]
pub struct InvalidKey {
    pub origin: String,
}

impl ProviderApiKey {
    pub fn new(secret: Option<SecretString>, origin: String) -> Result<Self, InvalidKey> {
        let trimmed = secret.map(|secret| SecretString::from(secret.expose_secret().trim()));
        let key = Self { secret: trimmed.filter(|secret| !secret.expose_secret().is_empty()), origin };
        match &key.secret {
            Some(secret) if !secret.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(InvalidKey { origin: key.origin })
            }
            _ => Ok(key),
        }
    }

    pub const fn is_set(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns the key so that callers can hide it in texts; `None` without a key.
    pub fn secret(&self) -> Option<SecretString> {
        self.secret.clone()
    }

    /// Returns the key as a header's value, which is printed as `Sensitive`; `None` without a key.
    pub fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(self.secret.as_ref()?.expose_secret()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns the key as a bearer token, which is printed as `Sensitive`; `None` without a key.
    pub fn bearer(&self) -> Option<HeaderValue> {
        let text = Zeroizing::new(format!("Bearer {}", self.secret.as_ref()?.expose_secret()));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    pub fn advice(&self) -> String {
        match &self.secret {
            Some(secret) => format!("check {}, {}", self.origin, ending(secret.expose_secret())),
            None => format!("set {}: no API key is set", self.origin),
        }
    }

    /// Hides the key in an error, because the provider may echo it.
    pub fn redact(&self, error: ProviderError) -> ProviderError {
        ProviderError {
            kind: self.hide(&error.kind),
            message: self.hide(&error.message),
            hint: error.hint.map(|hint| self.hide(&hint)),
            request_id: error.request_id.map(|id| self.hide(&id).into()),
            ..error
        }
    }

    pub fn hide(&self, text: &str) -> String {
        Redactor::new(self.secret.clone()).masked(text)
    }
}

fn ending(key: &str) -> String {
    match key.len() {
        RECOGNISABLE.. => format!("whose key ends in …{}", &key[key.len() - 4..]),
        _ => "whose key is very short".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<ProviderApiKey, InvalidKey> {
        ProviderApiKey::new(Some(SecretString::from(text)), "ANTHROPIC_API_KEY".to_owned())
    }

    #[test]
    fn only_the_end_of_a_key_is_ever_said() {
        let key = key(" sk-ant-0123456789abcd\n").expect("a key");
        assert_eq!(key.advice(), "check ANTHROPIC_API_KEY, whose key ends in …abcd");
        assert_eq!(key.hide("bad key sk-ant-0123456789abcd!"), "bad key *********************!");
        assert_eq!(format!("{:?}", key.header().expect("a header")), "Sensitive");
    }

    #[test]
    fn a_short_key_is_not_said_at_all_and_a_missing_one_is_named() {
        assert!(!key("sk-9876").expect("a key").advice().contains("876"));
        assert_eq!(key(" ").expect("none").advice(), "set ANTHROPIC_API_KEY: no API key is set");
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_without_showing_it() {
        for text in ["sk ant 1", "sk-\n-ant", "sk-änt"] {
            let error = key(text).err().expect("refused").to_string();
            assert!(error.contains("ANTHROPIC_API_KEY") && !error.contains(text), "{error}");
        }
    }
}
