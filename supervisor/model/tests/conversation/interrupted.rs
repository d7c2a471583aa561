//! Tests that a conversation continues with a valid request after an interruption at any event of a stream, and that
//! the request contains the text that was shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use agent::core::{Agent, Effect, Input, RequestId};
use bytes::Bytes;
use futures_util::StreamExt;
use model::provider::{
    ContentBlock, ModelProvider, ModelRequest, ProviderKind, ReplayProvider, RequestOptions, StopReason,
    StreamEvent,
};
use protocol::frontend::{AgentAction, Op, UiEventKind};
use serde_json::Value;

use crate::driver::config;
use crate::interrupted_requests::{check_body, check_messages, said};
use crate::sdk::validate;
use crate::writer::Writer;

const VARIABLE: &str = "BAILIWICK_WIRE";

/// Maximum number of evenly spaced interruptions of a recording, besides those before each event that is no text delta.
const EVENTS: usize = 60;

const SAMPLE: usize = 25;

async fn events(kind: ProviderKind, body: Bytes) -> Vec<StreamEvent> {
    let request = ModelRequest {
        model: String::new(),
        system: "".into(),
        tools: [].into(),
        messages: Vec::new(),
        max_tokens: 1,
        options: RequestOptions::default(),
    };
    let items: Vec<_> = ReplayProvider::new([body]).of(kind).stream(request).collect().await;
    items.into_iter().map_while(Result::ok).collect()
}

/// A conversation, its last request, and the text that the user has seen of the current reply.
struct Play {
    agent: Agent,
    last: Option<(RequestId, ModelRequest)>,
    shown: String,
}

impl Play {
    fn new() -> Self {
        Self { agent: Agent::new(config(RequestOptions::default())), last: None, shown: String::new() }
    }

    fn take(&mut self, input: Input) {
        for effect in self.agent.handle(input) {
            match effect {
                Effect::StartStream { request, model, .. } => self.last = Some((request, model)),
                Effect::Show(UiEventKind::TextDelta { text }) => self.shown.push_str(&text),
                _ => {}
            }
        }
    }

    fn user(&mut self, text: &str) {
        self.take(Input::Op(Op::Act(AgentAction::Prompt { text: text.to_owned(), images: Vec::new() })));
    }

    fn request(&self) -> (RequestId, ModelRequest) {
        self.last.clone().expect("a request")
    }
}

/// Interrupts a reply after these events. Returns the next request, and the text of the reply that the user had seen.
fn interrupted_after(events: &[StreamEvent]) -> (ModelRequest, String) {
    let mut play = Play::new();
    play.user("begin");
    let (request, _) = play.request();
    for event in events {
        play.take(Input::Stream { request, event: event.clone() });
    }
    let shown = std::mem::take(&mut play.shown);
    play.take(Input::Op(Op::Act(AgentAction::Interrupt)));
    play.user("and now?");
    (play.request().1, shown)
}

/// Returns the texts of a reply, one for each block. The final text of a complete block can differ from its deltas.
fn texts(events: &[StreamEvent]) -> Vec<String> {
    let mut texts = BTreeMap::<usize, String>::new();
    for event in events {
        match event {
            StreamEvent::TextDelta { index, text } => texts.entry(*index).or_default().push_str(text),
            StreamEvent::BlockClosed { index, block } => {
                if let ContentBlock::Text { text } = &block.content {
                    texts.insert(*index, text.clone());
                }
            }
            _ => {}
        }
    }
    texts.into_values().filter(|text| !text.trim().is_empty()).collect()
}

/// True for a reply with a refusal. No later request contains it, because the model would refuse again.
fn is_refused(events: &[StreamEvent]) -> bool {
    matches!(events.last(), Some(StreamEvent::MessageCompleted { stop_reason: StopReason::Refusal(_), .. }))
}

/// Interrupts a stream after its events, one by one. Returns the request after each interruption.
fn check(kind: ProviderKind, writer: &Writer, name: &str, events: &[StreamEvent]) -> Vec<Bytes> {
    let step = events.len().div_ceil(EVENTS).max(1);
    let is_last_of_kind = |at: usize| !matches!(events.get(at), Some(StreamEvent::TextDelta { .. }));
    let places = (0..=events.len()).filter(|at| at % step == 0 || is_last_of_kind(*at));
    let one = |at: usize| {
        let name = format!("{name}, interrupted after {at} of {} events", events.len());
        let (request, shown) = interrupted_after(&events[..at]);
        check_messages(&name, &request.messages);
        let body = writer.body(&request);
        let json: Value = serde_json::from_slice(&body).expect("JSON");
        check_body(&name, kind, &json);
        let texts = texts(&events[..at]);
        assert_eq!(shown, shown_of(&events[..at]), "{name}: the screen");
        if !is_refused(&events[..at]) {
            let said = said(kind, &json);
            for text in texts {
                assert!(said.iter().any(|said| said.contains(&text)), "{name}: {text:?} is not in {said:?}");
            }
        }
        body
    };
    places.map(one).collect()
}

/// Returns the text in the deltas of a reply.
fn shown_of(events: &[StreamEvent]) -> String {
    let text = |event: &StreamEvent| match event {
        StreamEvent::TextDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn streams(directory: &Path) -> Vec<(String, Bytes)> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| {
        let file = if path.is_dir() { path.join("response.sse") } else { path.clone() };
        Some((path.file_name()?.to_string_lossy().into_owned(), Bytes::from(fs::read(file).ok()?)))
    };
    let mut streams: Vec<_> = entries.filter_map(read).collect();
    streams.sort();
    streams
}

const DIALECTS: [(ProviderKind, &str); 3] = [
    (ProviderKind::Anthropic, "anthropic"),
    (ProviderKind::OpenAi, "chat"),
    (ProviderKind::Responses, "responses"),
];

/// Returns the requests after all interruptions, first by API, then by stream.
async fn check_all(root: &Path) -> [Vec<Vec<Bytes>>; 3] {
    let mut all = [const { Vec::new() }; 3];
    for ((kind, name), bodies) in DIALECTS.into_iter().zip(&mut all) {
        let writer = Writer::new(kind);
        for (stream, body) in streams(&root.join(name)) {
            let events = events(kind, body).await;
            bodies.push(check(kind, &writer, &format!("{name}/{stream}"), &events));
        }
    }
    all
}

/// Checks a sample of the requests against the vendor's types. The types lack beta features: streams of which they
/// reject even the last request are left out.
fn check_types(streams: &[Vec<Bytes>]) {
    let sample = |bodies: &Vec<Bytes>| {
        let parts = bodies.iter().step_by(SAMPLE).cloned();
        parts.chain(bodies.last().cloned()).collect::<Vec<_>>()
    };
    let samples: Vec<_> = streams.iter().map(sample).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let Some(output) = validate(ProviderKind::Anthropic, directory.path(), &samples.concat()) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    let is_wrong = |index: usize| said.contains(&format!("{index:04}.json: "));
    let (mut first, mut known) = (0, 0);
    for bodies in &samples {
        let last = first + bodies.len();
        if !is_wrong(last - 1) {
            assert!(!(first..last).any(is_wrong), "{said}");
            known += 1;
        }
        first = last;
    }
    assert!(
        known * 2 > samples.len(),
        "the vendor's types take {known} of {} replies: {said}",
        samples.len()
    );
}

#[tokio::test]
async fn a_conversation_interrupted_at_every_event_of_our_streams_goes_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams");
    let bodies = check_all(&root).await;
    let counts = bodies.each_ref().map(|streams| streams.iter().map(Vec::len).sum::<usize>());
    assert!(counts.iter().all(|count| *count > 250), "{counts:?}");
    check_types(&bodies[0]);
}

#[tokio::test]
async fn a_conversation_interrupted_at_every_event_of_recorded_streams_goes_on() {
    let Some(root) = std::env::var_os(VARIABLE) else {
        eprintln!("skipped: no recordings: set {VARIABLE} to their directory");
        return;
    };
    let bodies = check_all(Path::new(&root)).await;
    let counts = bodies.each_ref().map(|streams| streams.iter().map(Vec::len).sum::<usize>());
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
    check_types(&bodies[0]);
}
