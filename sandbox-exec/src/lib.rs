//! Confinement: starts programs with exactly the access that the kernel enforces.
//!
//! The only code of Bailiwick that calls Landlock and seccomp. `sandbox-exec` confines a program; a worker confines
//! each command further with [`command`].
//!
//! * [`launch`]: a start, up to exec and the program's end.
//! * [`compile`]: access → rules as plain data. [`platform`]: features of this kernel, and gaps.
//! * [`mediate`]: calls that only a process outside can judge.
//! * [`memory`]: releases an idle process's memory.
//! * [`modes`]: checks plain file permissions. [`probe`]: acts that are tried inside a confinement.
//! * [`domain`]: rules → a Landlock domain. [`seccomp`]: the denied system calls, as data with reasons.
//! * `namespace`: the full tier: namespaces, and a tree of mounts.
//! * `cgroup`: a program's own control group, if delegated.
//! * `private`: a container's own shared memory and terminals.
//! * [`terminal`]: the terminal that was made for a program.
//! * [`stage`]: the order of a start, and the exit code of each step.

#![deny(unsafe_code)]

pub mod attempt;
mod broker;
mod cgroup;
pub mod command;
pub mod compile;
pub mod descendants;
pub mod descriptors;
pub mod domain;
pub mod environment;
mod handover;
pub mod hosts;
mod init;
pub mod launch;
pub mod mediate;
pub mod memory;
pub mod modes;
mod namespace;
pub mod options;
pub mod platform;
mod private;
pub mod privilege;
pub mod probe;
pub mod seccomp;
pub mod self_test;
pub mod stage;
mod stub;
pub mod system;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod tree;
