//! What `:help` says.

use insta::assert_snapshot;

use crate::seat::Seat;

#[test]
#[allow(clippy::too_many_lines, reason = "the table is what is looked at")]
fn help_is_made_from_the_table() {
    let mut seat = Seat::new(100, 101);
    seat.keys(":help\n");
    assert_snapshot!(seat.screen(), @r"
    /home/me/project
    · ask · rw $TMPDIR caches · ro / minus hidden · net off · full tier
    · enter sends · alt-enter new line · esc Normal · :help · :q

    commands
      :net on|off                   the network on or off: the worker is replaced
      :mode ask|auto|deny           what becomes of calls beyond the standing rights
      :rights                       what the agent may do now
      :grants                       what was approved for the session
      :revoke N                     take back what was approved for the session
      :image PATH                   a picture to go with the next message; without PATH: none
      :compact                      summarise the conversation and go on with the summary
      :help                         this table
      :q                            end the session (a key: only at an empty prompt)
    keys in the mode normal
      ? f1                          this table
      ctrl-d                        end the session (a key: only at an empty prompt)
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
      ctrl-d                        end the session (a key: only at an empty prompt)
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
fn help_is_read_from_its_beginning() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":help\n");
    let screen = seat.screen();
    assert!(screen.trim_start().starts_with("commands\n  :net on|off"), "{screen}");
    assert!(screen.contains("scrolled: G in Normal follows"), "{screen}");
}
