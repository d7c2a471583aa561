use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use ipc::rights::Reach;
use ipc::tool::Access;
use protocol::approval::{
    ApprovalAnswer, ExternalToolApprovalParams, FileChange, ReviewDecision, ServerAccess, ServerRequest,
    SessionScope,
};
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};

use crate::core::{exec, external, network, patch, update};
use crate::seat::Seat;

#[test]
fn a_command_is_asked_for() {
    let mut seat = Seat::new(80, 24);
    seat.ask_command("cargo test --workspace 2>&1 | tail -5\necho done");
    seat.wait(400);
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit









     Run this command? ─────────────────────────────────────────────────────────────
    │ cargo test --workspace 2>&1 | tail -5
    │ echo done
    the agent's reason:
    “ the tests have to run
      allows    write in this project, once
      runs      by bash -c, in this project
    y yes  s for the session…  n no  ? why  e no, because…  d full screen  Esc stop
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn a_command_is_asked_for_on_the_smallest_terminal() {
    let mut seat = Seat::new(40, 10);
    seat.ask_command("cargo test --workspace 2>&1 | tail -5");
    seat.wait(400);
    assert_snapshot!(seat.screen(), @"
      Esc stop · :q quit
     Run this command? ─────────────────────
    │ cargo test --workspace 2>&1 | tail -5
    the agent's reason:
    “ the tests have to run
      allows    write in this project, once
      runs      by bash -c, in this project
    y yes  s for the session…  n no  ? why
    e no, because…  d full screen  Esc stop
     APPROVAL EXE·ask·off·↑0↓0/↑0↓0
    ");
    seat.keys("G");
    assert_snapshot!(seat.screen(), @"
      Esc stop · :q quit
     Run this command? ─────────────────────
    │ cargo test --workspace 2>&1 | tail -5
    the agent's reason:
    “ the tests have to run
      allows    write in this project, once
      runs      by bash -c, in this project
    y yes  s for the session…  n no  ? why
    e no, because…  d full screen  Esc stop
     APPROVAL EXE·ask·off·↑0↓0/↑0↓0
    ");
}

#[test]
fn what_led_to_a_request_stands_above_it() {
    let mut seat = Seat::new(80, 24);
    seat.stream(&format!("{}the last words", "words\n".repeat(40)));
    seat.ask_command("ls");
    assert!(seat.screen().contains("  the last words"), "{}", seat.screen());
    assert!(seat.screen().contains("the last words\n Run this command?"));
}

#[test]
fn the_network_is_asked_for_with_the_places_besides() {
    let mut seat = Seat::new(60, 20);
    let mut request = network("cargo fetch");
    request.grant.reach = Reach { host: true, lan: true, ..Reach::default() };
    request.access = Access::Read;
    seat.ask(1, ServerRequest::NetworkApproval(request));
    seat.wait(400);
    assert_snapshot!(seat.screen().lines().skip(10).take(6).collect::<Vec<_>>().join("\n"), @"
    │ cargo fetch
      allows    reach the network and this machine and private
                networks, once
      runs      by bash -c, in this project
      writes    nothing
    y yes  s for the session…  n no  ? why  e no, because…
    ");
}

#[test]
fn a_call_of_an_external_tool_is_asked_for_with_every_byte_of_its_arguments() {
    let mut seat = Seat::new(60, 24);
    seat.ask(1, ServerRequest::ExternalToolApproval(external("{\"q\": \"a\u{202e}b\",\n  \"n\": 1.0e2}")));
    seat.wait(400);
    assert_snapshot!(seat.screen(), @r#"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network.
      Secrets hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit



     Call search? ──────────────────────────────────────────────
    │ {"q": "a\u{202e}b",
    │   "n": 1.0e2}
      tool      search
      server    docs
    the agent's reason:
    “ the manual has to be read
      allows    this call, once; the server runs outside the
                sandbox
    y yes  s for the session…  n no  ? why  e no, because…
    d full screen  Esc stop
    ── waiting for your answer ─────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    "#);
    seat.keys("s");
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network.
      Secrets hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit









     Call search? ──────────────────────────────────────────────
    ▸ this tool with exactly these arguments
      allows    this call is made without asking; nothing else
                is allowed
    y yes, as chosen  Esc back  j/k choose
    ── waiting for your answer ─────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.wait(300);
    seat.keys("y");
    let told = seat.told();
    let [UserActionKind::Answer { answer: ApprovalAnswer::ExternalTool(answer), .. }] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(answer.digest.as_deref(), Some("d4"));
    assert_eq!(answer.decision, ReviewDecision::ApprovedForSession { scope: SessionScope::Exact });
}

#[test]
fn a_call_of_a_confined_server_is_asked_for_with_the_access_of_the_server() {
    let mut seat = Seat::new(60, 24);
    let access = ServerAccess {
        read: vec!["/home/me/project".into()],
        variables: vec!["TOKEN\u{1b}[2J".to_owned()],
        ..ServerAccess::default()
    };
    let call = ExternalToolApprovalParams {
        access: Some(access),
        definition: Some("cd".to_owned()),
        ..external("{}")
    };
    seat.ask(1, ServerRequest::ExternalToolApproval(call));
    seat.wait(400);
    let screen = seat.screen();
    for line in [
        "  access    reads /home/me/project",
        "            writes only the server's own files",
        "            network off",
        "            given TOKEN\\u{1b}[2J",
        "  allows    this call, once; the arguments go to that server",
    ] {
        assert!(screen.lines().any(|row| row == line), "{line}:\n{screen}");
    }
    seat.keys("sj");
    seat.wait(300);
    seat.keys("y");
    let told = seat.told();
    let [UserActionKind::Answer { answer: ApprovalAnswer::ExternalTool(answer), .. }] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(answer.decision, ReviewDecision::ApprovedForSession { scope: SessionScope::Tool });
}

#[test]
fn a_tool_of_a_confined_server_is_allowed_always_in_this_project_with_its_effect_on_the_card() {
    let mut seat = Seat::new(60, 24);
    let access = ServerAccess { variables: vec!["TOKEN".to_owned()], ..ServerAccess::default() };
    let call = ExternalToolApprovalParams {
        access: Some(access),
        definition: Some("cd".to_owned()),
        ..external("{}")
    };
    seat.ask(1, ServerRequest::ExternalToolApproval(call));
    seat.wait(400);
    seat.keys("sjj");
    insta::assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network.
      Secrets hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit





     Call search? ──────────────────────────────────────────────
      this tool with exactly these arguments
      this tool with any arguments
    ▸ this tool with any arguments, always in this project
      allows    your config.toml allows this tool in this
                project: calls run without asking, in later
                sessions too, until the tool's definition or the
                server's access changes
    y yes, as chosen  Esc back  j/k choose
    ── waiting for your answer ─────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.wait(300);
    seat.keys("y");
    let told = seat.told();
    let [UserActionKind::Answer { answer: ApprovalAnswer::ExternalTool(answer), .. }] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(answer.decision, ReviewDecision::ApprovedForSession { scope: SessionScope::ToolInProject });
}

#[test]
fn long_arguments_are_read_to_their_end_before_they_are_approved() {
    let mut seat = Seat::new(60, 12);
    let json = format!("{{\"q\": \"{}\"}}", "word ".repeat(200));
    seat.ask(1, ServerRequest::ExternalToolApproval(external(&json)));
    seat.wait(400);
    seat.keys("y");
    assert_eq!(seat.told(), [], "its end was not on the screen");
    seat.keys("Gy");
    assert!(matches!(&seat.told()[..], [UserActionKind::Answer { .. }]));
}

#[test]
fn a_change_of_files_is_asked_for() {
    let mut seat = Seat::new(80, 24);
    let diff = "@@ -1,3 +1,3 @@\n fn a() {\n-    1\n+    2\n }\n";
    let new = FileChange::Add { content: "a line\nand one without its end".to_owned() };
    let files = [("/home/me/project/src/lib.rs", update(diff)), ("/home/me/project/src/new.rs", new)];
    seat.ask(3, ServerRequest::ApplyPatchApproval(patch(&files)));
    seat.ask(4, ServerRequest::ExecCommandApproval(exec("true")));
    seat.wait(400);
    assert_snapshot!(seat.screen(), @r"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit





     Edit 2 files?  +3 -1 ─────────────────────────────────────────────────── 1 of 2
    edit src/lib.rs
    │ 1  fn a() {
    │ 2 -    1
    │ 2 +    2
    │ 3  }
    create src/new.rs
    │ 1 +a line
    │ 2 +and one without its end
    │    \ no line end at the end of the file
      allows    write src/lib.rs, once
    y yes  s for the session…  n no  ? why  e no, because…  d full screen  Esc stop
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn the_keys_that_decide_are_on_the_screen_at_every_size() {
    for (width, height) in [(40, 10), (41, 11), (48, 12), (60, 20), (66, 16), (80, 24), (110, 40)] {
        for command in ["cargo test", &"echo a line of a command; ".repeat(200)] {
            let mut seat = Seat::new(width, height);
            seat.ask_command(command);
            seat.wait(400);
            for keys in ["", "d", "d", "G", "g"] {
                seat.keys(keys);
                let screen = seat.screen();
                let has = |words: &str| screen.contains(words);
                assert!(
                    has("n no") && has("e no, because…") && (has("Esc stop") || has("Esc smaller")),
                    "{screen}"
                );
                let to_end = has("Press G to see the end, then y.") || has(": G, then y");
                assert!(has("y yes") || to_end, "{screen}");
            }
            assert!(seat.screen().contains("y yes"), "the end was on the screen\n{}", seat.screen());
            seat.keys("s");
            assert!(seat.screen().contains("Esc back"), "{}", seat.screen());
        }
    }
}

#[test]
fn the_last_minute_shows_beside_every_question() {
    let diff = "@@ -1 +1 @@\n-a\n+b\n";
    let files: Vec<_> =
        (0..100).map(|n| (format!("/home/me/project/src/file-{n}.rs"), update(diff))).collect();
    let files: Vec<_> = files.iter().map(|(path, change)| (path.as_str(), change.clone())).collect();
    for (request, question) in [
        (ServerRequest::NetworkApproval(network("cargo fetch")), " Run with network? ── 0:58 left · 1 of 2"),
        (ServerRequest::ExecCommandApproval(exec("true")), " Run this command? ── 0:58 left · 1 of 2"),
        (ServerRequest::ApplyPatchApproval(patch(&files)), " Edit 100 files? ──── 0:58 left · 1 of 2"),
        (ServerRequest::ApplyPatchApproval(patch(&files[..1])), " Edit …c/file-0.rs? ─ 0:58 left · 1 of 2"),
    ] {
        let mut seat = Seat::new(40, 10);
        seat.ask(1, request);
        seat.ask(2, ServerRequest::ExecCommandApproval(exec("true")));
        seat.wait(239_000);
        assert!(!seat.screen().contains("left"), "{}", seat.screen());
        seat.wait(2_400);
        let screen = seat.screen();
        assert_eq!(screen.lines().find(|row| row.contains("left")), Some(question));
    }
}

#[test]
fn a_long_path_hides_neither_the_question_nor_the_time() {
    let mut seat = Seat::new(40, 10);
    let path = format!("/home/me/project/{}app.py", "deep/".repeat(20));
    seat.ask(1, ServerRequest::ApplyPatchApproval(patch(&[(&path, update("@@ -1 +1 @@\n-a\n+b\n"))])));
    seat.wait(250_000);
    assert_eq!(seat.row(0), " Edit …p/deep/app.py?  +1 -1 ─ 0:50 left");
}

#[test]
fn several_requests_are_counted_until_the_last_is_answered() {
    let mut seat = Seat::new(80, 24);
    for id in 1..=3 {
        seat.ask(id, ServerRequest::ExecCommandApproval(exec("true")));
    }
    for place in ["1 of 3", "2 of 3", "3 of 3"] {
        seat.wait(400);
        assert!(seat.screen().contains(place), "{place}: {}", seat.screen());
        seat.keys("n");
    }
    seat.ask(4, ServerRequest::ExecCommandApproval(exec("true")));
    assert!(!seat.screen().contains(" of "), "{}", seat.screen());
}

#[test]
fn a_scope_is_chosen_with_a_preview() {
    let mut seat = Seat::new(80, 24);
    seat.ask_command("cargo test --workspace");
    seat.wait(400);
    seat.keys("sjh");
    assert_snapshot!(seat.screen(), @r#"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit









     Run this command? ─────────────────────────────────────────────────────────────
    │ cargo test --workspace
      exactly this command
    ▸ commands that begin with: cargo
      any change in this project (like :mode auto)
      allows    matching commands run without asking; nothing else is allowed
                any command that begins with ["cargo"]
    y yes, as chosen  Esc back  j/k choose  ←/→ words
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    "#);
    seat.keys("j");
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit










     Run this command? ─────────────────────────────────────────────────────────────
    │ cargo test --workspace
      exactly this command
      commands that begin with: cargo
    ▸ any change in this project (like :mode auto)
      allows    everything that the agent does from now on, without asking
    y yes, as chosen  Esc back  j/k choose
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn each_part_of_a_compound_command_can_be_chosen() {
    let mut seat = Seat::new(80, 24);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut request = exec("cargo fmt && cargo test -q");
    (request.prefix, request.parts) = (None, vec![words("cargo fmt"), words("cargo test")]);
    seat.ask(1, ServerRequest::ExecCommandApproval(request));
    seat.wait(400);
    seat.keys("sj");
    assert_snapshot!(seat.screen().lines().skip(6).take(14).collect::<Vec<_>>().join("\n"), @r#"




     Run this command? ─────────────────────────────────────────────────────────────
    │ cargo fmt && cargo test -q
      exactly this command
    ▸ commands that begin with any of: cargo fmt | cargo test
      this command once, and commands that begin with: cargo fmt
      this command once, and commands that begin with: cargo test
      any change in this project (like :mode auto)
      allows    matching commands run without asking; nothing else is allowed
                any command that begins with ["cargo", "fmt"]
                any command that begins with ["cargo", "test"]
    "#);
    seat.keys("jj");
    seat.wait(300);
    seat.keys("y");
    let told = format!("{:?}", seat.told());
    assert!(told.contains(r#"CommandPrefixes([["cargo", "test"]])"#), "{told}");
}

#[test]
fn all_changes_of_the_reply_can_be_shown_as_one() {
    let mut seat = Seat::new(80, 24);
    let file = |name: &str| (format!("/home/me/project/{name}"), update("@@ -1 +1 @@\n-a\n+b\n"));
    let (one, other) = (file("one.rs"), file("other.rs"));
    let mut request = patch(&[(&one.0, one.1.clone())]);
    request.more = 1;
    seat.ask(1, ServerRequest::ApplyPatchApproval(request.clone()));
    seat.wait(400);
    assert!(seat.screen().contains("y yes  s for the session…  a all 2 changes  n no"), "{}", seat.screen());
    seat.keys("a");
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::AskTogether { id: ApprovalId(1) })]);
    let mut both = patch(&[(&one.0, one.1), (&other.0, other.1)]);
    both.with = vec![CallId(8)];
    seat.core(UiEventKind::ApprovalClosed { id: ApprovalId(1) });
    seat.ask(2, ServerRequest::ApplyPatchApproval(both));
    seat.wait(400);
    assert_snapshot!(seat.screen().lines().skip(5).take(14).collect::<Vec<_>>().join("\n"), @"







     Edit 2 files?  +2 -2 ──────────────────────────────────────────────────────────
    edit one.rs
    │ 1 -a
    │ 1 +b
    edit other.rs
    │ 1 -a
    │ 1 +b
    ");
    seat.keys("sa");
    assert_eq!(seat.told(), [], "there is nothing more to show, and nothing for the session");
    seat.keys("y");
    assert_eq!(seat.told().len(), 1);
}

/// Returns the screen after the reply `said` and a request for a command with the reason `reason`.
fn said_and_asked(size: (u16, u16), said: &str, reason: &str) -> String {
    let mut seat = Seat::new(size.0, size.1);
    seat.keys("go\n");
    seat.stream(said);
    seat.log(crate::copy::reply(said));
    seat.call(7, "shell_exec", &serde_json::json!({"command": "make"}));
    let mut params = exec("make");
    params.reason = Some(reason.to_owned());
    seat.ask(1, ServerRequest::ExecCommandApproval(params));
    seat.wait(400);
    seat.screen()
}

#[test]
fn the_reason_is_left_out_where_it_stands_above_the_request() {
    let long = "The tests have to run. ".repeat(60);
    for (size, said, reason, is_left_out) in [
        ((80, 24), "The `tests` have to run.\n", "The `tests` have to run.", true),
        ((80, 24), "The tests have to run.", "Another sentence.", false),
        // The reason is not, or not completely, on the screen.
        ((80, 24), long.as_str(), long.trim(), false),
        ((40, 10), "The tests have to run.", "The tests have to run.", false),
    ] {
        let screen = said_and_asked(size, said, reason);
        assert!(screen.contains("Run this command?"), "{screen}");
        assert_eq!(!screen.contains("the agent's reason"), is_left_out, "{size:?} {said}\n{screen}");
    }
}
