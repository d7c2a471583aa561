//! Questions to the supervisor if an unlisted host may be reached, one for all connections to a name and port.
//!
//! An answer is valid until the supervisor withdraws it. Without an answer in time, the host is denied.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ipc::gateway::{Arrival, MAX_QUESTIONS};
use ipc::rights::HostName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

/// Time limit for an answer. The supervisor's own limit of 20 seconds normally comes first.
const PATIENCE: Duration = Duration::from_secs(25);

// Maximum number of requests and of waiting connections.
const MAX_KEPT: usize = 256;
const MAX_WAITING: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Open,
    Allowed,
    Denied,
}

#[derive(Debug)]
pub(super) struct Questions {
    kept: HashMap<(HostName, u16), Question>,
    room: Arc<Semaphore>,
    last: u64,
}

#[derive(Debug)]
struct Question {
    number: u64,
    until: Instant,
    /// Sender of the answer to the waiting connections. It is dropped when the supervisor withdraws the answer.
    verdict: watch::Sender<Verdict>,
}

/// Permission of a connection, which is given once the supervisor has allowed the host.
#[derive(Debug)]
pub(super) struct Leave {
    until: Instant,
    verdict: watch::Receiver<Verdict>,
    waiting: Option<OwnedSemaphorePermit>,
}

/// Result of asking for a connection to a host that is not on the list.
#[derive(Debug)]
pub(super) enum Placed {
    /// The connection waits for an answer, or is already allowed. The number is the id of a new question to send;
    /// `None` if an earlier question is about the same name and port.
    Waits(Leave, Option<u64>),
    Denied,
    TooMany,
}

impl Questions {
    pub(super) fn new() -> Self {
        Self { kept: HashMap::new(), room: Arc::new(Semaphore::new(MAX_WAITING)), last: 0 }
    }

    pub(super) fn place(&mut self, arrival: &Arrival) -> Placed {
        let key = (arrival.name.clone(), arrival.port);
        if let Some(question) = self.kept.get(&key) {
            return match question.verdict_now() {
                Verdict::Denied => Placed::Denied,
                Verdict::Allowed => Placed::Waits(question.leave(None), None),
                Verdict::Open => match Arc::clone(&self.room).try_acquire_owned() {
                    Ok(room) => Placed::Waits(question.leave(Some(room)), None),
                    Err(_) => Placed::TooMany,
                },
            };
        }
        let open = self.kept.values().filter(|question| question.verdict_now() == Verdict::Open).count();
        if open >= MAX_QUESTIONS || self.kept.len() >= MAX_KEPT {
            return Placed::TooMany;
        }
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return Placed::TooMany };
        self.last += 1;
        let verdict = watch::Sender::new(Verdict::Open);
        let question = Question { number: self.last, until: Instant::now() + PATIENCE, verdict };
        let leave = question.leave(Some(room));
        self.kept.insert(key, question);
        Placed::Waits(leave, Some(self.last))
    }

    /// Records an answer. Ignores an answer to a question that is no longer open.
    pub(super) fn answer(&mut self, number: u64, allowed: bool) {
        if let Some(question) = self.kept.values().find(|question| question.number == number)
            && question.verdict_now() == Verdict::Open
        {
            question.verdict.send_replace(if allowed { Verdict::Allowed } else { Verdict::Denied });
        }
    }

    pub(super) fn close(&mut self, number: u64) {
        self.kept.retain(|_, question| question.number != number);
    }
}

impl Question {
    fn leave(&self, waiting: Option<OwnedSemaphorePermit>) -> Leave {
        Leave { until: self.until, verdict: self.verdict.subscribe(), waiting }
    }

    fn verdict_now(&self) -> Verdict {
        let verdict = *self.verdict.borrow();
        if verdict == Verdict::Open && self.until <= Instant::now() { Verdict::Denied } else { verdict }
    }
}

impl Leave {
    pub(super) async fn is_given(&mut self) -> bool {
        let decided =
            timeout_at(self.until, self.verdict.wait_for(|verdict| *verdict != Verdict::Open)).await;
        let allowed = matches!(decided, Ok(Ok(verdict)) if *verdict == Verdict::Allowed);
        self.waiting = None;
        allowed
    }

    pub(super) async fn is_taken_back(&mut self) {
        let _closed = self.verdict.wait_for(|_| false).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn arrival(name: &str, port: u16) -> Arrival {
        Arrival { name: name.parse().unwrap(), port, program: String::new() }
    }

    fn waits(questions: &mut Questions, name: &str, port: u16) -> (Leave, Option<u64>) {
        match questions.place(&arrival(name, port)) {
            Placed::Waits(leave, number) => (leave, number),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_is_asked_for_a_name_and_port() {
        let mut questions = Questions::new();
        let (mut first, asked) = waits(&mut questions, "a.example", 443);
        assert_eq!(asked, Some(1));
        let (mut second, again) = waits(&mut questions, "a.example", 443);
        assert_eq!(again, None);
        let (mut port, asked) = waits(&mut questions, "a.example", 80);
        assert_eq!(asked, Some(2));
        questions.answer(1, true);
        assert!(first.is_given().await && second.is_given().await);
        let (mut third, asked) = waits(&mut questions, "a.example", 443);
        assert!(asked.is_none() && third.is_given().await, "the answer holds for later connections");
        questions.answer(1, false);
        questions.answer(9, true);
        assert!(waits(&mut questions, "a.example", 443).0.is_given().await, "a second answer does nothing");
        let began = Instant::now();
        assert!(!port.is_given().await, "nobody answered");
        assert_eq!(began.elapsed(), PATIENCE);
        assert!(matches!(questions.place(&arrival("a.example", 80)), Placed::Denied));
        questions.answer(2, true);
        assert!(matches!(questions.place(&arrival("a.example", 80)), Placed::Denied), "it was late");
        questions.close(1);
        first.is_taken_back().await;
        assert_eq!(waits(&mut questions, "a.example", 443).1, Some(3), "it is asked anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_taken_back_is_a_no() {
        let mut questions = Questions::new();
        let (mut waiting, _) = waits(&mut questions, "a.example", 443);
        questions.close(1);
        questions.answer(1, true);
        assert!(!waiting.is_given().await);
        let (mut denied, _) = waits(&mut questions, "a.example", 443);
        questions.answer(2, false);
        assert!(!denied.is_given().await);
        assert!(matches!(questions.place(&arrival("a.example", 443)), Placed::Denied));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_and_waiting_connections_are_bounded() {
        let mut questions = Questions::new();
        let mut leaves = Vec::new();
        for number in 0..10_000 {
            match questions.place(&arrival(&format!("n{number}.example"), 443)) {
                Placed::Waits(leave, Some(_)) => leaves.push(leave),
                Placed::TooMany => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(leaves.len(), MAX_QUESTIONS);
        let more = (0..1000).map(|_| questions.place(&arrival("n0.example", 443)));
        let more: Vec<_> = more.filter(|placed| matches!(placed, Placed::Waits(..))).collect();
        assert_eq!(more.len(), MAX_WAITING - MAX_QUESTIONS);
        drop(more);
        assert!(waits(&mut questions, "n0.example", 443).1.is_none(), "who is gone leaves room");
        // A question that nobody answered makes room for another, until too many are kept.
        let mut asked = leaves.len();
        loop {
            sleep(PATIENCE).await;
            let before = asked;
            for number in 0..MAX_QUESTIONS {
                let name = format!("m{asked}-{number}.example");
                asked += usize::from(matches!(questions.place(&arrival(&name, 443)), Placed::Waits(..)));
            }
            if asked == before {
                break;
            }
        }
        assert_eq!(asked, MAX_KEPT);
    }
}
