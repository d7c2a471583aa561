//! Settings that other programs of the user act on by themselves: editors, shells, agents.
//!
//! The file `settings.txt` lists them. Names with a `*` are found by listing their directory; all others are looked up.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;

use crate::listed::{matches, places};

pub const GIT: &str = ".git";

static SETTINGS: LazyLock<Vec<ProtectedSetting>> = LazyLock::new(|| {
    places(include_str!("settings.txt")).map(|listed| ProtectedSetting::at(listed.place)).collect()
});

#[derive(Debug)]
struct ProtectedSetting {
    path: &'static Path,
    /// Components of the path in lower case, since some file systems ignore case.
    names: Vec<Vec<u8>>,
}

impl ProtectedSetting {
    fn at(place: &'static str) -> Self {
        let names = place.split('/').map(|name| name.to_ascii_lowercase().into_bytes());
        Self { path: Path::new(place), names: names.collect() }
    }

    /// Directory to list for a pattern; `None` if the last component is not a pattern.
    fn listed_in(&self) -> Option<&'static Path> {
        let is_pattern = self.names.last().is_some_and(|name| name.contains(&b'*'));
        self.path.parent().filter(|_| is_pattern)
    }

    fn begins(&self, names: &[Vec<u8>]) -> bool {
        names.len() >= self.names.len() && self.names.iter().zip(names).all(|(own, name)| matches(own, name))
    }
}

pub fn plain() -> impl Iterator<Item = &'static Path> {
    SETTINGS.iter().filter(|setting| setting.listed_in().is_none()).map(|setting| setting.path)
}

/// Directories to list, each once, because settings in them are named by a pattern.
pub fn listed() -> BTreeSet<&'static Path> {
    SETTINGS.iter().filter_map(ProtectedSetting::listed_in).collect()
}

pub fn is_listed(directory: &Path, name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    let patterns = SETTINGS.iter().filter(|setting| setting.listed_in() == Some(directory));
    patterns.filter_map(|setting| setting.names.last()).any(|pattern| matches(pattern, &name))
}

/// Returns the paths to watch below the target of a link at `path`: for each listed path that begins with `path`, the
/// rest of it; an empty path stands for the whole target. Patterns are left out, since the target is not listed.
pub fn led_to(path: &Path) -> Vec<&'static Path> {
    let ends_in = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    // These links lead to repositories, which are found by a search.
    if ends_in(&[GIT, "modules", "worktrees"]) {
        return Vec::new();
    }
    let mut inside: Vec<_> = plain().filter_map(|place| place.strip_prefix(path).ok()).collect();
    if inside.is_empty() {
        inside.push(Path::new(""));
    }
    inside
}

/// True if a program of the user acts by itself on `relative`, a path in a project: a path in a git directory, or one
/// that contains a listed path. Ignores case, as some file systems do.
pub fn is_acted_on(relative: &Path) -> bool {
    let names: Vec<Vec<u8>> = relative.iter().map(|name| name.as_bytes().to_ascii_lowercase()).collect();
    let is_setting = |from: &[Vec<u8>]| SETTINGS.iter().any(|setting| setting.begins(from));
    names.iter().any(|name| name == GIT.as_bytes())
        || (0..names.len()).any(|start| names.get(start..).is_some_and(is_setting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_one_line_and_a_reason() {
        let names: BTreeSet<_> = SETTINGS.iter().map(|setting| &setting.names).collect();
        assert_eq!(names.len(), SETTINGS.len(), "listed twice, in whichever case");
        for setting in SETTINGS.iter() {
            let above = setting.names.split_last().map(|(_, above)| above.concat()).unwrap_or_default();
            assert!(setting.path.is_relative() && !above.contains(&b'*'), "{}", setting.path.display());
        }
    }

    #[test]
    fn a_setting_is_found_anywhere_in_a_project_and_in_any_case() {
        for path in [".envrc", "a/.ENVRC", "a/.claude/deep/x", "x.Code-Workspace", ".git/x", "a/.bailiwick-x"]
        {
            assert!(is_acted_on(Path::new(path)), "{path}");
        }
        for path in ["envrc", "a/.claude2", "x.code-workspaces", "mise", "config/mise", "a/.idea.txt"] {
            assert!(!is_acted_on(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_link_leads_to_the_names_that_begin_with_it() {
        assert!(led_to(Path::new(".config")).contains(&Path::new("mise")));
        assert_eq!(led_to(Path::new(".claude")), [Path::new("")]);
        assert_eq!(led_to(Path::new("sub/.git")), [] as [&Path; 0]);
    }
}
