//! Approve, deny, time out, interrupt, abort: the exact events, and what is in the files then.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use ipc::approval::{ReviewDecision, ServerRequest};
use ipc::frontend::UserActionKind;
use serde_json::json;
use tests::replies::{calls, done};
use tests::session::FrontEnd;
use tests::tier;

use super::asking::{asks, asks_for, decide};

fn edit() -> String {
    calls(&[("edit_file", json!({"path": "a.txt", "old_string": "old", "new_string": "new"}))])
}

fn command(text: &str) -> String {
    calls(&[("shell_exec", json!({"command": text, "access": "write"}))])
}

#[tokio::test]
async fn an_approved_patch_changes_exactly_what_was_shown() {
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(asks(tier), [edit(), done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        let project = front.world.project();
        assert_eq!(fs::read_to_string(project.join("a.txt")).unwrap(), "old\n", "{tier}");
        let ServerRequest::ApplyPatchApproval(params) = &request else { panic!("{request:?}") };
        assert_eq!(params.grant_root.as_ref().map(|root| root.as_path()), Some(project.as_path()));
        super::asking::answer(&front, id, super::asking::fitting(&request, ReviewDecision::Approved)).await;
        front.until("result").await;
        assert_eq!(front.world.read("a.txt"), "new\n", "{tier}");
        let names: Vec<_> = fs::read_dir(project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a.txt"], "{tier}: nothing else is there");
        let seen = front.end().await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(seen, @"");
        }
    }
}
