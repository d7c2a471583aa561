//! Sessions over a boundary that is imagined: no process, virtual time, and every order of happenings that is wanted.

mod imagined;
mod interleavings;
mod lattice;
mod model;
mod pause;
mod renewal;
mod stage;
mod start;
mod tree;
