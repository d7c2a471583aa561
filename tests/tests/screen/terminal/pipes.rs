//! Tests a sandboxed command with a pipe or a file in place of a terminal.

use std::time::Duration;

use tests::side_by_side::side_by_side;

use super::*;

#[test]
fn pipes_and_files_stay_what_they_are() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        // Output into a pipe: no carriage returns.
        let mut command = bash(&world, tier, "[ ! -t 1 ] && echo piped; [ -t 2 ] && echo shown >&2");
        let mut terminal = Terminal::with(&mut command, |command, pty| {
            let stream = || Stdio::from(pty.slave.try_clone().unwrap());
            command.stdin(stream()).stdout(Stdio::piped()).stderr(stream());
        });
        let mut piped = String::new();
        terminal.child.stdout.take().unwrap().read_to_string(&mut piped).unwrap();
        drop(command);
        let (code, seen) = terminal.end();
        assert_eq!((code, piped.as_str(), seen.as_str()), (0, "piped\n", "shown\r\n"));
        // Input from a pipe.
        let mut command = bash(&world, tier, "[ -t 1 ] && tr a-z A-Z");
        let mut terminal = Terminal::with(&mut command, |command, pty| {
            let stream = || Stdio::from(pty.slave.try_clone().unwrap());
            command.stdin(Stdio::piped()).stdout(stream()).stderr(stream());
        });
        terminal.child.stdin.take().unwrap().write_all(b"from a pipe\n").unwrap();
        drop(command);
        let (code, seen) = terminal.end();
        assert_eq!((code, seen.as_str()), (0, "FROM A PIPE\r\n"));
    }
}

/// Returns a shell pipeline on the terminal: a sandboxed script, and then `rest`.
fn pipeline(world: &World, tier: Tier, script: &str, rest: &str) -> Command {
    world.file("script", script);
    let sandbox = tests::Programs::get().path("bailiwick");
    let (sandbox, flags) = (sandbox.display(), tier::flags(tier).join(" "));
    let line = format!("set -o pipefail; {sandbox} sandbox {flags} -- bash script {rest}");
    let mut shell = world.command("bash");
    shell.args(["-c", &line]).current_dir(world.project());
    shell
}

#[test]
fn a_command_in_front_of_a_pipe_has_a_terminal_that_works() {
    let script = r#"[ -t 1 ] || echo piped; stty size; tty; read a; read b < /dev/tty; echo "got $a $b"
        trap 'echo interrupted; exit 7' INT; echo waiting; while :; do read -t 1; done"#;
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        for rest in ["| cat", "2>&1 | cat"] {
            let mut terminal = Terminal::run(pipeline(&world, tier, script, rest));
            let users = ttyname(&terminal.theirs).unwrap();
            terminal.until("piped");
            terminal.types("one\ntwo\n");
            terminal.until("got one two");
            terminal.until("waiting");
            terminal.types("\x03");
            let (code, seen) = terminal.end();
            assert_eq!(code, 7, "{tier} {user:?} {rest}: {seen}");
            for shown in ["31 97\r\n", "\r\n/dev/", "interrupted\r\n"] {
                assert!(seen.contains(shown), "{tier} {user:?} {rest}: {seen}");
            }
            assert!(!seen.contains(users.to_str().unwrap()), "{tier} {user:?} {rest}: {seen}");
        }
    }
}

/// Interrupts a command whose output is a pipe, `moment` after its start. It must end as without a sandbox.
fn interrupt(tier: Tier, moment: Duration) {
    let world = World::new(User::Myself);
    let script = "trap 'echo interrupted; exit 7' INT; echo ready >&2; while :; do read -t 1; done";
    let mut terminal =
        Terminal::run(pipeline(&world, tier, script, "| { trap '' INT; echo deaf >&2; cat; }"));
    terminal.until("ready");
    // The program at the other end of the pipe must ignore the signal by now, too.
    terminal.until("deaf");
    // A fixed time and no event, since the moment is what is tested.
    thread::sleep(moment);
    terminal.types("\x03");
    let (code, seen) = terminal.end();
    assert!(code == 7 && seen.contains("interrupted"), "{tier} {moment:?}: {code} {seen}");
}

#[test]
fn an_early_interrupt_is_the_commands_in_front_of_a_pipe_too() {
    for tier in tier::all() {
        interrupt(tier, Duration::ZERO);
    }
}

/// Tests the moment at which the command becomes the terminal's foreground process, half a second after its start.
/// Until then Ctrl+C is also a signal for Bailiwick.
#[test]
fn an_interrupt_is_the_commands_also_when_it_gets_the_keyboard_at_that_moment() {
    let moments = (492..508).step_by(2).map(Duration::from_millis);
    let cases = moments.flat_map(|moment| tier::all().into_iter().map(move |tier| (tier, moment)));
    side_by_side(cases, |(tier, moment)| interrupt(tier, moment));
}

#[test]
fn the_users_terminal_follows_the_modes_of_a_command_in_front_of_a_pipe() {
    let script = "stty -icanon -echo; echo one; echo two; head -c 1; stty raw; printf 'a\\nb' >&2; head -c 1; stty -raw";
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let mut terminal = Terminal::run(pipeline(&world, tier, script, "| cat"));
        wait_until("raw", || terminal.is_raw());
        // The lines that `cat` writes begin in the first column.
        terminal.until("one\r\ntwo\r\n");
        terminal.types("k");
        terminal.until("a\nb");
        terminal.types("l");
        let (code, seen) = terminal.end();
        assert!(code == 0 && seen.contains('k') && seen.ends_with('l'), "{tier} {code} {seen}");
    }
}

#[test]
fn a_pager_that_reads_the_pipe_keeps_the_keyboard() {
    let script = "until [ -e up ]; do read -t 0.05; done; stty -icanon -echo; echo asked >&2; echo line
        until [ -s key ]; do read -t 0.05; done; echo bye";
    let pager = "stty -icanon -echo < /dev/tty; : > up; read line; head -c 1 < /dev/tty > key; stty icanon echo < /dev/tty
        echo \"$line: $(cat key)\"; cat";
    for tier in tier::all() {
        let world = World::new(User::Myself);
        world.file("pager", pager);
        let mut terminal = Terminal::run(pipeline(&world, tier, script, "| bash pager"));
        terminal.until("asked");
        terminal.types("k");
        let (code, seen) = terminal.end();
        assert!(code == 0 && seen.ends_with("line: k\r\nbye\r\n"), "{tier} {code} {seen:?}");
    }
}
