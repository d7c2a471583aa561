//! What every stream of `fixtures/streams/responses` means, and that no cut and no chunking of it does any harm.

use std::num::NonZero;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use tokio::runtime::Builder;

use crate::{Item, files, lines, play};

fn fixtures() -> Vec<(String, Bytes)> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams/responses"))
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
        let text = text.trim_start_matches('\u{feff}');
        if text.contains('\r') || !text.contains("data:") {
            continue;
        }
        let whole = lines(&play(body, None).await);
        for other in [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            format!("\u{feff}{text}"),
            text.replace("\n\n", "\n\n: still there\n\n"),
        ] {
            assert_eq!(lines(&play(other.into(), None).await), whole, "{name}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_the_same_reply_or_a_typed_error() {
    let fixtures = fixtures();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let cut = async |fixtures: Vec<&(String, Bytes)>| {
        for (name, body) in fixtures {
            let whole = lines(&play(body.clone(), None).await);
            for length in 0..body.len() {
                assert_cut(name, length, &play(body.slice(..length), None).await, &whole);
            }
        }
    };
    thread::scope(|scope| {
        for part in 0..threads {
            let own = fixtures.iter().skip(part).step_by(threads).collect();
            scope.spawn(move || {
                Builder::new_current_thread().enable_all().build().unwrap().block_on(cut(own));
            });
        }
    });
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

#[tokio::test]
async fn s7_a_reply_that_is_cut_before_its_end_is_worth_another_attempt() {
    let (_, body) = fixtures().into_iter().find(|(name, _)| name == "tool_call").expect("the fixture");
    let end = body.windows(20).position(|window| window == br#""response.completed""#).expect("the end");
    for length in 0..end {
        let Some(Err(error)) = play(body.slice(..length), None).await.pop() else {
            panic!("cut at {length}: no error")
        };
        assert_eq!((error.kind.as_str(), error.retryable), ("truncated_stream", true), "cut at {length}");
    }
}
