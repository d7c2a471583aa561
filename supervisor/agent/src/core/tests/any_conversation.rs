//! Tests of random long conversations in the smallest window: all requests are valid, and the log is complete.

use ipc::id::{CallId, EventId};
use ipc::message::CallOutcome;
use ipc::rights::Network;
use proptest::prelude::*;
use protocol::event::{
    EventKind, LeftOut, ObservedBy, RewindScope, RewindTarget, Rewound, SessionEvent, TokenUsage,
};
use protocol::frontend::{AgentAction, Op};

use super::script::{Script, command, config, error, file, not_found, read, run, text, thinking};
use super::witness::{Witness, size};
use crate::conversation::{Message, StopReason, StreamEvent};
use crate::core::{Agent, AgentConfig, Counted, Effect, RequestId, Window, standing};

#[derive(Clone, Debug)]
enum Move {
    /// The user writes this many words.
    Say(usize),
    /// The model replies with words and calls. For each call, the number is that of the lines in its result.
    Answer {
        words: usize,
        calls: Vec<usize>,
    },
    /// The reply ends for this reason.
    Stop(StopReason),
    /// The request fails. The number selects the error: conversation too long, overloaded, invalid, permanent, or about
    /// a part of the conversation.
    Fail(usize),
    Interrupt,
    Compact,
    Clear,
    /// The user runs a command that prints this many lines.
    Own(usize),
    /// The user turns the network on, and the new worker starts.
    Net,
    Rewind(usize),
    Undo,
}

fn any_move() -> impl Strategy<Value = Move> {
    let lines = prop_oneof![3 => 0..40usize, 1 => 300..3_000usize];
    prop_oneof![
        4 => prop_oneof![4 => 1..50usize, 1 => 500..4_000usize].prop_map(Move::Say),
        16 => (0..400usize, proptest::collection::vec(lines, 0..5))
            .prop_map(|(words, calls)| Move::Answer { words, calls }),
        2 => prop_oneof![
            Just(StopReason::MaxTokens),
            Just(StopReason::Refusal(None)),
            Just(StopReason::ContextWindowExceeded),
            Just(StopReason::EndTurn),
        ]
        .prop_map(Move::Stop),
        2 => (0..6usize).prop_map(Move::Fail),
        1 => Just(Move::Interrupt),
        1 => Just(Move::Compact),
        1 => Just(Move::Clear),
        1 => (1..40usize).prop_map(Move::Own),
        1 => Just(Move::Net),
        1 => (0..9usize).prop_map(Move::Rewind),
        1 => Just(Move::Undo),
    ]
}

fn narrow() -> AgentConfig {
    AgentConfig { window: Window::new(0), max_tokens: 32_000, ..config() }
}

fn logged(id: u64, kind: EventKind, observed_by: ObservedBy) -> SessionEvent {
    SessionEvent {
        id: EventId(id),
        parent: (id > 1).then(|| EventId(id - 1)),
        time_ms: id,
        session: "s".into(),
        agent: "1".into(),
        parent_agent: None,
        observed_by,
        kind,
    }
}

struct Play {
    script: Script,
    witness: Witness,
    /// Estimated tokens of the last request.
    asked: u64,
    /// True if the provider reports token counts.
    counts: bool,
    open: Vec<CallId>,
    log: Vec<SessionEvent>,
}

impl Play {
    fn new(counts: bool) -> Self {
        let window = Window::new(0);
        let mut script = Script::with(narrow());
        script.context("environment", "here").context("AGENTS.md", &"Use tabs. ".repeat(100));
        Self { script, witness: Witness::new(window), asked: 0, counts, open: Vec::new(), log: Vec::new() }
    }

    /// Checks and removes the effects since the last check.
    fn look(&mut self) {
        for effect in std::mem::take(&mut self.script.effects) {
            self.witness.see(&effect);
            if let Effect::Log { kind, observed_by } = &effect {
                self.log.push(logged(self.log.len() as u64 + 1, kind.clone(), *observed_by));
            }
            match &effect {
                Effect::StartStream { model, .. } => self.asked = size(model),
                Effect::Dispatch { call, .. } => self.open.push(*call),
                Effect::Log { kind: EventKind::ToolCallFinished { call, .. }, .. } => {
                    self.open.retain(|open| open != call);
                }
                _ => {}
            }
        }
    }

    fn request(&self) -> u64 {
        let RequestId(request) = self.script.agent.turn.last_request();
        request
    }

    fn play(&mut self, next: Move) {
        match next {
            Move::Say(words) => _ = self.script.user(&"word ".repeat(words)),
            Move::Answer { words, calls } => self.answer(words, &calls),
            Move::Stop(stop) => self.complete(stop),
            Move::Fail(kind) => self.fail(kind),
            Move::Interrupt => _ = self.script.interrupt(),
            Move::Compact => _ = self.script.input(crate::core::Input::Op(Op::Act(AgentAction::Compact))),
            Move::Clear => _ = self.script.input(crate::core::Input::Op(Op::Act(AgentAction::Clear))),
            Move::Own(lines) => self.own(lines),
            Move::Net => _ = self.script.net(Network::On).ready(2),
            Move::Rewind(n) => {
                let said = standing(&self.log).into_iter();
                let said = said.filter(|event| matches!(event.kind, EventKind::UserMessage { .. }));
                let said: Vec<_> = said.map(|event| event.id).collect();
                if !said.is_empty() {
                    self.rewind(Some(said[n % said.len()]));
                }
            }
            Move::Undo => {
                let last = self.log.iter().rev().find_map(SessionEvent::rewind);
                if last.is_some_and(|last| last.to.is_some()) {
                    self.rewind(None);
                }
            }
        }
        self.look();
    }

    /// Rewinds the conversation like the driver. Does nothing while a turn is running.
    fn rewind(&mut self, to: Option<EventId>) {
        if self.script.agent.is_busy() {
            return;
        }
        let target = RewindTarget { to, scope: RewindScope::Conversation };
        let rewound = Rewound { target, files: Vec::new(), left: Vec::new(), error: None };
        let id = self.log.len() as u64 + 1;
        self.log.push(logged(id, EventKind::Rewound(rewound), ObservedBy::Supervisor));
        self.witness.takes_back();
        self.script.agent.rewind(Some(&self.log), "The user took the conversation back to here.".to_owned());
    }

    fn own(&mut self, lines: usize) {
        self.script
            .input(crate::core::Input::Op(Op::Act(AgentAction::RunCommand { command: "make".to_owned() })));
        let (call, outcome) = (self.script.agent.calls.last_ids().0, Ok(command(0, &"made\n".repeat(lines))));
        self.script.input(crate::core::Input::OneShotFinished { call, outcome, duration_ms: 1 });
    }

    fn answer(&mut self, words: usize, calls: &[usize]) {
        let request = self.request();
        let mut blocks = vec![thinking(), text(&format!("So. {}", "word ".repeat(words)))];
        let call = |(n, _): (usize, &usize)| {
            let id = format!("t{request}_{n}");
            if n % 2 == 0 { read(&id, "a") } else { run(&id, "make") }
        };
        blocks.extend(calls.iter().enumerate().map(call));
        for (index, block) in blocks.into_iter().enumerate() {
            self.script.stream(request, StreamEvent::BlockClosed { index, block });
        }
        self.complete(if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse });
        for lines in calls {
            if let Some(call) = self.open.first().copied() {
                self.script.outcome(call.0, outcome(call, *lines));
                self.look();
            }
        }
    }

    fn complete(&mut self, stop_reason: StopReason) {
        // The real reply has no more tokens than these.
        let usage = TokenUsage { input: self.asked, output: 1_100, ..TokenUsage::default() };
        let usage = if self.counts { usage } else { TokenUsage::default() };
        self.script.stream(self.request(), StreamEvent::MessageCompleted { stop_reason, usage });
        self.look();
    }

    fn fail(&mut self, kind: usize) {
        let mut error = error("overloaded_error", kind == 1);
        if kind == 0 {
            error.message = "prompt is too long: 9 tokens > 8 maximum".to_owned();
        }
        if matches!(kind, 2 | 4 | 5) {
            error.status = Some(400);
        }
        error.blames = match kind {
            4 => Some(LeftOut::Thinking),
            5 => Some(LeftOut::Message(u32::try_from(self.request() % 7).unwrap())),
            _ => None,
        };
        self.script.failed(self.request(), error);
        self.script.timer(self.script.agent.turn.last_timer().0);
    }
}

fn outcome(call: CallId, lines: usize) -> CallOutcome {
    match lines {
        0 => not_found(),
        lines if call.0.is_multiple_of(2) => command(1, &"an error\n".repeat(lines)),
        lines => file(&"a long line of code;\n".repeat(lines)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_log_has_every_conversation_that_a_model_was_told(
        moves in proptest::collection::vec(any_move(), 1..60),
        counts in proptest::bool::ANY,
    ) {
        let mut play = Play::new(counts);
        play.look();
        for next in moves {
            play.play(next);
        }
        play.play(Move::Interrupt);
        let restored = Agent::new(narrow()).restored(&play.log, false);
        let live = &play.script.agent;
        prop_assert_eq!(format!("{:?}", restored.conversation.messages()), format!("{:?}", live.conversation.messages()));
        prop_assert_eq!(restored.calls.last_ids().0, live.calls.last_ids().0);
        prop_assert_eq!(restored.conversation.ledger(), live.conversation.ledger());
    }

    #[test]
    fn r4_every_request_of_a_long_conversation_is_acceptable(
        moves in proptest::collection::vec(any_move(), 40..120),
        counts in proptest::bool::ANY,
    ) {
        let mut play = Play::new(counts);
        play.look();
        for next in moves {
            play.play(next);
        }
        // A few moves may leave a conversation that fits into the window, so more follow until it is summarised.
        for _ in 0..100 {
            if play.witness.contexts == 0 {
                play.play(Move::Say(300));
                play.play(Move::Answer { words: 300, calls: vec![40, 40] });
            }
        }
        // Without any reply there is nothing to summarise, even if the user's messages fill the context.
        let answered = play.script.agent.conversation.messages().iter().any(|message| matches!(**message, Message::Assistant(_)));
        prop_assert!(play.witness.contexts > 0 || !answered, "nothing was summarised");
    }
}

/// An undone rewind restores old replies after newer messages, for which the provider's count is too low.
#[test]
fn what_an_undone_rewind_brings_back_is_counted() {
    let mut play = Play::new(true);
    let said = || [Move::Say(500), Move::Answer { words: 390, calls: vec![] }];
    let moves = said().into_iter().chain([Move::Rewind(0)]).chain(said()).chain([Move::Undo, Move::Say(1)]);
    moves.for_each(|next| play.play(next));
    let counted = play.script.agent.conversation.tokens();
    assert!(counted >= play.asked, "{counted} tokens for {}", play.asked);
}
