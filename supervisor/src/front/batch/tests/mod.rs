mod command;
mod engine;
mod report;
mod tasks;
mod trajectory;
