//! The space of a context in tokens, estimates for texts, and reserves.
//!
//! The provider counts exactly, but only prompts to which it has replied. Later additions are estimated from bytes:
//! three bytes of ASCII are a token, and two bytes of anything else. English, code and JSON have three to five bytes a
//! token. Denser text (base64, hexadecimal digits) is underestimated; the reserve makes up for that.

use crate::core::Window;

/// Maximum tokens of the first message in a context with a summary.
const FIRST_MESSAGE: u64 = 24_000;

/// Reserved tokens for the text that asks for a summary.
const INSTRUCTION: u64 = 1_000;

/// Minimum in tokens for a window whose size a server names in an error.
const SMALLEST: u64 = 4_000;

/// Minimum in tokens for a window whose size is guessed after an error without a number.
const LEAST_GUESS: u64 = 8_000;

/// Minimum tokens of a result, however full the context is.
const LEAST_RESULT: u64 = 700;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct Budget {
    context: u64,
    reply: u32,
    limit: u32,
    /// Estimated tokens of system prompt and tools.
    fixed: u64,
}

impl Budget {
    /// Returns the budget for a window. A reply gets its limit, but at most a quarter of the window.
    pub(super) fn new(window: Window, reply: u32, fixed: u64) -> Self {
        let quarter = u32::try_from(window.context / 4).unwrap_or(u32::MAX);
        Self { context: window.context, reply: reply.min(quarter), limit: reply, fixed }
    }

    pub(super) fn in_window(self, context: u64) -> Self {
        Self::new(Window { context }, self.limit, self.fixed)
    }

    /// Returns the window after a rejected prompt: the size in the error, else three quarters of the `refused` tokens.
    pub(super) fn window_after(self, refused: u64, named: Option<u64>) -> u64 {
        match named.filter(|named| *named < self.context) {
            Some(named) => named.max(SMALLEST),
            None => (refused / 4 * 3).max(LEAST_GUESS).min(self.context),
        }
    }

    pub(super) const fn context(self) -> u64 {
        self.context
    }

    pub(super) const fn reply(self) -> u32 {
        self.reply
    }

    pub(super) const fn fixed(self) -> u64 {
        self.fixed
    }

    pub(super) fn prompt(self) -> u64 {
        self.context.saturating_sub(self.reply.into())
    }

    /// Returns the length of a prompt above which a summary comes first. A prompt of this length leaves tokens for a
    /// reply, and an eighth of the window for results.
    pub(super) fn compact_at(self) -> u64 {
        self.prompt().saturating_sub(self.context / 8)
    }

    pub(super) fn summary(self) -> u32 {
        (self.reply / 2).max(1)
    }

    /// True if a summary can be requested at the end of a conversation of this many tokens.
    pub(super) fn can_ask_after(self, conversation: u64) -> bool {
        conversation.saturating_add(INSTRUCTION).saturating_add(self.summary().into()) <= self.context
    }

    /// Returns the maximum tokens of results after which a summary can still be requested.
    pub(super) fn results_after(self, conversation: u64) -> u64 {
        let kept = conversation.saturating_add(INSTRUCTION).saturating_add(self.summary().into());
        self.context.saturating_sub(kept)
    }

    /// Returns the maximum tokens of the next result, if `results` results share `left` tokens.
    pub(in crate::core) fn share(left: u64, results: u64) -> u64 {
        (left / results.max(1)).max(LEAST_RESULT)
    }

    pub(super) fn first_message(self) -> u64 {
        FIRST_MESSAGE.min(self.compact_at() / 4)
    }

    /// Returns the maximum tokens of a record from which the model writes a summary without the conversation.
    pub(super) fn record(self) -> u64 {
        self.compact_at() / 2
    }

    pub(super) fn context_item(self) -> u64 {
        self.compact_at() / 8
    }

    /// Returns the maximum tokens of a user's message, which must fit after a summary and `context` tokens of context.
    pub(super) fn message(self, context: u64) -> u64 {
        let before = self.fixed.saturating_add(self.first_message()).saturating_add(context);
        self.compact_at().saturating_sub(before)
    }
}

pub(in crate::core) fn tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    (ascii.div_ceil(3) + (text.len() - ascii).div_ceil(2)) as u64
}

/// Returns the estimated number of bytes at the beginning of a text that `budget` tokens have.
pub(in crate::core) fn bytes(text: &str, budget: u64) -> usize {
    let (length, whole) = (text.len() as u128, u128::from(tokens(text)));
    let share = length * u128::from(budget) / whole.max(1);
    usize::try_from(share).unwrap_or(usize::MAX).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_window_is_used_for() {
        let lines = [Window::LEAST, 32_000, 200_000, 1_000_000].map(|context| {
            let budget = Budget::new(Window::new(context), 32_000, 3_000);
            format!(
                "{context}: reply {} prompt {} compact at {} summary {} first {} item {} message {}",
                budget.reply(),
                budget.prompt(),
                budget.compact_at(),
                budget.summary(),
                budget.first_message(),
                budget.context_item(),
                budget.message(500),
            )
        });
        insta::assert_snapshot!(lines.join("\n"), @r"
        16000: reply 4000 prompt 12000 compact at 10000 summary 2000 first 2500 item 1250 message 4000
        32000: reply 8000 prompt 24000 compact at 20000 summary 4000 first 5000 item 2500 message 11500
        200000: reply 32000 prompt 168000 compact at 143000 summary 16000 first 24000 item 17875 message 115500
        1000000: reply 32000 prompt 968000 compact at 843000 summary 16000 first 24000 item 105375 message 815500
        ");
    }

    #[test]
    fn a_window_is_never_too_small_to_work_in() {
        assert_eq!(Window::new(0), Window::new(Window::LEAST));
        assert!(Budget::new(Window::new(0), u32::MAX, 3_000).message(500) > 1_000);
    }

    #[test]
    fn numbers_of_any_size_are_taken() {
        for context in [Window::LEAST, u64::MAX] {
            for fixed in [0, u64::MAX] {
                let budget = Budget::new(Window::new(context), u32::MAX, fixed);
                assert!(budget.compact_at() < budget.prompt() && budget.prompt() < budget.context());
                assert!(!budget.can_ask_after(u64::MAX) || context == u64::MAX);
                assert_eq!(Budget::share(budget.results_after(u64::MAX), u64::MAX), LEAST_RESULT);
            }
        }
    }

    #[test]
    fn estimates_are_on_the_safe_side() {
        assert_eq!([tokens(""), tokens("a"), tokens("abcd"), tokens("ä"), tokens("漢字")], [0, 1, 2, 1, 3]);
        for text in ["", "abc", "漢字 and more", "\u{1f600}"] {
            let whole = tokens(text);
            assert_eq!(bytes(text, whole), text.len());
            assert!(bytes(text, whole / 2) <= text.len());
        }
        assert_eq!(bytes("abcdef", u64::MAX), 6);
    }
}
