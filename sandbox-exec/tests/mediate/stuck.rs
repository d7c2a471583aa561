//! Diagnosis of a child process that does not end.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use nix::libc;
use nix::unistd::Pid;

/// Describes a process that does not end, and its children: the system call, stack and signals of each thread.
pub(crate) fn stuck(pid: Pid) -> String {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let mut told = String::new();
    let mut children = vec![];
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let thread = task.path();
        writeln!(told, "\n{}: {}", thread.display(), read(&thread.join("comm")).trim()).unwrap();
        for name in ["syscall", "wchan", "stack"] {
            writeln!(told, "  {name}: {}", read(&thread.join(name)).trim().replace('\n', ", ")).unwrap();
        }
        let status = read(&thread.join("status"));
        let is_told =
            |line: &&str| ["State:", "Sig", "Shd", "Seccomp"].iter().any(|name| line.starts_with(name));
        writeln!(told, "  {}", status.lines().filter(is_told).collect::<Vec<_>>().join(", ")).unwrap();
        children.extend(
            read(&thread.join("children"))
                .split_whitespace()
                .filter_map(|child| child.parse::<libc::pid_t>().ok()),
        );
    }
    children.into_iter().map(Pid::from_raw).for_each(|child| told += &stuck(child));
    told
}
