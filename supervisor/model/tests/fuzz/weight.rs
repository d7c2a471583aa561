//! Tests that the time for each byte of a reply does not grow with the size of the reply.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use model::provider::ProviderKind;
use model::replay::{Block, Reply, Usage, chat, responses, sse};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use tokio::runtime::Builder;

use super::reader::Model;
use super::{gzip, soak};

const KIB: usize = 1 << 10;

/// Maximum ratio of the times for a byte of a large and of a small reply. Allocators and caches make it differ from 1.
const FLAT: u32 = 4;

/// Returns the processor time of this thread, on which other programs have no influence.
fn own_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("a thread's own usage");
    let time = |value: TimeVal| {
        Duration::from_micros(u64::try_from(value.tv_sec() * 1_000_000 + value.tv_usec()).expect("a time"))
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// Returns a reply of about this size, in which one part is repeated.
fn large(kind: ProviderKind, repeated: &str, size: usize) -> Bytes {
    let blocks = [Block::text("PIECE"), Block::tool_use("c1", "none", "{}")];
    let whole = match kind {
        ProviderKind::Anthropic => sse::message(&blocks, "tool_use", Usage::default()),
        ProviderKind::OpenAi => chat::message(&blocks, "tool_calls", Usage::default()),
        ProviderKind::Responses => responses::message(&blocks, "tool_use", Usage::default()),
    };
    let events: Vec<_> = whole.split_inclusive("\n\n").collect();
    let at = events.iter().position(|event| event.contains("PIECE")).expect("a piece");
    let piece = if repeated.is_empty() { events[at] } else { repeated };
    let middle = piece.repeat(size.saturating_sub(whole.len()) / piece.len());
    [events[..at].concat(), middle, events[at..].concat()].concat().into()
}

/// Number of measurements of a reply, of which the shortest counts. A kernel may count a thread's time in milliseconds.
const ROUNDS: usize = 4;

/// Returns the shortest time in which a reply was decoded. The body is compressed if `packed`, else in chunks.
async fn price(model: &Model, body: &Bytes, packed: bool) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let reply = if packed {
            Reply::sse(gzip(body)).header("content-encoding", "gzip")
        } else {
            Reply::sse(body.clone()).chunked(16 << 10)
        };
        let before = own_time();
        let items = model.play(reply).await;
        assert!(items.iter().all(Result::is_ok), "{:?}", items.last());
        least = least.min(own_time().saturating_sub(before));
    }
    least
}

#[test]
fn a_byte_costs_the_same_in_a_reply_of_any_length() {
    thread::scope(|scope| {
        for kind in ProviderKind::ALL {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            scope.spawn(move || runtime.block_on(compare_prices(kind)));
        }
    });
}

async fn compare_prices(kind: ProviderKind) {
    let sizes: &[u32] = if soak().is_some() { &[1024, 4096, 16_384, 64_512] } else { &[256, 1024] };
    let model = Model::new(kind);
    for (name, repeated) in [("text", ""), ("comments", ": a comment\n"), ("blank lines", "\n")] {
        for packed in [false, true] {
            let mut prices = Vec::new();
            for &size in sizes {
                let body = large(kind, repeated, size as usize * KIB);
                prices.push(price(&model, &body, packed).await * 1024 / size);
            }
            let (first, last) = (prices[0].max(Duration::from_millis(5)), prices[prices.len() - 1]);
            assert!(
                last < first * FLAT,
                "{kind:?} {name}, packed {packed}: {prices:?} a MiB for {sizes:?} KiB"
            );
        }
    }
}
