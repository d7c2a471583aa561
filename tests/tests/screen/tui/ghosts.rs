//! Tests that scrolling leaves nothing behind on the screen in tmux. Tmux has its own tables of character widths.

use std::path::PathBuf;
use std::time::Duration;

use tests::random::Random;

use super::*;

/// Time without a change after which a screen counts as complete.
const STILL: Duration = Duration::from_millis(200);

struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Starts the UI in tmux. `None` without tmux.
    fn start(world: &World, ui: &Command) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: needs tmux");
            return None;
        }
        let tmux = Self { socket: world.own().join("tmux") };
        let mut start = tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"]);
        start.arg("-c").arg(ui.get_current_dir().unwrap_or(world.project().as_ref()));
        start.args(["env", "-i", "TERM=screen-256color", "LANG=C.UTF-8"]);
        for (name, value) in ui.get_envs().filter(|(name, _)| *name != "TERM" && *name != "LANG") {
            let Some(value) = value else { continue };
            start.arg([name, value].join(std::ffi::OsStr::new("=")));
        }
        start.arg(ui.get_program()).args(ui.get_args());
        Finished::of(&mut start).expect(0);
        Some(tmux)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).args(arguments);
        tmux
    }

    fn types(&self, text: &str) {
        Finished::of(&mut self.command(&["send-keys", "-l", text])).expect(0);
    }

    /// Returns the characters on the screen.
    fn screen(&self) -> String {
        Finished::of(&mut self.command(&["capture-pane", "-p"])).expect(0).stdout
    }

    fn until_shown(&self, text: &str) {
        wait_until(text, || self.screen().contains(text));
    }

    /// Returns the screen's text as soon as it no longer changes.
    fn at_rest(&self) -> String {
        let mut before = self.screen();
        loop {
            thread::sleep(STILL);
            let now = self.screen();
            if now == before {
                return now;
            }
            before = now;
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        drop(self.command(&["kill-server"]).output());
    }
}

#[test]
fn in_tmux_no_scroll_leaves_anything_behind() {
    let (world, server) = (world(), model_of([says(&storm::odd_text(), "end_turn")]));
    let Some(tmux) = Tmux::start(&world, &world.ui(&server, &[])) else { return };
    tmux.until_shown("net off");
    tmux.types("go\r");
    tmux.until_shown("100 in");
    let mut random = Random::new(13);
    let mut seen = std::collections::BTreeSet::new();
    for step in 0..16 {
        let keys = storm::scroll(&mut random);
        tmux.types(&keys);
        tmux.types(storm::MARK);
        tmux.until_shown(storm::MARK);
        tmux.types(storm::TAKE_BACK);
        wait_until("the mark is gone", || !tmux.screen().contains(storm::MARK));
        let stands = tmux.at_rest();
        tmux.types(storm::REDRAW);
        assert_eq!(stands, tmux.at_rest(), "step {step}, {keys:?}");
        seen.insert(stands);
    }
    assert!(seen.len() > 4, "it scrolled: {seen:?}");
}
