//! Tests of sessions without processes, in virtual time and in any order of events.

mod imagined;
mod interleavings;
mod lattice;
mod model;
mod pause;
mod renewal;
mod stage;
mod start;
mod tree;
