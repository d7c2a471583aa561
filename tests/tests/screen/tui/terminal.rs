//! Tests the terminal itself: its size, its end, and control sequences that must not reach it.

use tests::ui::without_question;

use super::*;

#[test]
fn signals_that_end_it_leave_the_terminal_as_it_was() {
    for (signal, busy) in
        [(Signal::SIGTERM, false), (Signal::SIGTERM, true), (Signal::SIGHUP, true), (Signal::SIGQUIT, false)]
    {
        let code = if signal == Signal::SIGHUP { 129 } else { 143 };
        let (world, server) = (world(), model_of([shell("echo started; exec sleep 1000"), done()]));
        let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
        ui.until_shown("net off");
        if busy {
            ui.types("work\r");
            ui.until_shown("started");
        }
        ui.signal(signal);
        let left = ui.end();
        assert_eq!((left.code, &left.modes[..]), (code, &[][..]), "{signal} {busy}");
        assert!(!left.screen.contains("net off"), "{}", left.screen);
        is_summed_up(&left, busy);
        assert_eq!(marked(world.mark().as_bytes()), Vec::<u32>::new());
    }
}

#[test]
fn another_size_is_another_frame() {
    let (world, server) = (world(), model_of([says("A reply that stays.", "end_turn")]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r");
    ui.until_shown("A reply that stays.");
    for size in [(110, 40), (40, 10), (20, 5), (80, 24)] {
        ui.resize(size);
        let wanted = match size {
            (_, ..10) => "needs 40x10",
            (..60, _) => "ask·off",
            _ => "net off",
        };
        ui.until(&format!("{wanted} at {size:?}"), |screen| {
            screen.lines().all(|line| line.chars().count() <= usize::from(size.0)) && screen.contains(wanted)
        });
    }
    ui.until_shown("A reply that stays.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

/// Texts by which a hostile model or program could try to control the terminal.
const HOSTILE: &[&str] = &[
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b]2;title\x1b\\",
    "\x1bP$q\"p\x1b\\",
    "\x1b[2J\x1b[H",
    "\x1b[?1049l",
    "\x1b[?1000h\x1b[?2004l\x1b[?25l",
    "\x1b[24;1HOVERWRITTEN",
    "\u{9b}2J\u{9d}0;title\u{9c}",
    "\u{202e}reversed\u{202c}",
    "\x08\x08\x08\r\x0b\x0c\x05\x1bc",
];

#[test]
fn hostile_text_commands_nothing() {
    let text = HOSTILE.concat() + "\nthe end of it\n";
    let octal = text.bytes().fold(String::new(), |octal, byte| octal + &format!("\\{byte:03o}"));
    let replies = [shell(&format!("printf '{octal}'")), says(&text, "end_turn")];
    let (world, server) = (world(), model_of(replies));
    world.file("AGENTS.md", &text);
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("net off");
    let bar = |screen: &str| screen.lines().filter(|line| line.contains("net off")).count();
    ui.types("go\r");
    ui.until("the summary", |screen| screen.contains("100 in") || screen.contains("200 in"));
    assert_eq!(ui.modes(), TAKEN);
    let screen = ui.screen();
    assert_eq!(bar(&screen), 1, "{screen}");
    assert!(!screen.lines().any(|line| line.starts_with("OVERWRITTEN")), "{screen}");
    assert!(screen.contains("the end of it"), "{screen}");
    ui.types(":q\r");
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (0, &[][..]));
    let written = without_question(left.bytes);
    // Nothing but what moves the cursor, colours, and switches modes of ours on and off.
    for (at, _) in written.match_indices('\x1b') {
        let sequence: String = written[at..].chars().take(40).collect();
        assert!(sequence.starts_with("\x1b["), "{sequence:?}");
        let end =
            sequence[2..].find(|c: char| ('\x40'..='\x7e').contains(&c)).map(|end| &sequence[2..=end + 2]);
        let end = end.unwrap_or_else(|| panic!("{sequence:?}"));
        let own = [
            "22;0t", "23;0t", "?1000h", "?1000l", "?1006h", "?1006l", "?1004h", "?1004l", "?1049h", "?1049l",
            "?2004h", "?2004l", "?2026h", "?2026l", "?25h", "?25l", "2J", "H",
        ];
        assert!(end.ends_with('m') || end.ends_with('H') || own.contains(&end), "{end:?}");
    }
    let controls = written.chars().filter(|c| c.is_control() && !"\x1b\r\n".contains(*c));
    assert_eq!(controls.collect::<String>(), "");
    assert!(!written.contains('\u{202e}'));
}

#[test]
fn stopped_by_the_shell_and_continued_it_goes_on() {
    let (world, server) = (world(), model_of([says("Still here.", "end_turn")]));
    let command = world.ui(&server, &[]);
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ");
    let mut shell = world.command("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "ready> ").env("INPUTRC", "/dev/null");
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let mut ui = Ui::start(&shell, SIZE);
    ui.until_shown("ready>");
    let before = ui.modes();
    ui.types(&format!("{line}\r"));
    ui.until_shown("net off");
    assert_eq!(ui.modes(), TAKEN);
    ui.types("half a mess");
    ui.until_shown("half a mess");
    ui.types("\x1a");
    ui.until("the shell", |screen| screen.contains("Stopped") && screen.trim_end().ends_with("ready>"));
    assert_eq!(ui.modes(), before);
    ui.types("fg\r");
    ui.until_shown("half a mess");
    assert_eq!(ui.modes(), TAKEN);
    ui.types("age\r");
    ui.until_shown("Still here.");
    assert!(sent(&server, 0).contains("half a message"));
    ui.types(":q\r");
    ui.until("the shell", |screen| screen.trim_end().ends_with("ready>") && screen.contains("Ended · "));
    ui.types("exit\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_terminal_without_colours_gets_none() {
    let (world, server) = (world(), model_of([done()]));
    let mut command = world.ui(&server, &[]);
    command.env("NO_COLOR", "1");
    let mut ui = Ui::start(&command, SIZE);
    ui.types("go\r");
    ui.until_shown("Done.");
    ui.types(":q\r");
    let written = String::from_utf8(ui.end().bytes).unwrap();
    for sequence in written.split("\x1b[").skip(1) {
        let Some(end) = sequence.find(|c: char| ('\x40'..='\x7e').contains(&c)) else { continue };
        let (numbers, end) = sequence.split_at(end);
        let coloured = |number: &str| {
            number.parse().is_ok_and(|n: u32| matches!(n, 30..=38 | 40..=48 | 90..=97 | 100..=107))
        };
        assert!(!end.starts_with('m') || !numbers.split(';').any(coloured), "{numbers:?}m");
    }
}

/// Uses a terminal that is not the controlling one of the program, so no signal reports its end.
#[test]
fn a_terminal_that_is_gone_ends_the_session() {
    let (world, server) = (world(), model_of([shell("echo started; exec sleep 1000"), done()]));
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    // The child must not keep it open itself.
    fcntl(&master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
    let mut command = world.ui(&server, &["begin to work"]);
    let stream = || Stdio::from(slave.try_clone().unwrap());
    let mut child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
    drop((command, slave));
    let mut screen = File::from(master);
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !seen.windows(7).any(|window| window == b"started") {
        let read = screen.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..read]);
    }
    drop(screen);
    let mut status = None;
    wait_until("it ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(129));
    assert_eq!(world.log().last().unwrap()["data"]["reason"], "hung_up");
    assert_eq!(marked(world.mark().as_bytes()), Vec::<u32>::new());
}
