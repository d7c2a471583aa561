//! Messages between the supervisor and the guest that fetches one page.
//!
//! The guest gets one order and answers `Ready`, then `Connected` for each connection, and `Done` at last. The frames are of
//! generation 0 on a stream socket. Everything in a report is a claim.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::page_url::PageUrl;
use crate::path::WirePath;
use crate::rights::Hosts;

/// Maximum size of a page in bytes, once it is decompressed.
pub const MAX_PAGE: usize = 2 << 20;

/// Maximum size of the text of a page in bytes, as the guest reports it.
pub const MAX_TEXT: usize = 64 << 10;

/// Maximum number of redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;

/// The one message to the guest, its first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchOrder {
    /// The page.
    pub url: PageUrl,
    /// The hosts that it may connect to; all have the name of the page.
    pub hosts: Hosts,
    /// Certificate authorities that the person named.
    pub authorities: Option<Authorities>,
}

/// Files of certificate authorities that replace the system's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorities {
    /// A file of certificates.
    pub file: Option<WirePath>,
    /// Directories of files of certificates.
    pub directories: Vec<WirePath>,
}

/// A message of the guest, which the supervisor does not trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchReport {
    /// It has its order.
    Ready,
    /// A connection was made.
    Connected {
        /// The port.
        port: u16,
        /// The address.
        address: SocketAddr,
    },
    /// Bytes of all connections, in both directions.
    Carried {
        /// Bytes to the host.
        sent: u64,
        /// Bytes from the host.
        received: u64,
    },
    /// The end. Nothing follows.
    Done(Result<Fetched, FetchFailure>),
}

/// An answer of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fetched {
    /// A page.
    Page(Page),
    /// A redirect that is not followed, since it leads to another host, or off HTTPS.
    Elsewhere {
        /// The status.
        status: u16,
        /// The page that redirects.
        from: PageUrl,
        /// The URL that it names.
        to: PageUrl,
    },
}

/// A page as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The URL of the page, after redirects.
    pub url: PageUrl,
    /// The status.
    pub status: u16,
    /// The type that the host names.
    pub content_type: String,
    /// The text.
    pub text: String,
    /// True if the text was rendered from HTML.
    pub is_rendered: bool,
    /// Size of the whole text, if the rest of it was left out.
    pub cut_from: Option<u64>,
    /// True if the page itself is longer than is read.
    pub is_partial: bool,
}

/// The reason why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchFailure {
    /// The resolver has no address for the name.
    Unresolved,
    /// No address could be connected to, or may be.
    Unreachable {
        /// The last one that was tried.
        address: SocketAddr,
        /// The error number of the attempt, as of connect(2).
        errno: i32,
    },
    /// No encrypted connection: the reason.
    Tls(String),
    /// The host ended the connection, or what it sent is no HTTP: the reason.
    Http(String),
    /// The answer was not complete in time.
    Late,
    /// The certificate authorities that the person named cannot be read.
    Authorities(String),
    /// The body has a coding that cannot be undone.
    Coding(String),
    /// The page is no text.
    NoText {
        /// The status.
        status: u16,
        /// The type that the host names.
        content_type: String,
        /// The size in bytes, as far as it is known.
        size: Option<u64>,
    },
    /// More redirects than are followed.
    Redirects {
        /// The last page.
        at: PageUrl,
    },
    /// A redirect to something that is no URL of a page.
    Redirect {
        /// The text of the redirect.
        to: String,
        /// The reason.
        reason: String,
    },
}
