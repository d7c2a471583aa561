//! The terminal UI from outside: keys and events in, a screen and actions out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod agents;
mod approvals;
mod attention;
mod cards;
mod changes;
mod context;
mod contrast;
mod copy;
mod core;
mod denials;
mod files;
mod fingers;
mod forms;
mod frames;
mod guests;
mod help;
mod hostile;
mod hosts;
mod in_project;
mod log;
mod own_commands;
mod pause;
mod pictures;
mod plan_answers;
mod plan_cards;
mod plan_steps;
mod plans;
mod prompts;
mod review;
mod rewind;
mod seat;
mod select;
mod shell;
mod sources;
mod status;
mod sub_agents;
mod tasks;
mod text;
mod tree;
mod typing;
mod walk;
mod whole_turn;
mod writing;
