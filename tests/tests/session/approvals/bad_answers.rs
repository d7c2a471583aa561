//! Tests all kinds of invalid answers at all times, for patches and commands: nothing is carried out, and one line in
//! the log has the reason.

use std::time::Duration;

use ipc::id::{ApprovalId, ConversationId};
use protocol::approval::{
    ApplyPatchApprovalResponse, ApprovalAnswer, ExecCommandApprovalResponse, NetworkApprovalResponse,
    ReviewDecision, ServerRequest, SessionScope,
};
use protocol::frontend::UserActionKind;
use tests::replies::done;
use tests::session::FrontEnd;
use tests::tier;

use super::asking::{answer, asks, asks_for, command, edit, fitting, for_session, logged};

/// Function that makes an invalid answer.
type Bad = fn(&ServerRequest) -> ApprovalAnswer;

/// Answers that deny the request, each with its name and the text in the log.
const DENIES: [(&str, Bad, &str); 14] = [
    ("patch for the other kind", |r| other(r, ReviewDecision::Approved), "another kind"),
    ("other kind, session", |r| other(r, for_session(SessionScope::Exact)), "another kind"),
    ("other kind, denied", |r| other(r, ReviewDecision::DENIED), "another kind"),
    ("other kind, abort", |r| other(r, ReviewDecision::Abort), "another kind"),
    ("network kind", |_| network(), "another kind"),
    ("digest of nothing", |r| with_digest(r, ""), "digest"),
    ("digest cut short", |r| with_digest(r, &r.digest()[..63]), "digest"),
    ("digest in capitals", |r| with_digest(r, &r.digest().to_uppercase()), "digest"),
    ("digest of another effect", |r| with_digest(r, &"0".repeat(64)), "digest"),
    ("undecodable", |_| failed("missing field `decision`"), "missing field"),
    ("error object", |_| failed("the client answered with error -32603"), "-32603"),
    ("no cause", |_| failed(""), ""),
    ("empty prefix", |r| fitting(r, for_session(SessionScope::CommandPrefix(vec![]))), ""),
    (
        "pattern of nothing",
        |r| fitting(r, for_session(SessionScope::PathPattern("nothing/*".to_owned()))),
        "",
    ),
];

fn failed(cause: &str) -> ApprovalAnswer {
    ApprovalAnswer::Failed { cause: cause.to_owned() }
}

fn network() -> ApprovalAnswer {
    ApprovalAnswer::Network(NetworkApprovalResponse { decision: ReviewDecision::Approved, digest: None })
}

fn other(request: &ServerRequest, decision: ReviewDecision) -> ApprovalAnswer {
    let digest = Some(request.digest().to_owned());
    match request {
        ServerRequest::ApplyPatchApproval(_) => {
            ApprovalAnswer::Exec(ExecCommandApprovalResponse { decision, digest })
        }
        _ => ApprovalAnswer::Patch(ApplyPatchApprovalResponse { decision, digest }),
    }
}

fn with_digest(request: &ServerRequest, digest: &str) -> ApprovalAnswer {
    let digest = Some(digest.to_owned());
    let decision = ReviewDecision::Approved;
    match request {
        ServerRequest::ApplyPatchApproval(_) => {
            ApprovalAnswer::Patch(ApplyPatchApprovalResponse { decision, digest })
        }
        _ => ApprovalAnswer::Exec(ExecCommandApprovalResponse { decision, digest }),
    }
}

/// Returns calls of each kind that would change `a.txt`.
fn kinds() -> [(&'static str, String); 2] {
    [("patch", edit()), ("exec", command("echo new > a.txt"))]
}

/// Checks that nothing was carried out, and that the log has these numbers of answers and of ignored answers.
fn nothing_ran(front: &FrontEnd, case: &str, answered: usize, ignored: usize) {
    assert_eq!(front.world.read("a.txt"), "old\n", "{case}");
    let shots = logged(front, "worker_started").iter().filter(|worker| !worker["one_shot"].is_null()).count();
    assert_eq!(shots, 0, "{case}: no worker came to be for it");
    let lines = logged(front, "approval_answered");
    assert_eq!(lines.len(), answered, "{case}: {lines:?}");
    assert!(lines.iter().all(|line| line["decision"]["decision"] == "denied"), "{case}: {lines:?}");
    let notices = logged(front, "notice");
    let told = notices.iter().filter(|notice| notice["code"] == "approval_ignored").count();
    assert_eq!(told, ignored, "{case}: {notices:?}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_denies() {
    for (kind, reply) in kinds() {
        for (bad, make, why) in DENIES {
            let case = format!("{kind}, {bad}");
            let mut front = FrontEnd::open_with(asks(tier::all()[0]), [reply.clone(), done()]);
            front.prompt("go").await;
            let (id, request) = front.asked().await;
            answer(&front, id, make(&request)).await;
            front.until("asks 1 no more").await;
            front.until("result 4").await;
            nothing_ran(&front, &case, 1, 0);
            let line = &logged(&front, "approval_answered")[0];
            assert_eq!(line["by"], "bad_answer", "{case}");
            assert!(line["cause"].as_str().unwrap().contains(why), "{case}: {line}");
            front.end().await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_nothing_waits_for_is_ignored() {
    for (kind, reply) in kinds() {
        let mut front = FrontEnd::open_with(asks(tier::all()[0]), [reply, done()]);
        // Two answers arrive before anything is asked.
        let early = ApprovalAnswer::Exec(ExecCommandApprovalResponse {
            decision: ReviewDecision::Approved,
            digest: None,
        });
        answer(&front, ApprovalId(1), early.clone()).await;
        answer(&front, ApprovalId(1), early.clone()).await;
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        let approved = fitting(&request, ReviewDecision::Approved);
        // These ids were never used, and the last one is of another conversation.
        for wrong in [0, 2, 99, u64::MAX] {
            answer(&front, ApprovalId(wrong), approved.clone()).await;
        }
        let elsewhere = ConversationId("theirs".to_owned());
        let kind_of = UserActionKind::Answer { id: ApprovalId(7), answer: approved.clone() };
        front.act_in(&elsewhere, kind_of).await;
        // Then a denial, and after it every answer that comes twice or late.
        answer(&front, id, fitting(&request, ReviewDecision::DENIED)).await;
        answer(&front, id, approved.clone()).await;
        front.until("asks 1 no more").await;
        answer(&front, id, approved.clone()).await;
        answer(&front, id, early.clone()).await;
        answer(&front, id, failed("late")).await;
        front.until("result 4").await;
        let told = logged(&front, "notice").len();
        assert!((8..=11).contains(&told), "{kind}: those that came before the end: {told}");
        nothing_ran(&front, kind, 1, told);
        front.end().await;
    }
}

#[tokio::test]
async fn an_answer_in_the_name_of_another_conversation_denies() {
    for (kind, reply) in kinds() {
        let mut front = FrontEnd::open_with(asks(tier::all()[0]), [reply, done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        let answer = fitting(&request, ReviewDecision::Approved);
        front.act_in(&ConversationId("theirs".to_owned()), UserActionKind::Answer { id, answer }).await;
        front.until("call 1 denied by BadAnswer: the answer belongs to another conversation").await;
        front.until("result 4").await;
        nothing_ran(&front, kind, 1, 0);
        front.end().await;
    }
}

#[tokio::test]
async fn a_front_end_that_sees_nothing_any_more_denies() {
    for (kind, reply) in kinds() {
        let mut front = FrontEnd::open_with(asks(tier::all()[0]), [reply, done()]);
        front.prompt("go").await;
        front.asked().await;
        front.close_eyes();
        let world = front.finished().await;
        assert_eq!(world.read("a.txt"), "old\n", "{kind}");
        let log = world.log();
        let line = log.iter().find(|event| event["type"] == "approval_answered").unwrap();
        assert_eq!(
            (&line["data"]["by"], line["data"]["decision"]["decision"].as_str()),
            (&"no_front_end".into(), Some("denied"))
        );
    }
}

#[tokio::test]
async fn an_answer_after_the_deadline_is_ignored() {
    for (kind, reply) in kinds() {
        let mut front =
            FrontEnd::open_with(asks_for(tier::all()[0], Duration::from_millis(1)), [reply, done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        front.until("denied by Deadline").await;
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("result 4").await;
        let told = logged(&front, "notice").len();
        assert!(told <= 1, "{kind}");
        nothing_ran(&front, kind, 1, told);
        front.end().await;
    }
}
