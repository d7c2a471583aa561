use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::rights::{NamedRoot, RightsSummary};

use crate::core::read_only;
use crate::seat::Seat;

#[test]
#[allow(clippy::too_many_lines, reason = "the table is what is looked at")]
fn help_is_made_from_the_table() {
    let mut seat = Seat::new(100, 347);
    seat.keys(":help\n");
    assert_snapshot!(seat.screen(), @"
    commands
      :help                         show all commands and keys
      :model NAME                   choose the model; alone: from a list
      :net on|off|HOSTS             set network access, +HOST adds a host
      :mode ask|auto|deny           ask first, allow changes in the project, or deny
      :access                       show the agent's access, and how to change it
      :diff files|steps             show the changes of the session; alone: by file
      :plan TEXT                    make a plan; without TEXT: show the plan
      :review BRANCH|COMMIT         review a change; alone: uncommitted changes
      :findings                     list the findings of the last review
      :rewind                       restore files and conversation to before a message
      :resume SESSION               continue a session; alone: from a list
      :context                      show what fills the model's context window
      :cost                         show tokens and money, by agent
      :compact                      replace the conversation by a summary
      :clear                        start an empty conversation in this session
      :tasks                        show the agent's list of tasks
      :agents                       list the agents: open, message or stop an agent
      :copy                         copy the last answer (or the found line)
      :select                       select lines of the transcript to copy
      :allow ACCESS                 allow write PATH, socket PATH or net
      :disallow ACCESS              withdraw what was allowed
      :image PATH                   attach a picture; without PATH: detach it
      :copy-code                    copy the last code block of the last answer
      :revert PATH                  restore one file to the start of the session
      :agent ID                     show an agent; your messages then go there
      :edit-plan                    edit the plan waiting for approval, in $EDITOR
      :revoke N                     withdraw what you allowed for this session
      :log                          show the events of the session's log
      :q                            quit (by key: at an empty prompt)
    at the prompt
      /NAME                         the same as :NAME; Tab completes, Enter runs
      /etc/hosts says ...           text: a path has a second /
      @NAME                         a file of the project; Tab or Enter completes
      !COMMAND                      run a command of your own in the sandbox
      ?                             at an empty prompt: show the keys that are used most
      a space first, or two lines   send the line as text
    keys in NORMAL
      ? f1                          show all commands and keys
      A                             list the agents: open, message or stop an agent
      y                             copy the last answer (or the found line)
      V                             select lines of the transcript to copy
      Y                             copy the last code block of the last answer
      ctrl-d                        quit (by key: at an empty prompt)
      v                             select from a character to another
      ctrl-v                        select the same columns of each row
      [                             show the agent above in the list
      ]                             show the agent below in the list
      i a                           write a message
      enter                         show the marked row in full; if none: write
      {                             to the message above, yours or the agent's
      }                             to the message below
      (                             to the output, change or sub-agent above
      )                             to the output, change or sub-agent below
      /                             search the transcript for a text
      n                             the next line with that text
      N                             the previous line with that text
      :                             type a command
      shift-tab                     from mode ask to auto, and back
      esc                           stop the turn; when idle: rewind
      ctrl-c                        empty the prompt or stop the turn; twice: quit
      ctrl-z                        suspend; fg continues
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      t                             show or fold the model's thinking
      o ctrl-o                      show or fold the marked row, or all output
      ctrl-t                        show or fold the agents and steps beside the conversation
      R                             ask again (the request timed out)
    keys in INSERT
      f1                            show all commands and keys
      alt-a                         list the agents: open, message or stop an agent
      alt-v                         select lines of the transcript to copy
      ctrl-d                        quit (by key: at an empty prompt)
      alt-up                        to the message above, yours or the agent's
      alt-down                      to the message below
      alt-p                         to the output, change or sub-agent above
      alt-n                         to the output, change or sub-agent below
      tab                           complete the chosen command
      shift-tab                     from mode ask to auto, and back
      ctrl-g                        edit the message in $EDITOR
      ctrl-v                        attach the picture in the clipboard
      esc                           stop the turn; if none runs: to NORMAL
      ctrl-c                        empty the prompt or stop the turn; twice: quit
      ctrl-z                        suspend; fg continues
      ctrl-l                        redraw the screen
      enter                         send
      alt-enter shift-enter ctrl-j  new line
      up ctrl-p                     a line up; on the first: the previous message
      down ctrl-n                   a line down; on the last: the next message
      ctrl-r                        search the messages that were sent
      left ctrl-b                   a character to the left
      right ctrl-f                  a character to the right
      alt-b ctrl-left               a word to the left
      alt-f ctrl-right              a word to the right
      home ctrl-a                   to the start of the line
      end ctrl-e                    to the line's end; if there: to the last answer
      backspace ctrl-h              delete to the left
      delete                        delete to the right
      ctrl-w alt-backspace          delete the word to the left
      ctrl-u                        delete to the start of the line
      ctrl-k                        delete to the end of the line
      pageup                        a page up
      pagedown                      a page down
      ctrl-o                        show or fold the marked row, or all output
      ctrl-t                        show or fold the agents and steps beside the conversation
      alt-r                         ask again (the request timed out)
    keys in COMMAND
      tab                           complete the chosen command
      esc                           stop the turn; if none runs: to NORMAL
      ctrl-c                        empty the prompt or stop the turn; twice: quit
      enter                         send
      up ctrl-p                     a line up; on the first: the previous message
      down ctrl-n                   a line down; on the last: the next message
      left ctrl-b                   a character to the left
      right ctrl-f                  a character to the right
      alt-b ctrl-left               a word to the left
      alt-f ctrl-right              a word to the right
      home ctrl-a                   to the start of the line
      end ctrl-e                    to the line's end; if there: to the last answer
      backspace ctrl-h              delete to the left
      delete                        delete to the right
      ctrl-w alt-backspace          delete the word to the left
      ctrl-u                        delete to the start of the line
      ctrl-k                        delete to the end of the line
    keys in APPROVAL
      v                             edit the plan waiting for approval, in $EDITOR
      : /                           type a command
      ctrl-z                        suspend; fg continues
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      y                             yes, once
      s                             yes, for this session: choose the scope
      p                             yes, always in this project: show the commands
      h                             yes in part: choose hunks, or edit the new text
      t                             yes to everything in this turn: show the access
      n                             no
      e                             no, with a reason for the model
      d                             full screen, and back
      a                             show all changes of the reply on one card
      ?                             why this is asked, and where the rule comes from
      esc ctrl-c                    no, and stop the turn
      c                             comment on the steps of a plan
      i tab                         edit the steps of a plan, or fill in a form
      =                             compare the versions of a plan
    keys in DENIED
      : /                           type a command
      ctrl-z                        suspend; fg continues
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      o                             yes, once
      s h                           yes, for this session: choose the scope
      t                             yes to everything in this turn: show the access
      n                             no
      e                             no, with a reason for the model
      d                             full screen, and back
      ?                             why this is asked, and where the rule comes from
      esc ctrl-c                    no, and stop the turn
    keys in SCOPE
      : /                           type a command
      k up                          up
      j down                        down
      pageup                        a page up
      pagedown                      a page down
      y                             yes, as chosen
      e                             edit the pattern
      left h                        remove a word from the prefix
      right l                       add a word to the prefix
      esc n ctrl-c                  back
    keys in AGENTS
      enter l right                 show the agent's output, live
      m i                           write a message to the agent
      x                             stop the agent and its sub-agents
      esc q h left                  close the list
      :                             type a command
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      g home                        to the beginning
      G end                         to the end, and follow new output
    keys in COMMENTS
      : /                           type a command
      k up                          up
      j down                        down
      pageup                        a page up
      pagedown                      a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      esc q ctrl-c                  back
      enter c i                     write a comment on the step
      s                             no, with these comments
    keys in STEPS
      : /                           type a command
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      esc q ctrl-c                  back
      enter e i                     edit the chosen field
      tab ]                         the next step
      shift-tab [                   the previous step
      K alt-up                      move the step or condition up
      J alt-down                    move the step or condition down
      a o                           add a step after this one
      c                             add a command that has to pass
      t                             turn a command into a condition in words, or back
      d delete                      delete the chosen step or field
      u                             undo the last change
      s                             save as a new version, and ask again
    keys in PART
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      y                             yes, as chosen
      space x                       take this hunk, or leave it out
      e                             edit the new text of the file in your editor
      esc q ctrl-c                  back
      u                             undo the last change
    keys in FORM
      esc ctrl-c                    back
      tab enter down                the next field
      shift-tab up                  the previous field
      right                         the next value that can be chosen
      left                          the previous value
    keys in VERSIONS
      :                             type a command
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      esc q ctrl-c                  back
      h left                        compare an older version
      l right                       compare a newer version
      H [                           compare with an older version
      L ]                           compare with a newer version
    keys in PLAN
      :                             type a command
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      =                             compare the versions of a plan
      q esc ctrl-c                  close the plan
    keys in LOG
      :                             type a command
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      enter l right                 show the whole event
      /                             list only events that contain a text
      f                             list only events of this kind, or all
      q esc ctrl-c h left           back, or close the log
    keys in REWIND
      :                             type a command
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      enter l right                 show what would change
      b                             files and conversation
      f                             files only
      c                             conversation only
      u                             undo the last rewind
      y                             restore as shown
      esc q h left ctrl-c           back
    keys in FINDINGS
      :                             type a command
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      enter l right                 show the whole finding
      a                             write a message that asks for a fix
      esc q h left ctrl-c           back
    keys in SELECT
      V alt-v                       select lines of the transcript to copy
      v                             select from a character to another
      ctrl-v                        select the same columns of each row
      y enter                       copy the selection
      a                             select this block; again: the whole message
      o                             to the other end of the selection
      esc q ctrl-c                  leave
      { alt-up                      to the message above, yours or the agent's
      } alt-down                    to the message below
      ( alt-p                       to the output, change or sub-agent above
      ) alt-n                       to the output, change or sub-agent below
      :                             type a command
      ctrl-l                        redraw the screen
      h left                        a character to the left
      l right                       a character to the right
      b ctrl-left                   a word to the left
      w ctrl-right                  a word to the right
      0 ^ home                      to the start of the line
      $ end                         to the line's end; if there: to the last answer
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g                             to the beginning
      G                             to the end, and follow new output
    keys in PAGE
      :                             type a command
      ctrl-l                        redraw the screen
      k up                          up
      j down                        down
      pageup ctrl-u                 a page up
      pagedown ctrl-f               a page down
      g home                        to the beginning
      G end                         to the end, and follow new output
      enter                         choose the row of a list; else close
      esc q ctrl-c                  close the page
    Esc close  j/k scroll
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    ");
}

#[test]
fn help_is_read_from_its_beginning() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":help\n");
    let screen = seat.screen();
    assert!(screen.trim_start().starts_with("commands\n  :help "), "{screen}");
    assert!(screen.contains("Esc close  j/k scroll") && screen.contains(" more lines"), "{screen}");
    seat.keys("G");
    assert!(!seat.screen().contains(" more lines") && seat.screen().contains(" close the page"));
    seat.press(KeyCode::Esc);
    assert!(!seat.screen().contains("close the page"), "the conversation has none of it: {}", seat.screen());
}

#[test]
fn each_row_of_the_help_fits_a_terminal_of_80_columns() {
    let mut seat = Seat::new(80, 340);
    seat.keys(":help\n");
    let screen = seat.screen();
    let rows =
        screen.lines().skip_while(|row| *row != "commands").take_while(|row| !row.starts_with("Esc close"));
    for row in rows {
        assert!(!row.starts_with("  ") || row.chars().count() > 32, "a row continues on the next: {row:?}");
    }
}

#[test]
fn lines_of_ours_are_broken_between_words_and_the_rest_stands_further_right() {
    let mut seat = Seat::new(70, 12);
    seat.keys(":help\n");
    let top = |seat: &Seat| seat.screen().lines().take(7).collect::<Vec<_>>().join("\n");
    assert_snapshot!(top(&seat), @"
    commands
      :help                         show all commands and keys
      :model NAME                   choose the model; alone: from a list
      :net on|off|HOSTS             set network access, +HOST adds a host
      :mode ask|auto|deny           ask first, allow changes in the
                                    project, or deny
      :access                       show the agent's access, and how to
    ");
    let mut seat = Seat::new(40, 40);
    let write = vec![NamedRoot::Path("/srv/site/assets".into())];
    seat.change_rights(RightsSummary { write, ..read_only() });
    seat.keys(":allow\n");
    assert!(
        seat.screen().contains("\n  writes in /srv/site/assets ·\n    :disallow write"),
        "{}",
        seat.screen()
    );
}
