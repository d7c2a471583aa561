//! Last bytes of what an MCP server wrote to standard error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ipc::mcp::MAX_WORDS;
use tokio::io::{AsyncRead, AsyncReadExt};

#[derive(Clone, Debug, Default)]
pub(super) struct Said(Arc<Mutex<VecDeque<u8>>>);

impl Said {
    /// Reads standard error to the end, and keeps the last bytes.
    pub(super) async fn listen(self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            self.keep(&buffer[..read]);
            // A server that floods its standard error must not keep the thread from everything else.
            tokio::task::yield_now().await;
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[bytes.len().saturating_sub(MAX_WORDS)..]);
        let beyond = kept.len().saturating_sub(MAX_WORDS);
        kept.drain(..beyond);
    }

    pub(super) fn text(&self) -> String {
        let kept: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let text = text.trim();
        let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_WORDS));
        text[start..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_bytes_are_kept_as_text() {
        let said = Said::default();
        let much = [b"first".to_vec(), vec![0xff; 3 * MAX_WORDS], b"the end\n".to_vec()].concat();
        said.clone().listen(much.as_slice()).await;
        let text = said.text();
        assert!(text.len() <= MAX_WORDS && text.ends_with("the end"), "{}", text.len());
        assert!(!text.contains("first"));
    }
}
