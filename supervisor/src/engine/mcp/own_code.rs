//! Files of a server's command that an agent may change. If it changed them, that agent would act with the server's
//! access. So a server with more access than agents starts only while these files are as at the session's start.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ipc::path::WirePath;
use sha2::{Digest, Sha256};

use super::installed::NotStarted;
use super::program::found;
use crate::engine::place::ProjectSandbox;
use crate::settings::config::McpServer;

/// Maximum number of bytes of a file that are compared. The length of the whole file is compared too.
const MOST_BYTES: u64 = 256 << 20;

const BUFFER: usize = 64 << 10;

/// Program and file arguments of a server that lie in directories that agents may write.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnCode(Vec<CodeFile>);

#[derive(Clone, Debug)]
struct CodeFile {
    path: PathBuf,
    digest: CodeDigest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CodeDigest {
    length: u64,
    sha256: [u8; 32],
}

impl OwnCode {
    /// Reads the files; none for a server without variables, hosts and write directories, which has no more access.
    pub(super) fn of(setup: &ProjectSandbox, server: &McpServer) -> Self {
        if server.env.is_empty() && server.net.is_off() && server.write.is_empty() {
            return Self::default();
        }
        let policy = &setup.policy;
        let roots = policy.write.iter().chain(&policy.auto).chain([&policy.project]).collect::<Vec<_>>();
        let project = policy.project.as_path();
        let program = found(&server.command).unwrap_or_else(|| PathBuf::from(&server.command));
        let words = server.args.iter().map(PathBuf::from).chain([program]);
        let files = words.map(|word| project.join(word)).filter(|path| is_below(path, &roots));
        Self(files.filter_map(|path| digest(&path).ok().map(|digest| CodeFile { path, digest })).collect())
    }

    /// Fails if a file has changed since [`Self::of`]. Reads the files, which blocks.
    pub(super) fn check(&self) -> Result<(), NotStarted> {
        let is_as_before = |file: &CodeFile| digest(&file.path).is_ok_and(|now| now == file.digest);
        match self.0.iter().find(|file| !is_as_before(file)) {
            Some(changed) => Err(NotStarted::CodeChanged(changed.path.clone())),
            None => Ok(()),
        }
    }
}

/// True if the path, or the path that its links lead to, is in one of these directories.
fn is_below(path: &Path, roots: &[&WirePath]) -> bool {
    let target = fs::canonicalize(path).ok();
    let places = [Some(path.to_owned()), target];
    places.iter().flatten().any(|place| roots.iter().any(|root| place.starts_with(root.as_path())))
}

/// Returns the digest of a regular file. Follows links.
fn digest(path: &Path) -> io::Result<CodeDigest> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut reader = BufReader::with_capacity(BUFFER, file.take(MOST_BYTES));
    let mut hash = Sha256::new();
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        hash.update(piece);
        let length = piece.len();
        reader.consume(length);
    }
    Ok(CodeDigest { length: metadata.len(), sha256: hash.finalize().into() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Changes the first file. The second path is a file that the change may use.
    type Change = fn(&Path, &Path);

    #[test]
    fn every_change_of_a_file_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("server.sh");
        let other = place.path().join("other.sh");
        fs::write(&other, "evil").unwrap();
        let changes: [(&str, Change); 5] = [
            ("content", |path, _| fs::write(path, "two").unwrap()),
            ("removal", |path, _| fs::remove_file(path).unwrap()),
            ("a link in its place", |path, other| {
                fs::remove_file(path).unwrap();
                symlink(other, path).unwrap();
            }),
            ("a longer file", |path, _| fs::write(path, "one and more").unwrap()),
            ("a FIFO in its place", |path, _| {
                fs::remove_file(path).unwrap();
                nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            }),
        ];
        for (name, change) in changes {
            let _ = fs::remove_file(&path);
            fs::write(&path, "one").unwrap();
            let code = OwnCode(vec![CodeFile { path: path.clone(), digest: digest(&path).unwrap() }]);
            assert!(code.check().is_ok(), "{name}");
            change(&path, &other);
            assert!(matches!(code.check(), Err(NotStarted::CodeChanged(found)) if found == path), "{name}");
        }
    }

    #[test]
    fn a_link_into_a_writable_directory_counts() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let [project, outside] = ["project", "outside"].map(|name| root.join(name));
        for directory in [&project, &outside] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(project.join("server"), "").unwrap();
        fs::write(outside.join("server"), "").unwrap();
        symlink(project.join("server"), outside.join("link")).unwrap();
        symlink(outside.join("server"), project.join("link")).unwrap();
        let roots = WirePath::from(project.as_path());
        let counts = |path: PathBuf| is_below(&path, &[&roots]);
        assert!(
            counts(project.join("server")) && counts(outside.join("link")) && counts(project.join("link"))
        );
        assert!(!counts(outside.join("server")));
    }
}
