//! Tests of `shell_exec` with real commands.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::fs::read_to_string;
use std::path::Path;

use ipc::effect::{Effect, Exec};
use ipc::message::{CallOutcome, Chunk, ToSupervisor, Work};
use ipc::rights::{Execution, Network};
use ipc::tool::{
    Access, CommandExit, CommandResult, ReadFile, SearchFiles, ShellExec, ToolCall, ToolError, ToolErrorKind,
    ToolOutput,
};
use support::{Worker, command, hello, read_file, rights};

fn shell(command: &str) -> ShellExec {
    let command = command.to_owned();
    ShellExec { command, access: Access::Standing, network: None, cwd: None, timeout_ms: None }
}

fn reading(command: &str) -> ShellExec {
    ShellExec { access: Access::Read, ..shell(command) }
}

fn run(worker: &mut Worker, call: ShellExec) -> Result<CommandResult, ToolError> {
    worker.run(ToolCall::ShellExec(call)).map(|output| match output {
        ToolOutput::Command(result) => result,
        other => panic!("{other:?}"),
    })
}

fn start(worker: &mut Worker, call: ShellExec) -> ipc::id::CallId {
    worker.call(Work::Run(ToolCall::ShellExec(call)))
}

/// True if the process exists and is no zombie.
fn is_alive(pid: &str) -> bool {
    let status = read_to_string(Path::new("/proc").join(pid.trim()).join("status"));
    status.is_ok_and(|status| !status.contains("\nState:\tZ"))
}

#[test]
fn a_command_ends_with_its_output_and_status() {
    let mut worker = Worker::new();
    let table = [
        ("true", CommandExit::Code(0), ""),
        ("echo out; echo err >&2; exit 3", CommandExit::Code(3), "out\nerr\n"),
        ("kill -TERM $$", CommandExit::Signal(15), ""),
        ("printf 'a\\377b'", CommandExit::Code(0), "a\u{fffd}b"),
        ("echo $0 $#; shopt -q login_shell || echo no login", CommandExit::Code(0), "no login\n"),
        ("no-such-program-here", CommandExit::Code(127), "not found"),
        ("cat; echo empty", CommandExit::Code(0), "empty\n"),
        ("tty", CommandExit::Code(1), "not a tty\n"),
        ("exec 3<>/dev/tty", CommandExit::Code(1), "/dev/tty"),
    ];
    for (text, exit, output) in table {
        let result = run(&mut worker, shell(text)).unwrap();
        assert!(result.exit == exit && result.head.contains(output), "{text}: {result:?}");
        assert_eq!((result.omitted_bytes, result.tail.as_str()), (0, ""));
    }
}

#[test]
fn it_runs_where_it_is_told_with_the_init_line_first() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    std::fs::create_dir(project.join("sub dir")).unwrap();
    let mut hello = hello(&project);
    hello.shell_init = Some("greeting=hi".to_owned());
    let mut worker = Worker::start(command(), hello);
    let place = |path: &Path| format!("{p} {p} hi\n", p = path.display());
    let result = run(&mut worker, shell("echo $(/bin/pwd) $PWD $greeting")).unwrap();
    assert_eq!(result.head, place(&project));
    let there = ShellExec { cwd: Some("sub dir".into()), ..shell("echo $(/bin/pwd) $PWD $greeting") };
    assert_eq!(run(&mut worker, there).unwrap().head, place(&project.join("sub dir")));
    let missing = ShellExec { cwd: Some("nowhere".into()), ..shell("true") };
    assert_eq!(run(&mut worker, missing).unwrap_err().kind, ToolErrorKind::NotFound);
}

#[test]
fn output_streams_while_the_command_runs() {
    let mut worker = Worker::new();
    nix::unistd::mkfifo(&worker.project.join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let call = start(&mut worker, shell("echo first; read line < gate; echo second $line"));
    let first = worker.next_of(call);
    assert!(matches!(first, ToSupervisor::Output { chunk: Chunk::Text(text), .. } if text == b"first\n"));
    worker.write("gate", "opened\n");
    let (chunks, _, outcome) = worker.all_of(call);
    assert_eq!(chunks, [Chunk::Text(b"second opened\n".to_vec())]);
    assert!(
        matches!(outcome, CallOutcome::Done(ToolOutput::Command(result)) if result.head == "first\nsecond opened\n")
    );
}

#[test]
fn head_and_tail_of_long_output_are_kept_and_the_rest_is_counted() {
    let mut worker = Worker::new();
    let call = start(&mut worker, shell("seq 1 1000000"));
    let (chunks, _, outcome) = worker.all_of(call);
    let CallOutcome::Done(ToolOutput::Command(result)) = outcome else { panic!() };
    assert!(result.head.starts_with("1\n2\n") && result.head.ends_with('\n'));
    assert!(result.tail.ends_with("\n1000000\n"));
    let total = result.head.len() as u64 + result.omitted_bytes + result.tail.len() as u64;
    assert_eq!(total, 6_888_896, "all bytes of seq are accounted for");
    assert!(result.head.len() + result.tail.len() <= 64 << 10);
    let sizes: Vec<_> =
        chunks.iter().map(|chunk| if let Chunk::Text(text) = chunk { text.len() } else { 0 }).collect();
    assert!(sizes.iter().all(|&size| size <= 64 << 10) && sizes.iter().sum::<usize>() < 2 << 20, "{sizes:?}");
}

#[test]
fn a_command_is_ended_at_its_time_out_with_what_it_printed() {
    let mut worker = Worker::new();
    // Where others need the processors it has not begun in the first of these times.
    let mut ended = [300, 3000, 30_000].into_iter().map(|time| {
        let call = ShellExec { timeout_ms: Some(time), ..shell("trap '' TERM; echo begun; sleep 1000") };
        run(&mut worker, call).unwrap()
    });
    let result = ended.find(|result| !result.head.is_empty()).unwrap();
    assert_eq!((result.exit, result.head.as_str()), (CommandExit::TimedOut, "begun\n"));
    let zero = ShellExec { timeout_ms: Some(0), ..shell("true") };
    assert_eq!(run(&mut worker, zero).unwrap_err().kind, ToolErrorKind::InvalidArgument);
}

#[test]
fn every_descendant_is_dead_when_the_call_ends() {
    let mut worker = Worker::new();
    let daemon = "setsid bash -c 'echo $BASHPID > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 & \
                  (trap '' TERM HUP; sleep 1000 & echo $! > child; wait) & \
                  until [ -s daemon ] && [ -s child ]; do :; done";
    run(&mut worker, shell(daemon)).unwrap();
    for name in ["daemon", "child"] {
        let pid = read_to_string(worker.project.join(name)).unwrap();
        assert!(!is_alive(&pid), "{name} {pid}");
    }
}

#[test]
fn a_cancelled_command_is_ended_with_its_descendants() {
    let mut worker = Worker::new();
    let call = start(&mut worker, shell("sleep 1000 & echo $! $$; wait"));
    let ToSupervisor::Output { chunk: Chunk::Text(text), .. } = worker.next_of(call) else { panic!() };
    worker.cancel(call);
    assert_eq!(worker.all_of(call).2, CallOutcome::Cancelled);
    for pid in String::from_utf8(text).unwrap().split_whitespace() {
        assert!(!is_alive(pid), "{pid}");
    }
}

#[test]
fn the_end_of_the_pipe_ends_the_worker_and_its_commands() {
    let mut worker = Worker::new();
    let call = start(&mut worker, shell("trap '' TERM; setsid sleep 1000 & echo $! $$; wait"));
    let ToSupervisor::Output { chunk: Chunk::Text(text), .. } = worker.next_of(call) else { panic!() };
    let (code, said) = worker.end();
    assert_eq!((code, said.as_str()), (Some(1), "bailiwick-worker: the supervisor closed the pipe\n"));
    for pid in String::from_utf8(text).unwrap().split_whitespace() {
        assert!(!is_alive(pid), "{pid}");
    }
}

#[test]
fn a_command_can_neither_trace_nor_signal_its_worker() {
    let mut worker = Worker::new();
    let pid = worker.child.id();
    // Not its environ: with CAP_PERFMON, which an unconfined root has, that is readable from any domain
    // (may_access_mm in kernel/fork.c).
    let text = format!("kill -0 {pid}; head -c1 /proc/{pid}/mem; echo end");
    let result = run(&mut worker, shell(&text)).unwrap();
    assert!(result.head.contains("Operation not permitted") && result.head.ends_with("end\n"), "{result:?}");
    assert_eq!(result.head.matches("ermission denied").count(), 1, "{result:?}");
    let target = nix::unistd::Pid::from_raw(pid.cast_signed());
    assert!(nix::sys::signal::kill(target, None).is_ok(), "unconfined, the same act succeeds");
    if nix::unistd::geteuid().is_root() {
        assert!(std::fs::File::open(format!("/proc/{pid}/mem")).is_ok(), "unconfined, the same act succeeds");
    }
}

#[test]
fn a_reading_command_writes_nothing_but_its_own_temp() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap().join("project");
    let temp = directory.path().canonicalize().unwrap().join("temp");
    std::fs::create_dir(&project).unwrap();
    std::fs::create_dir(&temp).unwrap();
    let mut hello = hello(&project);
    hello.temp = Some((&temp).into());
    hello.rights.write.push((&temp).into());
    let mut worker = Worker::start(command(), hello);
    worker.write("file", "kept");
    let denied = "echo x > file; echo x > new; chmod 777 file; touch file; rm file; echo x > ../temp/y; true";
    let result = run(&mut worker, reading(denied)).unwrap();
    assert_eq!((worker.bytes("file"), worker.names()), (b"kept".to_vec(), vec!["file".to_owned()]));
    assert!(
        result.head.matches("denied").count() + result.head.matches("not permitted").count() >= 6,
        "{result:?}"
    );
    let allowed =
        run(&mut worker, reading("echo x > $TMPDIR/x && cat file $TMPDIR/x > /dev/null && echo $TMPDIR"))
            .unwrap();
    assert!(
        allowed.head.starts_with(temp.to_str().unwrap()) && allowed.exit == CommandExit::Code(0),
        "{allowed:?}"
    );
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0, "its temp directory is gone");
    run(&mut worker, shell("chmod 700 file && echo changed > file && echo x > new")).unwrap();
    assert_eq!(worker.bytes("file"), b"changed\n", "the same acts succeed with access");
}

#[test]
fn what_was_not_granted_is_refused_before_anything_runs() {
    let mut worker = Worker::new();
    let net = ShellExec { network: Some(Network::On), ..shell("touch ran") };
    assert_eq!(run(&mut worker, net).unwrap_err().kind, ToolErrorKind::NotGranted);
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    let mut read_only = hello(&project);
    read_only.rights = ipc::rights::Rights { write: vec![], ..rights(&project) };
    let mut worker = Worker::start(command(), read_only);
    let write = ShellExec { access: Access::Write, ..shell("touch ran") };
    assert_eq!(run(&mut worker, write).unwrap_err().kind, ToolErrorKind::NotGranted);
    assert_eq!(
        run(&mut worker, shell("touch ran")).unwrap().exit,
        CommandExit::Code(1),
        "the kernel holds it too"
    );
    assert!(worker.names().is_empty());
}

#[test]
fn a_command_that_declares_to_write_does_so_where_its_rights_are() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    std::fs::create_dir(project.join("src")).unwrap();
    let mut narrow = hello(&project);
    narrow.rights = ipc::rights::Rights { write: vec![project.join("src").into()], ..rights(&project) };
    let mut worker = Worker::start(command(), narrow);
    let writes = |command: &str| ShellExec { access: Access::Write, ..shell(command) };
    assert_eq!(run(&mut worker, writes("touch src/made")).unwrap().exit, CommandExit::Code(0));
    assert_eq!(
        run(&mut worker, writes("touch made")).unwrap().exit,
        CommandExit::Code(1),
        "the kernel judges"
    );
    assert!(project.join("src/made").exists() && !project.join("made").exists());
}

#[test]
fn a_worker_without_execution_executes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    let mut hello = hello(&project);
    hello.rights.exec = Execution::Denied;
    let mut worker = Worker::start(command(), hello);
    assert_eq!(run(&mut worker, shell("true")).unwrap_err().kind, ToolErrorKind::NotGranted);
    worker.write("file", "still read\n");
    assert_eq!(worker.read("file").unwrap().text, "still read\n");
    let status = read_to_string(format!("/proc/{}/status", worker.child.id())).unwrap();
    assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
}

#[test]
fn the_effect_of_a_command_is_what_will_run() {
    let mut worker = Worker::new();
    let call = ShellExec { timeout_ms: Some(9_000_000), ..shell("echo x > made; cat made") };
    let effect = worker.prepare(ToolCall::ShellExec(call)).unwrap();
    assert!(worker.names().is_empty());
    let Effect::Exec(exec) = &effect else { panic!() };
    let argv: Vec<_> = exec.argv.iter().map(ToString::to_string).collect();
    assert_eq!(argv, ["bash", "-c", "echo x > made; cat made"]);
    assert_eq!((exec.cwd.as_path(), exec.timeout_ms), (&*worker.project, 600_000));
    let output = worker.commit(&effect).unwrap();
    assert!(matches!(output, ToolOutput::Command(result) if result.head == "x\n"));
}

#[test]
fn commands_that_may_write_run_in_order_and_reads_wait_for_them() {
    let mut worker = Worker::new();
    let calls = [
        start(&mut worker, shell("until [ -e go ]; do :; done; echo 1 >> log")),
        start(&mut worker, shell("echo 2 >> log")),
        worker.call(Work::Run(read_file("log"))),
    ];
    let cancelled = start(&mut worker, shell("echo 3 >> log"));
    worker.cancel(cancelled);
    assert_eq!(worker.all_of(cancelled).2, CallOutcome::Cancelled, "a queued call ends at once");
    worker.write("go", "");
    let outcomes = calls.map(|call| support::done(worker.all_of(call).2).unwrap());
    assert!(matches!(&outcomes[2], ToolOutput::File(text) if text.text == "1\n2\n"), "{outcomes:?}");
}

#[test]
fn reading_commands_run_beside_each_other() {
    let mut worker = Worker::new();
    nix::unistd::mkfifo(&worker.project.join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let waits = start(&mut worker, reading("read line < gate; echo $line"));
    assert_eq!(run(&mut worker, reading("echo quick")).unwrap().head, "quick\n");
    worker.write("gate", "opened\n");
    let outcome = worker.all_of(waits).2;
    assert!(matches!(outcome, CallOutcome::Done(ToolOutput::Command(result)) if result.head == "opened\n"));
}

#[test]
fn a_killed_reaper_is_said_and_leaves_nobody() {
    let mut worker = Worker::new();
    let call = start(&mut worker, shell("echo $PPID $$; exec sleep 1000"));
    let ToSupervisor::Output { chunk: Chunk::Text(text), .. } = worker.next_of(call) else { panic!() };
    let text = String::from_utf8(text).unwrap();
    let (reaper, command) = text.trim().split_once(' ').unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(reaper.parse().unwrap()), nix::sys::signal::SIGKILL)
        .unwrap();
    let CallOutcome::Failed(error) = worker.all_of(call).2 else { panic!() };
    assert_eq!(error.kind, ToolErrorKind::Interrupted);
    assert!(!is_alive(command));
    assert_eq!(run(&mut worker, shell("echo on")).unwrap().head, "on\n");
}

/// Tests that a library planted in `LD_LIBRARY_PATH` is loaded into the command, which fails, and not into the reaper.
#[test]
fn a_reaper_loads_no_library_that_a_command_left() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    let mut program = command();
    program.env("LD_LIBRARY_PATH", project.join("lib"));
    let mut worker = Worker::start(program, hello(&project));
    let plant = run(&mut worker, shell("mkdir lib && echo > lib/libc.so.6")).unwrap();
    assert_eq!(plant.exit, CommandExit::Code(0));
    let result = run(&mut worker, shell("echo loaded")).unwrap();
    assert_eq!(result.exit, CommandExit::Code(127), "{result:?}");
    assert!(result.head.contains("libc.so.6"), "{result:?}");
}

#[test]
fn an_approved_command_does_not_run_behind_a_link() {
    let worker = Worker::new();
    std::fs::create_dir(worker.project.join("real")).unwrap();
    std::os::unix::fs::symlink("real", worker.project.join("link")).unwrap();
    let commit = |cwd: &str| {
        let argv = ["bash", "-c", "pwd -P"].map(Into::into).into();
        let cwd = worker.project.join(cwd).into();
        let (environment, access, network, timeout_ms) = (Vec::new(), Access::Standing, None, 60_000);
        worker.one_shot(&Effect::Exec(Exec { argv, cwd, environment, access, network, timeout_ms }))
    };
    assert!(commit("real").is_ok());
    for cwd in ["link", "link/", "real/../link", "real/.."] {
        let error = commit(cwd).unwrap_err();
        assert!(error.message.contains("is a link to"), "{cwd}: {error:?}");
    }
    assert_eq!(commit("nowhere").unwrap_err().kind, ToolErrorKind::NotFound);
}

/// Starts a worker with a private temp directory next to the project.
fn with_temp(directory: &Path) -> Worker {
    let place = |name: &str| {
        let place = directory.canonicalize().unwrap().join(name);
        std::fs::create_dir(&place).unwrap();
        place
    };
    let (project, temp) = (place("project"), place("temp"));
    let mut hello = hello(&project);
    hello.rights.write.push((&temp).into());
    hello.temp = Some((&temp).into());
    let mut command = command();
    command.env("TMPDIR", &temp);
    Worker::start(command, hello)
}

#[test]
fn a_long_output_is_whole_in_a_file_that_the_other_tools_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = with_temp(directory.path());
    for access in [Access::Standing, Access::Read] {
        let result = run(&mut worker, ShellExec { access, ..shell("seq 1 1000000") }).unwrap();
        let saved = result.saved.unwrap();
        assert_eq!((saved.bytes, saved.cut), (6_888_896, None));
        let read =
            ReadFile { path: saved.path.clone(), offset: Some(500_000), limit: Some(1), inside: false };
        let call = worker.call(Work::Run(ToolCall::ReadFile(read)));
        let (_, _, outcome) = worker.all_of(call);
        assert!(
            matches!(&outcome, CallOutcome::Done(ToolOutput::File(file)) if file.text == "500000\n"),
            "{outcome:?}"
        );
        let search =
            SearchFiles { pattern: "^77777$".to_owned(), path: Some(saved.path), glob: None, inside: false };
        let call = worker.call(Work::Run(ToolCall::SearchFiles(search)));
        let (_, _, outcome) = worker.all_of(call);
        assert!(
            matches!(&outcome, CallOutcome::Done(ToolOutput::Matches(found)) if found.matches == 1),
            "{outcome:?}"
        );
    }
}

#[test]
fn commands_cannot_lead_the_output_of_later_ones_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = with_temp(directory.path());
    std::fs::create_dir(worker.project.join("victim")).unwrap();
    let long = "seq 1 100000";
    run(&mut worker, shell("ln -s \"$PWD/victim\" $TMPDIR/bailiwick-output")).unwrap();
    assert_eq!(run(&mut worker, shell(long)).unwrap().saved, None);
    assert_eq!(std::fs::read_dir(worker.project.join("victim")).unwrap().count(), 0);
    let plant = "rm $TMPDIR/bailiwick-output; mkdir $TMPDIR/bailiwick-output; \
                 for n in $(seq 1 99); do ln -s \"$PWD/file\" $TMPDIR/bailiwick-output/call-$n.log; done";
    worker.write("file", "mine");
    run(&mut worker, shell(plant)).unwrap();
    let saved = run(&mut worker, shell(long)).unwrap().saved.unwrap();
    assert_eq!(read_to_string(worker.project.join("file")).unwrap(), "mine");
    assert_eq!(saved.path.as_path().metadata().unwrap().len(), 588_895);
    // Swapped while the command runs: what was opened stays what it was.
    let swap = "seq 1 100000; until ls $TMPDIR/bailiwick-output/call-*-*.log; do :; done; \
                for f in $TMPDIR/bailiwick-output/*; do ln -sf \"$PWD/file\" $f; done; seq 1 100000";
    run(&mut worker, shell(swap)).unwrap();
    assert_eq!(read_to_string(worker.project.join("file")).unwrap(), "mine");
}
