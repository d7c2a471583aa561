//! The person's terminal under control of the UI, restored however the UI stops: at its end, panic, signal or ^Z.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, LockResult, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, FlushArg, SetArg, SpecialCharacterIndices, Termios};
use ratatui::layout::Size;

use crate::process::messages::notes;
use crate::process::tty::{size, write_all};

/// Bytes that turn on the modes of the UI: alternate screen (DECSET 1049), bracketed paste (2004) and focus reports
/// (1004), as in xterm's ctlseqs. The title is saved on the terminal's stack (XTWINOPS 22).
const ENTER: &[u8] = b"\x1b[22;0t\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[0m\x1b[H\x1b[2J";

/// Bytes that turn on reports of mouse buttons, including the wheel (1000), in a format without limits (1006).
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";

/// Bytes that end an incomplete frame (2026), turn off the modes, show the cursor (25), and restore the title.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?1049l\x1b[?25h\x1b[23;0t";

/// Longest time that a blocked terminal can delay the end of the process.
const PATIENCE: Duration = Duration::from_millis(300);

/// Assumed size of a terminal that does not report its size.
const USUAL: Size = Size::new(80, 24);

#[derive(Debug)]
pub(super) struct Tty {
    terminal: OwnedFd,
    mouse: bool,
    /// Output to the terminal. The lock is held during each write, so that writes do not mix.
    out: Mutex<File>,
    /// Original modes of the terminal; `None` while they are unchanged. The lock is never held during a wait.
    saved: Mutex<Option<Termios>>,
}

impl Tty {
    /// Creates a terminal from a duplicate of a descriptor, without changing its modes. `mouse` is true if the UI will
    /// use the mouse.
    pub(super) fn new(terminal: BorrowedFd<'_>, mouse: bool) -> io::Result<Self> {
        let out = Mutex::new(File::from(terminal.try_clone_to_owned()?));
        Ok(Self { terminal: terminal.try_clone_to_owned()?, mouse, out, saved: Mutex::new(None) })
    }

    /// Gives the UI control of keys and screen, also again after a shell has used the terminal. In the background this
    /// stops the process until it is in the foreground (SIGTTOU).
    pub(super) fn engage(&self) -> io::Result<()> {
        let mut out = unpoisoned(self.out.lock());
        let saved = unpoisoned(self.saved.lock()).take();
        let modes = saved.map_or_else(|| termios::tcgetattr(&self.terminal), Ok)?;
        let mut raw = modes.clone();
        termios::cfmakeraw(&mut raw);
        // Reads do not wait. Other processes share the descriptor, so it is not made non-blocking.
        raw.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        *unpoisoned(self.saved.lock()) = Some(modes);
        // TCSAFLUSH would drop keys that were typed before for the UI.
        termios::tcsetattr(&self.terminal, SetArg::TCSANOW, &raw)?;
        let modes = if self.mouse { &[ENTER, MOUSE].concat() } else { ENTER };
        write_all(&mut *out, modes).map_err(|(_, error)| error)
    }

    /// Restores the terminal. Drops unread input, because a shell would execute it.
    pub(super) fn release(&self) {
        // If the terminal is blocked, only its modes are restored.
        let out = self.out_within(PATIENCE).filter(|_| self.is_writable_within(PATIENCE));
        let Some(saved) = unpoisoned(self.saved.lock()).take() else { return };
        if let Some(mut out) = out {
            let _ = write_all(&mut *out, LEAVE);
        }
        let _ = termios::tcflush(&self.terminal, FlushArg::TCIFLUSH);
        let _ = termios::tcsetattr(&self.terminal, SetArg::TCSANOW, &saved);
    }

    pub(super) fn modes(&self) -> io::Result<Termios> {
        Ok(termios::tcgetattr(&self.terminal)?)
    }

    pub(super) fn set_modes(&self, modes: &Termios) {
        let _ = termios::tcsetattr(&self.terminal, SetArg::TCSANOW, modes);
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    pub(super) fn is_engaged(&self) -> bool {
        unpoisoned(self.saved.lock()).is_some()
    }

    /// Writes a whole frame. Drops the frame if the UI does not control the terminal.
    pub(super) fn write_frame(&self, frame: &[u8]) -> io::Result<()> {
        let mut out = unpoisoned(self.out.lock());
        if !self.is_engaged() {
            return Ok(());
        }
        write_all(&mut *out, frame).map_err(|(_, error)| error)
    }

    pub(super) fn size(&self) -> Size {
        match size(self.terminal.as_fd()) {
            Some(size) if size.ws_col > 0 && size.ws_row > 0 => Size::new(size.ws_col, size.ws_row),
            _ => USUAL,
        }
    }

    /// Installs a panic hook that restores the terminal before a panic of this thread is printed. Panic messages of
    /// other threads are printed after the end of the UI.
    pub(super) fn release_on_panic(self: &Arc<Self>) {
        let (tty, ours, before) = (Arc::clone(self), thread::current().id(), panic::take_hook());
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if thread::current().id() == ours {
                tty.release();
            } else if notes::hold(&info.to_string()) {
                return;
            }
            before(info);
        }));
    }

    fn out_within(&self, patience: Duration) -> Option<MutexGuard<'_, File>> {
        let deadline = Instant::now() + patience;
        loop {
            match self.out.try_lock() {
                Ok(out) => return Some(out),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => return None,
            }
        }
    }

    fn is_writable_within(&self, patience: Duration) -> bool {
        let mut ready = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLOUT)];
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
        poll(&mut ready, patience).is_ok_and(|ready| ready > 0)
    }
}

/// A guard for the UI's control of the terminal. Dropping the guard restores the terminal.
#[derive(Debug)]
pub(super) struct Engaged(pub(super) Arc<Tty>);

impl Drop for Engaged {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Returns the locked value even if a thread panicked with the lock, because no change of the value can be half done.
fn unpoisoned<T>(lock: LockResult<MutexGuard<'_, T>>) -> MutexGuard<'_, T> {
    lock.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use nix::pty::OpenptyResult;

    use super::*;

    /// Opens a terminal that child processes of other tests do not inherit.
    fn openpty() -> OpenptyResult {
        let pty = nix::pty::openpty(None, None).unwrap();
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        pty
    }

    /// The variable that tells a test process that it runs on its own terminal.
    const ON_A_TERMINAL: &str = "BAILIWICK_TEST_ON_A_TERMINAL";

    /// Runs a test in another process on a new terminal and returns its output. Fails if the terminal's modes changed.
    fn on_a_terminal(test: &str) -> String {
        let pty = openpty();
        let before = termios::tcgetattr(&pty.slave).unwrap();
        let stream = || Stdio::from(pty.slave.try_clone().unwrap());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("{}::{test}", module_path!().split_once("::").unwrap().1)]);
        command.args(["--ignored", "--nocapture"]).env(ON_A_TERMINAL, "1").env_remove("RUST_BACKTRACE");
        let mut child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        drop(command);
        let mut ours = File::from(pty.master);
        let reader = thread::spawn({
            let mut ours = ours.try_clone().unwrap();
            move || {
                let mut seen = Vec::new();
                // EIO means that nobody has the terminal open any more.
                let _ = ours.read_to_end(&mut seen);
                String::from_utf8_lossy(&seen).into_owned()
            }
        });
        child.wait().unwrap();
        assert_eq!(termios::tcgetattr(&pty.slave).unwrap(), before);
        drop(pty.slave);
        let seen = reader.join().unwrap();
        let _ = ours.read(&mut [0]);
        seen
    }

    fn engaged() -> Engaged {
        assert!(std::env::var_os(ON_A_TERMINAL).is_some(), "it needs a terminal of its own");
        let tty = Arc::new(Tty::new(io::stdout().as_fd(), false).unwrap());
        tty.release_on_panic();
        tty.engage().unwrap();
        Engaged(tty)
    }

    #[test]
    #[ignore = "the next one runs it on a terminal of its own"]
    fn panics() {
        let _engaged = engaged();
        panic!("the cause");
    }

    #[test]
    fn a_panic_is_reported_on_the_terminal_as_it_was() {
        let seen = on_a_terminal("panics");
        let [entered, left] = [ENTER, LEAVE].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let (_, after) = seen.split_once(&entered).unwrap_or_else(|| panic!("{seen:?}"));
        let (frames, report) = after.split_once(&left).unwrap_or_else(|| panic!("{seen:?}"));
        assert_eq!(frames, "");
        assert!(report.contains("the cause") && !report.contains(&left), "{seen:?}");
    }

    #[test]
    #[ignore = "the next one runs it on a terminal of its own"]
    fn another_thread_panics() {
        notes::begin_to_hold();
        let engaged = engaged();
        let _ = thread::spawn(|| panic!("the other cause")).join();
        engaged.0.write_frame(b"a frame").unwrap();
        drop(engaged);
        engaged_no_more(&notes::end_to_hold());
    }

    fn engaged_no_more(notes: &[String]) {
        println!("held: {notes:?}");
    }

    #[test]
    fn a_panic_of_another_thread_waits_until_the_ui_is_over() {
        let seen = on_a_terminal("another_thread_panics");
        let left = String::from_utf8_lossy(LEAVE);
        let (before, after) = seen.split_once(&*left).unwrap_or_else(|| panic!("{seen:?}"));
        assert!(before.ends_with("a frame") && !before.contains("the other cause"), "{seen:?}");
        assert!(after.contains("held: ") && after.contains("the other cause"), "{seen:?}");
    }

    #[test]
    fn frames_for_a_terminal_that_was_given_back_go_nowhere() {
        let pty = openpty();
        let before = termios::tcgetattr(&pty.slave).unwrap();
        let tty = Tty::new(pty.slave.as_fd(), true).unwrap();
        tty.write_frame(b"too early").unwrap();
        for _ in 0..2 {
            tty.engage().unwrap();
        }
        assert_ne!(termios::tcgetattr(&pty.slave).unwrap(), before);
        tty.write_frame(b"seen").unwrap();
        for _ in 0..2 {
            tty.release();
        }
        tty.write_frame(b"too late").unwrap();
        assert_eq!(termios::tcgetattr(&pty.slave).unwrap(), before);
        // No writer is left, so reading ends with EIO after all data was read.
        drop((tty, pty.slave));
        let mut seen = Vec::new();
        let end = File::from(pty.master).read_to_end(&mut seen).map_err(|error| error.raw_os_error());
        assert_eq!(
            (seen, end),
            ([ENTER, MOUSE, ENTER, MOUSE, b"seen", LEAVE].concat(), Err(Some(libc::EIO)))
        );
    }

    #[test]
    fn a_terminal_that_stands_still_is_given_back_all_the_same() {
        let pty = openpty();
        let before = termios::tcgetattr(&pty.slave).unwrap();
        let tty = Arc::new(Tty::new(pty.slave.as_fd(), false).unwrap());
        tty.engage().unwrap();
        // Nobody reads, so the kernel's buffer is full long before this is written.
        let writer = thread::spawn({
            let tty = Arc::clone(&tty);
            move || tty.write_frame(&vec![b'x'; 1 << 20])
        });
        while tty.is_writable_within(Duration::ZERO) {
            thread::yield_now();
        }
        tty.release();
        assert!(!tty.is_engaged());
        assert_eq!(termios::tcgetattr(&pty.slave).unwrap(), before);
        drop(pty.master);
        assert!(writer.join().unwrap().is_err());
    }
}
