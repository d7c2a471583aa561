//! Tests of a plan after its approval: its steps beside the transcript, and its view.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{AgentId, CallId};
use ipc::rights::{Network, Reach};
use proptest::prelude::*;
use protocol::event::{
    AcceptanceOutcome, Activity, DecidedBy, EventKind, PlanApproved, PlanAuthor, PlanCreated, PlanStepStatus,
    StepAccount, SubAgentResult, SubAgentSpawned, SubAgentStatus, TokenUsage,
};
use protocol::frontend::UserActionKind;
use protocol::plan::StepStatus;
use tui::Action;

use crate::plan_cards::{ask, params, plan};
use crate::seat::{Seat, start};
use crate::tree::{log, user};

fn spawn(seat: &mut Seat, agent: &str, activity: Activity, plan: Option<&str>) {
    let executes = activity == Activity::Execute;
    log(
        seat,
        "1",
        EventKind::SubAgentSpawned(SubAgentSpawned {
            servers: Vec::new(),
            agent: agent.into(),
            call: None,
            activity: Some(activity),
            plan: plan.map(str::to_owned),
            finished: 0,
            task: if executes { "Fix the parser" } else { "plan it" }.to_owned(),
            role: None,
            model: "m".to_owned(),
            write: if executes { vec!["/home/me/project".into()] } else { vec![] },
            caches: None,
            net: Network::Off,
            reach: Reach::default(),
            sockets: Vec::new(),
            rights_digest: "r".to_owned(),
            grant: None,
            max_steps: None,
        }),
    );
}

fn created(author: PlanAuthor, digest: &str) -> EventKind {
    EventKind::PlanCreated(Box::new(PlanCreated {
        call: CallId(9),
        path: "/state/plans/p.md".into(),
        digest: digest.to_owned(),
        author,
        markdown: params().markdown,
        plan: plan(),
    }))
}

fn approved(digest: &str, markdown: Option<String>) -> EventKind {
    EventKind::PlanApproved(PlanApproved {
        servers: Vec::new(),
        call: Some(CallId(9)),
        path: "/state/plans/p.md".into(),
        digest: digest.to_owned(),
        write: vec!["/home/me/project".into()],
        net: Network::Off,
        reach: Reach::default(),
        by: DecidedBy::User,
        markdown,
    })
}

fn outcome(passed: bool) -> AcceptanceOutcome {
    let ended = if passed { "exit status 0" } else { "exit status 1" }.to_owned();
    let command = "cargo test -p lexer".to_owned();
    AcceptanceOutcome { call: CallId(4), command, passed, ended, duration_ms: 2_500 }
}

fn step(seat: &mut Seat, step: u32, (from, to): (StepStatus, StepStatus), outcomes: &[bool]) {
    let title = plan().steps.get(step as usize - 1).map_or("another", |step| &step.title).to_owned();
    let note = (to == StepStatus::Failed).then(|| "a test fails".to_owned());
    let acceptance = outcomes.iter().map(|passed| outcome(*passed)).collect();
    let file = format!("/home/me/project/src/{step}\u{1b}.rs");
    let files = if to == StepStatus::Completed { vec![file.as_str().into()] } else { vec![] };
    let change = PlanStepStatus { step, title, from, to, note, acceptance, files };
    log(seat, "1.2", EventKind::PlanStepStatus(change));
}

fn end(seat: &mut Seat, statuses: &[StepStatus]) {
    let accounts = statuses.iter().zip(plan().steps).zip(1..).map(|((status, step), number)| StepAccount {
        step: number,
        title: step.title,
        status: *status,
        note: None,
        acceptance: vec![],
        files: vec![],
    });
    log(
        seat,
        "1",
        EventKind::SubAgentResult(SubAgentResult {
            agent: "1.2".into(),
            call: None,
            status: SubAgentStatus::Done,
            message: None,
            files: vec![],
            unseen: None,
            denials: 0,
            denied: vec![],
            steps: 4,
            usage: TokenUsage { input: 2_100, output: 120, ..TokenUsage::default() },
            cost_usd: None,
            duration_ms: 9_400,
            plan: accounts.collect(),
            text: "done".to_owned(),
        }),
    );
}

pub(crate) fn executing(width: u16, height: u16) -> Seat {
    use StepStatus::{Completed, InProgress, Pending};
    let mut seat = Seat::new(width, height);
    user(&mut seat, "1", "Hello.");
    spawn(&mut seat, "1.1", Activity::Plan, None);
    log(&mut seat, "1.1", created(PlanAuthor::Planner, "p1"));
    log(&mut seat, "1.1", approved("p1", None));
    spawn(&mut seat, "1.2", Activity::Execute, Some("p1"));
    step(&mut seat, 1, (Pending, InProgress), &[]);
    seat.wait(3_000);
    step(&mut seat, 1, (InProgress, Completed), &[]);
    step(&mut seat, 2, (Pending, InProgress), &[]);
    seat.wait(7_000);
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
fn the_steps_stand_below_the_agents() {
    assert_snapshot!(executing(140, 40).screen(), @"
    bailiwick in /home/me/project                                                                       │ agents · 3 at work · Alt+A opens
    · Reads this project, asks before each change. No network. Secrets hidden.                          │ ▸ 1 main
    · try: fix the failing test · @README.md explain this · /plan add a flag                            │     waiting 10 s
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit                    │     read-only · ↑0 ↓0
                                                                                                        │     1.1 plan · plan it
    › Hello.                                                                                            │       waiting 10 s
    → 1.1 plan it · read-only · waiting · 10 s · :agent 1.1 shows it                                    │       read-only · ↑0 ↓0
    → 1.2 Fix the parser · writes the project · waiting · 10 s · :agent 1.2 shows it                    │     1.2 Fix the parser
                                                                                                        │       waiting 10 s
                                                                                                        │       writes the project · ↑0 ↓0
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │
                                                                                                        │ plan · 1 of 2 done
                                                                                                        │ ✓ 1 completed 3 s · Reproduce it
                                                                                                        │ ▸ 2 running 7 s · Mend the lexer
    ── agent 1 · waiting 10 s · Esc interrupts ─────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    ");
}

#[test]
fn below_130_columns_the_plan_has_a_view() {
    let mut seat = executing(80, 24);
    assert!(!seat.screen().contains("2 running"), "{}", seat.screen());
    seat.keys(":plan\n");
    assert_snapshot!(seat.screen(), @r#"
    plan: Fix the parser · 1 of 2 done
    ✓ 1 completed 3 s · Reproduce it
      changed: src/1\u{1b}.rs
    ▸ 2 running 7 s · Mend the lexer
    text of the plan:
    /state/plans/p.md
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
    q close  j/k scroll  9 more lines
    ── agent 1 · waiting 10 s · Esc interrupts ─────────────────────────────────────
    ›
     PLAN VIEW  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    "#);
    seat.wait(2_000);
    assert!(seat.screen().contains("▸ 2 running 9 s · Mend the lexer"), "{}", seat.screen());
    step(&mut seat, 2, (StepStatus::InProgress, StepStatus::Failed), &[true, false]);
    let failed = "✗ 2 failed 9 s · 1/2 passed · Mend the lexer\n“ a test fails\n";
    assert!(seat.screen().contains(failed), "{}", seat.screen());
    seat.keys("G");
    assert!(seat.screen().contains("│ - The docs mention it\n"), "{}", seat.screen());
    seat.keys("q");
    for close in [KeyCode::Char('q'), KeyCode::Esc] {
        seat.keys(":plan\n");
        assert!(seat.screen().contains("plan: Fix the parser"), "{}", seat.screen());
        seat.press(close);
        assert!(!seat.screen().contains("plan: Fix the parser"), "{}", seat.screen());
    }
}

#[test]
fn each_status_has_a_mark_and_a_word() {
    use StepStatus::{Completed, Failed, InProgress, Pending, Skipped};
    let mut seat = executing(140, 40);
    for (number, status, outcomes, line) in [
        (2, Completed, &[true, true][..], "✓ 2 completed 7 s · 2/2 passed"),
        (2, Pending, &[], "· 2 pending"),
        (2, InProgress, &[], "▸ 2 running 0 s · Mend the lexer"),
        (2, Skipped, &[], "- 2 skipped"),
        (2, Failed, &[false], "✗ 2 failed 0 s · 0/2 passed"),
        (3, InProgress, &[], "▸ 3 running 0 s · another"),
    ] {
        step(&mut seat, number, (Pending, status), outcomes);
        assert!(seat.screen().contains(line), "{line}\n{}", seat.screen());
    }
}

#[test]
fn the_account_at_the_end_counts_and_the_next_turn_begins_without_it() {
    let mut seat = executing(140, 40);
    end(&mut seat, &[StepStatus::Completed, StepStatus::Skipped]);
    let screen = seat.screen();
    assert!(screen.contains("plan · ended, 1 of 2 done") && screen.contains("- 2 skipped"), "{screen}");
    seat.end_turn(protocol::event::EndReason::Done);
    user(&mut seat, "1", "Thank you.");
    assert!(!seat.screen().contains("ended, 1 of 2 done"), "{}", seat.screen());
    seat.keys(":plan\n");
    assert!(seat.screen().contains("plan: Fix the parser · ended, 1 of 2 done"), "{}", seat.screen());
}

#[test]
fn of_many_steps_those_around_the_one_that_runs_show() {
    let mut seat = Seat::new(140, 24);
    let mut long = params();
    let one = long.plan.steps[0].clone();
    long.plan.steps = vec![one; 200];
    let create = |long: &protocol::approval::PlanApprovalParams| {
        let EventKind::PlanCreated(mut created) = created(PlanAuthor::Person, "p1") else { unreachable!() };
        created.plan = long.plan.clone();
        EventKind::PlanCreated(created)
    };
    log(&mut seat, "1.1", create(&long));
    log(&mut seat, "1.1", approved("p1", None));
    spawn(&mut seat, "1.2", Activity::Execute, Some("p1"));
    for running in [1, 100, 200] {
        step(&mut seat, running, (StepStatus::Pending, StepStatus::InProgress), &[]);
        assert!(seat.screen().contains(&format!("▸ {running} running")), "{}", seat.screen());
        assert!(seat.screen().contains("agents ·"), "the agents stay: {}", seat.screen());
        step(&mut seat, running, (StepStatus::InProgress, StepStatus::Completed), &[]);
    }
}

#[test]
fn an_edit_takes_the_place_of_the_plan_and_keeps_finished_steps() {
    let mut seat = Seat::new(140, 40);
    log(&mut seat, "1.1", created(PlanAuthor::Planner, "p1"));
    log(&mut seat, "1.1", created(PlanAuthor::Person, "p2"));
    let mut again = params();
    again.finished = vec![1];
    ask(&mut seat, 1, again);
    seat.wait(400);
    seat.keys("n");
    let screen = seat.screen();
    assert!(screen.contains("plan · not approved") && screen.contains("✓ 1 completed"), "{screen}");
    seat.keys(":agent 1.1\n");
    assert!(seat.screen().contains("(2 steps, edited)"), "{}", seat.screen());
}

#[test]
fn a_plan_from_before_the_session_is_known_by_its_steps() {
    let mut seat = Seat::new(140, 40);
    log(&mut seat, "1", approved("p7", Some("# Old\n".to_owned())));
    spawn(&mut seat, "1.2", Activity::Execute, Some("p7"));
    step(&mut seat, 2, (StepStatus::Pending, StepStatus::InProgress), &[]);
    assert!(seat.screen().contains("▸ 2 running 0 s · Mend the lexer"), "{}", seat.screen());
    seat.keys(":plan\n");
    assert!(seat.screen().contains("│ # Old"), "{}", seat.screen());
}

#[test]
fn a_plan_is_asked_for_by_a_command() {
    let mut seat = Seat::new(90, 24);
    seat.keys(":plan\n");
    let usage = ":plan TEXT: another agent makes a plan and changes nothing";
    assert!(seat.screen().contains(usage), "{}", seat.screen());
    assert_eq!(told(&mut seat), []);
    seat.keys(":plan  split the parser in two \n");
    let kind = UserActionKind::Plan { text: "split the parser in two".to_owned() };
    assert_eq!(told(&mut seat), [("1".into(), kind)]);
    spawn(&mut seat, "1.1", Activity::Plan, None);
    assert!(seat.screen().contains(":agent 1.1 shows it"), "{}", seat.screen());

    let mut planner = start((100, 24));
    planner.activity = Activity::Plan;
    let mut seat = Seat::from(planner);
    seat.keys(":plan more\n");
    assert!(seat.screen().contains("this agent is already a planner"), "{}", seat.screen());
    assert_eq!(told(&mut seat), []);
}

#[test]
fn a_planner_is_told_from_other_agents_where_one_writes_to_it() {
    let mut planner = start((80, 24));
    planner.activity = Activity::Plan;
    assert_snapshot!(Seat::from(planner).screen(), @"
    bailiwick in /home/me/project
    · Makes a plan, changes nothing. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit

















    ────────────────────────────────────────────────────────────────────────────────
     plan ›
     INSERT  PLAN · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");

    let mut seat = executing(80, 24);
    let bar = |seat: &Seat| (seat.row(22), seat.row(23));
    assert!(bar(&seat).1.contains(" EXECUTE · ") && bar(&seat).0 == "›", "{}", seat.screen());
    seat.keys(":agent 1.1\n");
    assert!(bar(&seat).1.contains(" PLAN · ") && bar(&seat).0 == " plan ›", "{}", seat.screen());
    seat.keys(":agent 1.2\n");
    assert!(bar(&seat).1.contains(" EXECUTE · ") && bar(&seat).0 == "›", "{}", seat.screen());
}

#[test]
fn names_of_plans_and_steps_are_drawn_as_text() {
    let mut seat = Seat::new(140, 40);
    let EventKind::PlanCreated(mut created) = created(PlanAuthor::Planner, "p1") else { unreachable!() };
    created.plan.title = "\x1b[2J\u{202e}title\nplan: forged".to_owned();
    created.plan.steps[0].title = "\x1b]0;x\x07\n✓ 2 completed".to_owned();
    log(&mut seat, "1", EventKind::PlanCreated(created));
    let screen = seat.screen();
    assert!(screen.contains(r"· 1 pending · \u{1b}]0;x\u{7}\u{a}✓"), "{screen}");
    assert!(!screen.contains("\n✓"), "{screen}");
    seat.keys(":plan\n");
    let screen = seat.screen();
    assert!(screen.starts_with(r"plan: \u{1b}[2J\u{202e}title\u{a}plan: forged"), "{screen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_event_of_a_plan_breaks_a_frame(
        text in crate::hostile::hostile_text(), acts in proptest::collection::vec((0_u8..8, 0_u32..9), 0..24),
        width in 40_u16..130, height in 10_u16..40,
    ) {
        use StepStatus::{Completed, Failed, InProgress, Pending, Skipped};
        let mut seat = Seat::new(width, height);
        for (act, number) in acts {
            match act {
                0 => {
                    let EventKind::PlanCreated(mut created) = created(PlanAuthor::Planner, "p1") else { continue };
                    created.plan.title.clone_from(&text);
                    created.markdown.clone_from(&text);
                    log(&mut seat, "1.1", EventKind::PlanCreated(created));
                }
                1 => log(&mut seat, "1.1", approved("p1", Some(text.clone()))),
                2 => spawn(&mut seat, "1.2", Activity::Execute, Some("p1")),
                3 => {
                    let to = [Pending, InProgress, Completed, Failed, Skipped][number as usize % 5];
                    step(&mut seat, number + 1, (Pending, to), &[true, false]);
                }
                4 => end(&mut seat, &[Completed, Failed]),
                5 => seat.keys(":plan\n"),
                6 => seat.keys(["j", "k", "G", "g", "q", "i"][number as usize % 6]),
                _ => seat.wait(700),
            }
            crate::hostile::check_cells(seat.buffer())?;
        }
    }
}
