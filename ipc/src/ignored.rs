//! Files and directories that git ignores, and that are not scanned.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// Files and directories that git ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ignored {
    /// Number of entries; an ignored directory counts as one.
    pub count: u64,
    /// The first ignored paths, at most [`Ignored::NAMED`], relative to the project.
    pub first: Vec<WirePath>,
}

impl Ignored {
    /// Maximum number of paths in [`Ignored::first`].
    pub const NAMED: usize = 3;

    /// True if git ignores nothing.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Counts an ignored file or directory, and keeps the path if it is one of the first.
    pub fn add(&mut self, path: WirePath) {
        self.count += 1;
        if self.first.len() < Self::NAMED {
            self.first.push(path);
        }
    }
}

/// Displays number and first paths as a sentence. Paths are quoted, so that none looks like a part of the sentence.
impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (paths, are) = if self.count == 1 { ("path", "is") } else { ("paths", "are") };
        write!(f, "{} {paths} that git ignores {are} not shown", self.count)?;
        for (n, path) in self.first.iter().take(Self::NAMED).enumerate() {
            write!(f, "{}{:?}", if n == 0 { ": " } else { ", " }, path.to_string())?;
        }
        let more = self.count.saturating_sub(self.first.len() as u64);
        if more > 0 && !self.first.is_empty() { write!(f, " and {more} more") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_others_counted() {
        let mut ignored = Ignored::default();
        ignored.add("target".into());
        assert_eq!(ignored.to_string(), r#"1 path that git ignores is not shown: "target""#);
        for name in ["a", "b\nc", "d", "e"] {
            ignored.add(name.into());
        }
        let told = r#"5 paths that git ignores are not shown: "target", "a", "b\nc" and 2 more"#;
        assert_eq!(ignored.to_string(), told);
    }
}
