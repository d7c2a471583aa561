//! The gate: what an agent asks for, what its rights allow, and what a person is asked.
//!
//! Pure: paths are compared as data and never opened, and nothing here waits, spawns or speaks to a network. The gate is not what
//! confines — the kernel is; it spares a call that cannot succeed, and finds words for one that did not.

#![forbid(unsafe_code)]

pub mod activity;
pub mod approval;
pub mod hunks;
mod judgement;
pub mod listed;
pub mod modes;
pub mod plan;
pub mod protected;
pub mod roles;
pub mod shell_word;
pub mod tools;

pub use judgement::{
    ApprovalMode, Ask, Change, ChildRights, Machine, Modes, Offer, Place, PlanRefusal, SpawnVerdict,
    StandingRights, Unchanged, Verdict, at_start, command_line, declared_too_little, is_same, narrowed,
    narrowed_grant, path_pattern, plain,
};
