use std::process::ExitCode;

use nix::libc;
use sandbox_exec::command::{REAP, reap};

/// Function that runs before `main` and turns this test program into a reaper if its argument says so. The test harness
/// would interpret the argument itself, and has several threads.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = reap_if_asked;

extern "C" fn reap_if_asked() {
    // The standard library does not know the arguments before `main`, with some C libraries.
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    if line.split(|byte| *byte == 0).nth(1) == Some(REAP.as_bytes()) {
        let code = i32::from(reap() != ExitCode::SUCCESS);
        // SAFETY: nothing that `main` would have begun is to be ended.
        unsafe { libc::_exit(code) }
    }
}
