//! Open requests to the server and its open questions to the user; also the queue of reports about them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc::mcp::{MAX_ROUNDS, McpAnswer, McpDescription, McpFailure, McpForm, McpReport, McpResult};
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// State of the guest, for the handlers of the supervisor's orders and of the server's messages.
///
/// Reports about a request are queued under the lock on the open requests. So no report follows the request's `Done`.
#[derive(Debug)]
pub(super) struct GuestState {
    reports: mpsc::Sender<McpReport>,
    inner: Mutex<Inner>,
    gone: watch::Sender<Option<McpFailure>>,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, Open>,
    questions: BTreeMap<u64, Asked>,
    /// Id of the last question to the user.
    last: u64,
    is_serving: bool,
    tools_changed: bool,
    fault: Option<McpFailure>,
}

#[derive(Debug)]
struct Open {
    cancelled: Arc<Notify>,
    progress: mpsc::Sender<String>,
    token: Option<String>,
    questions: u32,
}

#[derive(Debug)]
struct Asked {
    request: u64,
    answer: oneshot::Sender<McpAnswer>,
}

/// Ends of channels from which the task of an open request receives cancellation and progress.
#[derive(Debug)]
pub(super) struct OpenedRequest {
    pub(super) cancelled: Arc<Notify>,
    pub(super) progress: mpsc::Receiver<String>,
}

/// Reason why the user is not asked a server's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAsked {
    #[error("no request is open")]
    NoRequest,
    #[error("more than {MAX_ROUNDS} questions during one request")]
    TooMany,
}

impl GuestState {
    pub(super) fn new(reports: mpsc::Sender<McpReport>) -> Self {
        Self { reports, inner: Mutex::default(), gone: watch::Sender::new(None) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a report to the supervisor. Drops it if the supervisor has closed its end.
    pub(super) async fn report(&self, report: McpReport) {
        let _ = self.reports.send(report).await;
    }

    pub(super) fn open(&self, request: u64) -> Option<OpenedRequest> {
        let cancelled = Arc::new(Notify::new());
        let (progress, news) = mpsc::channel(1);
        let mut inner = self.lock();
        if inner.open.contains_key(&request) {
            return None;
        }
        let open = Open { cancelled: Arc::clone(&cancelled), progress, token: None, questions: 0 };
        inner.open.insert(request, open);
        Some(OpenedRequest { cancelled, progress: news })
    }

    pub(super) fn known_as(&self, request: u64, token: String) {
        if let Some(open) = self.lock().open.get_mut(&request) {
            open.token = Some(token);
        }
    }

    pub(super) fn cancel(&self, request: u64) {
        if let Some(open) = self.lock().open.get(&request) {
            open.cancelled.notify_one();
        }
    }

    /// Passes on the server's progress message. Drops it if the queue is full.
    pub(super) fn progress(&self, token: &str, words: String) {
        let inner = self.lock();
        if let Some(open) = inner.open.values().find(|open| open.token.as_deref() == Some(token)) {
            let _ = open.progress.try_send(words);
        }
    }

    pub(super) fn report_progress(&self, request: u64, words: String) {
        let Ok(room) = self.reports.try_reserve() else { return };
        let inner = self.lock();
        if inner.open.contains_key(&request) {
            room.send(McpReport::Progress { request, words });
        }
    }

    pub(super) async fn finish(&self, request: u64, outcome: Result<McpResult, McpFailure>) {
        let room = self.reports.reserve().await;
        let mut inner = self.lock();
        inner.open.remove(&request);
        inner.questions.retain(|_, asked| asked.request != request);
        if let Ok(room) = room {
            room.send(McpReport::Done { request, outcome });
        }
    }

    pub(super) fn is_asking(&self, request: u64) -> bool {
        self.lock().questions.values().any(|asked| asked.request == request)
    }

    /// Asks the user, and waits for the answer. If `request` is `None`, the question belongs to the newest request.
    pub(super) async fn ask(
        &self,
        request: Option<u64>,
        message: String,
        form: McpForm,
    ) -> Result<McpAnswer, NotAsked> {
        let Ok(room) = self.reports.reserve().await else { return Ok(McpAnswer::Cancelled) };
        let answered = {
            let mut inner = self.lock();
            let last = inner.open.keys().next_back().copied();
            let request = request.or(last).ok_or(NotAsked::NoRequest)?;
            if !inner.is_serving {
                return Err(NotAsked::NoRequest);
            }
            let open = inner.open.get_mut(&request).ok_or(NotAsked::NoRequest)?;
            if open.questions >= MAX_ROUNDS {
                return Err(NotAsked::TooMany);
            }
            open.questions += 1;
            inner.last += 1;
            let question = inner.last;
            let (answer, answered) = oneshot::channel();
            inner.questions.insert(question, Asked { request, answer });
            room.send(McpReport::Question { question, request, message, form });
            answered
        };
        // The sender goes with its request.
        Ok(answered.await.unwrap_or(McpAnswer::Cancelled))
    }

    /// Passes the user's answer on to the task that asked. A late answer has no effect.
    pub(super) fn answer(&self, question: u64, answer: McpAnswer) {
        if let Some(asked) = self.lock().questions.remove(&question) {
            let _ = asked.answer.send(answer);
        }
    }

    pub(super) async fn described(&self, description: McpDescription) {
        self.report(McpReport::Described(description)).await;
        let has_changed = {
            let mut inner = self.lock();
            inner.is_serving = true;
            inner.tools_changed
        };
        if has_changed {
            self.report(McpReport::ToolsChanged).await;
        }
    }

    /// Reports that the server's tools have changed, only the first time. The change takes effect at the next start.
    pub(super) async fn tools_changed(&self) {
        let is_news = {
            let mut inner = self.lock();
            !std::mem::replace(&mut inner.tools_changed, true) && inner.is_serving
        };
        if is_news {
            self.report(McpReport::ToolsChanged).await;
        }
    }

    pub(super) fn broke(&self, fault: &str) {
        self.lock().fault.get_or_insert_with(|| McpFailure::Broken(fault.to_owned()));
    }

    pub(super) fn fault(&self) -> Option<McpFailure> {
        self.lock().fault.clone()
    }

    /// Fails all open requests, and later ones.
    pub(super) fn fail_all(&self, failure: McpFailure) {
        self.gone.send_replace(Some(failure));
    }

    /// Waits until all requests have failed, and returns the failure. Cancel safe.
    pub(super) async fn gone(&self) -> McpFailure {
        let mut gone = self.gone.subscribe();
        match gone.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(failure)) => failure.clone(),
            _ => McpFailure::Cancelled,
        }
    }
}
