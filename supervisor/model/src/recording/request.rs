use std::fmt;
use std::time::Instant;

use bytes::Bytes;

#[derive(Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    /// Headers. In place of the key they have the key's length; the scheme before the key stays.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Time at which the last byte arrived.
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
