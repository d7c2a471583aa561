//! Tests that no seccomp program of the sandbox prevents usual acts of programs: panics, aborts, debuggers, sanitizers,
//! threads, every way to start a process, own filters and Landlock domains.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ipc::confinement::Tier;
use landlock::{ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
use nix::libc;
use nix::unistd::getuid;
use sandbox_exec::seccomp::{Policy, Program};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use tempfile::TempDir;

type Stack = Vec<Program>;

/// Returns stacks of seccomp programs, each with a name: those of every policy, also with the additional one of a
/// command that only reads or needs no network.
fn stacks() -> Vec<(String, Stack)> {
    let mut all = vec![];
    for tier in [Tier::Full, Tier::Floor, Tier::FloorUnmediated] {
        for machines_network in [false, true] {
            for (root, truncate) in [(false, false), (false, true), (true, false), (true, true)] {
                let policy = Policy { machines_network, root, truncate, tier, neighbours: false };
                let standing = Program::standing(policy);
                all.push((format!("{policy:?}"), vec![standing]));
                all.push((format!("{policy:?}, reads"), vec![standing, Program::read_only(policy)]));
                if machines_network {
                    all.push((format!("{policy:?}, offline"), vec![standing, Program::offline(policy)]));
                }
            }
        }
    }
    all
}

/// Returns the strictest stacks of [`stacks`], for slow tests.
fn strictest() -> Vec<(String, Stack)> {
    let mut all = stacks();
    all.retain(|(name, stack)| stack.len() > 1 && name.contains("root: true, truncate: true"));
    assert_eq!(
        all.len(),
        9,
        "each tier, with both networks for one that reads and one for one that is offline"
    );
    all
}

fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    directory
}

fn users() -> Vec<Option<u32>> {
    if getuid().is_root() { vec![None, Some(12345)] } else { vec![None] }
}

/// Runs a program under a stack of seccomp programs as the given user; `None` for the test's own.
fn run(program: &OsStr, arguments: &[&str], stack: &[Program], user: Option<u32>) -> Output {
    let mut command = Command::new(program);
    let environment = BTreeMap::from([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("HOME", "/")]);
    command.args(arguments).env_clear().envs(environment).current_dir("/").stdin(Stdio::null());
    // The sanitizers' reports need no names, which take long to find.
    command.env("RUST_BACKTRACE", "1").env("ASAN_OPTIONS", "symbolize=0");
    if let Some(uid) = user {
        command.uid(uid).gid(uid);
    }
    let stack = stack.to_vec();
    // SAFETY: attaching is a system call.
    unsafe {
        command.pre_exec(move || {
            stack.iter().try_for_each(Program::attach).map_err(|_| std::io::Error::last_os_error())
        })
    };
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{} {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs a program as every user, without a filter and under every stack. Each time `is_well` must be true, unless it is
/// already false without a filter.
fn survives(what: &str, program: &OsStr, arguments: &[&str], is_well: &dyn Fn(&Output) -> bool) {
    survives_under(&stacks(), what, (program, arguments), is_well);
}

fn survives_under(
    stacks: &[(String, Stack)],
    what: &str,
    (program, arguments): (&OsStr, &[&str]),
    is_well: &dyn Fn(&Output) -> bool,
) {
    for user in users() {
        let unconfined = run(program, arguments, &[], user);
        if !is_well(&unconfined) {
            eprintln!("skipped: not on this machine: {what} as {user:?}: {}", text(&unconfined));
            continue;
        }
        for (name, stack) in stacks {
            let output = run(program, arguments, stack, user);
            assert!(is_well(&output), "{what} as {user:?} under {name}: {}", text(&output));
        }
    }
}

fn tool(name: &str) -> Option<PathBuf> {
    let found = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(name));
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: not on this machine: {name}");
    }
    found
}

fn compile(directory: &Path, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (program, file) = (directory.join("program"), directory.join("program.c"));
    fs::write(&file, source).unwrap();
    let mut compiler = Command::new(tool("cc")?);
    let output = compiler.args(flags).arg("-o").arg(&program).arg(&file).output().unwrap();
    if !output.status.success() {
        eprintln!("skipped: not on this machine: cc {flags:?}: {}", text(&output));
        return None;
    }
    Some(program)
}

/// Copies this test program to a path where every user can execute it. The copying is done by another process: a child
/// that another test forks would keep the copy open for writing, and it could not be executed (`ETXTBSY`).
fn this_program(directory: &Path) -> PathBuf {
    let copy = directory.join("this");
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    copy
}

fn act(name: &str) -> [&str; 4] {
    ["--ignored", "--exact", "--nocapture", name]
}

#[test]
#[ignore = "what a_rust_panic_with_a_backtrace runs"]
fn panics() {
    panic!("on purpose");
}

#[test]
#[ignore = "what an_abort runs"]
fn aborts() {
    std::process::abort();
}

#[test]
#[ignore = "what threads runs"]
fn starts_threads() {
    let threads: Vec<_> = (0..16u32).map(|number| std::thread::spawn(move || number * 2)).collect();
    let sum: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(sum, 240);
}

#[test]
#[ignore = "what filters_and_domains_of_its_own runs"]
fn confines_itself() {
    let forbidden = BTreeMap::from([(libc::SYS_getppid, vec![])]);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let errno = SeccompAction::Errno(libc::ENOMEM.cast_unsigned());
    let filter: BpfProgram =
        SeccompFilter::new(forbidden, SeccompAction::Allow, errno, arch).unwrap().try_into().unwrap();
    seccompiler::apply_filter(&filter).unwrap();
    // SAFETY: getppid has no arguments.
    assert_eq!(unsafe { libc::syscall(libc::SYS_getppid) }, -1);
    let rights = AccessFs::from_all(ABI::V1);
    let readable = PathBeneath::new(PathFd::new("/proc").unwrap(), AccessFs::from_read(ABI::V1));
    let ruleset = Ruleset::default().handle_access(rights).unwrap().create().unwrap();
    ruleset.add_rule(readable).unwrap().restrict_self().unwrap();
    assert!(fs::read("/proc/self/status").is_ok());
    assert_eq!(fs::read("/etc/passwd").unwrap_err().raw_os_error(), Some(libc::EACCES));
}

#[test]
fn a_rust_panic_with_a_backtrace() {
    let directory = directory();
    let this = this_program(directory.path());
    survives_under(&strictest(), "a panic", (this.as_os_str(), &act("panics")), &|output| {
        let said = text(output);
        output.status.code() == Some(101)
            && said.contains("on purpose")
            && said.contains("seccomp_legitimate::panics")
    });
}

#[test]
fn an_abort() {
    let directory = directory();
    survives("abort", this_program(directory.path()).as_os_str(), &act("aborts"), &|output| {
        output.status.signal() == Some(libc::SIGABRT)
    });
}

#[test]
fn threads() {
    let directory = directory();
    survives("threads", this_program(directory.path()).as_os_str(), &act("starts_threads"), &|output| {
        output.status.success() && text(output).contains("1 passed")
    });
}

#[test]
fn filters_and_domains_of_its_own() {
    let directory = directory();
    let this = this_program(directory.path());
    survives("its own confinement", this.as_os_str(), &act("confines_itself"), &|output| {
        output.status.success() && text(output).contains("1 passed")
    });
}

#[test]
fn every_way_to_start_a_process() {
    let source = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <spawn.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        static char *arguments[] = {"true", 0};
        static void check(pid_t child) {
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child || status) _exit(1);
        }
        static void *thread(void *unused) {
            pid_t child;
            if (posix_spawn(&child, "/bin/true", 0, 0, arguments, environ)) _exit(2);
            check(child);
            return unused;
        }
        int main(void) {
            pid_t child = fork();
            if (!child) _exit(0);
            check(child);
            child = vfork();
            if (!child) { execv("/bin/true", arguments); _exit(3); }
            check(child);
            pthread_t threads[8];
            for (int i = 0; i < 8; i++) if (pthread_create(threads + i, 0, thread, 0)) _exit(4);
            for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
            return system("true | cat") ? 5 : 42;
        }
    "#;
    let directory = directory();
    if let Some(program) = compile(directory.path(), source, &["-pthread"]) {
        survives("starting processes", program.as_os_str(), &[], &|output| output.status.code() == Some(42));
    }
}

#[test]
fn the_address_and_the_leak_sanitizer() {
    let source = r#"
        #include <stdlib.h>
        #include <string.h>
        int main(int count, char **arguments) {
            volatile char *memory = malloc(10);
            if (count > 1 && !strcmp(arguments[1], "overflow")) memory[10] = 1;
            if (count > 1 && !strcmp(arguments[1], "leak")) { memory = 0; return 0; }
            free((void *)memory);
            return 0;
        }
    "#;
    let directory = directory();
    let Some(program) = compile(directory.path(), source, &["-fsanitize=address", "-g"]) else { return };
    let program = program.as_os_str();
    survives("a clean run", program, &[], &|output| output.status.success() && output.stderr.is_empty());
    survives_under(&strictest(), "an overflow", (program, &["overflow"]), &|output| {
        !output.status.success() && text(output).contains("heap-buffer-overflow")
    });
    // The leak sanitizer stops the world by ptrace(2), from a process that shares its memory.
    survives_under(&strictest(), "a leak", (program, &["leak"]), &|output| {
        !output.status.success() && text(output).contains("detected memory leaks")
    });
}

#[test]
fn strace_of_an_own_child() {
    let Some(strace) = tool("strace") else { return };
    survives("strace", strace.as_os_str(), &["-f", "/bin/sh", "-c", "/bin/true; exit 7"], &|output| {
        output.status.code() == Some(7) && text(output).contains("execve(\"/bin/true\"")
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_that_its_tracer_skips() {
    let source = r"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <sys/ptrace.h>
        #include <sys/syscall.h>
        #include <sys/user.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static int traced(void) {
            ptrace(PTRACE_TRACEME, 0, 0, 0);
            syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 19);
            if (syscall(SYS_getppid) != 4242) return 1;
            return syscall(-1) == -1 && errno == ENOSYS ? 42 : 2;
        }
        int main(void) {
            pid_t child = fork();
            int status, entering = 0;
            if (!child) _exit(traced());
            while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
                struct user_regs_struct registers;
                ptrace(PTRACE_GETREGS, child, 0, &registers);
                if (WSTOPSIG(status) == 5 && (entering = !entering) && registers.orig_rax == SYS_getppid) {
                    registers.orig_rax = -1;
                    registers.rax = 4242;
                    ptrace(PTRACE_SETREGS, child, 0, &registers);
                }
                ptrace(PTRACE_SYSCALL, child, 0, 0);
            }
            return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
        }
    ";
    let directory = directory();
    if let Some(program) = compile(directory.path(), source, &[]) {
        survives("skipping a call", program.as_os_str(), &[], &|output| output.status.code() == Some(42));
    }
}

#[test]
fn gdb_on_an_own_child() {
    let Some(gdb) = tool("gdb") else { return };
    let arguments =
        ["-nx", "-batch", "-ex", "run", "-ex", "print $_exitcode", "--args", "/bin/sh", "-c", "exit 5"];
    survives_under(&strictest(), "gdb", (gdb.as_os_str(), &arguments), &|output| {
        output.status.success() && text(output).contains("$1 = 5")
    });
}
