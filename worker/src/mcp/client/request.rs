//! One request to a server, from the supervisor's order to its outcome.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ipc::mcp::{MAX_PARTS, MAX_ROUNDS, McpFailure, McpRequest, McpResult};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ConstString, CustomResult,
    ElicitationCreateRequestMethod, ErrorCode, GetPromptRequest, GetPromptRequestParams, InputRequest,
    InputRequests, InputRequiredResult, InputResponses, JsonObject, ListResourceTemplatesRequest,
    ListResourcesRequest, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::handler::AskedForm;
use super::listing::Cursors;
use super::{McpPeer, Ready, content, request_failed};
use crate::mcp::Patience;
use crate::mcp::state::{GuestState, OpenedRequest};

/// Minimum time between two progress reports to the supervisor.
const PROGRESS: Duration = Duration::from_millis(200);

/// Time limit for telling the server that a request is cancelled.
const TELL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Round {
    answers: Option<InputResponses>,
    state: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) opened: OpenedRequest,
    pub(crate) state: Arc<GuestState>,
    pub(crate) ready: watch::Receiver<Option<Ready>>,
    pub(crate) patience: Patience,
}

/// Times at which the wait for an answer ends, and time of the last progress report.
#[derive(Debug)]
struct Clock {
    idle: Instant,
    total: Instant,
    told: Option<Instant>,
}

impl Request {
    /// Waits until the server accepts requests, then makes the request and reports the outcome.
    pub(crate) async fn carry_out(mut self, what: McpRequest) {
        let outcome = match self.peer().await {
            Ok(peer) => self.ask(&peer, &what).await,
            Err(failure) => Err(failure),
        };
        self.state.finish(self.number, outcome).await;
    }

    async fn peer(&mut self) -> Result<McpPeer, McpFailure> {
        tokio::select! {
            failure = self.state.gone() => Err(failure),
            () = self.opened.cancelled.notified() => Err(McpFailure::Cancelled),
            ready = self.ready.wait_for(Option::is_some) => match ready.as_deref() {
                Ok(Some(Ready(peer))) => Ok(peer.clone()),
                _ => Err(McpFailure::Cancelled),
            },
        }
    }

    async fn ask(&mut self, peer: &McpPeer, what: &McpRequest) -> Result<McpResult, McpFailure> {
        let now = Instant::now();
        let mut clock =
            Clock { idle: now + self.patience.request, total: now + self.patience.total, told: None };
        if matches!(what, McpRequest::ListResources) {
            return self.list_resources(peer, &mut clock).await;
        }
        let mut round = Round::default();
        for _ in 0..=MAX_ROUNDS {
            let request = message(what, round)?;
            match self.exchange(peer, request, &mut clock).await? {
                ServerResult::InputRequiredResult(InputRequiredResult {
                    input_requests,
                    request_state,
                    ..
                }) => {
                    let questions = asked(input_requests.unwrap_or_default())?;
                    round = self.fulfil(questions, request_state, &mut clock).await?;
                }
                ServerResult::CustomResult(CustomResult(result))
                    if result["resultType"] == "input_required" =>
                {
                    let state = result["requestState"].as_str().map(str::to_owned);
                    round = self.fulfil(unread(&result["inputRequests"])?, state, &mut clock).await?;
                }
                answer => return result(what, answer),
            }
        }
        Err(McpFailure::Broken(format!("more than {MAX_ROUNDS} rounds of questions")))
    }

    /// Lists the server's resources, and its URI templates if it has any.
    async fn list_resources(&mut self, peer: &McpPeer, clock: &mut Clock) -> Result<McpResult, McpFailure> {
        let (mut resources, mut templates) = (Vec::new(), Vec::new());
        let mut cursors = Cursors::default();
        loop {
            let request = ListResourcesRequest { params: cursors.params(), ..Default::default() };
            match self.exchange(peer, ClientRequest::ListResourcesRequest(request), clock).await? {
                ServerResult::ListResourcesResult(page) => {
                    resources.extend(page.resources);
                    if !follow(&mut cursors, page.next_cursor)? || resources.len() > MAX_PARTS {
                        break;
                    }
                }
                _ => return Err(of_another_kind()),
            }
        }
        let mut cursors = Cursors::default();
        loop {
            let request = ListResourceTemplatesRequest { params: cursors.params(), ..Default::default() };
            match self.exchange(peer, ClientRequest::ListResourceTemplatesRequest(request), clock).await {
                Ok(ServerResult::ListResourceTemplatesResult(page)) => {
                    templates.extend(page.resource_templates);
                    if !follow(&mut cursors, page.next_cursor)? || templates.len() > MAX_PARTS {
                        break;
                    }
                }
                Err(McpFailure::Refused { code, .. }) if code == i64::from(ErrorCode::METHOD_NOT_FOUND.0) => {
                    break;
                }
                Ok(_) => return Err(of_another_kind()),
                Err(failure) => return Err(failure),
            }
        }
        content::of_resources(resources, templates)
    }

    async fn exchange(
        &mut self,
        peer: &McpPeer,
        request: ClientRequest,
        clock: &mut Clock,
    ) -> Result<ServerResult, McpFailure> {
        let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let Ok(mut handle) = sent else { return Err(self.state.gone().await) };
        self.state.known_as(self.number, handle.progress_token.0.to_string());
        let ended = loop {
            tokio::select! {
                answer = &mut handle.rx => {
                    return match answer {
                        Ok(Ok(answer)) => Ok(answer),
                        Ok(Err(error)) => match request_failed(error) {
                            Some(failure) => Err(failure),
                            None => Err(self.state.gone().await),
                        },
                        Err(_) => Err(self.state.gone().await),
                    };
                }
                failure = self.state.gone() => return Err(failure),
                () = self.opened.cancelled.notified() => break McpFailure::Cancelled,
                Some(words) = self.opened.progress.recv() => self.progressed(words, clock),
                () = sleep_until(clock.idle.min(clock.total)) => {
                    if !self.state.is_asking(self.number) {
                        break self.silent(clock);
                    }
                    // The person's time is not the server's.
                    clock.give(self.patience.request);
                }
            }
        };
        take_back(handle, &ended).await;
        Err(ended)
    }

    fn progressed(&self, words: String, clock: &mut Clock) {
        let now = Instant::now();
        clock.idle = now + self.patience.request;
        if clock.told.is_none_or(|told| now >= told + PROGRESS) {
            clock.told = Some(now);
            self.state.report_progress(self.number, words);
        }
    }

    fn silent(&self, clock: &Clock) -> McpFailure {
        let time = if clock.total <= clock.idle { self.patience.total } else { self.patience.request };
        McpFailure::Silent { seconds: time.as_secs() }
    }

    async fn fulfil(
        &mut self,
        questions: Vec<(String, AskedForm)>,
        state: Option<String>,
        clock: &mut Clock,
    ) -> Result<Round, McpFailure> {
        let mut answers = InputResponses::new();
        for (name, question) in questions {
            let answered = tokio::select! {
                answered = question.ask(&self.state, Some(self.number)) => answered,
                failure = self.state.gone() => return Err(failure),
                () = self.opened.cancelled.notified() => return Err(McpFailure::Cancelled),
            };
            let answer = answered.map_err(|error| McpFailure::Broken(super::words(&error.message)))?;
            let answer = serde_json::to_value(answer).map_err(|_| of_another_kind())?;
            answers.insert(name, answer);
            clock.give(self.patience.request);
        }
        let answers = (!answers.is_empty()).then_some(answers);
        Ok(Round { answers, state })
    }
}

impl Clock {
    /// Extends the wait for an answer to at least `time` from now.
    fn give(&mut self, time: Duration) {
        self.idle = Instant::now() + time;
        self.total = self.total.max(self.idle);
    }
}

fn asked(questions: InputRequests) -> Result<Vec<(String, AskedForm)>, McpFailure> {
    let question = |(name, question)| match question {
        InputRequest::Elicitation(question) => Ok((name, AskedForm::of(question.params))),
        _ => Err(not_announced()),
    };
    questions.into_iter().map(question).collect()
}

fn unread(questions: &Value) -> Result<Vec<(String, AskedForm)>, McpFailure> {
    let question = |(name, question): (&String, &Value)| {
        let is_form = question["method"] == ElicitationCreateRequestMethod::VALUE;
        is_form.then(|| (name.clone(), AskedForm::unread(&question["params"]))).ok_or_else(not_announced)
    };
    questions.as_object().into_iter().flatten().map(question).collect()
}

fn not_announced() -> McpFailure {
    McpFailure::Broken("the server asks for something that Bailiwick does not offer".to_owned())
}

async fn take_back(handle: RequestHandle<RoleClient>, reason: &McpFailure) {
    let reason = match reason {
        McpFailure::Cancelled => "cancelled",
        _ => "no answer in time",
    };
    // A server that does not read is told nothing.
    let _ = timeout(TELL, handle.cancel(Some(reason.to_owned()))).await;
}

fn message(what: &McpRequest, round: Round) -> Result<ClientRequest, McpFailure> {
    Ok(match what {
        McpRequest::CallTool { tool, arguments } => {
            let mut params =
                CallToolRequestParams::new(Cow::Owned(tool.clone())).with_arguments(object(arguments)?);
            params.input_responses = round.answers;
            params.request_state = round.state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        }
        McpRequest::ReadResource { uri } => {
            let mut params = ReadResourceRequestParams::new(uri.clone());
            params.input_responses = round.answers;
            params.request_state = round.state;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        }
        McpRequest::GetPrompt { name, arguments } => {
            let mut params = GetPromptRequestParams::new(name.clone()).with_arguments(object(arguments)?);
            params.input_responses = round.answers;
            params.request_state = round.state;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        }
        McpRequest::ListResources => ClientRequest::ListResourcesRequest(ListResourcesRequest::default()),
    })
}

fn object(arguments: &str) -> Result<JsonObject, McpFailure> {
    serde_json::from_str(arguments)
        .map_err(|_| McpFailure::Broken("the arguments are not a JSON object".to_owned()))
}

fn result(what: &McpRequest, answer: ServerResult) -> Result<McpResult, McpFailure> {
    match (what, answer) {
        (McpRequest::CallTool { .. }, ServerResult::CallToolResult(result)) => content::of_tool(result),
        (McpRequest::CallTool { .. }, ServerResult::EmptyResult(_)) => {
            Ok(McpResult { failed: false, content: Vec::new(), structured: None })
        }
        (McpRequest::ReadResource { .. }, ServerResult::ReadResourceResult(result)) => {
            content::of_resource(result)
        }
        (McpRequest::GetPrompt { .. }, ServerResult::GetPromptResult(result)) => content::of_prompt(result),
        _ => Err(of_another_kind()),
    }
}

fn follow(cursors: &mut Cursors, next: Option<String>) -> Result<bool, McpFailure> {
    let failed = |failure: Option<McpFailure>| {
        failure.unwrap_or_else(|| McpFailure::Broken("a list has no end".to_owned()))
    };
    cursors.follow(next).map_err(failed)
}

fn of_another_kind() -> McpFailure {
    McpFailure::Broken("an answer does not match its request".to_owned())
}
