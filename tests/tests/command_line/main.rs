//! Tests the program by its command line: commands, output, mistakes, hints and exit codes.

mod accounts;
mod audit;
mod commands;
mod config;
mod cost;
mod demo;
mod digests;
mod doctor;
mod exec;
mod exec_fixes;
mod exit_codes;
mod explain;
mod faults_for_good;
mod first_errors;
mod guide;
mod hints;
mod mistakes;
mod one_shot;
mod output;
mod packaging;
mod pictures;
mod remedies;
mod review;
mod schema;
mod show;
