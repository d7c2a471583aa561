use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ipc::path::WirePath;

/// Returns the canonical path of a socket that the user allows, relative to the project. An `Err` gives the reason.
pub fn allowed_socket(project: &Path, path: &Path) -> Result<WirePath, String> {
    let found = resolved(&project.join(path))?;
    // A link in the project may be an agent's, and must not choose what the user allows.
    if path.is_relative() && !found.starts_with(project) {
        return Err(format!("leads out of the project; if that is what you mean, name {}", found.display()));
    }
    Ok(found.into())
}

/// Returns the path of a socket that a settings file allows. Rejects links, since an agent may have created them later.
pub fn configured_socket(project: &Path, path: &Path) -> Result<WirePath, String> {
    let named: PathBuf = project.join(path).components().collect();
    let found = resolved(&named)?;
    if found != named {
        return Err(format!("leads to {0}; if that is what you mean, name {0}", found.display()));
    }
    Ok(found.into())
}

fn resolved(path: &Path) -> Result<PathBuf, String> {
    let found = fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "does not exist: start the server of this socket first".to_owned(),
        _ => error.to_string(),
    })?;
    let is_socket = fs::symlink_metadata(&found).is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket {
        Ok(found)
    } else {
        Err("is not a unix socket; each socket is allowed by its own path".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_allowed_where_it_is_and_a_directory_is_none() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let (project, outside) = (root.join("p"), root.join("s"));
        fs::create_dir(&project).unwrap();
        let _listener = UnixListener::bind(&outside).unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(&outside, project.join("link")).unwrap();
        let (socket, link) = (WirePath::from(&outside), root.join("link"));
        assert_eq!(allowed_socket(&project, &outside).unwrap(), socket);
        assert_eq!(allowed_socket(&project, &link).unwrap(), socket, "the user's own word");
        assert!(allowed_socket(&project, Path::new("link")).unwrap_err().starts_with("leads out"));
        assert_eq!(configured_socket(&project, &outside).unwrap(), socket);
        assert!(configured_socket(&project, &link).unwrap_err().starts_with("leads to "));
        for resolve in [allowed_socket, configured_socket] {
            assert!(resolve(&project, &root).unwrap_err().starts_with("is not a unix socket"));
            assert!(resolve(&project, &root.join("none")).unwrap_err().starts_with("does not exist"));
        }
    }
}
