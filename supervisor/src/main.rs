//! # NAME
//!
//! bailiwick — a terminal coding agent whose actions the kernel confines
//!
//! # SYNOPSIS
//!
//! ```text
//! bailiwick [-C DIR] [--mode ask|auto|deny] [--net off|on] … [PROMPT]
//! bailiwick exec [-C DIR] [--mode auto|deny] [--denied ok|fail] [--net off|on] [--patch FILE] … PROMPT
//! bailiwick batch [swe-bench] FILE [--output DIR] [--jobs N] … | batch report DIR [--json]
//! bailiwick serve [--print-schema]
//! bailiwick acp [FLAGS]
//! bailiwick relay --listen unix:DIR|127.0.0.1:PORT --client NAME … [--max-usd X]
//! bailiwick sandbox [-C DIR] [--access write|read] [--net off|on] … -- CMD …
//! bailiwick doctor [--json] [--api | --promises]
//! bailiwick explain [-C DIR] [--mode ask|auto|deny] [--net off|on] … PATH|HOST:PORT|COMMAND
//! bailiwick audit [--json] [ID] | --probe [--verbose] [-C DIR] [--mode ask|auto|deny] [--net off|on] …
//! bailiwick demo [--tui | --attack [--net off|on] [--write PATH] …] [--keep DIR]
//! bailiwick debug stream --base-url URL --request FILE
//! ```
//!
//! # DESCRIPTION
//!
//! This process is the supervisor: it holds the API key, speaks to the model, decides what may run, and writes the
//! session log. Everything that acts (reads, edits, commands) happens in a worker, which `sandbox-exec` confines by
//! Landlock, seccomp and the loss of all capabilities before it executes its first instruction.
//!
//! # EXIT STATUS
//!
//! 0 the task is done · 1 internal error · 2 usage · 3 gave up or a budget is spent · 4 ended after a denied call ·
//! 5 sandbox unavailable · 6 provider error after retries · 129 hung up · 130 interrupted · 143 terminated.
//! `sandbox` ends with the status of its command (128+n by signal), or 5 if that never started.
//!
//! # SECURITY
//!
//! The first thing that the process does is to become non-dumpable and to take the keys out of its environment, while
//! it has one thread. It opens no path that a model or a worker named, and runs no program for them outside a ruleset.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let keys = match supervisor::command::app::harden() {
        Ok(keys) => keys,
        Err(exit) => return exit.into(),
    };
    supervisor::command::app::main(keys).into()
}
