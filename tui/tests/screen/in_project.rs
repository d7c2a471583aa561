use insta::assert_snapshot;
use ipc::id::ApprovalId;
use protocol::approval::{
    ApprovalAnswer, NetworkApprovalParams, ProjectPrefixes, ReviewDecision, ServerRequest, SessionScope,
};
use protocol::frontend::UserActionKind;

use crate::core::{asked as command, exec};
use crate::seat::Seat;

fn prefixes() -> Vec<Vec<String>> {
    vec![["cargo", "test"].map(str::to_owned).to_vec()]
}

pub(crate) fn kept() -> ProjectPrefixes {
    let file = "/home/me/.config/bailiwick/config.toml".into();
    ProjectPrefixes { prefixes: prefixes(), file }
}

fn asked(seat: &mut Seat) {
    let mut request = exec("cargo test");
    request.in_project = Some(kept());
    seat.ask(1, ServerRequest::ExecCommandApproval(request));
    seat.wait(400);
}

#[test]
fn the_page_says_what_it_covers_and_a_second_key_gives_it() {
    let mut seat = Seat::new(100, 30);
    asked(&mut seat);
    assert!(seat.screen().contains("p always in this project…"), "{}", seat.screen());
    seat.keys("p");
    seat.wait(400);
    assert!(seat.told().is_empty(), "the first key only shows it");
    assert_snapshot!(seat.screen(), @r#"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit













     Run this command? ─────────────────────────────────────────────────────────────────────────────────
    always in this project: no question for commands that begin with
    │ cargo test
                any command that begins with ["cargo", "test"]
      allows    write in this project, once for each command; no network
      asks      before the network, other directories or variables are used
      lasts     in this session, and in all later sessions of this project
      saved in  /home/me/.config/bailiwick/config.toml, table [project."/home/me/project"]
      undo      delete the prefix from approvals.preapproved in that file; in this session :revoke
    y yes, always in this project  Esc back
    ── waiting for your answer ─────────────────────────────────────────────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    "#);
    seat.keys("y");
    let [UserActionKind::Answer { id: ApprovalId(1), answer: ApprovalAnswer::Exec(answer) }] =
        &seat.told()[..]
    else {
        panic!("an answer");
    };
    let scope = SessionScope::CommandPrefixesInProject(prefixes());
    assert_eq!(answer.decision, ReviewDecision::ApprovedForSession { scope });
    assert_eq!(answer.digest.as_deref(), Some("d1"));
}

#[test]
fn leaving_the_page_answers_nothing() {
    let mut seat = Seat::new(100, 30);
    asked(&mut seat);
    seat.keys("p");
    seat.wait(400);
    seat.keys("n");
    assert!(
        seat.told().is_empty() && seat.screen().contains("p always in this project…"),
        "{}",
        seat.screen()
    );
}

#[test]
fn a_card_whose_command_the_setting_would_not_cover_does_not_offer_it() {
    let network = NetworkApprovalParams::new(command("cargo test"), Some(prefixes().remove(0)), Vec::new());
    for request in
        [ServerRequest::ExecCommandApproval(exec("cargo test")), ServerRequest::NetworkApproval(network)]
    {
        let mut seat = Seat::new(100, 30);
        seat.ask(1, request);
        seat.wait(400);
        let before = seat.screen();
        seat.keys("p");
        seat.wait(400);
        assert!(!before.contains("always in this project"), "{before}");
        assert_eq!(seat.screen(), before);
    }
}
