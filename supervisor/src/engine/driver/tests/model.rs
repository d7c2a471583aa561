//! A language model for tests, with scripted replies that arrive in pieces.

use std::sync::{Arc, LazyLock, Mutex};

use futures_util::{StreamExt, stream};
use model::provider::anthropic::{Anthropic, AnthropicConfig};
use model::provider::{
    AssistantBlock, ContentBlock, EventStream, ModelProvider, ModelRequest, ProviderError, StopReason,
    StreamEvent,
};
use protocol::event::TokenUsage;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::Dice;

/// Client that encodes requests and never sends them.
static CLIENT: LazyLock<Anthropic> = LazyLock::new(|| Anthropic::new(AnthropicConfig::new(None)).unwrap());

#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) reads: Vec<String>,
    pub(super) commands: Vec<String>,
    /// Arguments of a call to `spawn_agent` for each sub-agent to start.
    pub(super) spawns: Vec<Value>,
}

pub(super) struct Scripted {
    replies: Vec<Reply>,
    dice: Mutex<Dice>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Scripted {
    pub(super) fn new(replies: Vec<Reply>, seed: u64) -> Arc<Self> {
        Arc::new(Self { replies, dice: Mutex::new(Dice::new(seed)), requests: Mutex::default() })
    }

    /// Returns the encoded requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| String::from_utf8(CLIENT.body(request).unwrap().into()).unwrap())
            .collect()
    }
}

impl ModelProvider for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let mut requests = self.requests.lock().unwrap();
        let reply = self.replies.get(requests.len()).cloned();
        requests.push(request);
        let mut dice = self.dice.lock().unwrap().split();
        let events = reply.map_or_else(
            || vec![Err(ProviderError::new("invalid_response", "the script is over"))],
            |reply| reply.events(requests.len()).into_iter().map(Ok).collect(),
        );
        Box::pin(stream::iter(events).then(move |event| {
            let moment = dice.moment();
            async move {
                sleep(moment).await;
                event
            }
        }))
    }
}

impl Reply {
    fn events(&self, request: usize) -> Vec<StreamEvent> {
        let started =
            StreamEvent::MessageStarted { message_id: format!("msg_{request}"), model: "m".to_owned() };
        let words = self.text.split_inclusive(' ');
        let deltas = words.map(|word| StreamEvent::TextDelta { index: 0, text: word.to_owned() });
        let text = AssistantBlock {
            content: ContentBlock::Text { text: self.text.clone() },
            raw: to_raw_value(&json!({ "type": "text", "text": self.text })).unwrap(),
        };
        let reads = self.reads.iter().map(|path| ("read_file", json!({ "path": path })));
        let commands = self.commands.iter().map(|command| ("shell_exec", json!({ "command": command })));
        let spawns = self.spawns.iter().map(|input| ("spawn_agent", input.clone()));
        let calls: Vec<_> = reads.chain(commands).chain(spawns).collect();
        let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let calls = calls.into_iter().enumerate().map(|(index, (name, input))| {
            let id = format!("toolu_{request}_{index}");
            AssistantBlock {
                raw: to_raw_value(&json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
                    .unwrap(),
                content: ContentBlock::ToolUse {
                    id: id.as_str().into(),
                    name: name.to_owned(),
                    input: Ok(input.to_string()),
                },
            }
        });
        let blocks = std::iter::once(text).chain(calls).enumerate();
        let usage = TokenUsage { input: 10, output: 5, ..TokenUsage::default() };
        std::iter::once(started)
            .chain(deltas)
            .chain(blocks.map(|(index, block)| StreamEvent::BlockClosed { index, block }))
            .chain([StreamEvent::MessageCompleted { stop_reason: stop, usage }])
            .collect()
    }
}
