use ipc::id::CallId;
use ipc::rights::{Network, Reach};
use protocol::event::{
    AcceptanceOutcome, DecidedBy, EventKind, ListedTask, PlanApproved, PlanAuthor, PlanCreated,
    PlanStepStatus, StepAccount, TaskState, TasksUpdated,
};
use protocol::plan::{Acceptance, OnFailure, Plan, PlanRights, PlanStep, StepStatus};

use super::kinds::odd;

fn outcome() -> AcceptanceOutcome {
    AcceptanceOutcome {
        call: CallId(4),
        command: "make check".to_owned(),
        passed: false,
        ended: "exit status 2".to_owned(),
        duration_ms: 7,
    }
}

pub(super) fn step_account() -> StepAccount {
    StepAccount {
        step: 1,
        title: "First".to_owned(),
        status: StepStatus::Failed,
        note: Some("n".to_owned()),
        acceptance: vec![outcome()],
        files: vec!["/p/a.rs".into()],
    }
}

pub(super) fn plans() -> Vec<EventKind> {
    let step = PlanStep {
        title: "First".to_owned(),
        description: "Do it.".to_owned(),
        files: vec!["a.rs".to_owned()],
        acceptance: vec![
            Acceptance::Command("make check".to_owned()),
            Acceptance::Criterion("It is done.".to_owned()),
        ],
    };
    let plan = Plan {
        title: "P".to_owned(),
        context: "c".to_owned(),
        rights: Some(PlanRights { write: vec!["src".to_owned()], network: true, ..PlanRights::default() }),
        on_failure: Some(OnFailure::Replan),
        steps: vec![step],
    };
    let created = PlanCreated {
        call: CallId(2),
        path: odd(),
        digest: "ab".to_owned(),
        author: PlanAuthor::Person,
        markdown: "# P\n".to_owned(),
        plan,
    };
    let approved = PlanApproved {
        servers: Vec::new(),
        call: None,
        path: odd(),
        digest: "ab".to_owned(),
        write: vec![odd()],
        net: Network::On,
        reach: Reach { lan: true, ..Reach::default() },
        by: DecidedBy::Edited,
        markdown: Some("# P\n".to_owned()),
    };
    let status = PlanStepStatus {
        step: 1,
        title: "First".to_owned(),
        from: StepStatus::InProgress,
        to: StepStatus::Skipped,
        note: Some("n".to_owned()),
        acceptance: vec![outcome()],
        files: vec![odd()],
    };
    vec![
        EventKind::PlanCreated(Box::new(created)),
        EventKind::PlanApproved(approved),
        EventKind::PlanStepStatus(status),
        EventKind::TasksUpdated(TasksUpdated {
            call: Some(CallId(3)),
            tasks: vec![ListedTask { text: "First".to_owned(), state: TaskState::InProgress }],
        }),
    ]
}
