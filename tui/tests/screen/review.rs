use crossterm::event::KeyCode;
use insta::assert_snapshot;
use protocol::approval::ApprovalMode;
use protocol::event::{EndReason, EventKind};
use protocol::frontend::{AgentAction, UserActionKind};

use crate::core::{online, read_only};
use crate::seat::Seat;

/// Returns the sent messages, each with true if its turn only reads and has no network.
fn sent(seat: &mut Seat) -> Vec<(String, bool)> {
    let message = |kind| match kind {
        UserActionKind::Agent(AgentAction::PromptReading { text, offline, .. }) => Some((text, offline)),
        UserActionKind::Agent(AgentAction::Prompt { text, .. }) => Some((text, false)),
        _ => None,
    };
    seat.told().into_iter().filter_map(message).collect()
}

#[test]
fn a_review_is_sent_at_once_and_reads_without_the_network() {
    let mut seat = Seat::new(100, 24);
    seat.keys("/rev");
    assert!(seat.screen().contains("/review BRANCH|COMMIT"), "{}", seat.screen());
    seat.keys("iew\n");
    let told = sent(&mut seat);
    assert!(told.len() == 1 && told[0].1 && told[0].0.contains("`git diff --no-ext-diff HEAD`"), "{told:?}");
    seat.log(EventKind::UserMessage { text: told[0].0.clone(), images: vec![] });
    let screen = seat.screen();
    assert!(
        screen.contains("› /review\n") && !screen.contains("git diff"),
        "the command stands for it\n{screen}"
    );
    seat.ctrl('o');
    assert!(seat.screen().contains("git diff --no-ext-diff HEAD"), "{}", seat.screen());
    seat.ctrl('o');
    seat.end_turn(EndReason::Done);
    seat.keys("thanks\n");
    assert_eq!(sent(&mut seat), [("thanks".to_owned(), false)]);
    seat.end_turn(EndReason::Done);
    seat.keys("/review origin/main\n");
    let told = sent(&mut seat);
    assert!(told[0].1 && told[0].0.contains("git merge-base origin/main HEAD"), "{told:?}");
}

#[test]
fn a_name_that_a_shell_would_read_otherwise_is_refused() {
    let mut seat = Seat::new(100, 24);
    for name in ["-x", "$(id)", "a;id", "a`id`", "a b"] {
        seat.keys(&format!("/review {name}\n"));
        assert!(sent(&mut seat).is_empty(), "{name}");
        assert!(seat.screen().contains("expected the name of one branch or commit"), "{}", seat.screen());
    }
}

#[test]
fn a_review_waits_for_the_turn_that_runs() {
    let mut seat = Seat::new(100, 24);
    seat.keys("go\n");
    assert_eq!(sent(&mut seat).len(), 1);
    seat.keys("/review\n");
    assert!(sent(&mut seat).is_empty());
    seat.end_turn(EndReason::Done);
    let told = sent(&mut seat);
    assert!(told.len() == 1 && told[0].1, "{told:?}");
}

/// A session after a review with three findings.
fn reviewed() -> Seat {
    let mut seat = Seat::new(80, 14);
    seat.keys("/review\n");
    let answer = "Three defects.\n\n\
        - **high** `src/cache.rs:41`: A key with a colon\u{202e} overwrites another entry.\n  `set(\"a:b\", \"c\")` fails.\n\n  \
        Mend it:\n\n  ```rust\n  escape(key)\n  ```\n\
        - medium `src/lib.rs:7-9`: The file stays open.\n\
        - low `tests/a.rs:3`: The test cannot fail.\n";
    seat.log(crate::copy::reply(answer));
    seat.end_turn(EndReason::Done);
    seat.actions.clear();
    seat
}

#[test]
fn the_findings_are_counted_listed_and_shown_whole() {
    let mut seat = reviewed();
    assert!(
        seat.screen().contains("3 findings: 1 high, 1 medium, 1 low · :findings lists them"),
        "{}",
        seat.screen()
    );
    seat.keys("/findings\n");
    assert_snapshot!(seat.screen(), @r"
    3 findings: 1 high, 1 medium, 1 low
    ▸  1  high      src/cache.rs:41  A key with a colon\u{202e} overwrites another
                                     entry.
       2  medium    src/lib.rs:7-9   The file stays open.
       3  low       tests/a.rs:3     The test cannot fail.





    Enter show  a ask to fix it  Esc close
    ────────────────────────────────────────────────────────────────────────────────
    ›
     FINDINGS  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
    seat.keys("\n");
    assert_snapshot!(seat.screen(), @r#"
    1 · high · src/cache.rs:41

      A key with a colon\u{202e} overwrites another entry.

      set("a:b", "c") fails.

      Mend it:

      ╭ rust
      │ escape(key)
    a ask to fix it  Esc back
    ────────────────────────────────────────────────────────────────────────────────
    ›
     FINDINGS  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    "#);
    seat.press(KeyCode::Esc);
    seat.keys("jj");
    assert!(seat.screen().contains("▸  3  low"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" INSERT "), "{}", seat.screen());
}

#[test]
fn a_finding_becomes_a_message_that_the_person_sends() {
    let mut seat = reviewed();
    seat.keys("and\n");
    sent(&mut seat);
    seat.end_turn(EndReason::Done);
    seat.keys("Please:/findings");
    seat.ctrl('u');
    seat.keys("/findings\n");
    seat.slowly("ja");
    assert!(
        seat.screen().contains("› Fix finding 2 (src/lib.rs:7-9): The file stays open."),
        "{}",
        seat.screen()
    );
    seat.keys(":");
    seat.keys(" soon\n");
    let message = "Fix finding 2 (src/lib.rs:7-9): The file stays open.: soon";
    assert_eq!(sent(&mut seat), [(message.to_owned(), false)]);
}

#[test]
fn no_finding_is_invented_for_another_answer() {
    let mut seat = Seat::new(80, 14);
    seat.keys("go\n");
    seat.log(crate::copy::reply("- high `src/a.rs:1`: written in an ordinary turn."));
    seat.end_turn(EndReason::Done);
    assert!(!seat.screen().contains(":findings lists"), "{}", seat.screen());
    seat.keys("/findings\n");
    assert!(seat.screen().contains("1 finding: 1 high"), "asked for, the answer is read\n{}", seat.screen());
    let mut seat = Seat::new(80, 14);
    seat.keys("/findings\n");
    assert!(seat.screen().contains("there are no findings; :review starts a review"), "{}", seat.screen());
}

#[test]
fn the_access_of_a_turn_that_only_reads_is_listed_and_its_end_says_nothing() {
    let mut seat = Seat::new(100, 24);
    seat.change_rights(online());
    seat.wait(7_000);
    seat.keys("/review\n");
    let narrow = |seat: &mut Seat| {
        seat.log(EventKind::ModeChanged { mode: ApprovalMode::Deny });
        seat.change_rights(read_only());
    };
    narrow(&mut seat);
    assert!(
        !seat.screen().contains("mode: deny") && !seat.screen().contains("access: "),
        "{}",
        seat.screen()
    );
    seat.keys("/access\n");
    assert!(
        seat.screen().contains(
            "until this turn ends\n  /review only reads: no access can be approved, and the network is off\n"
        ),
        "{}",
        seat.screen()
    );
    seat.press(KeyCode::Esc);
    seat.log(crate::copy::reply("Nothing was found."));
    seat.end_turn(EndReason::Done);
    seat.log(EventKind::ModeChanged { mode: ApprovalMode::Ask });
    seat.change_rights(online());
    assert!(!seat.screen().contains("mode: ask") && !seat.screen().contains("access: "), "{}", seat.screen());
    assert!(seat.screen().contains(" ask · net on"), "{}", seat.screen());
    seat.keys("/access\n");
    assert!(!seat.screen().contains("until this turn ends"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    // Changes of access during the turn are reported at once and at the end of the turn.
    seat.keys("/review\n");
    narrow(&mut seat);
    seat.keys(":mode auto\n");
    seat.log(EventKind::ModeChanged { mode: ApprovalMode::Auto });
    assert!(seat.screen().contains("mode: auto"), "{}", seat.screen());
    seat.wait(7_000);
    assert!(!seat.screen().contains("mode: auto"), "{}", seat.screen());
    seat.end_turn(EndReason::Done);
    seat.log(EventKind::ModeChanged { mode: ApprovalMode::Auto });
    assert!(seat.screen().contains("mode: auto"), "{}", seat.screen());
    seat.keys("go\n");
    seat.log(EventKind::ModeChanged { mode: ApprovalMode::Ask });
    assert!(seat.screen().contains("mode: ask"), "an ordinary turn explains nothing\n{}", seat.screen());
}
