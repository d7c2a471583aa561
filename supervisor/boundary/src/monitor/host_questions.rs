//! Questions of a gateway whether a program may connect to a host that is not on the list of allowed hosts.
//!
//! The gateway is untrusted. A question counts only if the broker reported the same connection of a process of the
//! agent.
//!
//! An answer applies to one question, and until the command that connects has ended.

use ipc::gateway::{Arrival, GatewayOrder, MAX_QUESTIONS};
use ipc::refusal::{Refusal, Target};
use ipc::rights::{HostName, HostRule};
use tokio::sync::mpsc;

/// Maximum number of questions per worker. Further connections to hosts that are not allowed are denied.
const MOST: u32 = 1024;

#[derive(Debug)]
pub struct HostQuestion {
    pub number: u64,
    pub host: HostRule,
    /// Name (`comm`) of the connecting process. The process itself can set it.
    pub program: String,
    /// Pid of the worker's child from which the connecting process descends.
    pub process: u32,
    pub answers: HostAnswers,
}

#[derive(Clone, Debug)]
pub struct HostAnswers(mpsc::UnboundedSender<(u64, bool)>);

impl HostAnswers {
    /// Answers a question. A second answer to it, or an answer after its withdrawal, has no effect.
    pub fn answer(&self, question: u64, allowed: bool) {
        // A worker that is gone needs no answer.
        let _ = self.0.send((question, allowed));
    }
}

#[derive(Debug)]
pub struct HostQuestions {
    kept: Vec<KeptQuestion>,
    asked: u32,
    answers: HostAnswers,
    inbox: mpsc::UnboundedReceiver<(u64, bool)>,
}

#[derive(Debug)]
struct KeptQuestion {
    number: u64,
    name: HostName,
    port: u16,
    process: u32,
    /// The answer, or `None` while the question is open.
    allowed: Option<bool>,
}

impl Default for HostQuestions {
    fn default() -> Self {
        let (answers, inbox) = mpsc::unbounded_channel();
        Self { kept: Vec::new(), asked: 0, answers: HostAnswers(answers), inbox }
    }
}

impl HostQuestions {
    /// Registers a question about a connection that the broker's `report` confirms; `None` for an invalid question.
    pub fn ask(&mut self, number: u64, arrival: Arrival, report: Option<Refusal>) -> Option<HostQuestion> {
        let Arrival { name, port, .. } = arrival;
        let Refusal { process, program, .. } = report?;
        let open = self.kept.iter().filter(|kept| kept.allowed.is_none()).count();
        let is_known = self.kept.iter().any(|kept| kept.number == number || kept.is_about(&name, port));
        if is_known || open >= MAX_QUESTIONS || self.asked >= MOST {
            return None;
        }
        self.asked += 1;
        let host = HostRule::exactly(name.clone(), port);
        self.kept.push(KeptQuestion { number, name, port, process, allowed: None });
        Some(HostQuestion { number, host, program, process, answers: self.answers.clone() })
    }

    /// Waits for an answer to an open question, and returns it as an order to the gateway. Cancel safe.
    pub async fn answered(&mut self) -> GatewayOrder {
        loop {
            let Some((question, allowed)) = self.inbox.recv().await else {
                // This cannot happen: `self.answers` is a sender.
                return std::future::pending().await;
            };
            let open = |kept: &&mut KeptQuestion| kept.number == question && kept.allowed.is_none();
            if let Some(kept) = self.kept.iter_mut().find(open) {
                kept.allowed = Some(allowed);
                return GatewayOrder::Answer { question, allowed };
            }
        }
    }

    /// True if the person has allowed the host of a reported connection by now, so that the report is no denial.
    pub fn allowed(&self, report: &Refusal) -> bool {
        let Target::Host { name, port } = &report.object else { return false };
        self.kept.iter().any(|kept| kept.allowed == Some(true) && kept.is_about(name, *port))
    }

    /// Withdraws the questions of the command whose first process is `process` and has ended. `heir` returns the
    /// process of another command that is connected to the same host, for which an allowed host stays allowed.
    pub fn end_of(
        &mut self,
        process: u32,
        mut heir: impl FnMut(&HostName, u16) -> Option<u32>,
    ) -> Vec<GatewayOrder> {
        for kept in self.kept.iter_mut().filter(|kept| kept.process == process && kept.allowed == Some(true))
        {
            kept.process = heir(&kept.name, kept.port).unwrap_or(kept.process);
        }
        self.close(|kept| kept.process == process)
    }

    pub fn end_of_all(&mut self) -> Vec<GatewayOrder> {
        self.close(|_| true)
    }

    fn close(&mut self, is_over: impl Fn(&KeptQuestion) -> bool) -> Vec<GatewayOrder> {
        let over = self.kept.extract_if(.., |kept| is_over(kept));
        over.map(|kept| GatewayOrder::Close { question: kept.number }).collect()
    }
}

impl KeptQuestion {
    fn is_about(&self, name: &HostName, port: u16) -> bool {
        (&self.name, self.port) == (name, port)
    }
}

#[cfg(test)]
mod tests {
    use ipc::refusal::Act;

    use super::*;

    fn arrival(name: &str) -> Arrival {
        Arrival { name: name.parse().unwrap(), port: 443, program: "said".to_owned() }
    }

    fn report(process: u32, name: &str) -> Refusal {
        let object = Target::Host { name: name.parse().unwrap(), port: 443 };
        let program = "seen".to_owned();
        Refusal { process, program, act: Act::Connect, object, errno: 104, count: 1, untold: 0 }
    }

    fn asked(questions: &mut HostQuestions, number: u64, name: &str) -> Option<HostQuestion> {
        questions.ask(number, arrival(name), Some(report(7, name)))
    }

    #[tokio::test]
    async fn a_question_needs_the_brokers_report() {
        let mut questions = HostQuestions::default();
        assert!(questions.ask(1, arrival("a.example"), None).is_none());
        let question = asked(&mut questions, 1, "a.example").unwrap();
        assert_eq!((&*question.program, question.process), ("seen", 7), "the broker's words");
        assert_eq!(question.host.to_string(), "a.example");
        assert!(asked(&mut questions, 1, "b.example").is_none(), "the number is taken");
        assert!(asked(&mut questions, 2, "a.example").is_none(), "it was asked about");
    }

    #[tokio::test]
    async fn one_answer_counts_for_one_question() {
        let mut questions = HostQuestions::default();
        let question = asked(&mut questions, 1, "a.example").unwrap();
        asked(&mut questions, 2, "b.example").unwrap();
        for (number, allowed) in [(9, true), (1, true), (1, false), (2, false), (2, true)] {
            question.answers.answer(number, allowed);
        }
        assert_eq!(questions.answered().await, GatewayOrder::Answer { question: 1, allowed: true });
        assert_eq!(questions.answered().await, GatewayOrder::Answer { question: 2, allowed: false });
        assert!(tokio::time::timeout(std::time::Duration::ZERO, questions.answered()).await.is_err());
        let told = ["a.example", "b.example", "c.example"].map(|name| questions.allowed(&report(8, name)));
        assert_eq!(told, [true, false, false]);
    }

    #[tokio::test]
    async fn what_was_allowed_ends_with_its_command() {
        let mut questions = HostQuestions::default();
        let close = |question| GatewayOrder::Close { question };
        let question = asked(&mut questions, 1, "a.example").unwrap();
        asked(&mut questions, 2, "b.example").unwrap();
        question.answers.answer(1, true);
        questions.answered().await;
        assert_eq!(questions.end_of(8, |_, _| None), []);
        // Command 8 connects to both hosts. The open question is withdrawn, to be asked again for that command.
        assert_eq!(questions.end_of(7, |_, _| Some(8)), [close(2)]);
        assert_eq!(questions.end_of(8, |_, _| None), [close(1)]);
        question.answers.answer(1, true);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, questions.answered()).await.is_err());
        asked(&mut questions, 3, "a.example").unwrap();
        assert_eq!(questions.end_of_all(), [close(3)]);
    }

    #[test]
    fn a_gateway_asks_so_much_and_no_more() {
        let mut questions = HostQuestions::default();
        let open = (0..10_000).filter_map(|n| asked(&mut questions, n, &format!("n{n}.example"))).count();
        assert_eq!(open, MAX_QUESTIONS);
        let mut all = open;
        for round in 1..10_000 {
            questions.end_of_all();
            all += usize::from(asked(&mut questions, 10_000 + round, "a.example").is_some());
        }
        assert_eq!(all, MOST as usize);
    }
}
