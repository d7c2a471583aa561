//! Runs the real terminal UI on a pseudo-terminal, and reads its output by a terminal emulator.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::{MouseProtocolMode, Parser};

use crate::process::wait_until;
use crate::svg::svg;
use crate::world::{KEY, World};

/// Program on a pseudo-terminal.
pub struct Ui {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Slave side of the terminal. It is kept open, because a terminal loses its modes when its last user closes it.
    /// `None` after the program's end.
    slave: Option<Box<dyn portable_pty::SlavePty + Send>>,
    modes_before: String,
    seen: Arc<Mutex<Seen>>,
    reader: JoinHandle<()>,
}

struct Seen {
    bytes: Vec<u8>,
    parser: Parser,
}

/// Names of the modes that are on in the emulated terminal.
pub type Modes = Vec<&'static str>;

/// Time that a request must be on the screen before a key can answer it, with some reserve.
const LOOKED_AT: Duration = Duration::from_millis(400);

/// Modes that are on while the UI controls the terminal.
pub const TAKEN: &[&str] = &["alternate screen", "bracketed paste", "mouse"];

#[derive(Debug)]
pub struct Left {
    pub code: u32,
    pub bytes: Vec<u8>,
    pub screen: String,
    /// Modes that are on after the program's end. There should be none.
    pub modes: Modes,
}

impl World {
    /// Returns `bailiwick` in the project with an API key and a model server, for a run on a terminal.
    pub fn ui(&self, server: &ReplayServer, arguments: &[&str]) -> Command {
        let mut command = self.bailiwick(["--base-url", &server.base_url(), "-C"]);
        command.arg(self.project()).args(self.tier_flags()).args(arguments);
        command.env("ANTHROPIC_API_KEY", KEY).env("TERM", "xterm-256color");
        command
    }
}

impl Ui {
    /// Starts a program on a terminal with `size` columns and rows.
    pub fn start(command: &Command, size: (u16, u16)) -> Self {
        Self::start_with_keys(command, size, "")
    }

    /// Types `keys` on a new terminal, then starts a program there.
    pub fn start_with_keys(command: &Command, (columns, rows): (u16, u16), keys: &str) -> Self {
        let size = PtySize { rows, cols: columns, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let modes_before = modes_of(&*pair.master);
        let mut keyboard = pair.master.take_writer().expect("a writer");
        keyboard.write_all(keys.as_bytes()).expect("a terminal takes keys");
        let child = pair.slave.spawn_command(builder(command)).expect("the program starts");
        let mut screen = pair.master.try_clone_reader().expect("a reader");
        let seen = Seen { bytes: Vec::new(), parser: Parser::new(count(rows), count(columns), 0) };
        let seen = Arc::new(Mutex::new(seen));
        let shared = Arc::clone(&seen);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut buffer) {
                let mut seen = shared.lock().expect("no panic");
                seen.bytes.extend_from_slice(&buffer[..read]);
                seen.parser.process(&buffer[..read]);
            }
        });
        Self { master: pair.master, keyboard, child, slave: Some(pair.slave), modes_before, seen, reader }
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Returns the text on the screen, without trailing blanks.
    pub fn screen(&self) -> String {
        self.seen.lock().expect("no panic").parser.screen().contents()
    }

    pub fn picture(&self) -> String {
        svg(self.seen.lock().expect("no panic").parser.screen())
    }

    /// Returns the output as text, without the query for the terminal's background colour.
    pub fn text(&self) -> String {
        without_question(self.bytes())
    }

    /// Returns all bytes that were written to the terminal.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.lock().expect("no panic").bytes.clone()
    }

    pub fn modes(&self) -> Modes {
        modes(self.seen.lock().expect("no panic").parser.screen())
    }

    /// True if the terminal passes on each key at once (raw mode), as for full-screen programs.
    pub fn is_raw(&self) -> bool {
        modes_of(&*self.master) != self.modes_before
    }

    /// Waits until the screen satisfies a condition. After a time limit, fails the test with the message `what`.
    pub fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let began = std::time::Instant::now();
        wait_until(&format!("the screen shows {what}"), || {
            let screen = self.screen();
            assert!(began.elapsed().as_secs() < 30, "{what} is not shown:\n{screen}");
            is_so(&screen)
        });
    }

    pub fn until_shown(&self, text: &str) {
        self.until(text, |screen| screen.contains(text));
    }

    /// Types keys, given as the bytes that a terminal sends.
    pub fn types(&mut self, keys: &str) {
        self.sends(keys.as_bytes());
    }

    /// Sends bytes to the program. They may be an incomplete key sequence.
    pub fn sends(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).expect("a terminal takes keys");
        self.keyboard.flush().expect("a terminal takes keys");
    }

    /// Presses a key repeatedly until the screen satisfies a condition, because the UI does not accept some keys at
    /// once.
    pub fn press_until_so(&mut self, key: &str, what: &str, is_so: impl Fn(&str) -> bool) {
        let mut presses = 0;
        while !is_so(&self.screen()) {
            assert!(presses < 100, "{what} is not shown:\n{}", self.screen());
            presses += 1;
            self.types(key);
            // A request must be visible for a while before keys are accepted.
            thread::sleep(LOOKED_AT);
        }
    }

    pub fn press_until(&mut self, key: &str, text: &str) {
        self.press_until_so(key, text, |screen| screen.contains(text));
    }

    pub fn resize(&self, (columns, rows): (u16, u16)) {
        self.seen.lock().expect("no panic").parser.screen_mut().set_size(count(rows), count(columns));
        self.master.resize(PtySize { rows, cols: columns, ..PtySize::default() }).expect("a terminal");
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("it runs");
    }

    /// Waits for the end of the program. Fails the test if the terminal's modes are not restored.
    pub fn end(mut self) -> Left {
        let mut status = None;
        wait_until("the program ends", || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        let modes_after = modes_of(&*self.master);
        assert_eq!(modes_after, self.modes_before, "the terminal's modes are as they were");
        drop(self.slave.take());
        self.reader.join().expect("no panic");
        let seen = self.seen.lock().expect("no panic");
        let screen = seen.parser.screen();
        let code = status.expect("it was waited for").exit_code();
        Left { code, bytes: seen.bytes.clone(), screen: screen.contents(), modes: modes(screen) }
    }
}

fn count(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a terminal has a size")
}

fn builder(command: &Command) -> CommandBuilder {
    let mut builder = CommandBuilder::new(command.get_program());
    builder.args(command.get_args());
    builder.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            builder.env(name, value);
        }
    }
    if let Some(directory) = command.get_current_dir() {
        builder.cwd(directory);
    }
    builder
}

/// Returns the settings of termios(3) as text.
fn modes_of(terminal: &(dyn MasterPty + Send)) -> String {
    format!("{:?}", terminal.get_termios().expect("a terminal has modes"))
}

fn modes(screen: &vt100::Screen) -> Modes {
    let all = [
        ("alternate screen", screen.alternate_screen()),
        ("bracketed paste", screen.bracketed_paste()),
        ("hidden cursor", screen.hide_cursor()),
        ("mouse", screen.mouse_protocol_mode() != MouseProtocolMode::None),
        ("application keys", screen.application_cursor() || screen.application_keypad()),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

/// Returns the output as text, without the query for the terminal's background colour (OSC 11, DA1). The UI sends this
/// query once.
pub fn without_question(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).expect("the UI writes text");
    text.replacen("\x1b]11;?\x1b\\\x1b[c", "", 1)
}
