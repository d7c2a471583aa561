//! Messages between the supervisor and the guest that fetches one page of the web.
//!
//! The guest gets one order and answers with `Ready`, a `Connected` for each connection, and finally `Done`, in frames
//! of generation 0 on a stream socket. The supervisor does not trust the reports.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::page_url::PageUrl;
use crate::path::WirePath;
use crate::rights::Hosts;

/// Maximum size of a page in bytes, once it is decompressed.
pub const MAX_PAGE: usize = 2 << 20;

/// Maximum size in bytes of a page's text, as the guest reports it.
pub const MAX_TEXT: usize = 64 << 10;

/// Maximum number of redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;

/// The order to fetch a page, the only message to the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchOrder {
    /// The page that the model wants, an HTTP or HTTPS URL.
    pub url: PageUrl,
    /// The hosts that may be connected to; all have the name in the URL.
    pub hosts: Hosts,
    /// Certificate authorities that the user configured. `None` for those of the system.
    pub authorities: Option<Authorities>,
}

/// Files of certificate authorities that replace the system's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorities {
    /// File of certificates, if one is configured.
    pub file: Option<WirePath>,
    /// Directories with files of certificates.
    pub directories: Vec<WirePath>,
}

/// A message of the guest, which the supervisor does not trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchReport {
    /// The order has arrived.
    Ready,
    /// The guest has connected to a host.
    Connected {
        /// Port of the host.
        port: u16,
        /// Address and port of the connection.
        address: SocketAddr,
    },
    /// Number of bytes on all connections together.
    Carried {
        /// Bytes to the host.
        sent: u64,
        /// Bytes from the host.
        received: u64,
    },
    /// The fetched page, or the reason why there is none. No message follows.
    Done(Result<Fetched, FetchFailure>),
}

/// An answer of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fetched {
    /// The page of the URL, or the one to which its redirects led.
    Page(Page),
    /// A redirect that is not followed, because it leads to another host or away from HTTPS.
    Elsewhere {
        /// The HTTP status.
        status: u16,
        /// The page that redirects.
        from: PageUrl,
        /// The target of the redirect.
        to: PageUrl,
    },
}

/// A fetched page, after its conversion to text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The URL of the page, after redirects.
    pub url: PageUrl,
    /// The HTTP status.
    pub status: u16,
    /// The content type, as the host gives it.
    pub content_type: String,
    /// The page as text for the model (untrusted), at most [`MAX_TEXT`] bytes.
    pub text: String,
    /// True if the text was rendered from HTML.
    pub is_rendered: bool,
    /// Size of the whole text in bytes. `None` if `text` is the whole text.
    pub cut_from: Option<u64>,
    /// True if the page exceeds [`MAX_PAGE`], so that its end was not read.
    pub is_partial: bool,
}

/// The reason why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchFailure {
    /// The resolver has no address for the name.
    Unresolved,
    /// Connecting failed, or is not permitted, for every address of the host.
    Unreachable {
        /// The last address that was tried.
        address: SocketAddr,
        /// The error number of connect(2).
        errno: i32,
    },
    /// The encrypted connection failed for this reason.
    Tls(String),
    /// The host closed the connection, or its answer was not valid HTTP, for this reason.
    Http(String),
    /// The answer was not complete within the time limit.
    Late,
    /// The certificate authorities that the user configured cannot be read.
    Authorities(String),
    /// The body has an unknown content coding.
    Coding(String),
    /// The page is not text.
    NoText {
        /// The HTTP status.
        status: u16,
        /// The content type, as the host gives it.
        content_type: String,
        /// The size in bytes, if it is known.
        size: Option<u64>,
    },
    /// There are more than [`MAX_REDIRECTS`] redirects.
    Redirects {
        /// The page whose redirect is not followed.
        at: PageUrl,
    },
    /// The target of a redirect is not a valid URL.
    Redirect {
        /// The text that is not a valid URL.
        to: String,
        /// The fault of the URL.
        reason: String,
    },
}
