//! Tests `bailiwick sandbox` on a terminal: output, the person's keys, and the command's access to the terminal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pipes;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ipc::confinement::Tier;
use nix::errno::Errno;
use nix::libc;
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, fchmod};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use nix::unistd::{Pid, geteuid, ttyname};
use tests::{Finished, PLAIN_USER, User, World, alive, marked, skip, tier, wait_until};

const SIZE: Winsize = Winsize { ws_row: 31, ws_col: 97, ws_xpixel: 0, ws_ypixel: 0 };

struct Terminal {
    ours: File,
    theirs: OwnedFd,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    before: Termios,
    child: Child,
}

impl Terminal {
    fn run(mut command: Command) -> Self {
        Self::with(&mut command, |command, pty| {
            let stream = || Stdio::from(pty.slave.try_clone().unwrap());
            command.stdin(stream()).stdout(stream()).stderr(stream());
        })
    }

    /// Starts a command on a terminal, with the standard streams that `connect` sets.
    fn with(command: &mut Command, connect: impl Fn(&mut Command, &OpenptyResult)) -> Self {
        let pty = openpty(&SIZE, None).unwrap();
        // A login gives the terminal to its user in this way.
        fchmod(&pty.slave, Mode::from_bits_truncate(0o666)).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        connect(command, &pty);
        let number = pty.slave.as_raw_fd();
        // SAFETY: setsid and ioctl are async-signal-safe; the descriptor is open until the command runs.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                Errno::result(libc::ioctl(number, libc::TIOCSCTTY, 0)).map(drop).map_err(Into::into)
            });
        }
        let child = command.spawn().unwrap();
        let ours = File::from(pty.master);
        let (seen, mut screen) = (Arc::new(Mutex::new(vec![])), ours.try_clone().unwrap());
        let shown = Arc::clone(&seen);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            // EIO: nobody has the terminal open any more.
            while let Ok(read) = screen.read(&mut buffer) {
                shown.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self { ours, theirs: pty.slave, seen, reader, before, child }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    fn until(&self, text: &str) {
        wait_until(text, || self.text().contains(text));
    }

    fn types(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.theirs).unwrap().local_flags.contains(LocalFlags::ICANON)
    }

    /// Waits for the end. Checks that the terminal's settings are restored. Returns the exit code and all output.
    fn end(mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        let after = tcgetattr(&self.theirs).unwrap();
        assert_eq!(after, self.before, "the terminal is as it was");
        drop(self.theirs);
        self.reader.join().unwrap();
        let seen = String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned();
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), seen)
    }
}

fn bash(world: &World, tier: Tier, script: &str) -> Command {
    let mut command = world.sandbox(tier, &[], "bash");
    command.args(["-c", script]);
    command
}

#[test]
fn a_command_has_a_terminal_of_the_same_size_that_is_not_the_users() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let mut terminal = Terminal::run(bash(
            &world,
            tier,
            "stty size; tty; echo to-tty > /dev/tty; echo to-err >&2; read line; echo got $line; exit 7",
        ));
        terminal.until("to-err");
        let users = ttyname(&terminal.theirs).unwrap();
        terminal.types("typed\n");
        let (code, seen) = terminal.end();
        assert_eq!(code, 7, "{seen}");
        let own = match tier {
            // The full tier has a separate `/dev`, in which the terminal has a name for programs that need one.
            Tier::Full => "/dev/console\r\n",
            Tier::Floor | Tier::FloorUnmediated => "/dev/pts/",
        };
        assert!(seen.starts_with(&format!("31 97\r\n{own}")), "{tier} {user:?}: {seen}");
        assert!(!seen.contains(users.to_str().unwrap()), "{seen}");
        assert!(seen.contains("to-tty\r\nto-err\r\ntyped\r\ngot typed\r\n"), "{seen:?}");
    }
}

#[test]
fn the_terminal_of_who_works_as_a_projects_owner_is_the_owners() {
    if !geteuid().is_root() {
        skip!("only root works in another user's project");
    }
    for tier in tier::all() {
        let world = World::new(User::Myself);
        chown(world.project(), Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
        let script = "id -u; stat -Lc %u:%g /proc/self/fd/0; chmod 600 /proc/self/fd/0 && echo its modes; \
            echo to-tty > /dev/tty; read line < /dev/tty; trap 'echo interrupted; exit 3' INT; echo got $line; \
            while :; do read -t 1; done";
        let mut command = world.bailiwick(["sandbox", "-C"]);
        command.arg(world.project()).args(tier::flags(tier)).args(["--", "bash", "-c", script]);
        let mut terminal = Terminal::run(command);
        terminal.until("to-tty");
        terminal.types("typed\n");
        terminal.until("got typed");
        terminal.types("\x03");
        let (code, seen) = terminal.end();
        assert_eq!(code, 3, "{tier}: {seen}");
        let (uid, all) = (PLAIN_USER, ["to-tty", "got typed", "interrupted"]);
        // In the floor tier, a terminal has no name that shows to whom it belongs.
        assert_eq!(seen.contains("its modes"), tier == Tier::Full, "{tier}: {seen}");
        assert!(seen.starts_with(&format!("{uid}\r\n{uid}:{uid}\r\n")), "{tier}: {seen}");
        assert!(all.iter().all(|part| seen.contains(part)), "{tier}: {seen}");
    }
}

#[test]
fn what_was_planted_is_put_back_after_an_interrupt_at_the_keyboard() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let mut terminal = Terminal::run(bash(&world, tier, "echo evil > .envrc; echo planted; read"));
        terminal.until("planted");
        terminal.types("\x03");
        let (code, seen) = terminal.end();
        assert_eq!(code, 130, "{seen}");
        assert!(!world.project().join(".envrc").exists(), "{seen}");
        assert!(seen.contains("bailiwick: changed and restored: .envrc (created"), "{seen}");
    }
}

#[test]
fn the_window_is_followed() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let script = "trap 'stty size; exit' WINCH; echo ready; while :; do read -t 1; done";
        let terminal = Terminal::run(bash(&world, tier, script));
        terminal.until("ready");
        let larger = Winsize { ws_row: 40, ws_col: 120, ..SIZE };
        // SAFETY: TIOCSWINSZ reads one `winsize`.
        assert_eq!(unsafe { libc::ioctl(terminal.ours.as_raw_fd(), libc::TIOCSWINSZ, &raw const larger) }, 0);
        let (code, seen) = terminal.end();
        assert!(code == 0 && seen.contains("40 120"), "{code} {seen}");
    }
}

#[test]
fn interrupt_and_end_of_file_are_the_commands() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let script = "trap 'echo interrupted' INT; echo ready; read x || read x || :; cat; echo eof; exit 3";
        let mut terminal = Terminal::run(bash(&world, tier, script));
        terminal.until("ready");
        terminal.types("\x03");
        terminal.until("interrupted");
        terminal.types("a line\n\x04\x04");
        let (code, seen) = terminal.end();
        assert!(code == 3 && seen.contains("eof"), "{code} {seen}");
    }
}

#[test]
fn jobs_inside_are_stopped_and_continued_by_a_shell_inside() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let script = "set -m; cat; echo stopped; fg %1 > /dev/null; echo done";
        let mut terminal = Terminal::run(bash(&world, tier, script));
        wait_until("raw", || terminal.is_raw());
        terminal.types("one\n");
        terminal.until("one\r\none\r\n");
        terminal.types("\x1a");
        terminal.until("stopped");
        terminal.types("two\n");
        terminal.until("two\r\ntwo\r\n");
        terminal.types("\x04");
        let (code, seen) = terminal.end();
        assert!(code == 0 && seen.contains("done"), "{code} {seen}");
    }
}

#[test]
fn control_z_stops_the_command_and_us_and_the_terminal_is_the_users_meanwhile() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let ours = tests::Programs::get().path("bailiwick");
        let script = format!(
            "set -m; {} sandbox -C {} {} -- sh -c 'echo ready; cat'; echo status $?; stty -a | grep -o ' icanon'; read go; fg > /dev/null; \
         echo over $?",
            ours.display(),
            world.project().display(),
            tier::flags(tier).join(" "),
        );
        let mut shell = world.command("bash");
        shell.args(["-c", &script]);
        let mut terminal = Terminal::run(shell);
        terminal.until("ready");
        terminal.types("one\n");
        terminal.until("one\r\none\r\n");
        terminal.types("\x1a");
        // 128 + SIGTSTP.
        terminal.until("status 148");
        terminal.until(" icanon");
        terminal.types("go\n");
        wait_until("raw again", || terminal.is_raw());
        terminal.types("two\n");
        terminal.until("two\r\ntwo\r\n");
        terminal.types("\x04");
        let (_, seen) = terminal.end();
        assert!(seen.contains("over 0"), "{seen}");
    }
}

#[test]
fn whatever_ends_us_or_the_command_the_terminal_is_restored() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGINT] {
            let terminal = Terminal::run(bash(&world, tier, "echo ready; read x"));
            terminal.until("ready");
            assert!(terminal.is_raw());
            kill(Pid::from_raw(terminal.child.id().cast_signed()), signal).unwrap();
            let (code, seen) = terminal.end();
            assert_eq!(code, 128 + signal as i32, "{seen}");
        }
        let (code, _) = Terminal::run(bash(&world, tier, "kill -9 $$")).end();
        assert_eq!(code, 137);
        let (code, seen) = Terminal::run(world.sandbox(tier, &[], "/no/such/program")).end();
        assert!(code == 5 && seen.contains("cannot execute"), "{code} {seen}");
    }
}

#[test]
fn what_programs_the_terminal_is_filtered_and_left_modes_are_undone() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let script = r"printf 'a\033]52;c;cm0=\007b\033[21tc\033P$qm\033\\d\033[1mbold\033[0m\033[?1000h\033[?1049h\n'";
        let (code, seen) = Terminal::run(bash(&world, tier, script)).end();
        assert_eq!(code, 0);
        assert_eq!(seen, "abcd\x1b[1mbold\x1b[0m\x1b[?1000h\x1b[?1049h\r\n\x1b[?1000l\x1b[?1049l");
        // Control: without a sandbox, all of it reaches the terminal.
        let mut twin = world.command("bash");
        twin.args(["-c", script]);
        let (_, twin) = Terminal::run(twin).end();
        assert!(twin.contains("\x1b]52;c;cm0=") && twin.contains("\x1b[21t"), "{twin:?}");
    }
}

#[test]
fn answers_that_come_after_the_end_are_swallowed() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let mut terminal = Terminal::run(bash(&world, tier, r"printf '\033[6n'"));
        terminal.until("\x1b[5n");
        terminal.types("\x1b[1;1R\x1b[0n");
        terminal.child.wait().unwrap();
        let mut waiting: libc::c_int = -1;
        // SAFETY: FIONREAD writes one integer.
        unsafe { libc::ioctl(terminal.theirs.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
        assert_eq!(waiting, 0);
        assert_eq!(terminal.end().0, 0);
    }
}

#[test]
fn a_denial_on_the_terminal_is_explained_after_it() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let script = format!("touch {}/f", world.home().display());
        let (code, seen) = Terminal::run(bash(&world, tier, &script)).end();
        assert!(code != 0 && seen.contains("bailiwick: ") && seen.contains("--write"), "{seen}");
    }
}

/// Tests the user's own terminal: opened by name, by every descriptor, and by inserting keys into its input.
#[test]
fn the_users_terminal_is_out_of_reach() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        world.file(
            "attack.py",
            "import fcntl, os, sys, termios\nname = sys.argv[1]\ndef attempt(what, act):\n    try: act(); print('WORKED', what)\n    \
             except OSError: print('failed', what)\ndef own(fd):\n    if os.ttyname(fd) != name: raise OSError()\n\
             attempt('open', lambda: os.write(os.open(name, os.O_WRONLY | os.O_NOCTTY), b'CARD'))\n\
             attempt('read', lambda: os.open(name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))\n\
             attempt('type', lambda: fcntl.ioctl(0, termios.TIOCSTI, b'x'))\n\
             attempt('inherit', lambda: any(own(fd) for fd in (0, 1, 2)))\n\
             for pid in filter(str.isdigit, os.listdir('/proc')):\n    for fd in (0, 1, 2):\n        path = f'/proc/{pid}/fd/{fd}'\n        \
             try: found = os.readlink(path) == name\n        except OSError: continue\n        \
             if found: attempt('proc', lambda: os.write(os.open(path, os.O_WRONLY | os.O_NOCTTY), b'CARD'))\n\
             print('tried')\n",
        );
        let run = |confined: bool| {
            // The name is known once the terminal is made: it is read from a file.
            let script = "until [ -s name ]; do read -t 0.01; done; exec python3 attack.py $(cat name)";
            let mut command = if confined { bash(&world, tier, script) } else { world.command("bash") };
            if !confined {
                command.args(["-c", script]).current_dir(world.project());
            }
            let terminal = Terminal::run(command);
            std::fs::write(
                world.project().join("name"),
                ttyname(&terminal.theirs).unwrap().to_str().unwrap(),
            )
            .unwrap();
            let (_, seen) = terminal.end();
            std::fs::remove_file(world.project().join("name")).unwrap();
            seen
        };
        let seen = run(true);
        assert!(
            seen.contains("tried") && !seen.contains("WORKED") && !seen.contains("CARD"),
            "{tier} {user:?}: {seen}"
        );
        let twin = run(false);
        assert!(twin.contains("WORKED open") && twin.contains("WORKED inherit"), "{tier} {user:?}: {twin}");
    }
}

#[test]
fn a_command_that_clears_its_death_signal_does_not_outlive_a_killed_broker() {
    if !geteuid().is_root() {
        tests::skip!("brokers are not dumpable: only root sees whose they are");
    }
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        // PR_SET_PDEATHSIG, prctl(2).
        let script = "python3 -c 'import ctypes, time; ctypes.CDLL(None).prctl(1, 0); open(\"up\", \"w\"); time.sleep(600)'";
        let child = bash(&world, tier, &format!("exec {script}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the command is up", || world.project().join("up").exists());
        let all = marked(world.mark().as_bytes());
        let argument = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_command = |pid: &u32| {
            let line = argument(*pid);
            // Excludes Bailiwick and the broker, because both have the script among their arguments.
            line.windows(8).any(|part| part == b"prctl(1,")
                && !line.windows(6).any(|part| part == b"\0bash\0")
        };
        let command = all.iter().copied().find(is_command).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{command}/status")).unwrap();
        let broker = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        let broker: u32 = broker.trim().parse().unwrap();
        assert!(all.contains(&broker) && broker != child.id());
        // The command does not wait until the broker has reported its start, after which the broker waits for signals.
        wait_until("the broker has reported the start", || {
            let waits_in = std::fs::read_to_string(format!("/proc/{broker}/wchan")).unwrap();
            ["sigtimedwait", "signalfd_read"].iter().any(|call| waits_in.contains(call))
        });
        kill(Pid::from_raw(broker.cast_signed()), Signal::SIGKILL).unwrap();
        let done = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, 137, "{}", done.stderr);
        assert!(!alive(command), "{tier} {user:?}");
    }
}

#[test]
fn a_server_that_is_started_at_a_keyboard_says_whom_it_waits_for() {
    for (server, partner) in
        [("acp", "an editor that speaks the Agent Client Protocol"), ("serve", "a front end")]
    {
        let world = World::new(User::Myself);
        let mut command = world.command(tests::Programs::get().path("bailiwick"));
        command.arg(server);
        let mut terminal = Terminal::run(command);
        terminal.until(&format!("waits for {partner}"));
        terminal.types("\x04");
        assert_eq!(terminal.end().0, 0);
    }
}
