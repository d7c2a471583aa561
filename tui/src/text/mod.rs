mod clusters;
mod emoji;
mod hidden;
mod output;
mod safe;
mod styled;
mod tone;
mod wrap;

pub use clusters::{Cluster, Clusters};
pub use emoji::{is_disputed, open_cluster};
pub use hidden::printable;
pub(crate) use hidden::shown;
pub use output::Output;
pub use safe::{SafeStr, SafeText};
pub use styled::{Span, Styled};
pub use tone::{Ground, Hue, Ink, Tone};
pub use wrap::{Columns, Row, Wrap, wrap};

#[cfg(test)]
mod tests;
