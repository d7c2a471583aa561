//! Tests of functions without input or output.

mod command;
mod engine;
mod report;
mod tasks;
mod trajectory;
