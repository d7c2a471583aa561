//! Text from anywhere, made safe to draw: the one way into a cell.

mod clusters;
mod hidden;
mod safe;
mod wrap;

pub use clusters::{Cluster, Clusters};
pub use safe::{SafeStr, SafeText};
pub use wrap::{Columns, Row, Wrap, wrap};

#[cfg(test)]
mod tests;
