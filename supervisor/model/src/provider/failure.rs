use std::time::SystemTime;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};

use super::ProviderError;
use super::fault::ReplyFault;
use super::key::ProviderApiKey;
use super::peer::Peer;
use super::retry_after::{retry_after, wait_in_words};

const SHOWN: usize = 600;

pub(crate) struct Failure<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    /// The key of the request. The hint of an error names the source of the key.
    pub key: &'a ProviderApiKey,
    /// The server that answered. The hint of an error describes its address.
    pub peer: &'a Peer,
}

impl Failure<'_> {
    /// Returns the error: the API's message in one line, and a hint.
    pub(crate) fn into_error(self) -> ProviderError {
        let fault = ReplyFault::parse(self.body);
        let kind = one_line(&fault.kind().unwrap_or_else(|| kind_of(self.status).to_owned()));
        let retryable = self.may_retry(&fault);
        let said = fault.message.as_deref().map_or_else(|| self.unreadable(), one_line);
        let status = self.status.as_u16();
        let error = ProviderError {
            status: Some(status),
            request_id: request_id(self.headers)
                .or_else(|| fault.request_id.as_deref().map(one_line))
                .map(String::into_boxed_str),
            retryable,
            retry_after: retry_after(self.headers, SystemTime::now())
                .or_else(|| wait_in_words(&said).filter(|_| matches!(status, 429 | 503 | 529))),
            ..ProviderError::new(kind.clone(), format!("the API answered {status} ({kind}): {said}"))
        };
        let hint = self.hint(&fault, &error);
        let message = match &error.request_id {
            Some(id) => format!("{} [request-id {id}]", error.message),
            None => error.message,
        };
        ProviderError { message, hint, ..error }
    }

    /// True if the same request may succeed later. The header `x-should-retry` decides, if the provider sent it.
    fn may_retry(&self, fault: &ReplyFault) -> bool {
        match self.headers.get("x-should-retry").map(reqwest::header::HeaderValue::as_bytes) {
            Some(b"true") => true,
            Some(b"false") => false,
            _ => fault.may_retry(Some(self.status.as_u16())),
        }
    }

    fn hint(&self, fault: &ReplyFault, error: &ProviderError) -> Option<String> {
        if self.wants_tls() {
            return Some("write https:// in --base-url: the server speaks TLS".to_owned());
        }
        if self.status.is_redirection() {
            return self.redirect();
        }
        fault.remedy(error).or_else(|| remedy(error, self.key, self.peer))
    }

    /// True if the body is the error of a web server (nginx, Apache, Go, Tomcat) for plain HTTP at a port for TLS.
    fn wants_tls(&self) -> bool {
        const WORDS: [&str; 4] = [
            "plain HTTP request was sent to HTTPS port",
            "speaking plain HTTP to an SSL-enabled server port",
            "Client sent an HTTP request to an HTTPS server",
            "This combination of host and port requires TLS",
        ];
        let body = String::from_utf8_lossy(self.body);
        self.status.as_u16() == 400 && WORDS.iter().any(|words| body.contains(words))
    }

    fn redirect(&self) -> Option<String> {
        let target = self.headers.get(LOCATION).and_then(|value| value.to_str().ok()).map(one_line)?;
        Some(format!("set --base-url to the right address: the key is not sent on to {target}"))
    }

    fn unreadable(&self) -> String {
        let reason = self.status.canonical_reason().unwrap_or("no reason given");
        match self.body.trim_ascii() {
            [] => format!("{reason}, with an empty body"),
            [b'<', ..] => {
                format!(
                    "{reason}, with a page of HTML: the reply is not from the API, but from a server in front of the API"
                )
            }
            text => format!("{reason}: {}", one_line(&String::from_utf8_lossy(text))),
        }
    }
}

pub(crate) fn remedy(error: &ProviderError, key: &ProviderApiKey, peer: &Peer) -> Option<String> {
    Some(match error.status? {
        407 => "write a user and a password into the variable of the proxy: http://USER:PASSWORD@HOST:PORT"
            .to_owned(),
        _ if error.is_context_overflow() => {
            "start a new conversation: this conversation is longer than the model's context".to_owned()
        }
        401 => key.advice(),
        402 if peer.is_socket() => {
            "start a relay whose --max-usd and --max-tokens are high enough for the task".to_owned()
        }
        402 => "check the account's billing".to_owned(),
        403 => "check the permissions of this key, and --model".to_owned(),
        404 if error.lacks_model() => "check --model: the server does not have this model".to_owned(),
        404 | 405 | 501 => peer.not_found(),
        413 => "start a new conversation, or read less at once".to_owned(),
        408 | 409 | 429 | 500.. => "try again later, or choose another model with --model".to_owned(),
        _ => return None,
    })
}

pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = ["request-id", "x-request-id"].iter().find_map(|name| headers.get(*name))?;
    id.to_str().ok().map(one_line)
}

pub(crate) fn kind_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_response",
    }
}

/// Returns a text as one line for a terminal: without control characters, with single spaces, and shortened.
pub(crate) fn one_line(text: &str) -> String {
    let visible = |c: char| !c.is_control() && !is_bidi_control(c);
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|&c| visible(c)));
        if line.len() > SHOWN {
            line.truncate(line.floor_char_boundary(SHOWN));
            line.push('…');
            break;
        }
    }
    line
}

/// True for characters that change the order of their neighbours (Unicode TR 9).
const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
