//! The command line: it reads the arguments and starts one command.

pub mod app;
