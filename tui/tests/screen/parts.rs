//! Tests of approving a part of a change: selected hunks, and a text that the person edits.

use std::sync::Arc;

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::path::WirePath;
use protocol::approval::{
    ApplyPatchApprovalParams, ApprovalAnswer, ChangePart, ChangedText, FileChange, FilePart, HunkRange,
    ReviewDecision, ServerRequest,
};
use protocol::event::{AppliedPart, ApprovalAnswered, DecidedBy, EventKind, LeftOutHunks};
use protocol::frontend::UserActionKind;
use tui::{Action, Msg};

use crate::core::{patch, update};
use crate::seat::Seat;

const FILE: &str = "/home/me/project/src/lib.rs";
const OLD: &str = "one\n2\n3\n4\n5\n6\n7\n8\nnine\n";
const NEW: &str = "ONE\n2\n3\n4\n5\n6\n7\n8\nNINE\n";
const DIFF: &str = "@@ -1,4 +1,4 @@\n-one\n+ONE\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-nine\n+NINE\n";

/// A change of one file in two hunks.
pub(crate) fn params() -> ApplyPatchApprovalParams {
    let range = |from, to| HunkRange { old: from..to, new: from..to };
    let hunks = vec![range(0, 10), range(12, OLD.len())];
    let text = ChangedText { old: OLD.to_owned(), new: NEW.to_owned(), hunks };
    let texts = Arc::new([(WirePath::from(FILE), text)].into());
    ApplyPatchApprovalParams { in_part: true, texts, ..patch(&[(FILE, update(DIFF))]) }
}

/// A screen on which the page for selecting parts of the change is open.
fn seat(width: u16, height: u16) -> Seat {
    let mut seat = Seat::new(width, height);
    seat.ask(1, ServerRequest::ApplyPatchApproval(params()));
    seat.wait(400);
    seat.keys("h");
    seat.wait(400);
    seat
}

fn card(seat: &Seat) -> String {
    let screen = seat.screen();
    let rows = screen.lines().skip_while(|row| !row.starts_with(" Edit"));
    let rows = rows.take_while(|row| !row.starts_with("── waiting"));
    rows.filter(|row| !row.is_empty()).collect::<Vec<_>>().join("\n")
}

fn answers(seat: &mut Seat) -> Vec<ReviewDecision> {
    let told = seat.told().into_iter().map(|kind| match kind {
        UserActionKind::Answer { id: ApprovalId(1), answer: ApprovalAnswer::Patch(answer) } => {
            assert_eq!(answer.digest.as_deref(), Some("d2"), "the whole change is named");
            answer.decision
        }
        other => panic!("{other:?}"),
    });
    told.collect()
}

fn of(files: Vec<FilePart>) -> ReviewDecision {
    let params = params();
    let part = ChangePart::of(&params.digest, &params.file_changes, files).unwrap();
    ReviewDecision::ApprovedInPart { part }
}

fn edited(seat: &mut Seat, text: &str) {
    let (agent, id, path) = (AgentId::root(), ApprovalId(1), FILE.into());
    seat.send(Msg::Resumed);
    seat.send(Msg::TextEdited { agent, id, path, edited: Ok(Some(text.to_owned())) });
    seat.wait(400);
}

#[test]
fn the_card_offers_a_part_and_shows_the_change_by_hunk() {
    let mut seat = Seat::new(80, 24);
    seat.ask(1, ServerRequest::ApplyPatchApproval(params()));
    seat.wait(400);
    assert!(seat.screen().contains("h in part…"), "{}", seat.screen());
    seat.keys("h");
    seat.wait(400);
    assert_eq!(seat.told(), []);
    assert_snapshot!(card(&seat), @"
     Edit src/lib.rs?  +2 -2 ───────────────────────────────────────────────────────
    edit src/lib.rs
    ▸ [x] hunk 1 of 2
    │ 1 -one
    │ 1 +ONE
    │ 2  2
    │ 3  3
    │ 4  4
      [x] hunk 2 of 2
    │ 6  6
    │ 7  7
    │ 8  8
    │ 9 -nine
    │ 9 +NINE
      allows    write src/lib.rs, once
    y yes, to all of it  Space take or leave  j/k choose  e edit text  Esc back
    ");
    seat.press(KeyCode::Down);
    seat.keys(" ");
    assert_snapshot!(card(&seat), @"
     Edit src/lib.rs?  +2 -2 ───────────────────────────────────────────────────────
    edit src/lib.rs
      [x] hunk 1 of 2
    │ 1 -one
    │ 1 +ONE
    │ 2  2
    │ 3  3
    │ 4  4
    ▸ [ ] hunk 2 of 2 · left out
      @@ -6,4 +6,4 @@
       6
       7
       8
      -nine
      +NINE
      allows    write src/lib.rs, once
    y yes, to 1 of 2 hunks  Space take or leave  j/k choose  e edit text  Esc back
    ");
    seat.keys("y");
    assert_eq!(answers(&mut seat), [of(vec![FilePart::Hunks { path: FILE.into(), hunks: vec![1] }])]);
}

#[test]
fn everything_chosen_is_the_whole_change_and_nothing_chosen_no_answer() {
    let mut seat = seat(80, 24);
    seat.keys(" j ");
    assert!(seat.screen().contains("Nothing is chosen."), "{}", seat.screen());
    seat.keys("y");
    assert_eq!(seat.told(), []);
    seat.keys(" k y");
    assert_eq!(answers(&mut seat), [ReviewDecision::Approved]);
}

#[test]
fn an_edited_text_is_shown_as_its_difference_and_is_the_answer() {
    let mut seat = seat(80, 24);
    seat.keys(" e");
    let edits: Vec<_> =
        seat.actions.drain(..).filter(|action| matches!(action, Action::EditText { .. })).collect();
    let (agent, id, path) = (AgentId::root(), ApprovalId(1), WirePath::from(FILE));
    let text = "one\n2\n3\n4\n5\n6\n7\n8\nNINE\n".to_owned();
    assert_eq!(edits, [Action::EditText { agent, id, path, text }], "as it is chosen");
    let mine = "one\n2\n3\n4\n5\n6\n7\n8\nmine\n";
    edited(&mut seat, mine);
    assert_snapshot!(card(&seat), @"
     Edit src/lib.rs?  +2 -2 ───────────────────────────────────────────────────────
    edit src/lib.rs
    ▸ [x] the text as you edited it
    │ 6  6
    │ 7  7
    │ 8  8
    │ 9 -nine
    │ 9 +mine
      allows    write src/lib.rs, once
    y yes, as shown  Space take or leave  j/k choose  e edit text  u undo the edit
    Esc back
    ");
    seat.keys("y");
    assert_eq!(answers(&mut seat), [of(vec![FilePart::Text { path: FILE.into(), text: mine.to_owned() }])]);
}

#[test]
fn a_text_that_is_no_other_chooses_hunks() {
    for (text, decision) in [(NEW, vec![ReviewDecision::Approved]), (OLD, vec![])] {
        let mut seat = seat(80, 24);
        edited(&mut seat, text);
        seat.keys("y");
        assert_eq!(answers(&mut seat), decision);
    }
    // The edit is undone.
    let mut seat = seat(80, 24);
    edited(&mut seat, "mine\n");
    seat.keys("u");
    seat.wait(400);
    seat.keys("y");
    assert_eq!(answers(&mut seat), [ReviewDecision::Approved]);
}

#[test]
fn leaving_the_page_keeps_the_choice_and_the_card_is_about_the_whole() {
    let mut seat = seat(80, 24);
    seat.keys(" ");
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains("h in part…") && seat.told().is_empty(), "{}", seat.screen());
    seat.keys("h");
    seat.wait(400);
    assert!(seat.screen().contains("hunk 1 of 2 · left out"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    seat.wait(400);
    seat.keys("y");
    assert_eq!(answers(&mut seat), [ReviewDecision::Approved]);
}

#[test]
fn a_word_on_the_card_approves_nothing() {
    for word in ["hey", "he said yes", "hy", "hunk y"] {
        for gap in [0, 80, 150, 290] {
            let mut seat = Seat::new(100, 30);
            seat.ask(1, ServerRequest::ApplyPatchApproval(params()));
            seat.wait(1000);
            for key in word.chars() {
                seat.wait(gap);
                seat.keys(&key.to_string());
            }
            let edits =
                seat.actions.iter().filter(|action| matches!(action, Action::EditText { .. })).count();
            assert_eq!((seat.told(), edits), (vec![], 0), "{word:?} every {gap} ms");
        }
    }
}

#[test]
fn a_page_that_is_longer_than_the_screen_is_read_to_its_end_first() {
    let mut seat = seat(80, 12);
    seat.keys(" y");
    assert_eq!(seat.told(), [], "{}", seat.screen());
    assert!(seat.screen().contains("more line"), "{}", seat.screen());
    // The last hunk, and the line after it.
    seat.keys("jjjjj");
    assert!(seat.screen().contains("allows"), "{}", seat.screen());
    seat.keys("gG");
    assert!(seat.screen().contains("allows"), "{}", seat.screen());
    // A selection changes no text, so the page stays read.
    seat.keys("g");
    seat.wait(400);
    seat.keys("y");
    assert_eq!(answers(&mut seat), [of(vec![FilePart::Hunks { path: FILE.into(), hunks: vec![2] }])]);
}

#[test]
fn a_request_without_parts_has_no_page() {
    let mut seat = Seat::new(80, 24);
    let added = FileChange::Add { content: "x\n".to_owned() };
    seat.ask(1, ServerRequest::ApplyPatchApproval(patch(&[(FILE, added)])));
    seat.wait(400);
    let before = seat.screen();
    seat.keys("h");
    seat.wait(400);
    assert!(!before.contains("in part"), "{before}");
    assert_eq!(seat.screen(), before);
}

#[test]
fn new_and_removed_files_are_one_item_each() {
    let text = |old: &str, new: &str| {
        let hunks = vec![HunkRange { old: 0..old.len(), new: 0..new.len() }];
        ChangedText { old: old.to_owned(), new: new.to_owned(), hunks }
    };
    let [new, gone] = ["/home/me/project/new", "/home/me/project/old"];
    let added = FileChange::Add { content: "a\n".to_owned() };
    let removed = FileChange::Delete { content: "b\n".to_owned() };
    let texts = Arc::new([(new.into(), text("", "a\n")), (gone.into(), text("b\n", ""))].into());
    let params = patch(&[(new, added), (gone, removed)]);
    let params = ApplyPatchApprovalParams { in_part: true, texts, ..params };
    let mut seat = Seat::new(80, 24);
    seat.ask(1, ServerRequest::ApplyPatchApproval(params.clone()));
    seat.wait(400);
    seat.keys("h");
    seat.wait(400);
    seat.keys("je");
    assert!(seat.screen().contains("there is no text to edit"), "{}", seat.screen());
    seat.keys(" y");
    let kept = FilePart::Hunks { path: new.into(), hunks: vec![1] };
    let part = ChangePart::of("d2", &params.file_changes, vec![kept]).unwrap();
    assert_eq!(answers(&mut seat), [ReviewDecision::ApprovedInPart { part }]);
}

#[test]
fn the_row_says_which_part_was_approved() {
    let mut seat = seat(80, 24);
    seat.keys(" y");
    let [decision] = &answers(&mut seat)[..] else { panic!() };
    let left_out = vec![LeftOutHunks { path: FILE.into(), hunks: vec![1] }];
    seat.log(EventKind::ApprovalAnswered(ApprovalAnswered {
        id: Some(ApprovalId(1)),
        call: CallId(8),
        decision: decision.clone(),
        by: DecidedBy::User,
        cause: None,
        in_part: Some(AppliedPart { effect: "e".to_owned(), hunks: 2, left_out, edited: vec![] }),
    }));
    assert!(seat.screen().contains("allowed by you in part: 1 of 2 hunks"), "{}", seat.screen());
}
