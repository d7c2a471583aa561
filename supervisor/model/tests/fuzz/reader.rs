use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use model::provider::anthropic::ApiVersion;
use model::provider::{
    ModelProvider, ModelRequest, ProviderError, ProviderKind, ReplayProvider, RequestOptions, StreamEvent,
    open,
};
use model::replay::{ReplayServer, Reply, Script};

pub(crate) type Item = Result<StreamEvent, ProviderError>;

pub(crate) struct Model {
    pub(crate) kind: ProviderKind,
    next: Arc<Mutex<Option<Reply>>>,
    provider: Arc<dyn ModelProvider>,
    _server: ReplayServer,
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: Arc::from(""),
        tools: Arc::from([]),
        messages: Vec::new(),
        max_tokens: 1,
        options: RequestOptions::default(),
    }
}

impl Model {
    pub(crate) fn new(kind: ProviderKind) -> Self {
        let next = Arc::new(Mutex::new(None));
        let taken = Arc::clone(&next);
        let check = move |_: usize, _: &_| taken.lock().expect("no panic").take();
        let server = ReplayServer::start_checked(Script::new(), Box::new(check)).expect("loopback");
        let connection = kind.connection(Some(server.base_url()), None, String::new());
        let provider = open(kind, connection, ApiVersion::default()).expect("a provider").provider;
        Self { kind, next, provider, _server: server }
    }

    pub(crate) async fn play(&self, reply: Reply) -> Vec<Item> {
        *self.next.lock().expect("no panic") = Some(reply);
        self.provider.stream(request()).collect().await
    }
}

pub(crate) async fn in_memory(kind: ProviderKind, body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    let provider = ReplayProvider::new([body]).of(kind);
    let provider = match chunk.and_then(NonZeroUsize::new) {
        Some(size) => provider.in_chunks(size),
        None => provider,
    };
    provider.stream(request()).collect().await
}
