//! Tests of the share of a long run's prompts that the provider's cache has. A control test checks the measurement.

use std::time::Duration;

use bytes::Bytes;
use model::provider::anthropic::ApiVersion;
use model::provider::{CacheLifetime, Effort, RequestOptions, Thinking};
use serde_json::Value;

use crate::cache::{Cache, Split};
use crate::plan;

const STEP: Duration = Duration::from_secs(20);

const OPTIONS: RequestOptions = RequestOptions {
    effort: Some(Effort::High),
    thinking: Thinking::Adaptive { display: None },
    cache: CacheLifetime::OneHour,
    temperature: None,
};

fn splits(bodies: &[Bytes], change: impl Fn(usize, &mut Value)) -> Vec<Split> {
    let mut cache = Cache::default();
    let split = |(index, body): (usize, &Bytes)| {
        let mut body = serde_json::from_slice(body).expect("JSON");
        change(index, &mut body);
        cache.wait(STEP);
        cache.take(&body)
    };
    bodies.iter().enumerate().map(split).collect()
}

#[expect(clippy::cast_precision_loss, reason = "far fewer tokens than a float counts exactly")]
fn ratio(splits: &[Split]) -> f64 {
    let sum = |part: fn(&Split) -> usize| splits.iter().map(part).sum::<usize>() as f64;
    sum(|split| split.read) / sum(|split| split.prompt)
}

async fn bodies() -> Vec<Bytes> {
    plan::play(ApiVersion::default(), OPTIONS).await.bodies
}

#[tokio::test]
async fn r8_every_request_reads_the_whole_previous_prompt_and_the_run_94_percent_of_its_prompts() {
    let splits = splits(&bodies().await, |_, _| {});
    assert!(splits.len() >= 30, "only {} requests", splits.len());
    for (index, pair) in splits.windows(2).enumerate() {
        assert_eq!(pair[0].marked, pair[0].prompt, "request {index} is marked at its end");
        assert!(pair[1].read >= pair[0].prompt, "request {}: {pair:?}", index + 1);
    }
    let ratio = ratio(&splits);
    eprintln!("{} requests, {:.1} % of their prompts read from the cache", splits.len(), 100.0 * ratio);
    assert!(ratio >= 0.94, "{ratio}");
}

#[tokio::test]
async fn r8_a_clock_in_the_system_prompt_would_leave_nothing_to_read() {
    let splits = splits(&bodies().await, |index, body| {
        body["system"][0]["text"] = format!("It is {index} o'clock.").into();
    });
    assert!(ratio(&splits) < 0.3, "{}", ratio(&splits));
}

#[tokio::test]
async fn r8_without_markers_in_the_messages_the_run_would_read_too_little() {
    let splits = splits(&bodies().await, |_, body| {
        each_message_block(body, |block| drop(block.remove("cache_control")));
    });
    assert!(ratio(&splits) < 0.94, "{}", ratio(&splits));
}

#[tokio::test]
async fn r8_a_result_that_changed_afterwards_would_be_seen() {
    let bodies = bodies().await;
    let whole = ratio(&splits(&bodies, |_, _| {}));
    let trimmed = splits(&bodies, |index, body| {
        if index > 15 {
            body["messages"][2]["content"][0]["content"] = "(trimmed)".into();
        }
    });
    assert!(ratio(&trimmed) < whole - 0.01, "{} {whole}", ratio(&trimmed));
}

#[tokio::test]
async fn r8_after_a_turn_longer_than_the_look_back_the_marker_of_the_turn_before_is_what_is_found() {
    let bodies = bodies().await;
    let reads = |splits: &[Split]| splits.iter().map(|split| split.read).collect::<Vec<_>>();
    let ours = reads(&splits(&bodies, |_, _| {}));
    let newest_alone = splits(&bodies, |_, body| {
        let last = body["messages"].as_array().map_or(0, Vec::len) - 1;
        for (index, message) in body["messages"].as_array_mut().into_iter().flatten().enumerate() {
            for block in message["content"].as_array_mut().into_iter().flatten().filter(|_| index != last) {
                block.as_object_mut().expect("a block").remove("cache_control");
            }
        }
    });
    assert!(reads(&newest_alone).iter().zip(&ours).any(|(theirs, ours)| theirs < ours));
}

#[tokio::test]
async fn r8_whoever_forks_in_the_middle_of_a_long_turn_reads_its_calls_from_the_cache() {
    let bodies = bodies().await;
    let parsed: Vec<Value> = bodies.iter().map(|body| serde_json::from_slice(body).expect("JSON")).collect();
    let is_long = |body: &Value| {
        let results =
            body["messages"].as_array().and_then(|messages| messages.last()).map(|last| &last["content"]);
        results.and_then(Value::as_array).is_some_and(|results| results.len() > 20)
    };
    let at = parsed.iter().position(is_long).expect("the long turn");
    let mut cache = Cache::default();
    let before = parsed[..=at].iter().map(|body| cache.take(body)).last().expect("requests");
    let mut fork = parsed[at].clone();
    for result in
        fork["messages"].as_array_mut().and_then(|messages| messages.last_mut()).expect("results")["content"]
            .as_array_mut()
            .expect("results")
    {
        result["content"] = "interrupted".into();
    }
    let forked = cache.take(&fork);
    assert!(forked.read > before.read, "{forked:?} after {before:?}: the calls too");
}

#[tokio::test]
async fn r8_an_hour_keeps_tools_and_system_prompt_while_the_person_is_away() {
    let read_after = |cache_lifetime: CacheLifetime| async move {
        let options = RequestOptions { cache: cache_lifetime, ..OPTIONS };
        let bodies = plan::play(ApiVersion::default(), options).await.bodies;
        let parsed: Vec<Value> =
            bodies.iter().map(|body| serde_json::from_slice(body).expect("JSON")).collect();
        let mut cache = Cache::default();
        cache.take(&parsed[0]);
        cache.wait(Duration::from_mins(20));
        cache.take(&parsed[1]).read
    };
    assert_eq!(read_after(CacheLifetime::FiveMinutes).await, 0);
    assert!(read_after(CacheLifetime::OneHour).await > 1024);
}

fn each_message_block(body: &mut Value, change: impl Fn(&mut serde_json::Map<String, Value>)) {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            change(block.as_object_mut().expect("a block"));
        }
    }
}
