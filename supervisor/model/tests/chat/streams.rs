//! What every stream of `fixtures/streams/chat` means, and that no cut and no chunking of it does any harm.

use std::path::Path;

use bytes::Bytes;
use model::provider::StreamEvent;
use protocol::event::TokenUsage;

use crate::{Item, files, lines, play};

fn fixtures() -> Vec<(String, Bytes)> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams/chat"))
}

#[tokio::test]
async fn every_stream_means_what_its_snapshot_says() {
    for (name, body) in fixtures() {
        let lines = lines(&play(body, None).await);
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(name, lines.join("\n"));
        });
    }
}

#[tokio::test]
async fn a_stream_means_the_same_in_chunks_of_any_size() {
    for (name, body) in fixtures() {
        let whole = lines(&play(body.clone(), None).await);
        for size in [1, 2, 3, 7, 64, 1000] {
            assert_eq!(lines(&play(body.clone(), Some(size)).await), whole, "{name} in chunks of {size}");
        }
    }
}

#[tokio::test]
async fn a_stream_means_the_same_with_other_line_ends_a_mark_and_comments() {
    for (name, body) in fixtures() {
        let text = String::from_utf8(body.to_vec()).expect("UTF-8");
        if !text.trim_start_matches('\u{feff}').starts_with("data:") || text.contains('\r') {
            continue;
        }
        let whole = lines(&play(body, None).await);
        for other in [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            format!("\u{feff}{}", text.trim_start_matches('\u{feff}')),
            text.replace("\n\n", "\n\n: still there\n\n"),
        ] {
            assert_eq!(lines(&play(other.into(), None).await), whole, "{name}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_is_the_same_reply_or_a_typed_error() {
    for (name, body) in fixtures() {
        let whole = lines(&without_usage(play(body.clone(), None).await));
        for length in 0..body.len() {
            let cut = without_usage(play(body.slice(..length), None).await);
            assert_cut(&name, length, &cut, &whole);
        }
    }
}

/// Either everything came, or what came is the beginning of it and the last item an error.
fn assert_cut(name: &str, length: usize, cut: &[Item], whole: &[String]) {
    let came = lines(cut);
    if came == whole {
        return;
    }
    let (last, before) = cut.split_last().expect("at least an error");
    let Err(error) = last else { panic!("{name} cut at {length} ends without an error: {came:?}") };
    assert!(
        matches!(error.kind.as_str(), "truncated_stream" | "invalid_response"),
        "{name} cut at {length}: {error:?}"
    );
    assert!(before.iter().all(Result::is_ok), "{name} cut at {length}");
    assert_eq!(came[..before.len()], whole[..before.len()], "{name} cut at {length}");
}

/// The usage is the last thing that servers send: a reply that is cut before it is whole without it.
fn without_usage(mut items: Vec<Item>) -> Vec<Item> {
    if let Some(Ok(StreamEvent::MessageCompleted { usage, .. })) = items.last_mut() {
        *usage = TokenUsage::default();
    }
    items.retain(|item| !matches!(item, Ok(StreamEvent::UsageTold { .. })));
    items
}

#[tokio::test]
async fn s7_a_reply_that_is_cut_before_its_finish_reason_is_worth_another_attempt() {
    let (_, body) = fixtures().into_iter().find(|(name, _)| name == "tool_call").expect("the fixture");
    let reason = br#""finish_reason":"tool_calls""#;
    let finish = body.windows(reason.len()).position(|window| window == reason).expect("a finish reason");
    for length in 0..finish {
        let Some(Err(error)) = play(body.slice(..length), None).await.pop() else {
            panic!("cut at {length}: no error")
        };
        assert_eq!((error.kind.as_str(), error.retryable), ("truncated_stream", true), "cut at {length}");
    }
}
