//! Questions that tool servers ask the user while they carry out calls. The core gets them and returns the answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::core::{FormAsked, Input};
use ipc::id::CallId;
use ipc::mcp::{McpAnswer, McpForm};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

const QUEUE: usize = 16;

/// Minimum interval between two checks of a call's time limit while the call's server waits for the user.
const RECHECK: Duration = Duration::from_millis(200);

/// A question of a server, with the sender for its answer.
#[derive(Debug)]
pub(super) struct ServerQuestion {
    call: CallId,
    message: String,
    form: McpForm,
    answer: oneshot::Sender<McpAnswer>,
}

#[derive(Clone, Debug)]
pub(super) struct QuestionSender {
    sender: mpsc::Sender<ServerQuestion>,
    waits: Arc<PersonsTime>,
}

impl QuestionSender {
    /// Asks the user, and waits for the answer. Returns a cancellation at once if too many questions wait.
    pub(super) async fn ask(self, call: CallId, message: String, form: McpForm) -> McpAnswer {
        let _waits = PersonAsked::begin(&self.waits);
        let (answer, answered) = oneshot::channel();
        if self.sender.try_send(ServerQuestion { call, message, form, answer }).is_err() {
            return McpAnswer::Cancelled;
        }
        answered.await.unwrap_or(McpAnswer::Cancelled)
    }

    /// Awaits `work`, the work of a call; `None` after the time `longest`. The time of open questions does not count.
    pub(super) async fn within<F: Future>(&self, longest: Duration, work: F) -> Option<F::Output> {
        tokio::pin!(work);
        let began = Instant::now();
        loop {
            let (is_waiting, taken) = self.waits.taken();
            let deadline = began + longest + taken;
            let wakes = if is_waiting { deadline.max(Instant::now() + RECHECK) } else { deadline };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = sleep_until(wakes) => {
                    let (is_waiting, taken) = self.waits.taken();
                    if !is_waiting && began + longest + taken <= Instant::now() {
                        return None;
                    }
                }
            }
        }
    }
}

/// Total time in which questions of one call were open.
#[derive(Debug, Default)]
struct PersonsTime(Mutex<TimeTaken>);

#[derive(Debug, Default)]
struct TimeTaken {
    open: u32,
    since: Option<Instant>,
    before: Duration,
}

impl PersonsTime {
    fn lock(&self) -> MutexGuard<'_, TimeTaken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a question is open, and the total time in which questions were open.
    fn taken(&self) -> (bool, Duration) {
        let taken = self.lock();
        (taken.open > 0, taken.before + taken.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }
}

/// Guard of an open question. While it exists, time counts as the user's.
struct PersonAsked(Arc<PersonsTime>);

impl PersonAsked {
    fn begin(time: &Arc<PersonsTime>) -> Self {
        let mut taken = time.lock();
        taken.open += 1;
        taken.since.get_or_insert_with(Instant::now);
        drop(taken);
        Self(Arc::clone(time))
    }
}

impl Drop for PersonAsked {
    fn drop(&mut self) {
        let mut taken = self.0.lock();
        taken.open -= 1;
        if taken.open == 0
            && let Some(since) = taken.since.take()
        {
            taken.before += since.elapsed();
        }
    }
}

pub(super) struct ServerQuestions {
    sender: mpsc::Sender<ServerQuestion>,
    inbox: mpsc::Receiver<ServerQuestion>,
    open: HashMap<u64, oneshot::Sender<McpAnswer>>,
    last: u64,
}

impl Default for ServerQuestions {
    fn default() -> Self {
        let (sender, inbox) = mpsc::channel(QUEUE);
        Self { sender, inbox, open: HashMap::new(), last: 0 }
    }
}

impl ServerQuestions {
    pub(super) fn of_call(&self) -> QuestionSender {
        QuestionSender { sender: self.sender.clone(), waits: Arc::default() }
    }

    /// Returns the next question; pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> ServerQuestion {
        match self.inbox.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }

    /// Converts a question to an input for the core. The core answers each question once.
    pub(super) fn open(&mut self, question: ServerQuestion) -> Input {
        let ServerQuestion { call, message, form, answer } = question;
        self.last += 1;
        self.open.insert(self.last, answer);
        Input::FormAsked(FormAsked { id: self.last, call, message, form })
    }

    pub(super) fn answer(&mut self, id: u64, answer: McpAnswer) {
        if let Some(waiting) = self.open.remove(&id) {
            // An error means that the call is over.
            let _ = waiting.send(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

    use super::*;

    fn form() -> McpForm {
        McpForm::Fields(Vec::new())
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_person_is_not_that_of_the_call() {
        let mut questions = ServerQuestions::default();
        let call = questions.of_call();
        let asks = call.clone();
        let work = async move {
            sleep(Duration::from_secs(1)).await;
            let answer = asks.ask(CallId(1), "m".to_owned(), form()).await;
            sleep(Duration::from_secs(1)).await;
            answer
        };
        let served = tokio::spawn(async move { call.within(Duration::from_secs(3), work).await });
        let Input::FormAsked(asked) = ({
            let question = questions.next().await;
            questions.open(question)
        }) else {
            panic!("no question")
        };
        sleep(Duration::from_mins(4)).await;
        questions.answer(asked.id, McpAnswer::Declined);
        assert_eq!(served.await.unwrap(), Some(McpAnswer::Declined));
        let call = questions.of_call();
        let began = Instant::now();
        assert_eq!(call.within(Duration::from_secs(3), std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed().as_secs(), 3);
    }

    #[tokio::test]
    async fn a_question_is_answered_once_and_a_flood_is_cancelled() {
        let mut questions = ServerQuestions::default();
        let call = questions.of_call();
        let flood: Vec<_> = (0..QUEUE + 3)
            .map(|_| tokio::spawn(call.clone().ask(CallId(1), String::new(), form())))
            .collect();
        let mut cancelled = 0;
        let mut waiting = Vec::new();
        for asked in flood {
            let mut asked = asked;
            match timeout(Duration::from_millis(50), &mut asked).await {
                Ok(answer) => cancelled += u32::from(answer.unwrap() == McpAnswer::Cancelled),
                Err(_) => waiting.push(asked),
            }
        }
        assert_eq!((cancelled, waiting.len()), (3, QUEUE));
        let first = questions.next().await;
        questions.open(first);
        questions.answer(9, McpAnswer::Declined);
        questions.answer(1, McpAnswer::Accepted("{}".to_owned()));
        questions.answer(1, McpAnswer::Declined);
        assert_eq!(waiting.remove(0).await.unwrap(), McpAnswer::Accepted("{}".to_owned()));
        drop(questions);
        for asked in waiting {
            assert_eq!(asked.await.unwrap(), McpAnswer::Cancelled);
        }
    }
}
