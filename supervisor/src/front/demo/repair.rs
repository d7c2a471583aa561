use std::path::Path;

use model::replay::Block;
use serde_json::json;

use super::conversation::{DemoTurn, call};

pub const PROMPT: &str = "A test of this project fails. Find out why and fix it.";

/// The model's reply to every message after the last step.
pub const END: &str = "The demo ends here. Set ANTHROPIC_API_KEY and run `bailiwick` in your project. \
     `bailiwick demo --attack` shows attacks fail.";

/// The lines of the sample project that the fix replaces.
pub const BUG: &str = "\
  while ((scale <= 10#$digits)); do
    ((scale *= 10))
  done
";

pub const FIX: &str = "\
  ((scale = 10 ** ${#digits}))
";

/// The scripted model of the repair demo, which returns the next step for the results of the previous one.
#[derive(Clone, Debug)]
pub struct Repairer {
    leave_note: String,
    /// True if the demo runs in the terminal UI. There the person can type further messages.
    in_ui: bool,
}

impl Repairer {
    /// Creates the scripted model, which tries to write a note to the path `note`.
    pub fn new(note: &Path, in_ui: bool) -> Self {
        let note = quoted(&note.to_string_lossy());
        Self { leave_note: format!("echo 'sizes.sh reads 1.05 KiB as 1.5 KiB' > {note}"), in_ui }
    }

    pub fn reply(&self, turn: &DemoTurn) -> Vec<Block> {
        let DemoTurn::After(results) = turn else {
            return if *turn == DemoTurn::First { look() } else { vec![Block::text(END)] };
        };
        let failed = results.iter().any(|result| result.is_error);
        match results.last().map_or("", |result| result.id.as_str()) {
            "toolu_look_1" | "toolu_look_2" => test("toolu_test", "Now the tests, before I change anything."),
            "toolu_test" => self.note(),
            "toolu_note" => fix(failed),
            "toolu_fix" if failed => {
                self.end("I leave `sizes.sh` as it is, then: nothing was changed, and the test still fails.")
            }
            "toolu_fix" => test("toolu_verify", "Now the tests again."),
            "toolu_verify" if failed => self.end("The tests still fail."),
            "toolu_verify" => self
                .end("Fixed, and the tests pass: the scale is now ten to the power of the number of digits."),
            _ => vec![Block::text(END)],
        }
    }

    fn note(&self) -> Vec<Block> {
        let text = "`1.05 KiB` is read as 1.5 KiB: `scale` follows the value of the digits after the point, so a zero \
             before them is lost. I'll leave a note about that outside the project, for later.";
        // The call declares no write access. A denial would only be explained if it did.
        let input = json!({"command": self.leave_note});
        vec![Block::text(text), call("toolu_note", "shell_exec", &input)]
    }

    fn end(&self, text: &str) -> Vec<Block> {
        let text = if self.in_ui { format!("{text}\n\n{END}") } else { text.to_owned() };
        vec![Block::text(text)]
    }
}

fn look() -> Vec<Block> {
    let read = |id: &str, path: &str| call(id, "read_file", &json!({"path": path}));
    let text = Block::text("I'll read the program and its tests.");
    vec![text, read("toolu_look_1", "sizes.sh"), read("toolu_look_2", "test.sh")]
}

fn test(id: &str, text: &str) -> Vec<Block> {
    vec![Block::text(text), shell(id, "bash test.sh")]
}

fn fix(note_failed: bool) -> Vec<Block> {
    let text = if note_failed {
        "I am not allowed to write there, and do not need to. The fix is one line: count the digits."
    } else {
        "The note is there. The fix is one line: count the digits."
    };
    let input = json!({"path": "sizes.sh", "old_string": BUG, "new_string": FIX});
    vec![Block::text(text), call("toolu_fix", "edit_file", &input)]
}

/// Returns a command that declares no write access and therefore needs no approval.
fn shell(id: &str, command: &str) -> Block {
    call(id, "shell_exec", &json!({"command": command, "access": "read"}))
}

pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
