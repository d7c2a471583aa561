//! Chooses a provider's key among the keys from the environment.

use secrecy::SecretString;

use super::ProviderKind;
use crate::secrets::{AUTH_TOKEN, Credential, TakenKey, TakenKeys};

impl TakenKeys {
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

    /// Returns a warning if the environment has several keys and one of them is not used; else `None`.
    pub fn notice(&self, provider: ProviderKind) -> Option<String> {
        let both = self.anthropic.is_some() && self.anthropic_token.is_some();
        let variable = provider.key_variable();
        (both && provider == ProviderKind::Anthropic)
            .then(|| format!("{variable} and {AUTH_TOKEN} are both set: {variable} is used"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::KEY_VARIABLES;

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
