//! Questions that one MCP server asks the user.

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use ipc::mcp::{McpAnswer, McpForm};

use crate::engine::driver::Caller;

/// Number that the server gave a question, and number of the request during which the server asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuestionOf {
    pub(super) question: u64,
    pub(super) request: u64,
}

#[derive(Debug)]
pub(super) struct AnsweredQuestion {
    pub(super) of: QuestionOf,
    pub(super) answer: McpAnswer,
}

#[derive(Default)]
pub(super) struct OpenQuestions(FuturesUnordered<BoxFuture<'static, AnsweredQuestion>>);

impl OpenQuestions {
    /// Asks the user a question during a call. If `caller` is `None`, as for prompts, the question is cancelled.
    pub(super) fn ask(&mut self, of: QuestionOf, caller: Option<&Caller>, message: String, form: McpForm) {
        let answer = match caller {
            Some(caller) => caller.ask(message, form),
            None => ready(McpAnswer::Cancelled).boxed(),
        };
        self.0.push(answer.map(move |answer| AnsweredQuestion { of, answer }).boxed());
    }

    /// Returns the next answer; pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> AnsweredQuestion {
        match self.0.next().await {
            Some(answered) => answered,
            None => std::future::pending().await,
        }
    }
}
