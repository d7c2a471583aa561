//! Tests of what is pure.

mod command;
mod report;
mod tasks;
mod trajectory;
