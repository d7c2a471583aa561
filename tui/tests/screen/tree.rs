//! Tests of the list of agents, beside the transcript or instead of it, and of its keys.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{AgentId, ApprovalId, CallId, EventId};
use ipc::rights::{Network, Reach};
use protocol::approval::ServerRequest;
use protocol::event::{
    AssistantMessage, EndReason, EventKind, ObservedBy, SessionEvent, SubAgentResult, SubAgentSpawned,
    SubAgentStatus, TokenUsage, ToolCallStatus, ToolKind, WriteTurnAwaited, WriteTurnTaken,
};
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserActionKind};
use ratatui::style::Modifier;
use serde_json::value::RawValue;
use tui::{Action, Msg};

use crate::seat::Seat;

pub(crate) fn log(seat: &mut Seat, agent: &str, kind: EventKind) {
    let event = SessionEvent {
        id: EventId(1),
        parent: None,
        time_ms: 0,
        session: "c".into(),
        agent: agent.into(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    };
    let kind = UiEventKind::Logged(Box::new(event));
    seat.send(Msg::Core(UiEvent { conversation_id: "c".into(), agent: agent.into(), kind }));
}

fn says(seat: &mut Seat, agent: &str, text: &str) {
    let kind = UiEventKind::TextDelta { text: text.to_owned() };
    seat.send(Msg::Core(UiEvent { conversation_id: "c".into(), agent: agent.into(), kind }));
}

pub(crate) fn user(seat: &mut Seat, agent: &str, text: &str) {
    log(seat, agent, EventKind::UserMessage { text: text.to_owned(), images: vec![] });
}

pub(crate) fn spawn(seat: &mut Seat, agent: &str, task: &str, write: &[&str]) {
    spawn_by(seat, agent, task, (write, Some(CallId(1))));
}

/// Starts a sub-agent: by the tool call `call`, or by the user if that is `None`.
fn spawn_by(seat: &mut Seat, agent: &str, task: &str, (write, call): (&[&str], Option<CallId>)) {
    let parent = agent.rsplit_once('.').unwrap().0.to_owned();
    let spawned = SubAgentSpawned {
        servers: Vec::new(),
        agent: agent.into(),
        call,
        activity: None,
        plan: None,
        finished: 0,
        task: task.to_owned(),
        role: None,
        model: "m".to_owned(),
        write: write.iter().map(|path| (*path).into()).collect(),
        caches: Some("/caches/p".into()),
        net: Network::Off,
        reach: Reach::default(),
        sockets: Vec::new(),
        rights_digest: "d".to_owned(),
        grant: None,
        max_steps: None,
    };
    log(seat, &parent, EventKind::SubAgentSpawned(spawned));
    user(seat, agent, task);
}

fn replies(seat: &mut Seat, agent: &str, usage: TokenUsage) {
    let message = AssistantMessage {
        message_id: String::new(),
        model: "m".to_owned(),
        content: vec![],
        stop_reason: "tool_use".to_owned(),
        usage,
        estimated: false,
        cost_usd: None,
    };
    log(seat, agent, EventKind::AssistantMessage(message));
}

fn end(seat: &mut Seat, agent: &str, status: SubAgentStatus) {
    let usage = TokenUsage { input: 2_100, output: 120, ..TokenUsage::default() };
    replies(seat, agent, usage);
    let parent = agent.rsplit_once('.').unwrap().0.to_owned();
    let result = SubAgentResult {
        agent: agent.into(),
        call: Some(CallId(1)),
        plan: vec![],
        status,
        message: None,
        files: vec![],
        unseen: None,
        denials: 0,
        denied: vec![],
        steps: 2,
        usage,
        cost_usd: None,
        duration_ms: 9_400,
        text: "done".to_owned(),
    };
    log(seat, &parent, EventKind::SubAgentResult(result));
}

fn runs(seat: &mut Seat, agent: &str, command: &str) {
    let input = serde_json::json!({ "command": command }).to_string();
    let started = EventKind::ToolCallStarted {
        call: CallId(3),
        tool_use: "t".into(),
        name: "shell_exec".to_owned(),
        input: RawValue::from_string(input).unwrap(),
        kind: ToolKind::Execute,
        locations: vec![],
    };
    log(seat, agent, started);
}

/// A session with three sub-agents: one runs a command, one has ended, and one may write and has a sub-agent.
fn busy(width: u16, height: u16) -> Seat {
    at_work(Seat::new(width, height))
}

fn at_work(mut seat: Seat) -> Seat {
    user(&mut seat, "1", "Fix the parser.");
    says(&mut seat, "1", "I look around first.");
    spawn(&mut seat, "1.1", "Where is the parser?\nAnswer with paths.", &[]);
    spawn(&mut seat, "1.2", "List the tests", &[]);
    spawn(&mut seat, "1.10", "Mend the lexer", &["/home/me/project/src"]);
    spawn(&mut seat, "1.10.1", "Read the grammar", &[]);
    runs(&mut seat, "1.1", "rg -n 'fn parse' src");
    end(&mut seat, "1.2", SubAgentStatus::Done);
    seat.wait(4_000);
    seat
}

fn told(seat: &mut Seat) -> Vec<(AgentId, UserActionKind)> {
    let actions = std::mem::take(&mut seat.actions).into_iter();
    let told = actions.filter_map(|action| match action {
        Action::User(agent, kind) => Some((agent, kind)),
        _ => None,
    });
    told.collect()
}

#[test]
fn beside_the_transcript_stand_the_agents_of_the_turn() {
    assert_snapshot!(busy(140, 24).screen(), @"
    bailiwick in /home/me/project                                                                       │ agents · 4 at work · Alt+A opens
    · Reads this project, asks before each change. No network. Secrets hidden.                          │ ▸ 1 main
    · try: fix the failing test · @README.md explain this · /plan add a flag                            │     answering 4 s
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit                    │     read-only · ↑0 ↓0
                                                                                                        │     1.1 Where is the parser?
    › Fix the parser.                                                                                   │       working 4 s · run rg -n 'fn par…
                                                                                                        │       read-only · ↑0 ↓0
      I look around first.                                                                              │     1.2 done 9 s · List the tests · ↑…
    → 1.1 Where is the parser? · read-only · run rg -n 'fn parse' src · 4 s                             │     1.10 Mend the lexer
    ✓ 1.2 List the tests · read-only · 2 steps · 9.4 s · ↑2.1k ↓120                                     │       waiting 4 s
    → 1.10 Mend the lexer · writes src · waiting · 4 s                                                  │       writes src · ↑0 ↓0
                                                                                                        │       1.10.1 Read the grammar
                                                                                                        │         waiting 4 s
                                                                                                        │         read-only · ↑0 ↓0
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
    ── agent 1 · answering 4 s · Esc interrupts ────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑2.1k ↓120/↑2.1k ↓120 · read-only · claude-opus-4-5 · project
    ");
}

#[test]
fn below_130_columns_no_list_stands_beside_the_transcript() {
    for (columns, is_shown) in [(129, false), (130, true), (140, true)] {
        let mut seat = busy(columns, 30);
        assert_eq!(seat.screen().contains("│ agents · "), is_shown, "{}", seat.screen());
        // The pane uses the columns that prose leaves, so that prose is not wrapped again.
        says(&mut seat, "1", &"some words of a line ".repeat(12));
        let longest = |seat: &Seat| {
            let rows = seat.screen();
            let rows =
                rows.lines().filter_map(|row| row.split('│').next()).filter(|row| row.contains("some words"));
            rows.map(|row| row.trim_end().chars().count()).max().unwrap()
        };
        assert!(longest(&seat) >= 95, "{}", seat.screen());
    }
}

#[test]
fn a_key_folds_the_list_and_shows_it_again() {
    let mut seat = busy(140, 24);
    let before = seat.screen();
    seat.ctrl('t');
    assert!(!seat.screen().contains("agents · "), "{}", seat.screen());
    seat.ctrl('t');
    assert_eq!(seat.screen(), before);
}

#[test]
fn a_session_of_one_agent_has_no_list() {
    let mut seat = Seat::new(140, 20);
    user(&mut seat, "1", "Fix the parser.");
    seat.wait(1_000);
    assert!(!seat.screen().contains('│'), "{}", seat.screen());
}

#[test]
fn in_a_narrow_terminal_a_command_shows_the_list_instead_of_the_transcript() {
    let mut seat = busy(80, 24);
    assert!(!seat.screen().contains("at work"), "{}", seat.screen());
    seat.keys(":agents\n");
    assert_snapshot!(seat.screen(), @"
      agents · 4 at work
      ▸ 1 main
          answering 4 s
          read-only · ↑0 ↓0
          1.1 Where is the parser?
            working 4 s · run rg -n 'fn parse' src
            read-only · ↑0 ↓0
          1.2 done 9 s · List the tests · ↑2.1k ↓120
          1.10 Mend the lexer
            waiting 4 s
            writes src · ↑0 ↓0
            1.10.1 Read the grammar
              waiting 4 s
              read-only · ↑0 ↓0






      Enter open  m message  x stop  Esc back
    ── agent 1 · answering 4 s · Esc interrupts ────────────────────────────────────
    ›
     AGENTS  EXECUTE · ask · net off · ↑2.1k ↓120/↑2.1k ↓120 · read-only
    ");
    seat.slowly("q");
    assert!(!seat.screen().contains("at work"), "{}", seat.screen());
}

#[test]
fn a_sub_agent_is_one_row_where_it_was_started() {
    let mut seat = Seat::new(110, 20);
    user(&mut seat, "1", "Fix the parser.");
    seat.call(1, "spawn_agent", &serde_json::json!({"task": "List the tests"}));
    says(&mut seat, "1", "Meanwhile I read.");
    spawn(&mut seat, "1.1", "List the tests", &["/home/me/project/src"]);
    runs(&mut seat, "1.1", "rg -n 'fn parse' src");
    seat.wait(4_000);
    let rows = |seat: &Seat| -> Vec<String> {
        seat.screen().lines().filter(|row| row.contains("1.1")).map(str::to_owned).collect()
    };
    assert_eq!(rows(&seat), ["→ 1.1 List the tests · writes src · run rg -n 'fn parse' src · 4 s"]);
    assert_eq!(seat.tick(), Some(std::time::Duration::from_secs(1)), "the row counts seconds");
    log(&mut seat, "1.1", crate::core::denial());
    let row = "→ 1.1 List the tests · writes src · run rg -n 'fn parse' src · 4 s · blocked: /etc/probe";
    assert_eq!(rows(&seat), [row]);
    end(&mut seat, "1.1", SubAgentStatus::Done);
    seat.finish(1, ToolCallStatus::Completed, "sub-agent 1.1: done\nThere are three tests.");
    seat.wait(9_000);
    let row = "✓ 1.1 List the tests · writes src · 2 steps · 9.4 s · ↑2.1k ↓120 · blocked: /etc/probe";
    assert_eq!(rows(&seat), [row]);
    assert!(!seat.screen().contains("three tests"), "{}", seat.screen());
    seat.ctrl('o');
    assert!(seat.screen().contains("There are three tests."), "{}", seat.screen());
}

#[test]
fn the_row_of_a_sub_agent_says_how_it_failed_and_that_it_asks() {
    let mut seat = Seat::new(110, 20);
    user(&mut seat, "1", "go");
    spawn(&mut seat, "1.1", "\u{1b}[2Jlong \u{202e}task ".repeat(9).as_str(), &[]);
    let request = ServerRequest::ExecCommandApproval(crate::core::exec("ls"));
    let kind = UiEventKind::ApprovalRequested { id: ApprovalId(1), request: Box::new(request) };
    seat.send(Msg::Core(UiEvent { conversation_id: "c".into(), agent: "1.1".into(), kind }));
    let row = |seat: &Seat| seat.screen().lines().find(|row| row.contains("1.1 ")).unwrap().to_owned();
    assert!(
        row(&seat).ends_with(" · asks you · 0 s") && row(&seat).contains(r"\u{1b}[2Jlong \u{202e}"),
        "{}",
        row(&seat)
    );
    end(&mut seat, "1.1", SubAgentStatus::GaveUp);
    assert!(
        row(&seat).starts_with("✗ 1.1 ") && row(&seat).contains(" · gave up · 2 steps"),
        "{}",
        row(&seat)
    );
}

#[test]
fn the_caches_are_called_by_their_name() {
    let mut seat = Seat::new(120, 24);
    user(&mut seat, "1", "Fix the parser.");
    spawn(&mut seat, "1.1", "Mend the lexer", &["/caches/p", "/home/me/project"]);
    let screen = seat.screen();
    assert!(screen.contains("→ 1.1 Mend the lexer · writes the project · "), "{screen}");
    assert!(!screen.contains("/caches/p"), "{screen}");
    seat.keys(":agent 1.1\n");
    let screen = seat.screen();
    assert!(screen.contains("sub-agent 1.1 (write caches /home/me/project · net off)"), "{screen}");
    assert!(!screen.contains("/caches/p"), "{screen}");
}

#[test]
fn keys_lead_to_an_agent_and_back() {
    let mut seat = Seat::new(80, 24);
    seat.press(KeyCode::Esc);
    let mut seat = at_work(seat);
    says(&mut seat, "1.1", "it is in src/parse.rs");
    seat.keys(":agents\nj\n");
    assert!(seat.screen().contains("it is in src/parse.rs"), "{}", seat.screen());
    assert!(seat.screen().contains("── agent 1.1"), "{}", seat.screen());
    seat.keys("]");
    assert!(seat.screen().contains("sub-agent 1.2: done"), "{}", seat.screen());
    seat.wait(600);
    seat.keys("[[");
    assert!(seat.screen().contains("I look around first."), "{}", seat.screen());
    seat.slowly("A");
    seat.keys("G\n");
    assert!(seat.screen().contains("Read the grammar"), "{}", seat.screen());
    seat.keys(":agent 7\n");
    assert!(seat.screen().contains("no agent 7 (see :agents)"), "{}", seat.screen());
}

#[test]
fn a_message_to_a_sub_agent_goes_out_at_once_and_one_that_is_over_reads_none() {
    let mut seat = busy(80, 24);
    seat.keys(":agents\njmonly in src\n");
    let prompt =
        |text: &str| UserActionKind::Agent(AgentAction::Prompt { text: text.to_owned(), images: vec![] });
    assert_eq!(told(&mut seat), [("1.1".into(), prompt("only in src"))]);
    assert!(seat.screen().contains("the agent reads this with its next request"), "{}", seat.screen());
    seat.keys(":agent 1.2\nare you there?\n");
    assert_eq!(told(&mut seat), []);
    assert!(seat.screen().contains("agent 1.2 has ended"), "{}", seat.screen());
    assert!(seat.screen().contains("› are you there?"), "what was typed stays: {}", seat.screen());
}

#[test]
fn a_key_stops_an_agent_once() {
    let mut seat = busy(140, 30);
    seat.keys(":agents\nG");
    seat.slowly("xx");
    assert_eq!(told(&mut seat), [("1.10.1".into(), UserActionKind::Agent(AgentAction::Interrupt))]);
    seat.keys("ggjj");
    seat.slowly("x");
    assert_eq!(told(&mut seat), [], "the second one is over");
}

#[test]
fn the_row_of_a_sub_agent_that_failed_is_loud_in_its_mark_and_status_alone() {
    let mut seat = busy(140, 30);
    end(&mut seat, "1.1", SubAgentStatus::Denied);
    let y =
        (0..30).find(|y| seat.row(*y).starts_with("✗ 1.1")).unwrap_or_else(|| panic!("{}", seat.screen()));
    let row = seat.row(y);
    let cells = row.chars().zip(0..).map(|(_, x)| seat.buffer()[(x, u16::try_from(y).unwrap())].clone());
    let loud: String = cells
        .filter(|cell| cell.modifier.contains(Modifier::BOLD))
        .map(|cell| cell.symbol().to_owned())
        .collect();
    assert!(
        loud.starts_with('✗') && loud.contains("denied") && loud.chars().count() <= "✗denied".chars().count(),
        "{loud}: {row}"
    );
}

#[test]
fn the_next_turn_begins_without_those_that_are_over() {
    let mut seat = busy(140, 30);
    for agent in ["1.10.1", "1.10", "1.1"] {
        end(&mut seat, agent, SubAgentStatus::Denied);
    }
    assert!(seat.screen().contains("1.10 denied 9 s"), "{}", seat.screen());
    seat.end_turn(EndReason::Done);
    user(&mut seat, "1", "Go on.");
    assert!(!seat.screen().contains("1.10 denied"), "{}", seat.screen());
    seat.keys(":agents\n");
    assert!(seat.screen().contains("1.10 denied 9 s"), "all of them on demand: {}", seat.screen());
}

#[test]
fn the_account_of_a_turn_that_runs_has_that_of_its_sub_agents() {
    let mut seat = busy(140, 30);
    assert!(seat.screen().contains(" ↑2.1k ↓120/↑2.1k ↓120"), "{}", seat.screen());
    seat.end_turn(EndReason::Done);
    assert!(seat.screen().contains(" ↑10.5k ↓456/"), "the end has all: {}", seat.screen());
}

#[test]
fn the_account_of_a_turn_has_nothing_that_was_spent_before_it() {
    let mut seat = Seat::new(120, 30);
    spawn(&mut seat, "1.1", "Plan it", &[]);
    let usage = |input| TokenUsage { input, ..TokenUsage::default() };
    replies(&mut seat, "1.1", usage(50_000));
    user(&mut seat, "1", "Meanwhile, fix the parser.");
    replies(&mut seat, "1.1", usage(3_000));
    replies(&mut seat, "1", usage(1_000));
    assert!(seat.screen().contains(" ↑4.0k ↓0/↑54.0k ↓0"), "{}", seat.screen());
}

#[test]
fn an_agent_that_waits_for_its_turn_at_writing_says_so() {
    let mut seat = busy(140, 30);
    let waits = WriteTurnAwaited { call: CallId(4), holders: vec!["1.10".into()] };
    log(&mut seat, "1.1", EventKind::WriteTurnAwaited(waits));
    assert!(seat.screen().contains("waiting to write"), "{}", seat.screen());
    log(&mut seat, "1.1", EventKind::WriteTurnTaken(WriteTurnTaken { call: CallId(4), waited_ms: 2_500 }));
    assert!(!seat.screen().contains("waiting to write"), "{}", seat.screen());
}

#[test]
fn names_of_agents_and_tasks_are_drawn_as_text() {
    let mut seat = Seat::new(120, 30);
    user(&mut seat, "1", "go");
    spawn(&mut seat, "1.1", "\u{1b}[2Jgone \u{202e}txt", &["/home/me/project/\u{1b}[0m"]);
    let screen = seat.screen();
    assert!(screen.contains(r"\u{1b}[2Jgone \u{202e}txt"), "{screen}");
}

#[test]
fn what_an_agent_beside_one_that_rests_spends_is_in_the_turn_of_the_user() {
    let mut seat = Seat::new(110, 24);
    user(&mut seat, "1", "hello");
    seat.end_turn(EndReason::Done);
    let spent = TokenUsage { input: 2_100, output: 120, ..TokenUsage::default() };
    spawn_by(&mut seat, "1.1", "plan it", (&[], None));
    replies(&mut seat, "1.1", spent);
    assert!(seat.screen().contains(" ↑2.1k ↓120/"), "{}", seat.screen());
    // The user's next message begins another turn. Its costs are counted once, at its end.
    user(&mut seat, "1", "go on");
    replies(&mut seat, "1.1", spent);
    assert!(seat.screen().contains(" ↑2.1k ↓120/"), "{}", seat.screen());
    seat.end_turn(EndReason::Done);
    let ended = seat.screen();
    replies(&mut seat, "1.1", TokenUsage::default());
    let row = |screen: &str| screen.lines().find(|row| row.contains(" · ↑")).unwrap().to_owned();
    assert_eq!(row(&seat.screen()), row(&ended));
}
