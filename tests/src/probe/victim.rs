//! Process that waits to be attacked. It keeps a secret, and every signal ends it.

use std::io::Write;
use std::process::ExitCode;

use nix::libc;

/// Secret in the victim's memory and environment, and in a file that the victim has open.
pub const SECRET: &str = "the-victims-secret-5d1c";

/// Prints the address of the secret and a path to descriptor 3, then waits until standard input ends.
pub fn live() -> ExitCode {
    // The test process may ignore the signal, as under nohup(1), and this process would inherit that.
    // SAFETY: installs the default action; no handler is involved.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    // On the heap, so that the program file does not hold the only copy.
    let secret = SECRET.to_owned().into_bytes();
    // If Yama restricts tracing to ancestors, this permits all processes of the user, as the control must succeed.
    // SAFETY: a prctl with integer arguments; an error means that there is no Yama.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    // If this fails, the control of the keyring attack reports it.
    let _ = super::ipc::keep_key(c"bailiwick-victim");
    let Ok(file) = secret_file(&secret) else { return ExitCode::FAILURE };
    let handle = std::os::fd::AsRawFd::as_raw_fd(&file);
    let mut out = std::io::stdout();
    if writeln!(out, "{} {handle}", secret.as_ptr() as usize).and_then(|()| out.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    let mut line = String::new();
    // The test never sends anything. This call returns at end of file, when the test is over.
    let _ = std::io::stdin().read_line(&mut line);
    drop(std::hint::black_box(secret));
    ExitCode::SUCCESS
}

fn secret_file(secret: &[u8]) -> std::io::Result<std::fs::File> {
    let memory = nix::sys::memfd::memfd_create(c"secret", nix::sys::memfd::MFdFlags::empty())?;
    let mut file = std::fs::File::from(memory);
    file.write_all(secret)?;
    Ok(file)
}

/// Returns those properties of a process that another process can change: priorities, CPU affinity, resource limits,
/// and the OOM score.
#[must_use]
pub fn facts(pid: u32) -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (stat, status) = (read("stat"), read("status"));
    let fields: Vec<_> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    // priority and nice, rt_priority and policy; counted from the third field, proc_pid_stat(5).
    let schedule: Vec<_> = [15, 16, 37, 38].iter().map(|index| fields.get(*index)).collect();
    let processors = status.lines().find(|line| line.starts_with("Cpus_allowed:"));
    // SAFETY: integers; IOPRIO_WHO_PROCESS.
    let io_priority = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, pid) };
    let limits = read("limits");
    format!("{schedule:?} {processors:?} {io_priority} {} {limits}", read("oom_score_adj").trim())
}

/// Writes the secret into an extended attribute.
pub fn keep_attribute(path: &std::ffi::CStr) -> std::io::Result<()> {
    let value = SECRET.as_ptr().cast();
    // SAFETY: C strings, and a value that is that long.
    let set = unsafe { libc::setxattr(path.as_ptr(), c"user.victim".as_ptr(), value, SECRET.len(), 0) };
    if set < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
