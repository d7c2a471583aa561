//! Unknown kinds of events. Each kind is logged once, and its events are ignored.

use std::collections::BTreeSet;

/// Maximum number of kinds that are remembered, far above the number that any API can add.
const REMEMBERED: usize = 32;

#[derive(Clone, Debug, Default)]
pub(crate) struct Unknown(BTreeSet<String>);

impl Unknown {
    /// Logs an unknown kind once. The text comes from the provider, so it is not logged if it cannot be the name of a
    /// kind.
    pub(crate) fn note(&mut self, kind: &str) {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.');
        let plain = kind.len() <= 64 && kind.bytes().all(is_plain);
        if plain && self.0.len() < REMEMBERED && self.0.insert(kind.to_owned()) {
            tracing::debug!(kind, "unknown stream event");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_remembered_once_and_a_hostile_stream_not_in_full() {
        let mut unknown = Unknown::default();
        for kind in ["a.b", "a.b", "A", "a b", &"x".repeat(65)] {
            unknown.note(kind);
        }
        assert_eq!(unknown.0.len(), 1);
        for number in 0..100 {
            unknown.note(&"x".repeat(number));
        }
        assert_eq!(unknown.0.len(), REMEMBERED);
    }
}
