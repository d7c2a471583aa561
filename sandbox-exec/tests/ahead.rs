//! What was looked up ahead of an order: it decides nothing, and what has changed since is looked up again.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::order::order;
use common::place::{Place, as_each_user, errors, text};
use common::waiting::Waiting;
use ipc::confinement::{Confinement, Identity};
use sandbox_exec::stage::Stage;

/// Longer than a directory needs before it is remembered.
const SETTLED: Duration = Duration::from_millis(2200);

/// Reads both files of the place.
const READ: &str = "cat ../home/notes; cat ../home/secret/key; cat ../home/secret/other";

/// An order that hides a file, beside which there is another.
fn hiding(place: &Place) -> Confinement {
    let mut hiding = order(place);
    hiding.rights.hidden = vec![place.path("home/secret/key").into()];
    hiding
}

fn with_other(place: &Place) -> Confinement {
    place.make("home/secret/other", "OTHER");
    thread::sleep(SETTLED);
    hiding(place)
}

#[test]
fn what_has_not_changed_is_looked_up_once_and_hidden_as_ever() {
    as_each_user(|place| {
        let confinement = with_other(place);
        let waiting = Waiting::prepared(place, &confinement, READ);
        // A rule needs no descriptor, and what is forked would inherit it.
        let other = place.path("home/secret/other").to_string_lossy().into_owned();
        match waiting.open() {
            Some(open) => assert!(!open.contains(&other), "{open:?}"),
            None => eprintln!("skipped: what it has open (it is not dumpable; needs root)"),
        }
        let output = waiting.execute(&confinement);
        assert_eq!(text(&output), "notesOTHER", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn files_that_changed_their_places_are_looked_up_again() {
    as_each_user(|place| {
        let confinement = with_other(place);
        let waiting = Waiting::prepared(place, &confinement, READ);
        // By its old inode what is hidden now would be granted.
        for (from, to) in [("other", "third"), ("key", "other"), ("third", "key")] {
            fs::rename(place.path("home/secret").join(from), place.path("home/secret").join(to)).unwrap();
        }
        let output = waiting.execute(&confinement);
        assert_eq!(text(&output), "notesCANARY", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn a_directory_that_took_the_place_of_another_is_looked_up_again() {
    as_each_user(|place| {
        place.make("elsewhere/key", "ELSEWHERE");
        place.make("elsewhere/other", "ANOTHER");
        let confinement = with_other(place);
        let waiting = Waiting::prepared(place, &confinement, READ);
        fs::rename(place.path("home/secret"), place.path("home/before")).unwrap();
        fs::rename(place.path("elsewhere"), place.path("home/secret")).unwrap();
        let output = waiting.execute(&confinement);
        assert_eq!(text(&output), "notesANOTHER", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn other_rights_than_were_announced_hold() {
    as_each_user(|place| {
        let announced = with_other(place);
        let mut ordered = announced.clone();
        ordered.rights.hidden = vec![place.path("home").into()];
        ordered.rights.write.clear();
        let script = &format!("{READ}; echo more > new");
        let output = Waiting::prepared(place, &announced, script).execute(&ordered);
        assert_eq!(text(&output), "", "{}", errors(&output));
        assert!(errors(&output).contains("new: "), "{}", errors(&output));
        assert!(!place.path("project/new").exists());
        let output = Waiting::prepared(place, &ordered, READ).execute(&announced);
        assert_eq!(text(&output), "notesOTHER", "{}", errors(&output));
    });
}

#[test]
fn whoever_it_was_announced_for_it_is_not_for_another() {
    as_each_user(|place| {
        if place.user().is_some() {
            // Only root becomes somebody else.
            return;
        }
        if !nix::unistd::geteuid().is_root() {
            return eprintln!("skipped: to become another user (needs root)");
        }
        let somebody = Identity { uid: 12345, gid: 12345 };
        let announced = Confinement { identity: Some(somebody), ..order(place) };
        let another = Confinement { identity: Some(Identity { uid: 12346, gid: 12346 }), ..order(place) };
        for ordered in [order(place), another] {
            let output = Waiting::prepared(place, &announced, "id -u").execute(&ordered);
            assert_eq!(output.status.code(), Some(Stage::Identity.code().into()), "{}", errors(&output));
        }
        let output = Waiting::prepared(place, &announced, "id -u").execute(&announced);
        assert_eq!(text(&output), "12345\n", "{}", errors(&output));
        let output = Waiting::prepared(place, &order(place), "id -u").execute(&announced);
        assert_eq!(text(&output), "12345\n", "{}", errors(&output));
    });
}

#[test]
fn without_an_order_it_ends_by_itself() {
    as_each_user(|place| {
        let waiting = Waiting::prepared(place, &order(place), "echo started");
        let output = waiting.without_order();
        assert_eq!(output.status.code(), Some(Stage::Rights.code().into()));
        assert_eq!(text(&output), "");
    });
}
