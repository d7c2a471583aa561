//! Certificate authorities from environment variables. If a variable names a file that cannot be read, that is an
//! error, and the system's authorities are not used.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Variable with the path of a file of authorities. This variable and [`DIRECTORIES`] replace the system's authorities.
const FILE: &str = "SSL_CERT_FILE";
const DIRECTORIES: &str = "SSL_CERT_DIR";

/// Maximum bytes of a file of authorities. A file of all public authorities has a quarter of a megabyte.
const LARGEST: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the certificate authorities in {variable}={path}: {cause}\n  hint: name a file or directory of certificates (PEM), or unset {variable}", path = .path.display())]
pub struct AuthorityError {
    variable: &'static str,
    path: PathBuf,
    cause: String,
}

/// True if the environment names authorities. An `Err` names a file of authorities that cannot be read.
pub(crate) fn named() -> Result<bool, AuthorityError> {
    named_in(env::var_os(FILE).as_deref(), env::var_os(DIRECTORIES).as_deref())
}

fn named_in(file: Option<&OsStr>, directories: Option<&OsStr>) -> Result<bool, AuthorityError> {
    if let Some(file) = file {
        let path = Path::new(file);
        has_certificate(path).map_err(|cause| AuthorityError {
            variable: FILE,
            path: path.to_owned(),
            cause,
        })?;
    }
    for path in directories.into_iter().flat_map(env::split_paths).filter(|path| !path.as_os_str().is_empty())
    {
        if let Err(error) = fs::read_dir(&path) {
            return Err(AuthorityError { variable: DIRECTORIES, path, cause: in_words(&error) });
        }
    }
    Ok(file.is_some() || directories.is_some())
}

fn has_certificate(path: &Path) -> Result<(), String> {
    let about = fs::metadata(path).map_err(|error| in_words(&error))?;
    // Reading a pipe would block.
    if !about.is_file() || about.len() > LARGEST {
        return Err("the path is not a file of certificates".to_owned());
    }
    let text = fs::read(path).map_err(|error| in_words(&error))?;
    let first = CertificateDer::pem_slice_iter(&text).next();
    match first {
        Some(Ok(_)) => Ok(()),
        Some(Err(_)) | None => Err("the file has no certificate".to_owned()),
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the path does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "reading is not permitted".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z7_named_authorities_are_those_or_an_error_that_names_variable_and_path() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let good = file("good.pem", pem);
        assert!(named_in(Some(good.as_os_str()), Some(place.path().as_os_str())).unwrap());
        assert!(!named_in(None, None).unwrap());
        let missing = place.path().join("missing");
        for (path, cause) in [
            (file("junk.pem", "nonsense"), "the file has no certificate"),
            (file("empty.pem", ""), "the file has no certificate"),
            (missing.clone(), "the path does not exist"),
            (place.path().to_owned(), "the path is not a file of certificates"),
            (PathBuf::from("/dev/null"), "the path is not a file of certificates"),
            (PathBuf::new(), "the path does not exist"),
        ] {
            let error = named_in(Some(path.as_os_str()), None).expect_err(cause).to_string();
            assert!(error.contains(&format!("SSL_CERT_FILE={}: {cause}", path.display())), "{error}");
        }
        for (path, cause) in
            [(missing, "the path does not exist"), (good, "a part of the path is not a directory")]
        {
            let error = named_in(None, Some(path.as_os_str())).expect_err(cause).to_string();
            assert!(error.contains("SSL_CERT_DIR=") && error.contains(cause), "{error}");
        }
    }
}
