//! Sources of git's settings and hooks, as git itself reports them: also environment variables and compiled-in paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const FILE: &[u8] = b"file:";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GitSources {
    pub(super) files: Vec<PathBuf>,
    /// Hooks directory that git uses, and hooks directories that are not set in files.
    pub(super) hooks: Vec<PathBuf>,
}

impl GitSources {
    /// Parses the outputs of `git config --list --show-origin -z` and `git rev-parse --git-path hooks`, each ended by a
    /// NUL. Also returns the bytes after them.
    pub(super) fn read<'a>(mut said: &'a [u8], project: &Path) -> (Self, &'a [u8]) {
        let mut sources = Self::default();
        loop {
            let origin = part(&mut said);
            if origin.is_empty() {
                break;
            }
            sources.setting(origin, part(&mut said), project);
        }
        let hooks = part(&mut said);
        sources.hook(hooks.strip_suffix(b"\n").unwrap_or(hooks), project);
        (sources, said)
    }

    fn setting(&mut self, origin: &[u8], setting: &[u8], project: &Path) {
        if let Some(file) = origin.strip_prefix(FILE) {
            let file = project.join(OsStr::from_bytes(file));
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        } else if let Some(hooks) = setting.strip_prefix(b"core.hookspath\n") {
            self.hook(hooks, project);
        }
    }

    fn hook(&mut self, hooks: &[u8], project: &Path) {
        if !hooks.is_empty() {
            self.hooks.push(project.join(OsStr::from_bytes(hooks)));
        }
    }
}

fn part<'a>(said: &mut &'a [u8]) -> &'a [u8] {
    let end = said.iter().position(|byte| *byte == 0).unwrap_or(said.len());
    let (part, rest) = said.split_at(end);
    *said = rest.get(1..).unwrap_or_default();
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_hooks_are_found_and_the_rest_is_left() {
        let said =
            b"file:/etc/gitconfig\0a.b\nc\0file:.git/config\0core.bare\nfalse\0file:.git/config\0core.x\0\
            command line:\0core.hookspath\ndev/hooks\0\0.git/hooks\n\0rest\n";
        let (sources, rest) = GitSources::read(said, Path::new("/p"));
        assert_eq!(sources.files, [Path::new("/etc/gitconfig"), Path::new("/p/.git/config")]);
        assert_eq!(sources.hooks, [Path::new("/p/dev/hooks"), Path::new("/p/.git/hooks")]);
        assert_eq!(rest, b"rest\n");
        for cut in 0..said.len() {
            let _ = GitSources::read(&said[..cut], Path::new("/p"));
        }
        assert_eq!(GitSources::read(b"\0\0", Path::new("/p")), (GitSources::default(), &[][..]));
    }
}
