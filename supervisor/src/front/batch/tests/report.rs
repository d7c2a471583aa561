use std::fs;

use protocol::event::EndReason;

use super::super::output::Manifest;
use super::super::report::{BatchReport, FaultCount};
use super::super::state::{BatchState, Status, TaskStage, load, store};

fn state(id: &str, status: Status, reason: EndReason, patch_bytes: u64) -> BatchState {
    BatchState {
        status,
        reason: Some(reason),
        patch_bytes,
        steps: 4,
        duration_ms: 2500,
        ..BatchState::queued(id)
    }
}

fn denied(state: BatchState) -> BatchState {
    BatchState { denials: [("write".to_owned(), 2)].into(), ..state }
}

#[test]
fn a_state_is_read_back_and_replaces_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    assert_eq!(load::<BatchState>(&path).unwrap(), None);
    for status in Status::ALL {
        let state = BatchState { status, ..state("a", status, EndReason::StepLimit, 3) };
        store(&path, &state).unwrap();
        assert_eq!(load::<BatchState>(&path).unwrap(), Some(state));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    fs::write(&path, "{\"id\": \"a\"").unwrap();
    assert!(load::<BatchState>(&path).is_err());
    fs::write(&path, vec![b' '; (1 << 20) + 1]).unwrap();
    assert!(load::<BatchState>(&path).is_err());
}

#[test]
fn every_end_of_a_run_has_a_status() {
    for reason in EndReason::ALL {
        let status = Status::of(reason);
        assert_eq!(status.is_final(), matches!(reason.exit_code(), 0 | 3 | 4), "{reason}");
    }
}

#[test]
fn faults_follow_from_values() {
    let cases = [
        (state("a", Status::Done, EndReason::Done, 9), None),
        (state("a", Status::Done, EndReason::Done, 0), Some(FaultCount::Model)),
        (denied(state("a", Status::Done, EndReason::Done, 0)), Some(FaultCount::Scaffold)),
        (denied(state("a", Status::Done, EndReason::Done, 9)), None),
        (state("a", Status::Denied, EndReason::DeniedAtEnd, 9), Some(FaultCount::Scaffold)),
        (state("a", Status::Limit, EndReason::StepLimit, 0), Some(FaultCount::Limits)),
        (state("a", Status::GaveUp, EndReason::Refusal, 0), Some(FaultCount::Model)),
        (state("a", Status::Failed, EndReason::Provider, 0), Some(FaultCount::Provider)),
        (BatchState::queued("a").failed(TaskStage::Checkout, "x"), Some(FaultCount::Scaffold)),
        (BatchState::queued("a"), None),
    ];
    for (state, fault) in cases {
        assert_eq!(FaultCount::of(&state), fault, "{state:?}");
    }
}

#[test]
fn a_report_names_tasks_by_the_cause() {
    let states = [
        state("a-1", Status::Done, EndReason::Done, 9),
        denied(state("a-2", Status::Done, EndReason::Done, 0)),
        state("a-3", Status::Limit, EndReason::CostLimit, 0),
        BatchState { status: Status::Failed, ..BatchState::queued("a-4") }
            .failed(TaskStage::Checkout, "no commit\nmore"),
        BatchState::queued("a-5"),
    ];
    let manifest = Manifest {
        tasks: "0".to_owned(),
        name: "bailiwick/m".to_owned(),
        model: "m".to_owned(),
        provider: "anthropic".to_owned(),
        activity: "execute".to_owned(),
        mode: "auto".to_owned(),
        profile: "full".to_owned(),
        mcp: String::new(),
        mcp_config: String::new(),
    };
    insta::assert_snapshot!(BatchReport::new(&manifest, &states).text(&states));
}
