//! Tests commands that run again after a denial, with real workers: exactly the shown access is given, and once.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use ipc::confinement::Tier;
use ipc::denial::Grade;
use ipc::id::ApprovalId;
use ipc::rights::{Network, RightsChange};
use protocol::approval::{DeniedCommandApprovalParams, ReviewDecision, ServerRequest, SessionScope};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::json;
use tests::replies::{calls, done};
use tests::session::FrontEnd;
use tests::tier;

use super::asking::{answer, asks, decide, fitting, for_session, logged, told};

/// Returns a reply with a command that declares no access.
fn plain(command: &str) -> String {
    calls(&[("shell_exec", json!({ "command": command }))])
}

fn outside(front: &FrontEnd) -> PathBuf {
    let place = front.world.project().parent().unwrap().join("outside");
    fs::create_dir_all(&place).unwrap();
    place
}

async fn asked(front: &mut FrontEnd) -> (ApprovalId, ServerRequest, DeniedCommandApprovalParams) {
    let (id, request) = front.asked().await;
    let ServerRequest::DeniedCommandApproval(params) = &request else { panic!("{request:?}") };
    let params = params.clone();
    (id, request, params)
}

/// Starts a session whose model tries to write outside of the project, and waits for the question.
async fn denied_outside(tier: Tier) -> (FrontEnd, ApprovalId, ServerRequest, PathBuf) {
    let replies = [plain("echo first; echo x > ../outside/new"), plain("echo y > ../outside/other"), done()];
    let mut front = FrontEnd::open_with(asks(tier), replies);
    let place = outside(&front);
    front.prompt("go").await;
    let (id, request, params) = asked(&mut front).await;
    assert_eq!(params.grant.write, [(&place).into()], "{tier}");
    assert!(!place.join("new").exists(), "{tier}: nothing before the answer");
    (front, id, request, place)
}

#[tokio::test]
async fn what_is_allowed_once_happens_once() {
    for tier in tier::all() {
        let (mut front, id, request, place) = denied_outside(tier).await;
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        // The same place is asked about again.
        decide(&mut front, ReviewDecision::DENIED).await;
        front.until("result").await;
        assert_eq!(fs::read_to_string(place.join("new")).unwrap(), "x\n", "{tier}");
        assert!(!place.join("other").exists(), "{tier}");
        assert_eq!(told(&front.provider).matches("first").count(), 2, "{tier}: the call, and one run");
        assert_eq!(logged(&front, "denied").len(), 1, "{tier}: of the one that was left");
        front.end().await;
    }
}

/// Tests a command that succeeds although an access was denied. One `no` to the offered access is enough.
#[tokio::test]
async fn a_command_that_carries_on_waits_for_the_answer_too() {
    for tier in tier::all() {
        let offline = "(exec 3<>/dev/tcp/192.0.2.1/9) 2>/dev/null; true";
        let replies = [plain("echo x > ../outside/new; true"), plain(offline), plain(offline), done()];
        let mut front = FrontEnd::open_with(asks(tier), replies);
        let place = outside(&front);
        front.prompt("go").await;
        let (id, request, params) = asked(&mut front).await;
        assert_eq!(
            (params.denial.grade, params.grant.write),
            (Grade::Proved, vec![(&place).into()]),
            "{tier}"
        );
        assert!(!place.join("new").exists(), "{tier}: nothing before the answer");
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        let (id, request, params) = asked(&mut front).await;
        assert_eq!((params.denial.grade, params.grant.net), (Grade::Proved, Network::On), "{tier}");
        answer(&front, id, fitting(&request, ReviewDecision::DENIED)).await;
        front.until("result").await;
        assert_eq!(fs::read_to_string(place.join("new")).unwrap(), "x\n", "{tier}");
        assert_eq!(logged(&front, "denied").len(), 2, "{tier}: the third is left as the second was");
        let told = told(&front.provider);
        assert_eq!(told.matches("did not allow it").count(), 1, "{tier}: {told}");
        front.end().await;
    }
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_a_standing_right_of_another_worker() {
    for tier in tier::all() {
        let (mut front, id, request, place) = denied_outside(tier).await;
        answer(&front, id, fitting(&request, for_session(SessionScope::GrantRoot))).await;
        front.until("result").await;
        assert!(place.join("new").exists() && place.join("other").exists(), "{tier}");
        let changed = logged(&front, "rights_changed");
        assert_eq!(changed.len(), 1, "{tier}: {changed:?}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_link_that_comes_before_the_answer_leads_nowhere() {
    for tier in tier::all() {
        for decision in [ReviewDecision::Approved, for_session(SessionScope::GrantRoot)] {
            let (mut front, id, request, place) = denied_outside(tier).await;
            let victim = place.with_file_name("victim");
            fs::create_dir_all(&victim).unwrap();
            fs::remove_dir(&place).unwrap();
            symlink(&victim, &place).unwrap();
            answer(&front, id, fitting(&request, decision.clone())).await;
            front.until("call 1 failed").await;
            assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{tier} {decision:?}");
            assert!(logged(&front, "rights_changed").is_empty(), "{tier} {decision:?}");
            front.act(UserActionKind::Agent(AgentAction::Quit)).await;
            let (_, world) = front.end_in_world().await;
            assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{tier} {decision:?}");
            drop(world);
        }
    }
}

#[tokio::test]
async fn a_denied_write_in_the_project_runs_again_with_write_access() {
    for tier in tier::all() {
        let replies = [plain("echo tried >&2; echo new > a.txt"), done()];
        let mut front = FrontEnd::open_with(asks(tier), replies);
        front.prompt("go").await;
        let (id, request, params) = asked(&mut front).await;
        assert_eq!(params.grant.write, [(&front.world.project()).into()], "{tier}");
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("result 0").await;
        assert_eq!(front.world.read("a.txt"), "new\n", "{tier}");
        assert!(!told(&front.provider).contains("blocked by"), "{tier}: the second run alone");
        front.end().await;
    }
}

#[tokio::test]
async fn a_command_cannot_invent_the_place_that_is_offered() {
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(
            asks(tier),
            [
                // Nothing is offered, since the path is writable anyway, was not denied, is hidden, or is reached
                // through `..` or a link.
                plain("echo \"touch: cannot touch '$TMPDIR/x': Permission denied\"; exit 1"),
                plain("echo \"touch: cannot touch '/no/such/place': Permission denied\"; exit 1"),
                plain("echo \"touch: cannot touch '/proc/1/mem': Permission denied\"; exit 1"),
                plain("ln -s /etc $TMPDIR/l; echo x > $TMPDIR/l/../../probe-of-a-link; exit 1"),
                done(),
            ],
        );
        front.prompt("go").await;
        front.until("result").await;
        let asked = logged(&front, "approval_requested");
        assert!(asked.is_empty(), "{tier}: {asked:?}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_typed_path_is_a_standing_right_unless_nothing_may_allow_it() {
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(asks(tier), [plain("echo x > ../outside/new"), done()]);
        let place = outside(&front);
        let allow = |path: &str| {
            UserActionKind::Agent(AgentAction::SetRights {
                change: RightsChange::AddWrite { path: path.into() },
            })
        };
        front.until("worker 1 started").await;
        for (path, why) in [
            ("/", "the whole file system"),
            ("/proc", "belongs to the kernel"),
            ("../outside/missing", "does not exist"),
        ] {
            front.act(allow(path)).await;
            front.until(why).await;
        }
        front.act(allow(place.to_str().unwrap())).await;
        front.until("rights").await;
        front.prompt("go").await;
        front.until("result").await;
        assert!(place.join("new").exists(), "{tier}");
        front.end().await;
    }
}
