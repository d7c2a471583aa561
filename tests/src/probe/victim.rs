//! A process that waits to be attacked: it knows a secret, and any signal ends it.

use std::io::Write;
use std::process::ExitCode;

use nix::libc;

/// What the victim keeps in its memory, in its environment, and behind a descriptor.
pub const SECRET: &str = "the-victims-secret-5d1c";

/// Prints where the secret lies and its own descriptor 3-style handle on it, then waits for the end of its input.
pub fn live() -> ExitCode {
    // On the heap, so that the program file does not hold the only copy.
    let secret = SECRET.to_owned().into_bytes();
    // Where Yama restricts tracing to ancestors, this lets anybody of the same user: it is the control that must succeed.
    // SAFETY: a prctl with integer arguments; an error means that there is no Yama.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    let Ok(file) = secret_file(&secret) else { return ExitCode::FAILURE };
    let handle = std::os::fd::AsRawFd::as_raw_fd(&file);
    let mut out = std::io::stdout();
    if writeln!(out, "{} {handle}", secret.as_ptr() as usize).and_then(|()| out.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    let mut line = String::new();
    // Nothing is ever said: this is the end of file, when the test is over.
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
