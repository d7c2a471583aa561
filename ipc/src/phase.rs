//! Order of a worker's messages, as one table (like that of OpenSSH's monitor). A worker that violates it is ended.

use std::collections::BTreeMap;
use std::fmt;

use crate::id::CallId;
use crate::message::{CallOutcome, Chunk, ToSupervisor, Work};

/// The phase of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// `Hello` was sent; only `Ready` may come.
    Greeting,
    /// Tool calls are served.
    Serving,
    /// `Drain` was sent; open tool calls end, then `Bye` comes.
    Draining,
    /// `Bye` came; no message may follow.
    Gone,
}

/// The kinds of messages from a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The message [`ToSupervisor::Ready`].
    Ready,
    /// The message [`ToSupervisor::Output`].
    Output,
    /// The message [`ToSupervisor::Prepared`].
    Prepared,
    /// The message [`ToSupervisor::Outcome`].
    Outcome,
    /// The message [`ToSupervisor::Bye`].
    Bye,
}

impl ToSupervisor {
    /// Returns the message's kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Ready(_) => Kind::Ready,
            Self::Output { .. } => Kind::Output,
            Self::Prepared { .. } => Kind::Prepared,
            Self::Outcome { .. } => Kind::Outcome,
            Self::Bye => Kind::Bye,
        }
    }
}

/// A message that the worker may not send now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The phase does not permit this kind of message.
    #[error("{kind} in phase {phase}")]
    Phase {
        /// Phase of the worker when the message arrived.
        phase: Phase,
        /// The message that arrived.
        kind: Kind,
    },
    /// No tool call with this id is open.
    #[error("{kind} for call {call}, which is not open")]
    NoSuchCall {
        /// The message that arrived.
        kind: Kind,
        /// The call that the worker named, which is not open.
        call: CallId,
    },
    /// The open tool call does not expect this kind of message.
    #[error("{kind} for call {call}, which asked for something else")]
    NotAsked {
        /// The message that arrived.
        kind: Kind,
        /// The open call that the worker named.
        call: CallId,
    },
    /// `Bye` came while this number of tool calls was open.
    #[error("Bye while {0} calls are open")]
    OpenCalls(usize),
}

/// Returns the phase after a message of a worker, or its violation (✗). Entries without an arrow name the tool calls
/// for which the message is allowed; the phase stays.
///
/// | phase ╲ message | Ready | Output | Prepared | Outcome | Bye |
/// | --- | --- | --- | --- | --- | --- |
/// | Greeting | → Serving | ✗ | ✗ | ✗ | ✗ |
/// | Serving | ✗ | open calls | prepared calls | open calls, once | ✗ |
/// | Draining | ✗ | open calls | prepared calls | open calls, once | → Gone |
/// | Gone | ✗ | ✗ | ✗ | ✗ | ✗ |
pub const fn admit(phase: Phase, kind: Kind) -> Result<Phase, Violation> {
    match (phase, kind) {
        (Phase::Greeting, Kind::Ready) => Ok(Phase::Serving),
        (Phase::Serving | Phase::Draining, Kind::Output | Kind::Prepared | Kind::Outcome) => Ok(phase),
        (Phase::Draining, Kind::Bye) => Ok(Phase::Gone),
        _ => Err(Violation::Phase { phase, kind }),
    }
}

/// Messages that an open tool call expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expected {
    /// Text, then an outcome with an output.
    Run,
    /// Parts of an effect, then the outcome `Prepared`.
    Prepare,
    /// After the commit of an effect: text, then an outcome with an output.
    Commit,
    /// Entries and contents of files, then an outcome with an output.
    Entries,
}

impl From<&Work> for Expected {
    fn from(work: &Work) -> Self {
        match work {
            Work::Run(_) => Self::Run,
            Work::Prepare(_) => Self::Prepare,
            Work::Snapshot { .. } | Work::Fetch { .. } => Self::Entries,
        }
    }
}

/// The open tool calls of one worker, each with the messages that it expects.
#[derive(Debug, Default)]
pub struct OpenCalls(BTreeMap<CallId, Expected>);

impl OpenCalls {
    /// Records that a tool call was sent.
    pub fn open(&mut self, call: CallId, expected: Expected) {
        self.0.insert(call, expected);
    }

    /// Returns the ids of the open tool calls.
    pub fn ids(&self) -> impl Iterator<Item = CallId> {
        self.0.keys().copied()
    }

    /// True if no tool call is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a message by phase and tool call, and returns the next phase. An outcome closes the tool call.
    pub fn admit(&mut self, phase: Phase, message: &ToSupervisor) -> Result<Phase, Violation> {
        let kind = message.kind();
        let next = admit(phase, kind)?;
        let (call, fits): (_, fn(Expected, &ToSupervisor) -> bool) = match message {
            ToSupervisor::Ready(_) => return Ok(next),
            ToSupervisor::Bye if self.0.is_empty() => return Ok(next),
            ToSupervisor::Bye => return Err(Violation::OpenCalls(self.0.len())),
            ToSupervisor::Output { call, .. }
            | ToSupervisor::Prepared { call, .. }
            | ToSupervisor::Outcome { call, .. } => (*call, fits),
        };
        let expected = *self.0.get(&call).ok_or(Violation::NoSuchCall { kind, call })?;
        if !fits(expected, message) {
            return Err(Violation::NotAsked { kind, call });
        }
        if kind == Kind::Outcome {
            self.0.remove(&call);
        }
        Ok(next)
    }
}

fn fits(expected: Expected, message: &ToSupervisor) -> bool {
    match message {
        ToSupervisor::Output { chunk: Chunk::Text(_), .. } => {
            matches!(expected, Expected::Run | Expected::Commit)
        }
        ToSupervisor::Output { chunk: Chunk::Entries(_) | Chunk::Content(_), .. } => {
            expected == Expected::Entries
        }
        ToSupervisor::Prepared { .. } | ToSupervisor::Outcome { outcome: CallOutcome::Prepared, .. } => {
            expected == Expected::Prepare
        }
        ToSupervisor::Outcome { outcome: CallOutcome::Done(_), .. } => expected != Expected::Prepare,
        ToSupervisor::Outcome { .. } => true,
        ToSupervisor::Ready(_) | ToSupervisor::Bye => false,
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::message::Ready;
    use crate::tool::{SnapshotSummary, ToolOutput};

    const PHASES: [Phase; 4] = [Phase::Greeting, Phase::Serving, Phase::Draining, Phase::Gone];
    const KINDS: [Kind; 5] = [Kind::Ready, Kind::Output, Kind::Prepared, Kind::Outcome, Kind::Bye];

    #[test]
    fn the_table_is_exactly_this() {
        let table: Vec<String> = PHASES
            .iter()
            .map(|&phase| {
                let cells = KINDS.map(|kind| match admit(phase, kind) {
                    Ok(next) => next.to_string(),
                    Err(_) => "-".to_owned(),
                });
                format!("{phase}: {}", cells.join(" "))
            })
            .collect();
        assert_eq!(
            table,
            [
                "Greeting: Serving - - - -",
                "Serving: - Serving Serving Serving -",
                "Draining: - Draining Draining Draining Gone",
                "Gone: - - - - -",
            ]
        );
    }

    fn done(call: u64) -> ToSupervisor {
        let output = ToolOutput::Snapshot(SnapshotSummary::default());
        ToSupervisor::Outcome { call: CallId(call), outcome: CallOutcome::Done(output) }
    }

    #[test]
    fn an_outcome_comes_once_and_only_for_an_open_call() {
        let mut calls = OpenCalls::default();
        calls.open(CallId(1), Expected::Run);
        assert!(calls.admit(Phase::Serving, &done(2)).is_err());
        assert!(calls.admit(Phase::Serving, &done(1)).is_ok());
        let error = calls.admit(Phase::Serving, &done(1)).unwrap_err().to_string();
        assert_eq!(error, "Outcome for call 1, which is not open");
    }

    #[test]
    fn a_call_brings_only_what_it_was_asked_for() {
        let mut calls = OpenCalls::default();
        calls.open(CallId(1), Expected::Prepare);
        calls.open(CallId(2), Expected::Entries);
        let text = |call| ToSupervisor::Output { call: CallId(call), chunk: Chunk::Text(vec![]) };
        assert!(calls.admit(Phase::Serving, &done(1)).is_err());
        assert!(calls.admit(Phase::Serving, &text(1)).is_err());
        assert!(calls.admit(Phase::Serving, &text(2)).is_err());
        assert!(calls.admit(Phase::Serving, &done(2)).is_ok());
    }

    #[test]
    fn bye_waits_for_the_open_calls() {
        let mut calls = OpenCalls::default();
        calls.open(CallId(1), Expected::Run);
        let error = calls.admit(Phase::Draining, &ToSupervisor::Bye).unwrap_err().to_string();
        assert_eq!(error, "Bye while 1 calls are open");
        let ready = ToSupervisor::Ready(Ready { pid: 1, version: String::new() });
        let error = calls.admit(Phase::Serving, &ready).unwrap_err().to_string();
        assert_eq!(error, "Ready in phase Serving");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Open(Expected),
        Drain,
        Says(ToSupervisor),
    }

    fn says() -> impl Strategy<Value = ToSupervisor> {
        let ready = Ready { pid: 1, version: String::new() };
        let call = || (0..6_u64).prop_map(CallId);
        let chunk = prop_oneof![Just(Chunk::Text(vec![])), Just(Chunk::Content(vec![]))];
        let outcome = prop_oneof![Just(CallOutcome::Prepared), Just(CallOutcome::Cancelled)];
        prop_oneof![
            2 => Just(ToSupervisor::Ready(ready)),
            3 => (call(), chunk).prop_map(|(call, chunk)| ToSupervisor::Output { call, chunk }),
            4 => call().prop_map(|CallId(call)| done(call)),
            4 => (call(), outcome).prop_map(|(call, outcome)| ToSupervisor::Outcome { call, outcome }),
            2 => Just(ToSupervisor::Bye),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        use Expected::{Commit, Entries, Prepare, Run};
        let expected = prop_oneof![Just(Run), Just(Prepare), Just(Commit), Just(Entries)];
        prop_oneof![3 => expected.prop_map(Step::Open), 1 => Just(Step::Drain), 6 => says().prop_map(Step::Says)]
    }

    proptest! {
        #[test]
        fn whatever_a_worker_says_a_call_has_one_outcome_and_nothing_follows_bye(
            steps in proptest::collection::vec(step(), 0..64),
            greeted in any::<bool>(),
        ) {
            let mut phase = if greeted { Phase::Serving } else { Phase::Greeting };
            let mut calls = OpenCalls::default();
            let mut outcomes = BTreeMap::<CallId, u32>::new();
            let mut next = 0;
            for step in steps {
                let message = match step {
                    Step::Open(expected) => {
                        calls.open(CallId(next), expected);
                        outcomes.insert(CallId(next), 0);
                        next += 1;
                        continue;
                    }
                    Step::Drain if phase == Phase::Serving => { phase = Phase::Draining; continue; }
                    Step::Drain => continue,
                    Step::Says(message) => message,
                };
                let open: Vec<CallId> = calls.ids().collect();
                let Ok(after) = calls.admit(phase, &message) else {
                    prop_assert_eq!(&open, &calls.ids().collect::<Vec<_>>(), "a refusal changes nothing");
                    continue;
                };
                prop_assert_ne!(phase, Phase::Gone, "{:?} after Bye", message);
                if let ToSupervisor::Outcome { call, .. } = message {
                    prop_assert!(outcomes.contains_key(&call), "an outcome of {call}, which was never opened");
                    *outcomes.entry(call).or_default() += 1;
                }
                prop_assert!(after != Phase::Gone || open.is_empty(), "Bye while calls are open");
                phase = after;
            }
            prop_assert!(outcomes.values().all(|count| *count <= 1), "{:?}", outcomes);
            for (call, count) in outcomes {
                prop_assert_eq!(count == 0, calls.ids().any(|open| open == call), "{}", call);
            }
        }
    }
}
