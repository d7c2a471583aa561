//! Tests of a sandbox-exec that has been started and waits for the order of what to execute.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;

use common::order::order;
use common::place::{as_each_user, errors, text};
use common::waiting::Waiting;
use ipc::confinement::{Confinement, Identity};
use sandbox_exec::stage::Stage;

#[test]
fn it_holds_nothing_but_its_pipes_and_has_no_child() {
    as_each_user(|place| {
        let waiting = Waiting::start(place, "echo started");
        let pid = waiting.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        assert_eq!(children, "");
        match waiting.open() {
            Some(open) => {
                let others: Vec<_> = open.iter().filter(|link| !link.starts_with("pipe:")).collect();
                assert!(others.iter().all(|link| *link == "/dev/null"), "{open:?}");
            }
            None => eprintln!("skipped: what it has open (it is not dumpable; needs root)"),
        }
        assert_eq!(text(&waiting.execute(&order(place))), "started\n");
    });
}

#[test]
fn what_is_hidden_after_it_began_is_hidden() {
    as_each_user(|place| {
        let waiting =
            Waiting::start(place, "cat ../home/notes; cat ../home/secret/key; cat ../home/secret/other");
        place.make("home/secret/other", "OTHER");
        let mut hiding = order(place);
        hiding.rights.hidden = vec![place.path("home/secret/key").into()];
        let output = waiting.execute(&hiding);
        assert_eq!(text(&output), "notesOTHER", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn it_becomes_whomever_it_is_told_to() {
    as_each_user(|place| {
        if place.user().is_some() {
            // Only root becomes somebody else.
            return;
        }
        if !nix::unistd::geteuid().is_root() {
            return eprintln!("skipped: to become another user (needs root)");
        }
        let somebody = Identity { uid: 12345, gid: 12345 };
        let ordered = Confinement { identity: Some(somebody), ..order(place) };
        let output = Waiting::start(place, "id -u").execute(&ordered);
        assert_eq!(text(&output), "12345\n", "{}", errors(&output));
    });
}

#[test]
fn without_an_order_it_ends_by_itself() {
    as_each_user(|place| {
        let output = Waiting::start(place, "echo started").without_order();
        assert_eq!(output.status.code(), Some(Stage::Rights.code().into()));
        assert_eq!(text(&output), "");
    });
}
