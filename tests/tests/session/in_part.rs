//! Tests the approval of a part of a change, over `serve`: exactly that part is written, the model is told of the rest,
//! and a rewind restores the file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Stdio};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::served::Served;
use tests::{Finished, User, World};

const OLD: &str = "one\r\n2\n3\n4\n5\n6\n7\n8\nlast without an end";
const NEW: &str = "ONE\r\n2\n3\n4\n5\n6\n7\n8\nLAST\n";

/// Computes a digest by `sha256sum`, as docs/protocol.md suggests to clients without a library.
fn sha256(text: &str) -> String {
    let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sum.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = sum.wait_with_output().unwrap();
    String::from_utf8(out.stdout).unwrap()[..64].to_owned()
}

struct Asked {
    world: World,
    model: ReplayServer,
    served: Served,
    id: String,
    request: Value,
}

impl Asked {
    /// Starts a session in which the model wants to write `kept.txt`, and waits for the question.
    fn new() -> Self {
        let world = World::new(User::Myself);
        world.file("kept.txt", OLD);
        let model = model_of([calls(&[("write_file", json!({"path": "kept.txt", "content": NEW}))]), done()]);
        let mut served = Served::greeted(&world);
        let id = served.converse(&world.project(), &model.base_url(), "ask");
        served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
        let request = served.asked("applyPatchApproval");
        Self { world, model, served, id, request }
    }

    fn path(&self) -> String {
        self.world.project().join("kept.txt").display().to_string()
    }

    /// Returns the hunks of the change as a client splits them.
    fn hunks(&self) -> Vec<String> {
        let diff = self.request["params"]["file_changes"][self.path()]["update"]["unified_diff"].as_str();
        let mut hunks: Vec<String> = Vec::new();
        for line in diff.unwrap().split_inclusive('\n') {
            if line.starts_with('@') {
                hunks.push(String::new());
            }
            hunks.last_mut().unwrap().push_str(line);
        }
        hunks
    }

    /// Returns the digest of an approved part of the change. `what` has the lines that describe the part of the file.
    fn digest(&self, what: &str) -> String {
        let whole = self.request["params"]["digest"].as_str().unwrap();
        sha256(&format!("{whole}\nfile {}\n{what}", sha256(&self.path())))
    }

    fn answer(&mut self, file: Value, digest: &str) {
        let part = json!({"files": [file], "digest": digest});
        let whole = &self.request["params"]["digest"];
        let result = json!({"decision": "approved_in_part", "part": part, "digest": whole});
        let line = json!({"jsonrpc": "2.0", "id": self.request["id"], "result": result});
        self.served.line(&line.to_string());
    }

    fn answer_hunks(&mut self, numbers: &[usize]) {
        let hunks = self.hunks();
        let lines = numbers.iter().map(|number| format!("hunk {}\n", sha256(&hunks[number - 1])));
        let digest = self.digest(&lines.collect::<String>());
        self.answer(json!({"path": self.path(), "hunks": numbers}), &digest);
    }

    fn decision(&mut self) -> Value {
        self.served.until("event/approvalAnswered")["data"].clone()
    }

    /// Returns the body of the last request to the model, which ends with the tool result.
    fn told(&self) -> String {
        String::from_utf8(self.model.requests().last().unwrap().body.to_vec()).unwrap()
    }
}

#[test]
fn the_chosen_hunk_alone_is_written_told_kept_and_undone() {
    let mut asked = Asked::new();
    assert_eq!(asked.request["params"]["in_part"], true);
    assert_eq!(asked.hunks().len(), 2, "{}", asked.request);
    asked.answer_hunks(&[1]);
    let decision = asked.decision();
    let left_out = json!([{"path": asked.path(), "hunks": [2]}]);
    assert_eq!((&decision["in_part"]["hunks"], &decision["in_part"]["left_out"]), (&json!(2), &left_out));
    assert_eq!(decision["decision"]["decision"], "approved_in_part");
    asked.served.until("event/turnFinished");
    assert_eq!(asked.world.read("kept.txt"), OLD.replace("one", "ONE"));
    let told = asked.told();
    assert!(told.contains("The user approved 1 of 2 hunks of the change of"), "{told}");
    assert!(told.contains("-last without an end") && told.contains("+LAST"), "{told}");
    let (id, log) = (asked.id.clone(), asked.world.log());
    let said = log.iter().find(|event| event["type"] == "user_message").unwrap()["id"].as_u64().unwrap();
    let target = json!({"conversation_id": id, "to": said, "scope": "files"});
    asked.served.call("rewind", target.clone());
    let preview = asked.served.until("event/rewindPreview")["data"].clone();
    let mut confirmed = target;
    confirmed["digest"] = preview["digest"].clone();
    asked.served.call("rewind", confirmed);
    asked.served.until("event/rewound");
    assert_eq!(asked.world.read("kept.txt"), OLD);
    asked.served.end().1.expect(0);
    let run =
        |command: &str| Finished::of(&mut asked.world.bailiwick([command, id.as_str()])).expect(0).stdout;
    let shown = run("show");
    assert!(shown.contains("approved in part by the user: 1 of 2 hunks"), "{shown}");
    let audit = run("audit");
    assert!(audit.contains("the log is intact, its events are consistent"), "{audit}");
    assert!(audit.contains("approvals: 1 approved in part"), "{audit}");
}

#[test]
fn a_text_of_the_users_own_is_written() {
    let mut asked = Asked::new();
    let mine = "mine\r\nand more";
    let digest = asked.digest(&format!("text {}\n", sha256(mine)));
    asked.answer(json!({"path": asked.path(), "text": mine}), &digest);
    assert_eq!(asked.decision()["in_part"]["edited"], json!([asked.path()]));
    asked.served.until("event/turnFinished");
    assert_eq!(asked.world.read("kept.txt"), mine);
    let told = asked.told();
    assert!(told.contains("The user edited the new text of") && told.contains("+mine"), "{told}");
    asked.served.end().1.expect(0);
}

#[test]
fn an_answer_that_names_another_part_than_its_digest_writes_nothing() {
    let mut asked = Asked::new();
    let first = asked.digest(&format!("hunk {}\n", sha256(&asked.hunks()[0])));
    asked.answer(json!({"path": asked.path(), "hunks": [2]}), &first);
    let decision = asked.decision();
    assert_eq!(
        (&decision["by"], &decision["decision"]["decision"]),
        (&json!("bad_answer"), &json!("denied"))
    );
    let cause = decision["cause"].as_str().unwrap();
    assert_eq!(cause, "the answer belongs to another part of the change: its digest differs");
    asked.served.until("event/turnFinished");
    assert_eq!(asked.world.read("kept.txt"), OLD);
    assert!(asked.told().contains("was not carried out"), "{}", asked.told());
    asked.served.end().1.expect(0);
}

#[test]
fn a_file_that_changed_meanwhile_is_left_as_it_is() {
    let mut asked = Asked::new();
    let theirs = format!("{OLD}, and more");
    asked.world.file("kept.txt", &theirs);
    asked.answer_hunks(&[1]);
    asked.served.until("event/turnFinished");
    assert_eq!(asked.world.read("kept.txt"), theirs);
    let log = asked.world.log();
    let finished = log.iter().find(|event| event["type"] == "tool_call_finished").unwrap();
    assert_eq!(finished["data"]["status"], "failed", "{finished}");
    asked.served.end().1.expect(0);
}
