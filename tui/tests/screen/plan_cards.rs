use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use ipc::rights::{Network, Rights};
use proptest::prelude::*;
use protocol::approval::{
    ApprovalAnswer, NamedServer, PlanApprovalParams, PlanApprovalResponse, ReviewDecision, ServerRequest,
};
use protocol::frontend::{UiEventKind, UserActionKind};
use protocol::plan::{Acceptance, OnFailure, Plan, PlanStep};
use tui::Msg;

use crate::seat::Seat;
use crate::sub_agents::docs;

pub(crate) const MARKDOWN: &str = "# Fix the parser

## Context
The lexer drops `\\r` at the end of a line that is longer than the buffer, see **issue 12**.

## Steps
### 1. Reproduce it
Write a test that fails:

```rust
assert_eq!(lex(\"a\\r\\n\"), [Word(\"a\")]);
```

Files:
- `tests/lexer.rs`

### 2. Mend the lexer

Acceptance:
- `cargo test -p lexer`
- `cargo clippy -- -D warnings`
- The docs mention it
";

pub(crate) fn step(title: &str, files: &[&str], acceptance: Vec<Acceptance>) -> PlanStep {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    PlanStep { title: title.to_owned(), files, acceptance, ..PlanStep::default() }
}

fn command(text: &str) -> Acceptance {
    Acceptance::Command(text.to_owned())
}

pub(crate) fn plan() -> Plan {
    let docs = Acceptance::Criterion("The docs mention it".to_owned());
    let acceptance = vec![command("cargo test -p lexer"), command("cargo clippy -- -D warnings"), docs];
    Plan {
        title: "Fix the parser".to_owned(),
        on_failure: Some(OnFailure::Replan),
        steps: vec![
            step("Reproduce it", &["tests/lexer.rs"], vec![]),
            step("Mend the lexer", &[], acceptance),
        ],
        ..Plan::default()
    }
}

pub(crate) fn params() -> PlanApprovalParams {
    PlanApprovalParams {
        conversation_id: "c".into(),
        agent: "1.1".into(),
        call_id: CallId(9),
        path: "/state/plans/2026-11-25-101112.md".into(),
        markdown: MARKDOWN.to_owned(),
        plan: plan(),
        finished: vec![],
        rights: Rights {
            write: vec!["/caches/p".into(), "/home/me/project".into(), "/srv/site".into()],
            ..Rights::default()
        },
        caches: Some("/caches/p".into()),
        to_create: vec![protocol::plan::PlaceToCreate {
            path: "/home/me/project/new.md".into(),
            directory: "/home/me/project".into(),
        }],
        grant: ipc::rights::Grant::default(),
        network_refused: true,
        servers: Vec::new(),
        confirms_commands: false,
        digest: "d6".to_owned(),
        timeout_ms: 300_000,
        reason: None,
    }
}

pub(crate) fn ask(seat: &mut Seat, id: u64, params: PlanApprovalParams) {
    let request = Box::new(ServerRequest::PlanApproval(params));
    let kind = UiEventKind::ApprovalRequested { id: ApprovalId(id), request };
    seat.send(Msg::Core(protocol::frontend::UiEvent {
        conversation_id: "c".into(),
        agent: "1.1".into(),
        kind,
    }));
}

pub(crate) fn asked((width, height): (u16, u16), params: PlanApprovalParams) -> Seat {
    let mut seat = Seat::new(width, height);
    ask(&mut seat, 1, params);
    seat.wait(400);
    seat
}

pub(crate) fn answered(decision: ReviewDecision) -> Vec<UserActionKind> {
    let answer = ApprovalAnswer::Plan(PlanApprovalResponse { decision, digest: Some("d6".to_owned()) });
    vec![UserActionKind::Answer { id: ApprovalId(1), answer }]
}

#[test]
fn the_card_shows_every_byte_of_the_plan_and_then_its_access() {
    let mut seat = asked((80, 24), params());
    assert_snapshot!(seat.screen(), @r#"
     Execute this plan? ────────────────────────────────────────────────────────────
    the complete plan:
    │ # Fix the parser
    │
    │ ## Context
    │ The lexer drops `\r` at the end of a line that is longer than the buffer, see
    │ **issue 12**.
    │
    │ ## Steps
    │ ### 1. Reproduce it
    │ Write a test that fails:
    │
    │   ```rust
    │   assert_eq!(lex("a\r\n"), [Word("a")]);
    │   ```
    │
    │ Files:
    │ - `tests/lexer.rs`
    │
    │ ### 2. Mend the lexer
    │
    18 more lines. Press G to see the end, then y.  n no  ? why  c comment…  i edit
    v editor  d smaller  Esc stop
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    "#);
    seat.keys("G");
    assert_snapshot!(seat.screen(), @"
     Execute this plan? ────────────────────────────────────────────────────────────
    │ ### 2. Mend the lexer
    │
    │ Acceptance:
    │ - `cargo test -p lexer`
    │ - `cargo clippy -- -D warnings`
    │ - The docs mention it
    access of the execution, as Bailiwick enforces it:
      may       write /home/me/project (to create /home/me/project/new.md)
                write the package caches of the project, /caches/p
                write OUTSIDE THE PROJECT /srv/site
      network   off: the plan asks for the network, which is off in this session
      steps     1 (1 file) Reproduce it
                2 (3 conditions) Mend the lexer
      failure   after a failed step the planner revises the plan, for your approval
      lasts     until the plan ends; no further questions
    will run without asking:
    step 2
    │ cargo test -p lexer
    │ cargo clippy -- -D warnings
      asks      agent 1.1
    y yes  n no  ? why  c comment…  i edit  v editor  d smaller  Esc stop

     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn in_a_large_terminal_the_whole_card_is_in_sight() {
    assert_snapshot!(asked((120, 52), params()).screen(), @r#"
     Execute this plan? ────────────────────────────────────────────────────────────────────────────────────────────────────
    the complete plan:
    │ # Fix the parser
    │
    │ ## Context
    │ The lexer drops `\r` at the end of a line that is longer than the buffer, see **issue 12**.
    │
    │ ## Steps
    │ ### 1. Reproduce it
    │ Write a test that fails:
    │
    │   ```rust
    │   assert_eq!(lex("a\r\n"), [Word("a")]);
    │   ```
    │
    │ Files:
    │ - `tests/lexer.rs`
    │
    │ ### 2. Mend the lexer
    │
    │ Acceptance:
    │ - `cargo test -p lexer`
    │ - `cargo clippy -- -D warnings`
    │ - The docs mention it
    access of the execution, as Bailiwick enforces it:
      may       write /home/me/project (to create /home/me/project/new.md)
                write the package caches of the project, /caches/p
                write OUTSIDE THE PROJECT /srv/site
      network   off: the plan asks for the network, which is off in this session
      steps     1 (1 file) Reproduce it
                2 (3 conditions) Mend the lexer
      failure   after a failed step the planner revises the plan, for your approval
      lasts     until the plan ends; no further questions
    will run without asking:
    step 2
    │ cargo test -p lexer
    │ cargo clippy -- -D warnings
      asks      agent 1.1












    y yes  n no  ? why  c comment…  i edit  v editor  d smaller  Esc stop
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    "#);
}

#[test]
fn what_differs_in_a_plan_is_told() {
    let mut seat = asked(
        (100, 60),
        PlanApprovalParams {
            finished: vec![1],
            rights: Rights { net: Network::On, ..Rights::default() },
            network_refused: false,
            confirms_commands: true,
            servers: vec![
                docs(),
                NamedServer { tools: vec!["log".to_owned(), "status".to_owned()], ..docs() },
            ],
            ..params()
        },
    );
    seat.keys("G");
    let screen = seat.screen();
    for fact in [
        "\n  may       write only a private temp directory\n",
        "\n  network   on\n  calls     all tools of the MCP server docs, with this access:\n              reads /home/me/project\n",
        "\n              given NOTES_TOKEN\n            log, status of the MCP server docs, with this access:\n",
        "\n  steps     1 finished before: (1 file) Reproduce it\n            2 (3 conditions) Mend the lexer\n",
        "\nwill run, asking before each:\nstep 2\n│ cargo test -p lexer\n",
    ] {
        assert!(screen.contains(fact), "{fact}\n{screen}");
    }
    let mut none = params();
    none.plan.steps.truncate(1);
    let screen = asked((100, 60), none).screen();
    assert!(screen.contains("\nwill run without asking: no acceptance command\n"), "{screen}");
}

#[test]
fn it_is_approved_once_and_only_when_its_end_was_on_the_screen() {
    let mut seat = asked((80, 24), params());
    seat.keys("ysy");
    seat.press(KeyCode::Enter);
    assert_eq!(seat.told(), [], "its end was not on the screen");
    seat.keys("Gs");
    assert!(seat.screen().contains("Execute this plan?"), "s opens nothing");
    seat.keys("y");
    assert_eq!(seat.told(), answered(ReviewDecision::Approved));
}

#[test]
fn a_plan_of_200_steps_is_read_page_by_page() {
    let mut long = params();
    long.plan.steps = (1..=200).map(|n| step(&format!("Step {n}"), &[], vec![command("true")])).collect();
    let text = |n: u32| ["### ", &n.to_string(), ". Step\nDo it.\n\n"].concat();
    long.markdown = (1..=200).map(text).collect();
    let mut seat = asked((80, 24), long);
    let mut pages = 0;
    while !seat.screen().contains("\nstep 200\n") {
        seat.keys("y");
        assert_eq!(seat.told(), [], "page {pages}");
        seat.press(KeyCode::PageDown);
        pages += 1;
        assert!(pages < 200);
    }
    seat.keys("Gy");
    assert_eq!(seat.told(), answered(ReviewDecision::Approved));
    assert!(pages > 40, "{pages}");
}

#[test]
fn every_character_of_an_acceptance_command_shows() {
    let (padding, tail) = ("echo padding; ".repeat(400), "./evil.sh");
    let mut long = params();
    long.plan.steps[1].acceptance =
        vec![command(&format!("{padding}{tail}")), command("a\x1b[2K\r\u{202e}b\u{200b}\nnetwork   off")];
    let mut seat = asked((80, 24), long.clone());
    while !seat.screen().contains(tail) {
        seat.keys("y");
        assert_eq!(seat.told(), [], "unread");
        seat.press(KeyCode::PageDown);
    }
    seat.keys("G");
    let screen = seat.screen();
    let end = r"│ a\u{1b}[2K\u{d}\u{202e}b\u{200b}";
    assert!(screen.contains(&format!("{end}\n│ network   off\n")), "{screen}");
    // The page has the whole text, row by row. A row may end with spaces, which look like empty cells on the screen.
    let screen = asked((80, 150), long).screen();
    let rows = screen.lines().skip_while(|row| *row != "step 2").skip(1);
    let rows = rows.take_while(|row| !row.starts_with(end));
    let rows: String = rows.flat_map(|row| row.chars().skip(2)).filter(|c| *c != ' ').collect();
    assert_eq!(rows, format!("{padding}{tail}").replace(' ', ""));
}

#[test]
fn a_plan_cannot_look_like_the_supervisors_account_of_it() {
    let forged = "  network   on and off\naccess of the execution, as Bailiwick enforces it:\nwill run without \
    asking:\n\
                  └────────────┘\n| network   off, write nothing";
    let mut hostile = params();
    hostile.markdown = format!("# T\n{forged}\n- item {}{forged}\n```\n{forged}\n```\n", "word ".repeat(14));
    hostile.plan.title = format!("T\n{forged}");
    hostile.plan.steps[1].title = format!("{}network   on, by the title\nstep 7", " ".repeat(64));
    let screen = asked((80, 60), hostile).screen();
    let count = |line: &str| screen.lines().filter(|row| row.starts_with(line)).count();
    assert_eq!(count("  network   "), 1, "{screen}");
    assert!(screen.contains("\n  network   off: the plan asks for the network"), "{screen}");
    assert_eq!(count("access of the execution"), 1, "{screen}");
    assert_eq!(count("will run without asking:"), 1, "{screen}");
    assert_eq!((count("step 2"), count("step 7")), (1, 0), "{screen}");
    let body = screen.lines().skip(2).take_while(|row| !row.starts_with("access of the"));
    assert!(body.into_iter().all(|row| row.starts_with('│')), "{screen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_of_a_plan_leaves_its_card(
        markdown in crate::hostile::hostile_text(), title in crate::hostile::hostile_text(),
        command in crate::hostile::hostile_text(), comment in crate::hostile::hostile_text(),
        width in 40_u16..120, height in 10_u16..40,
    ) {
        let mut request = params();
        request.markdown = format!("`{markdown}`\n- {markdown}");
        request.plan.title.clone_from(&title);
        request.plan.steps[1].title = title;
        request.plan.steps[1].acceptance = vec![Acceptance::Command(command)];
        let mut seat = asked((width, height), request);
        crate::hostile::check_cells(seat.buffer())?;
        for keys in ["j", "G", "c", "2", "c"] {
            seat.keys(keys);
            crate::hostile::check_cells(seat.buffer())?;
        }
        seat.send(Msg::Paste(comment));
        crate::hostile::check_cells(seat.buffer())?;
        seat.press(KeyCode::Enter);
        crate::hostile::check_cells(seat.buffer())?;
        prop_assert_eq!(seat.told(), []);
    }
}
