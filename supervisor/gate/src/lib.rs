//! Decides on the calls of agents by their access, and defines the questions to a person.
//!
//! Pure: paths are compared as data and never opened, and no function waits, starts a process or uses a network.

#![forbid(unsafe_code)]

pub mod activity;
pub mod approval;
pub mod hunks;
pub mod judgement;
pub mod listed;
pub mod modes;
pub mod part;
pub mod plan;
pub mod protected;
pub mod roles;
pub mod tools;

pub use judgement::{
    ApprovalMode, Ask, Change, ChildRights, DeniedPart, Machine, Modes, Offer, Place, PlanRefusal,
    SpawnVerdict, StandingRights, Unchanged, Verdict, command_line, path_pattern, plain,
};
