//! Forwards requests of other programs to a provider, with Bailiwick's own headers and key.

use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use secrecy::SecretString;

use super::connection::{self, ConfigError, Connection};
use super::connection_error::connection_error;
use super::deadlines::{Deadlines, TimedBody};
use super::endpoint::bearer;
use super::http::{self, Http, Way};
use super::key::ProviderApiKey;
use super::second_look::looked_at;
use super::{Credential, ProviderError, ProviderKind, anthropic, chat};
use crate::secrets::Redactor;

pub struct Passage {
    kind: ProviderKind,
    client: Client,
    url: Url,
    headers: HeaderMap,
    key: ProviderApiKey,
    other_keys: Vec<Redactor>,
    way: Way,
    notices: Vec<String>,
    form: chat::Form,
}

#[derive(Debug)]
pub struct Unanswered {
    pub error: ProviderError,
    /// True if the server may have received the request, although no response arrived.
    pub may_have_arrived: bool,
}

pub struct Passed {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: TimedBody,
}

impl Passage {
    pub fn new(kind: ProviderKind, connection: Connection) -> Result<Self, ConfigError> {
        let base = connection::base_url(&connection.base_url)?;
        let key = ProviderApiKey::new(connection.api_key, connection.key_origin)?;
        let Http { client, notices, way } = Http::new(&base, connection.timeouts, key.is_set())?;
        let form = chat::form(&base);
        let path = match kind {
            ProviderKind::Anthropic => "/v1/messages",
            ProviderKind::OpenAi => form.path,
            ProviderKind::Responses => "/v1/responses",
        };
        let mut headers = match (kind, connection.credential) {
            (ProviderKind::Anthropic, Credential::ApiKey) => anthropic::key_header(&key),
            (ProviderKind::Anthropic, Credential::Bearer)
            | (ProviderKind::OpenAi | ProviderKind::Responses, _) => bearer(&key),
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        let url = connection::endpoint(&base, path);
        let other_keys = Vec::new();
        Ok(Self { kind, client, url, headers, key, other_keys, way, notices, form })
    }

    pub const fn kind(&self) -> ProviderKind {
        self.kind
    }

    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    pub fn host(&self) -> String {
        http::host(&self.url)
    }

    /// Returns the variant of chat completions that the server accepts.
    pub const fn form(&self) -> chat::Form {
        self.form
    }

    /// Makes [`Self::hide`] hide also the keys of other connections, because a server may quote them.
    pub fn hide_also(&mut self, keys: &[SecretString]) {
        self.other_keys = keys.iter().map(|key| Redactor::new(Some(key.clone()))).collect();
    }

    pub fn secret(&self) -> Option<SecretString> {
        self.key.secret()
    }

    /// Hides the key of this connection in a text, and the keys that were given to [`Self::hide_also`].
    pub fn hide(&self, text: &str) -> String {
        self.other_keys.iter().fold(self.key.hide(text), |text, key| key.masked(&text))
    }

    pub async fn send(&self, body: Bytes, more: HeaderMap) -> Result<Passed, Unanswered> {
        let mut headers = more;
        headers.extend(self.headers.clone());
        let deadlines = Deadlines::begin(self.host(), self.way.timeouts);
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let sent = deadlines.head(request.send()).await;
        let response = sent.map_err(|error| Unanswered { error, may_have_arrived: true })?;
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                let may_have_arrived = !error.is_connect();
                let error = looked_at(connection_error(&error, &self.way), &self.way).await;
                return Err(Unanswered { error, may_have_arrived });
            }
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let way = self.way.clone();
        let bytes = response.bytes_stream();
        let bytes = bytes.map(move |chunk| chunk.map_err(|error| connection_error(&error, &way)));
        Ok(Passed { status, headers, body: deadlines.body(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(kind: ProviderKind, key: &str) -> Passage {
        let connection = Connection {
            base_url: "http://127.0.0.1:1".to_owned(),
            api_key: Some(SecretString::from(key)),
            key_origin: "KEY".to_owned(),
            credential: Credential::ApiKey,
            chosen_by: None,
            timeouts: http::Timeouts::default(),
            recorder: None,
        };
        Passage::new(kind, connection).expect("a way")
    }

    #[test]
    fn no_key_of_a_relay_is_said_by_any_of_its_ways() {
        let keys = ["sk-ant-0123456789abcd", "sk-proj-9876543210zyxw"];
        let mut ways = [passage(ProviderKind::Anthropic, keys[0]), passage(ProviderKind::OpenAi, keys[1])];
        let secrets: Vec<_> = ways.iter().filter_map(Passage::secret).collect();
        for way in &mut ways {
            way.hide_also(&secrets);
        }
        let said = format!("no such key: {} or {}", keys[0], keys[1]);
        for way in &ways {
            let hidden = way.hide(&said);
            assert!(
                hidden.starts_with("no such key: *") && !keys.iter().any(|key| hidden.contains(key)),
                "{hidden}"
            );
        }
    }
}
