//! A stream of bytes without the key, should a server echo it.

use secrecy::{ExposeSecret, SecretString};

/// What stands for each byte of the key: lengths stay what they were.
const MASK: u8 = b'*';

/// Masks a secret in bytes that come in pieces, wherever the pieces part.
#[derive(Debug)]
pub(super) struct Redactor {
    secret: Option<SecretString>,
    /// The end of what came, which may be the beginning of the secret.
    held: Vec<u8>,
}

impl Redactor {
    pub(super) const fn new(secret: Option<SecretString>) -> Self {
        Self { secret, held: Vec::new() }
    }

    /// Takes a piece in; gives what can be told by now.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.mask();
        let kept = self.secret().len().saturating_sub(1).min(self.held.len());
        self.held.drain(..self.held.len() - kept).collect()
    }

    /// The rest.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn secret(&self) -> &[u8] {
        self.secret.as_ref().map(|secret| secret.expose_secret().as_bytes()).unwrap_or_default()
    }

    fn mask(&mut self) {
        let length = self.secret().len();
        let mut at = 0;
        while length > 0 && at + length <= self.held.len() {
            if self.held[at..].starts_with(self.secret()) {
                self.held[at..at + length].fill(MASK);
                at += length;
            } else {
                at += 1;
            }
        }
    }
}

/// All of a text without the secret.
pub(super) fn masked(secret: Option<&SecretString>, bytes: &[u8]) -> Vec<u8> {
    let mut redactor = Redactor::new(secret.cloned());
    let mut all = redactor.push(bytes);
    all.extend(redactor.finish());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_masked_wherever_pieces_part() {
        let secret = Some(SecretString::from("sk-ab"));
        let text = b"xsk-sk-abysk-absk-ab sk-a";
        for size in 1..=text.len() {
            let mut redactor = Redactor::new(secret.clone());
            let mut all: Vec<u8> = text.chunks(size).flat_map(|piece| redactor.push(piece)).collect();
            all.extend(redactor.finish());
            assert_eq!(all, b"xsk-*****y********** sk-a", "{size}");
        }
        assert_eq!(masked(None, b"nothing to hide"), b"nothing to hide");
    }
}
