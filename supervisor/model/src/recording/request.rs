use std::fmt;
use std::time::Instant;

use bytes::Bytes;

#[derive(Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    /// Headers. A key is replaced by its length; the scheme before the key (`Bearer`) is kept.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Time at which the last byte of the request arrived.
    pub received: Instant,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for RecordedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?} {} bytes", self.method, self.path, self.headers, self.body.len())
    }
}
