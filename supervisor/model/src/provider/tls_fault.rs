//! Describes faults of a server's TLS certificate, with hints.

use rustls::{CertificateError, Error};

const CHECK: &str = "check --base-url, the clock, and the certificates (bailiwick doctor --api)";

pub(super) struct TlsFault {
    pub(super) words: String,
    pub(super) hint: String,
}

impl TlsFault {
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(fault) => of_certificate(fault).unwrap_or_else(|| Self::told(error)),
            error => Self::told(error),
        }
    }

    fn told(error: &Error) -> Self {
        Self { words: error.to_string(), hint: CHECK.to_owned() }
    }

    fn new(words: &str, hint: &str) -> Self {
        Self { words: words.to_owned(), hint: hint.to_owned() }
    }
}

fn of_certificate(fault: &CertificateError) -> Option<TlsFault> {
    Some(match fault {
        CertificateError::UnknownIssuer => TlsFault::new(
            "the server's certificate is not signed by an authority that this system trusts (UnknownIssuer)",
            "if the server is yours or your company's, set SSL_CERT_FILE to the certificate file of the authority that signed its certificate",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            TlsFault::new("the server's certificate has expired", "check the clock, and --base-url")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFault::new("the server's certificate is not valid yet", "check the clock, and --base-url")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFault::new(
            "the server's certificate is not for the name of this server",
            "use the name in --base-url that the certificate was made for",
        ),
        CertificateError::Revoked => {
            TlsFault::new("the server's certificate was revoked", "ask the operator of the server")
        }
        // The library has no variant for this fault.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => TlsFault::new(
            "the server uses the certificate of a certificate authority, such as `openssl req -x509` makes",
            "have the authority sign a separate certificate for the server, with basicConstraints=CA:FALSE, and set SSL_CERT_FILE to the file with the authority's certificate",
        ),
        CertificateError::Other(other) if other.to_string().contains("UnsupportedCertVersion") => {
            TlsFault::new(
                "the server's certificate is of an old version without extensions, such as `openssl x509 -req` makes without a file of extensions",
                "have the certificate signed again with a file of extensions (subjectAltName=DNS:NAME), and set SSL_CERT_FILE to the file with the authority's certificate",
            )
        }
        CertificateError::Other(other) => {
            TlsFault::new(&format!("the server's certificate cannot be verified: {other}"), CHECK)
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => TlsFault::new(
            "the server's certificate is not made for servers",
            "have the certificate signed again for servers (extendedKeyUsage=serverAuth)",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Unnamed(&'static str);

    #[test]
    fn a_fault_of_a_certificate_is_told_in_words_with_a_step() {
        let other = |name| CertificateError::Other(OtherError(Arc::new(Unnamed(name))));
        for (fault, words) in [
            (CertificateError::UnknownIssuer, "an authority that this system trusts"),
            (CertificateError::Expired, "has expired"),
            (CertificateError::NotValidForName, "not for the name"),
            (other("CaUsedAsEndEntity"), "of a certificate authority"),
            (other("UnsupportedCertVersion"), "of an old version"),
            (other("MaximumSignatureChecksExceeded"), "cannot be verified: MaximumSignatureChecksExceeded"),
            (CertificateError::NotValidYet, "is not valid yet"),
            (CertificateError::Revoked, "was revoked"),
            (CertificateError::InvalidPurpose, "not made for servers"),
            (CertificateError::BadSignature, "BadSignature"),
        ] {
            let fault = TlsFault::of(&Error::InvalidCertificate(fault));
            assert!(fault.words.contains(words) && !fault.hint.is_empty(), "{}", fault.words);
            assert!(!fault.words.contains("OtherError"));
        }
    }
}
