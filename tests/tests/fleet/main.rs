//! Tests of many runs: batches, the relay, clusters and CI.

mod batch;
mod ci_recipes;
mod cluster;
mod relay;
