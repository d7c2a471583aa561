//! Tests of what is pure.

mod command;
mod engine;
mod report;
mod tasks;
mod trajectory;
