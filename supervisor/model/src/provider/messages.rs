//! Messages of requests as JSON text. Each message is serialised once.
//!
//! A request repeats the texts of earlier requests with the same bytes, so that it begins with a prefix that the
//! provider's cache has.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use ipc::image::Image;

use super::fit::{FitRules, FittedMessage, Fitting};
use super::{Message, ModelRequest};

/// Number of stored texts at which those of deleted messages are removed for the first time.
const FIRST_SWEEP: usize = 256;

/// Serialises a message as JSON objects separated by commas. Returns `None` for an empty message, which APIs reject.
pub(crate) type Serialise = fn(&Message) -> Result<Option<Vec<u8>>, serde_json::Error>;

/// Serialised messages of all agents that use a provider.
pub(crate) struct Messages {
    serialise: Serialise,
    fitting: Fitting,
    texts: Mutex<Texts>,
}

#[derive(Default)]
struct Texts {
    /// Texts by the address of the message. While the weak reference exists, the address is not reused.
    by_address: HashMap<usize, (Weak<Message>, Option<Bytes>)>,
    sweep_at: usize,
}

pub(crate) struct MessageText {
    pub json: Bytes,
    pub of_user: bool,
    pub message: Arc<Message>,
    /// Index in the conversation of the message that this text contains.
    pub source: usize,
}

impl Messages {
    pub(crate) fn new(serialise: Serialise, rules: FitRules) -> Self {
        Self { serialise, fitting: Fitting::new(rules), texts: Mutex::default() }
    }

    /// Returns the texts of a request's messages, in the form that the provider accepts. Empty messages are left out.
    pub(crate) fn texts(&self, request: &ModelRequest) -> Result<Vec<MessageText>, serde_json::Error> {
        let fitted = self.fitting.fit(&request.messages, &request.model);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::with_capacity(fitted.len());
        for FittedMessage { message, source } in fitted {
            if let Some(json) = texts.get(&message, self.serialise)? {
                let of_user = matches!(*message, Message::User(_));
                all.push(MessageText { json, of_user, message, source });
            }
        }
        Ok(all)
    }
}

impl Texts {
    fn get(
        &mut self,
        message: &Arc<Message>,
        serialise: Serialise,
    ) -> Result<Option<Bytes>, serde_json::Error> {
        let address = Arc::as_ptr(message).addr();
        if let Some((_, text)) = self.by_address.get(&address) {
            return Ok(text.clone());
        }
        let text = serialise(message)?.map(Bytes::from);
        self.sweep();
        self.by_address.insert(address, (Arc::downgrade(message), text.clone()));
        Ok(text)
    }

    /// Removes texts whose message is gone, each time that the number of texts has doubled.
    fn sweep(&mut self) {
        if self.by_address.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.by_address.retain(|_, (message, _)| message.strong_count() > 0);
            self.sweep_at = 2 * self.by_address.len();
        }
    }
}

/// Returns the text of a tool's result for an API that cannot mark a result as failed. The text is never empty.
pub(crate) fn told(content: &str, is_error: bool) -> Cow<'_, str> {
    let says_so = content.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    match (content, is_error) {
        ("", false) => Cow::Borrowed("(no output)"),
        ("", true) => Cow::Borrowed("error: (no output)"),
        (content, true) if !says_so => Cow::Owned(format!("error: {content}")),
        (content, _) => Cow::Borrowed(content),
    }
}

pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type().as_str(), image.base64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::fit::IdForm;
    use crate::provider::{ProviderKind, RequestOptions, UserBlock};

    fn first_text(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
        match message {
            Message::User(blocks) => serde_json::to_vec(&format!("{blocks:?}")).map(Some),
            Message::Assistant(_) => Ok(None),
        }
    }

    #[test]
    fn a_message_is_serialised_once_and_forgotten_when_nobody_holds_it() {
        let rules = FitRules { kind: ProviderKind::Anthropic, ids: IdForm::Words };
        let messages = Messages::new(first_text, rules);
        let request = |message: Arc<Message>| ModelRequest {
            model: "m".to_owned(),
            system: "".into(),
            tools: Arc::default(),
            messages: vec![message],
            max_tokens: 1,
            options: RequestOptions::default(),
        };
        let message = Arc::new(Message::User(vec![UserBlock::Text("a".to_owned())]));
        let first = messages.texts(&request(Arc::clone(&message))).expect("JSON");
        let second = messages.texts(&request(message)).expect("JSON");
        assert_eq!(first[0].json.as_ptr(), second[0].json.as_ptr());
        for number in 0..3 * FIRST_SWEEP {
            let message = Arc::new(Message::User(vec![UserBlock::Text(number.to_string())]));
            let text = messages.texts(&request(message)).expect("JSON")[0].json.clone();
            assert!(String::from_utf8_lossy(&text).contains(&format!("\\\"{number}\\\"")));
        }
        assert!(messages.texts.lock().expect("no panic").by_address.len() <= FIRST_SWEEP + 1);
    }

    #[test]
    fn a_failed_call_says_so_in_its_text_once() {
        for (content, expected) in [
            ("no such file", "error: no such file"),
            ("Error 2", "Error 2"),
            ("ä", "error: ä"),
            ("errör", "error: errör"),
        ] {
            assert_eq!(told(content, true), expected);
            assert_eq!(told(content, false), content);
        }
    }
}
