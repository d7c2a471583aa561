//! A picture that a front end sends.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use ipc::image::{MediaType, data};

/// A picture that a front end sends.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct Attachment {
    /// The media type, with which the data must agree.
    pub media_type: MediaType,
    /// Width in pixels, which the data must have; may be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels, which the data must have; may be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Bytes in base64, with padding: at most 3.75 MiB before encoding, and 8000 pixels a side.
    #[serde(with = "data")]
    #[schemars(with = "String")]
    pub data: Arc<[u8]>,
}

/// Leaves out the data, which may have megabytes.
impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[attached {}, {} bytes]", self.media_type, self.data.len())
    }
}
