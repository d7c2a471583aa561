//! What it looks like.

use insta::assert_snapshot;
use ipc::approval::ServerRequest;
use ipc::event::{EventKind, ToolCallStatus};
use ipc::frontend::UiEventKind;
use ipc::id::CallId;
use serde_json::json;
use tui::{Colour, Msg};

use crate::core::{denial, exec, patch, update};
use crate::seat::{Seat, start};

/// A turn with a bit of everything.
fn work(seat: &mut Seat) {
    seat.keys("Mend the parser\n");
    seat.log(EventKind::UserMessage { text: "Mend the parser".to_owned() });
    seat.core(UiEventKind::ThinkingDelta {
        text: "The error is in parse.rs, I think.\nLet me look.".to_owned(),
    });
    seat.stream("I look at the tests first,\nthen at the ");
    seat.stream("parser.");
    seat.call(11, "shell_exec", &json!({"command": "cargo test --quiet 2>&1", "access": "read"}));
    for n in 0..12 {
        seat.core(UiEventKind::OutputDelta { call: CallId(11), text: format!("test parse_{n} ... ok\n") });
    }
    seat.finish(11, ToolCallStatus::Completed, &"test parse ... ok\n".repeat(12));
    seat.call(12, "shell_exec", &json!({"command": "touch /etc/probe && echo done"}));
    seat.log(denial());
    seat.finish(12, ToolCallStatus::Denied, "touch: cannot touch '/etc/probe': Permission denied\n");
    let edit = json!({"path": "src/lib.rs", "old_string": "fn a() {\n    1\n}\n", "new_string": "fn a() {\n    2\n}\n"});
    seat.call(13, "edit_file", &edit);
    seat.finish(13, ToolCallStatus::Completed, "edited");
    seat.end_turn("done");
}

#[test]
fn the_first_frame_says_what_is_allowed_and_which_keys_work() {
    let seat = Seat::new(80, 24);
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q

















    ────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn the_first_frame_of_the_smallest_terminal() {
    let seat = Seat::new(40, 10);
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus
      hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc
      Normal · :help · :q


    ────────────────────────────────────────
    ›
     INSERT  execute · ask · net: off · full
    ");
}

#[test]
fn below_the_smallest_a_line_says_so() {
    let seat = Seat::new(39, 10);
    assert_snapshot!(seat.screen().trim_end(), @"too small: 40x10 at least");
    Seat::new(1, 1);
    Seat::new(200, 9);
}

#[test]
fn a_turn_of_work_at_110_by_40() {
    let mut seat = Seat::new(110, 40);
    work(&mut seat);
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q

    › Mend the parser
    ┊ thinking, 2 rows · t in Normal shows it

      I look at the tests first,
      then at the parser.
    ✓ shell_exec (read) cargo test --quiet 2>&1 · 12 ms
      … 4 more rows · o in Normal shows them
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
    ✗ shell_exec touch /etc/probe && echo done · denied after 12 ms
      touch: cannot touch '/etc/probe': Permission denied
    ✗ likely denied   shell_exec #12   agent 1
      tried     write /etc/probe   (Landlock, EACCES)
      because   rights: rw . $TMPDIR · ro / minus hidden · net off
      missing   write /etc/probe
      to allow  --write /etc/probe
      command   touch /etc/probe && echo done
    ✓ edit_file src/lib.rs · 12 ms
      @@ -1,3 +1,3 @@
       fn a() {
      -    1
      +    2
       }
    done · 10k in (9.0k cached) · 456 out · 3.4 s


    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  execute · ask · net: off · full · turn ↑10k ↓456 · all ↑10k ↓456
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn a_turn_of_work_at_80_by_24() {
    let mut seat = Seat::new(80, 24);
    work(&mut seat);
    assert_snapshot!(seat.screen(), @r"
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
    ✗ shell_exec touch /etc/probe && echo done · denied after 12 ms
      touch: cannot touch '/etc/probe': Permission denied
    ✗ likely denied   shell_exec #12   agent 1
      tried     write /etc/probe   (Landlock, EACCES)
      because   rights: rw . $TMPDIR · ro / minus hidden · net off
      missing   write /etc/probe
      to allow  --write /etc/probe
      command   touch /etc/probe && echo done
    ✓ edit_file src/lib.rs · 12 ms
      @@ -1,3 +1,3 @@
       fn a() {
      -    1
      +    2
       }
    done · 10k in (9.0k cached) · 456 out · 3.4 s
    ────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  execute · ask · net: off · full · turn ↑10k ↓456 · all ↑10k ↓456
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn a_turn_of_work_at_40_by_10() {
    let mut seat = Seat::new(40, 10);
    work(&mut seat);
    assert_snapshot!(seat.screen(), @r"
      @@ -1,3 +1,3 @@
       fn a() {
      -    1
      +    2
       }
    done · 10k in (9.0k cached) · 456 out ·
      3.4 s
    ────────────────────────────────────────
    ›
     INSERT  execute · ask · net: off · full
    ");
}

#[test]
fn an_answer_that_streams_says_what_happens() {
    let mut seat = Seat::new(80, 16);
    seat.keys("hello\n");
    seat.stream("Once upon a time");
    seat.wait(2_500);
    seat.keys("and then?\n");
    seat.keys("next");
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q

      Once upon a time






    queued › and then?
    ── answering 2 s · Esc interrupts ──────────────────────────────────────────────
    › next
     INSERT  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn a_command_is_asked_for() {
    let mut seat = Seat::new(80, 24);
    seat.ask_command("cargo test --workspace 2>&1 | tail -5\necho done");
    seat.wait(400);
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q





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
    ────────────────────────────────────────────────────────────────────────────────
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
fn a_change_of_files_is_asked_for() {
    let mut seat = Seat::new(80, 24);
    let diff = "@@ -1,3 +1,3 @@\n fn a() {\n-    1\n+    2\n }\n";
    let new = ipc::approval::FileChange::Add { content: "a line\nand one without its end".to_owned() };
    let files = [("/home/me/project/src/lib.rs", update(diff)), ("/home/me/project/src/new.rs", new)];
    seat.ask(3, ServerRequest::ApplyPatchApproval(patch(&files)));
    seat.ask(4, ServerRequest::ExecCommandApproval(exec("true")));
    seat.wait(400);
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q


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
    ────────────────────────────────────────────────────────────────────────────────
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
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q










     approve this command? · 4:59 left ─────────────────────────────────────────────
        exactly this command
    ▸ commands that begin with: cargo
        ANOTHER RIGHT: write everywhere under /home/me/project
      effect    each match, one by one, without asking; standing rights stay
    · any command that begins with ["cargo"]
    y approve so  ↑/↓ choose  ←/→ words  esc back
    ────────────────────────────────────────────────────────────────────────────────
    ›
     APPROVAL  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    "#);
    seat.keys("j");
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q











     approve this command? · 4:59 left ─────────────────────────────────────────────
        exactly this command
        commands that begin with: cargo
    ▸ ANOTHER RIGHT: write everywhere under /home/me/project
      effect    everything the agent does from now on: the worker is replaced
    y approve so  ↑/↓ choose  esc back
    ────────────────────────────────────────────────────────────────────────────────
    ›
     APPROVAL  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
#[allow(clippy::too_many_lines, reason = "the table is what is looked at")]
fn help_is_made_from_the_table() {
    let mut seat = Seat::new(100, 90);
    seat.keys(":help\n");
    assert_snapshot!(seat.screen(), @r"
      :revoke N                     take back what was approved for the session
      :help                         this table
      :q                            end the session (ctrl-d: where the prompt is empty)
    keys in the mode normal
      ? f1                          this table
      ctrl-d                        end the session (ctrl-d: where the prompt is empty)
      i a enter                     write a message
      :                             type a command
      esc                           end the turn that runs; the partial answer stays
      ctrl-c                        empty the prompt, else interrupt
      ctrl-z                        stop; fg goes on
      ctrl-l                        draw everything anew
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow it
      t                             show or fold the model's thinking
      o                             show or fold what tools printed
    keys in the mode insert
      f1                            this table
      ctrl-d                        end the session (ctrl-d: where the prompt is empty)
      esc                           to Normal; interrupt, where the prompt is empty
      ctrl-c                        empty the prompt, else interrupt
      ctrl-z                        stop; fg goes on
      ctrl-l                        draw everything anew
      enter                         send
      alt-enter shift-enter ctrl-j  another line
      up ctrl-p                     a line up; before the first: the message before
      down ctrl-n                   a line down; after the last: the message after
      left ctrl-b                   a character to the left
      right ctrl-f                  a character to the right
      alt-b ctrl-left               a word to the left
      alt-f ctrl-right              a word to the right
      home ctrl-a                   to the start of the line
      end ctrl-e                    to the end of the line
      backspace ctrl-h              delete to the left
      delete                        delete to the right
      ctrl-w alt-backspace          delete the word to the left
      ctrl-u                        delete to the start of the line
      ctrl-k                        delete to the end of the line
      pageup                        a page up
      pagedown                      a page down
    keys in the mode command
      esc                           to Normal; interrupt, where the prompt is empty
      ctrl-c                        empty the prompt, else interrupt
      enter                         send
      up ctrl-p                     a line up; before the first: the message before
      down ctrl-n                   a line down; after the last: the message after
      left ctrl-b                   a character to the left
      right ctrl-f                  a character to the right
      alt-b ctrl-left               a word to the left
      alt-f ctrl-right              a word to the right
      home ctrl-a                   to the start of the line
      end ctrl-e                    to the end of the line
      backspace ctrl-h              delete to the left
      delete                        delete to the right
      ctrl-w alt-backspace          delete the word to the left
      ctrl-u                        delete to the start of the line
      ctrl-k                        delete to the end of the line
    keys in the mode approval
      ctrl-z                        stop; fg goes on
      ctrl-l                        draw everything anew
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow it
      y                             approve this once
      s                             approve for the session: choose how far
      n                             deny
      e                             deny, with a word to the model
      d                             the whole of it on the whole screen
      esc ctrl-c                    deny, and end the turn
    keys in the mode scope
      k up                          up
      j down                        down
      pageup                        a page up
      pagedown                      a page down
      y                             approve as chosen
      e                             edit what is chosen
      left h                        a word less of the prefix
      right l                       a word more of the prefix
      esc n ctrl-c                  back to the request
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  execute · ask · net: off · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
}

#[test]
fn the_network_is_said_to_be_on_when_it_is() {
    let mut seat = Seat::new(80, 16);
    seat.keys(":net on\n");
    let status = |seat: &Seat| format!("{}\n{}\n{}", seat.row(12), seat.row(14), seat.row(15));
    assert_snapshot!(status(&seat), @r"
    ── the worker is drained ───────────────────────────────────────────────────────
     INSERT  execute · ask · net: off → on … · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR caches · ro / minus hidden · net off
    ");
    seat.change_rights("rw $TMPDIR · ro / minus hidden · net on");
    assert_snapshot!(status(&seat), @r"
    ────────────────────────────────────────────────────────────────────────────────
     INSERT  execute · ask · net: on · full · turn ↑0 ↓0 · all ↑0 ↓0
    rw $TMPDIR · ro / minus hidden · net on
    ");
}

#[test]
fn no_colour_means_none() {
    let mut start = start((80, 24));
    start.capabilities.colour = Colour::None;
    let mut seat = Seat::from(start);
    work(&mut seat);
    seat.ask_command("ls");
    seat.wait(400);
    let plain = |cell: &ratatui::buffer::Cell| {
        cell.fg == ratatui::style::Color::Reset && cell.bg == ratatui::style::Color::Reset
    };
    assert!(seat.buffer().content.iter().all(plain));
    assert!(seat.screen().contains("approve this command?"));
    assert!(!seat.reversed(0).is_empty() || (0..24).any(|y| !seat.reversed(y).is_empty()));
}

#[test]
fn what_was_seen_of_a_void_reply_is_marked() {
    let mut seat = Seat::new(60, 12);
    seat.keys("hi\n");
    seat.stream("Half an ans");
    let failed = |retry_in_ms| EventKind::ModelFailed {
        kind: "connection".to_owned(),
        message: "the connection broke".to_owned(),
        retry_in_ms,
    };
    seat.log(failed(Some(500)));
    seat.stream("The whole answer.");
    assert_snapshot!(seat.screen(), @r"
    · ask · rw $TMPDIR caches · ro / minus hidden · net off ·
      full tier
    · Enter sends · Alt-Enter new line · Esc Normal · :help · :q

      Half an ans
    · the reply above was cut off: it does not count
    · the connection broke; trying again in 500 ms

      The whole answer.
    ── answering 0 s · Esc interrupts ──────────────────────────
    ›
     INSERT  execute · ask · net: off · full · turn ↑0 ↓0
    ");
}

#[test]
fn nothing_ticks_when_nothing_happens() {
    let mut seat = Seat::new(80, 24);
    assert_eq!(seat.tick(), None);
    seat.keys("hi\n");
    seat.wait(300);
    assert_eq!(seat.tick().unwrap().as_millis(), 700, "the seconds of the turn");
    seat.end_turn("done");
    assert_eq!(seat.tick(), None);
    seat.ask_command("ls");
    assert_eq!(seat.tick().unwrap().as_millis(), 300, "the moment from which keys count");
    seat.wait(300);
    assert_eq!(seat.tick().unwrap().as_millis(), 700, "the time that is left");
    seat.send(Msg::CoreGone);
    assert_eq!(seat.tick(), None);
}
