//! A boundary for tests. Its workers are tasks without processes, which answer calls, never answer, or end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use boundary::monitor::{StartError, WorkerEvent};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ipc::confinement::{Bounds, RulesetReport, Tier};
use ipc::effect::{Effect, EffectError};
use ipc::id::{AgentId, CallId};
use ipc::message::{CallOutcome, Work};
use ipc::rights::Rights;
use ipc::tool::{CommandExit, CommandResult, FileText, Matches, ReadFile, ToolCall, ToolOutput};
use protocol::event::WorkerEnd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::stage::Dice;
use crate::engine::driver::{Boundary, StartedWorker, WorkerControl, WorkerOrder};

/// Name of a file. If an agent's first worker reads it, the worker ends.
pub(super) const POISON: &str = "poison.txt";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Answers each call after some milliseconds.
    Answering,
    NeverReady,
    /// Becomes ready, but answers no call.
    Silent,
    /// Becomes ready even if its start is cancelled.
    ReadyAnyway,
}

pub(super) struct Imagined {
    manner: Manner,
    dice: Mutex<Dice>,
    pub(super) started: Mutex<HashMap<AgentId, u32>>,
    pub(super) alive: Arc<Mutex<i32>>,
    living: Arc<Mutex<Vec<(AgentId, Rights)>>>,
    /// Workers that started with more access than a worker of an agent above, or less than one of an agent below.
    pub(super) wider: Arc<Mutex<Vec<String>>>,
    writing: Arc<Mutex<Vec<(AgentId, CallId)>>>,
    /// Number of commands that began while a command of another agent could still write.
    pub(super) clashes: Arc<Mutex<usize>>,
}

struct Commands {
    agent: AgentId,
    writing: Arc<Mutex<Vec<(AgentId, CallId)>>>,
    clashes: Arc<Mutex<usize>>,
}

impl Commands {
    fn begin(&self, call: CallId) {
        let mut writing = self.writing.lock().unwrap();
        *self.clashes.lock().unwrap() += usize::from(writing.iter().any(|(other, _)| *other != self.agent));
        writing.push((self.agent.clone(), call));
    }

    fn end(&self, ended: impl Fn(CallId) -> bool) {
        self.writing.lock().unwrap().retain(|(agent, call)| *agent != self.agent || !ended(*call));
    }
}

enum Order {
    Call(CallId, Work),
    Commit(CallId),
    Cancel(CallId),
    Kill,
}

struct Control(mpsc::UnboundedSender<Order>);

impl Imagined {
    pub(super) fn new(manner: Manner, seed: u64) -> Arc<Self> {
        let dice = Mutex::new(Dice::new(seed));
        Arc::new(Self {
            manner,
            dice,
            started: Mutex::default(),
            alive: Arc::default(),
            living: Arc::default(),
            wider: Arc::default(),
            writing: Arc::default(),
            clashes: Arc::default(),
        })
    }

    fn throw(&self) -> Dice {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).split()
    }
}

impl Boundary for Imagined {
    fn start(
        &self,
        order: WorkerOrder,
        cancelled: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Result<StartedWorker, StartError>> {
        *self.started.lock().unwrap().entry(order.agent.clone()).or_default() += 1;
        let (manner, mut dice, alive) = (self.manner, self.throw(), Arc::clone(&self.alive));
        let (living, wider) = (Arc::clone(&self.living), Arc::clone(&self.wider));
        let (writing, clashes) = (Arc::clone(&self.writing), Arc::clone(&self.clashes));
        let commands = Commands { agent: order.agent.clone(), writing, clashes };
        Box::pin(async move {
            let cancelled = async move {
                // A dropped sender cancels nothing.
                if cancelled.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            match manner {
                Manner::NeverReady => {
                    cancelled.await;
                    return Err(StartError::Cancelled);
                }
                Manner::ReadyAnyway => cancelled.await,
                Manner::Answering | Manner::Silent => sleep(dice.moment()).await,
            }
            let (control, orders) = mpsc::unbounded_channel();
            let (tell, events) = mpsc::channel(16);
            let first = order.generation.0 == 1;
            *alive.lock().unwrap() += 1;
            wider.lock().unwrap().extend(unlike(
                &living.lock().unwrap(),
                &order.agent,
                &order.confinement.rights,
            ));
            living.lock().unwrap().push((order.agent.clone(), order.confinement.rights));
            tokio::spawn(async move {
                live((manner, first), dice, &commands, orders, tell).await;
                *alive.lock().unwrap() -= 1;
                living.lock().unwrap().retain(|(agent, _)| *agent != order.agent);
            });
            Ok(StartedWorker {
                generation: order.generation,
                pid: 100 + order.generation.0,
                ruleset: RulesetReport {
                    tier: Tier::Full,
                    landlock_abi: 7,
                    rules: 3,
                    seccomp_rules: 3,
                    bounds: Bounds::default(),
                    no_full_tier: None,
                    missing: Vec::new(),
                    attempts: Vec::new(),
                },
                startup: Duration::from_millis(1),
                control: Box::new(Control(control)),
                events,
            })
        })
    }
}

/// Returns a line for each living worker of an agent above that has less than `rights`, and of one below that has more.
fn unlike(living: &[(AgentId, Rights)], agent: &AgentId, rights: &Rights) -> Vec<String> {
    let is_unlike = |(other, theirs): &&(AgentId, Rights)| {
        agent.is_below(other) && !theirs.covers(rights) || other.is_below(agent) && !rights.covers(theirs)
    };
    let told = |(other, theirs): &(AgentId, Rights)| {
        format!("{agent} with {rights:?} beside {other} with {theirs:?}")
    };
    living.iter().filter(is_unlike).map(told).collect()
}

async fn live(
    (manner, first): (Manner, bool),
    mut dice: Dice,
    commands: &Commands,
    mut orders: mpsc::UnboundedReceiver<Order>,
    tell: mpsc::Sender<WorkerEvent>,
) {
    let mut open: Vec<CallId> = Vec::new();
    let mut answers = FuturesUnordered::new();
    let reason = loop {
        tokio::select! {
            order = orders.recv() => match order {
                None | Some(Order::Kill) => break WorkerEnd::Signalled { signal: libc::SIGTERM },
                Some(Order::Cancel(call)) => {
                    // An answer may arrive before the cancellation.
                    answers.push(after(dice.moment(), call, Some(CallOutcome::Cancelled)));
                }
                Some(Order::Commit(call)) => {
                    drop(tell.send(WorkerEvent::Outcome { call, outcome: executed() }).await);
                }
                Some(Order::Call(call, work)) => {
                    open.push(call);
                    if matches!(work, Work::Run(ToolCall::ShellExec(_))) {
                        commands.begin(call);
                    }
                    if manner == Manner::Answering {
                        answers.push(after(dice.moment(), call, answer(&work, first)));
                    }
                }
            },
            Some((call, outcome)) = answers.next() => {
                let Some(outcome) = outcome else { break WorkerEnd::Signalled { signal: libc::SIGSEGV } };
                if let Some(index) = open.iter().position(|open| *open == call) {
                    open.remove(index);
                    commands.end(|ended| ended == call);
                    drop(tell.send(WorkerEvent::Outcome { call, outcome }).await);
                }
            }
        }
    };
    sleep(dice.moment()).await;
    commands.end(|_| true);
    drop(tell.send(WorkerEvent::Ended { reason, violation: None, open }).await);
}

async fn after(time: Duration, call: CallId, outcome: Option<CallOutcome>) -> (CallId, Option<CallOutcome>) {
    sleep(time).await;
    (call, outcome)
}

fn nothing_found() -> CallOutcome {
    let (text, matches, files, searched, truncated) = (String::new(), 0, 0, 0, None);
    CallOutcome::Done(ToolOutput::Matches(Matches { text, matches, files, searched, truncated }))
}

fn answer(work: &Work, first: bool) -> Option<CallOutcome> {
    let path = match work {
        Work::Run(ToolCall::ReadFile(ReadFile { path, .. })) => path.to_string(),
        Work::Run(ToolCall::ShellExec(_)) => return Some(executed()),
        Work::Run(ToolCall::SearchFiles(_)) => return Some(nothing_found()),
        _ => panic!("{work:?}"),
    };
    if path.ends_with(POISON) && first {
        return None;
    }
    Some(CallOutcome::Done(ToolOutput::File(FileText {
        text: format!("what stands in {path}\n"),
        first_line: 1,
        lines: 1,
        total_lines: Some(1),
        encoding: "UTF-8".to_owned(),
        notes: Vec::new(),
    })))
}

fn executed() -> CallOutcome {
    CallOutcome::Done(ToolOutput::Command(CommandResult {
        exit: CommandExit::Code(0),
        head: String::new(),
        omitted_bytes: 0,
        tail: String::new(),
        saved: None,
        named: Vec::new(),
        process: 0,
        refused: Vec::new(),
        duration_ms: 0,
    }))
}

impl WorkerControl for Control {
    fn call(&self, call: CallId, work: Work) {
        drop(self.0.send(Order::Call(call, work)));
    }

    fn cancel(&self, call: CallId) {
        drop(self.0.send(Order::Cancel(call)));
    }

    fn commit(&self, call: CallId, _: &Effect) -> Result<(), EffectError> {
        drop(self.0.send(Order::Commit(call)));
        Ok(())
    }

    fn drain(&self) {
        drop(self.0.send(Order::Kill));
    }

    fn kill(&self) {
        drop(self.0.send(Order::Kill));
    }
}
