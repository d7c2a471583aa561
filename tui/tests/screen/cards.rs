//! What a request looks like.

use insta::assert_snapshot;
use ipc::approval::{FileChange, ServerRequest};

use crate::core::{exec, patch, update};
use crate::seat::Seat;

#[test]
fn a_command_is_asked_for() {
    let mut seat = Seat::new(80, 24);
    seat.ask_command("cargo test --workspace 2>&1 | tail -5\necho done");
    seat.wait(400);
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · enter sends · alt-enter new line · esc Normal · :help · :q





     approve this command? · 4:59 left ─────────────────────────────────────────────
      needs     write /home/me/project
      standing  rw $TMPDIR · ro / minus hidden · net off
      asks      agent 1, call 7
      in        /home/me/project
      access    write
    bash -c
    │ cargo test --workspace 2>&1 | tail -5
    │ echo done
    the agent says why (a claim):
    “ the tests have to run
    y once  s session  n no  e no+word  esc stop  d whole
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn a_command_is_asked_for_on_the_smallest_terminal() {
    let mut seat = Seat::new(40, 10);
    seat.ask_command("cargo test --workspace 2>&1 | tail -5");
    seat.wait(400);
    assert_snapshot!(seat.screen(), @r"
     approve this command? · 4:59 left ─────
      needs     write /home/me/project
      standing  rw $TMPDIR · ro / minus
                hidden · net off
      asks      agent 1, call 7
      in        /home/me/project
      access    write
    bash -c
    ↓ 3 more rows  n no  e no+word  d whole
     APPROVAL  execute · ask · net: off
    ");
    seat.keys("G");
    assert_snapshot!(seat.screen(), @r"
     approve this command? · 4:59 left ─────
      asks      agent 1, call 7
      in        /home/me/project
      access    write
    bash -c
    │ cargo test --workspace 2>&1 | tail -5
    the agent says why (a claim):
    “ the tests have to run
    y once  s session  n no  e no+word
     APPROVAL  execute · ask · net: off
    ");
}

#[test]
fn what_led_to_a_request_stands_above_it() {
    let mut seat = Seat::new(80, 24);
    seat.stream(&format!("{}the last words", "words\n".repeat(40)));
    seat.ask_command("ls");
    assert!(seat.row(8).starts_with("  the last words"), "{}", seat.screen());
    assert!(seat.row(9).starts_with(" approve this command?"));
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
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · enter sends · alt-enter new line · esc Normal · :help · :q


     approve this change of files? · 4:59 left · 1 of 2 ────────────────────────────
      needs     write /home/me/project/src/lib.rs
      standing  rw $TMPDIR · ro / minus hidden · net off
      asks      agent 1, call 8
    change /home/me/project/src/lib.rs
      @@ -1,3 +1,3 @@
       fn a() {
      -    1
      +    2
       }
    new file /home/me/project/src/new.rs
      +a line
      +and one without its end
      \ no line end at the end of the file
    y once  s session  n no  e no+word  esc stop  d whole
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn a_scope_is_chosen_with_a_preview() {
    let mut seat = Seat::new(80, 24);
    seat.ask_command("cargo test --workspace");
    seat.wait(400);
    seat.keys("sjh");
    assert_snapshot!(seat.screen(), @r#"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · enter sends · alt-enter new line · esc Normal · :help · :q










     approve this command? · 4:59 left ─────────────────────────────────────────────
      exactly this command
    ▸ commands that begin with: cargo
      ANOTHER RIGHT: write everywhere under /home/me/project
      effect    each match, one by one, without asking; standing rights stay
    · any command that begins with ["cargo"]
    y approve so  j/k choose  left/right words  esc back
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    "#);
    seat.keys("j");
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · enter sends · alt-enter new line · esc Normal · :help · :q











     approve this command? · 4:59 left ─────────────────────────────────────────────
      exactly this command
      commands that begin with: cargo
    ▸ ANOTHER RIGHT: write everywhere under /home/me/project
      effect    everything the agent does from now on: the worker is replaced
    y approve so  j/k choose  esc back
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}
