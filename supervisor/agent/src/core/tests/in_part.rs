//! Tests of changes of files that a person approves in part: that part is carried out, the model learns of the rest.

use insta::assert_snapshot;
use ipc::effect::Effect as Exact;
use ipc::id::ApprovalId;
use protocol::approval::{AskKind, ChangePart, FilePart, ReviewDecision, ServerRequest};
use protocol::frontend::{AgentAction, Op};

use super::approvals::{asking, write, written};
use super::script::Script;
use crate::core::Effect;

impl Script {
    /// Answers the last request: approves these parts of its changes.
    fn in_part(&mut self, id: u64, files: &[FilePart]) -> &mut Self {
        let request = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::RequestApproval { request, .. } => Some(request),
            _ => None,
        });
        let Some(ServerRequest::ApplyPatchApproval(params)) = request.map(|request| &**request) else {
            panic!()
        };
        assert!(params.in_part && params.texts.len() == params.file_changes.0.len());
        let digest = Some(params.digest.clone());
        let part = ChangePart::of(&params.digest, &params.file_changes, files.to_vec()).unwrap();
        let decision = ReviewDecision::ApprovedInPart { part };
        self.decide(Op::Answer { id: ApprovalId(id), kind: AskKind::Patch, decision, digest })
    }
}

/// Returns path and new text of each file in the approved effects.
fn carried(script: &Script) -> Vec<(String, String)> {
    let patches = script.effects.iter().filter_map(|effect| match effect {
        Effect::CarryOut { effect, .. } => Some(&**effect),
        _ => None,
    });
    let files = patches.flat_map(|effect| match effect {
        Exact::Patch(patch) => patch.files.iter(),
        Exact::Exec(_) => panic!("a command"),
    });
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    files.map(|file| (file.path.to_string(), text(&file.new.as_ref().unwrap().bytes))).collect()
}

fn text(path: &str, text: &str) -> FilePart {
    FilePart::Text { path: path.into(), text: text.to_owned() }
}

fn hunk(path: &str) -> FilePart {
    FilePart::Hunks { path: path.into(), hunks: vec![1] }
}

#[test]
fn the_part_is_carried_out_and_the_result_says_what_differs() {
    let mut script = asking(&[write("a", "v.txt")]);
    script.prepared(1, "/p/v.txt");
    script.lines();
    script.in_part(1, &[text("/p/v.txt", "mine\n")]).carried_out(1, written());
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: approved_in_part by User - the text was edited by Supervisor
    asked 1 no more
    carry out 1: write /p/v.txt
    log finished 1 a Completed "nothing had to be written\nThe user edited the new text of /p/v.txt before approving it. The difference from your text to the approved one:\n@@ -1 +1 @@\n-new\n+mine" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    assert_eq!(carried(&script), [("/p/v.txt".to_owned(), "mine\n".to_owned())]);
    // A second answer to the same request is ignored.
    script.in_part(1, &[text("/p/v.txt", "again\n")]);
    assert!(script.lines().contains("request 1 is no longer open: ignored the answer (approved_in_part)"));
    assert_eq!(carried(&script).len(), 1);
}

#[test]
fn an_answer_that_does_not_fit_denies_the_call() {
    let mut script = asking(&[write("a", "v.txt")]);
    script.prepared(1, "/p/v.txt");
    script.lines();
    script.in_part(1, &[hunk("/p/v.txt")]);
    let lines = script.lines();
    assert!(lines.contains("denied by BadAnswer the part is the whole change"), "{lines}");
    assert!(lines.contains("finished 1 a Denied"), "{lines}");
    assert!(carried(&script).is_empty());
}

#[test]
fn of_changes_shown_together_one_is_left_out_whole() {
    let mut script = asking(&[write("a", "a.txt"), write("b", "b.txt"), write("c", "c.txt")]);
    script.prepared(1, "/p/a.txt");
    script.decide(Op::Act(AgentAction::AskTogether { id: ApprovalId(1) }));
    script.prepared(2, "/p/b.txt").prepared(3, "/p/c.txt");
    script.lines();
    // The answer leaves out the change of the call that the request names.
    script.in_part(2, &[hunk("/p/b.txt"), text("/p/c.txt", "mine\n")]);
    assert_snapshot!(script.lines(), @r#"
    log answered 2 of call 1: approved_in_part by User - 1 of 2 hunks, and the text of 1 file was edited by Supervisor
    asked 2 no more
    log finished 1 a Denied "The user approved other changes of this reply, and not this one. It was not carried out." by Supervisor
    log answered - of call 2: approved by User - by Supervisor
    log answered - of call 3: approved_in_part by User - the text was edited by Supervisor
    carry out 2: write /p/b.txt
    "#);
    script.carried_out(2, written()).carried_out(3, written());
    assert_snapshot!(script.lines(), @r#"
    log finished 2 b Completed "nothing had to be written" by Worker
    carry out 3: write /p/c.txt
    log finished 3 c Completed "nothing had to be written\nThe user edited the new text of /p/c.txt before approving it. The difference from your text to the approved one:\n@@ -1 +1 @@\n-new\n+mine" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    let expected = [("/p/b.txt", "new\n"), ("/p/c.txt", "mine\n")];
    assert_eq!(carried(&script), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
}
