//! Tests the cost of runs. Every reply and every run reports its cost, and a setting limits the cost of a run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::float_cmp, reason = "both sides are the nearest numbers to the same decimals")]

use model::replay::sse::{Usage, message};
use model::replay::{Block, ReplayServer, Reply};
use serde_json::{Value, json};
use tests::replies::{done, model_of, serve, shell};
use tests::{Finished, User, World};

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    world
}

/// Returns a reply with a tool call. At the prices below it costs a cent and a half.
fn calls_again() -> String {
    let usage = Usage { input: 1_000, cache_creation: 1_000, cache_read: 10_000, output: 500 };
    let input = json!({"command": "true"}).to_string();
    message(&[Block::tool_use("toolu_1", "shell_exec", input)], "tool_use", usage)
}

const PRICED: &str = "model = \"house-model\"\n[models.\"house-*\"]\n\
    prices = { input = 3, output = 15, cache_write_5m = 2, cache_write_1h = 6, cache_read = 0.25 }\n";

fn dollars(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn the_cost_of_a_run_is_the_sum_of_its_replies() {
    let world = world();
    world.configure(PRICED);
    let server = model_of([calls_again(), calls_again(), done()]);
    let run = world.run(&server, &[]).expect(0);
    let replies: Vec<_> =
        run.events_of("assistant_message").iter().map(|data| dollars(&data["cost_usd"])).collect();
    // Per million tokens: 1,000 at $3, 1,000 at $2, 10,000 at $0.25 and 500 at $15; for the last reply, 100 at $3 and
    // 20 at $15.
    assert_eq!(replies, [0.015, 0.015, 0.0006]);
    assert_eq!(dollars(&run.result()["cost_usd"]), 0.0306);
}

#[test]
fn the_account_of_a_run_has_its_tokens_its_cache_hits_and_its_cost() {
    let world = world();
    world.configure(PRICED);
    let run =
        Finished::of(&mut world.task(&model_of([calls_again(), done()]).base_url(), ["do it"])).expect(0);
    let account = run.stderr.lines().last().unwrap().rsplit_once(" · ").unwrap().0;
    assert_eq!(account, "done · 2 steps · 12.1k in, 82% cached, 520 out, $0.016");
}

#[test]
fn three_is_money_that_is_spent_and_no_request_follows() {
    let world = world();
    world.configure(PRICED);
    let server = model_of((0..9).map(|_| calls_again()));
    let run = world.run(&server, &["--max-usd", "0.03"]).expect(3);
    let result = run.result();
    assert_eq!((&result["reason"], &result["steps"]), (&json!("cost_limit"), &json!(2)));
    assert_eq!(result["message"], "the limit of $0.030 is reached: the requests so far cost $0.030");
    assert_eq!((server.requests().len(), dollars(&result["cost_usd"])), (2, 0.03));
    // The calls of the last reply get results, although no further request is sent.
    assert_eq!(run.events_of("tool_call_finished").len(), 2);
    // A setting has the same effect, and a project may lower it. A failed attempt costs nothing, as its tokens are
    // unknown.
    world.file(".bailiwick.toml", "limits.max_usd = 0.01\n");
    let server = serve([
        Reply::error(529, "overloaded_error", "x").header("retry-after-ms", "1"),
        Reply::sse(calls_again()),
    ]);
    let run = world.run(&server, &["--max-usd", "5"]).expect(3);
    assert_eq!((run.result()["reason"].clone(), server.requests().len()), (json!("cost_limit"), 2));
}

fn refused(world: &World, server: &ReplayServer, arguments: &[&str]) -> String {
    let run = Finished::of(world.task(&server.base_url(), arguments).arg("do it")).expect(2);
    assert_eq!(server.connections(), 0);
    run.stderr
}

#[test]
fn two_is_a_limit_on_what_nobody_can_count() {
    let world = world();
    let server = model_of([done()]);
    insta::assert_snapshot!(refused(&world, &server, &["--model", "nobody-knows", "--max-usd", "1"]), @r#"
    bailiwick: the cost of "nobody-knows" cannot be limited: its price is not known
      hint: limit its tokens instead, or write the price into config.toml, as in:
        [models."nobody-knows"]
        prices = { input = 3, output = 15 }
    "#);
    insta::assert_snapshot!(refused(&world, &server, &["--max-usd", "0"]).lines().next().unwrap_or_default(), @"error: invalid value '0' for '--max-usd <X>': expected an amount above 0");
    // Without the limit the request is sent, and no cost is reported.
    let run = world.run(&model_of([shell("true"), done()]), &["--model", "nobody-knows"]).expect(0);
    assert!(run.result().get("cost_usd").is_none(), "{}", run.result());
}

#[test]
fn an_effort_that_the_model_does_not_know_is_refused_before_anything_begins() {
    let world = world();
    world.configure("model = \"claude-haiku-4-5\"\neffort = \"max\"\n");
    insta::assert_snapshot!(refused(&world, &model_of([done()]), &[]), @r#"
    bailiwick: the model "claude-haiku-4-5" does not support the effort "max"; supported: none
      hint: change `effort` in the settings, or leave it out
    "#);
    // Control: a model that supports the effort gets it in the request.
    world.configure("model = \"claude-opus-4-6\"\neffort = \"max\"\n");
    let server = model_of([done()]);
    world.run(&server, &[]).expect(0);
    let request = &server.requests()[0];
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["output_config"]["effort"], "max");
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
}

#[test]
fn no_reply_is_asked_to_be_longer_than_the_model_can_make_it() {
    let world = world();
    world.configure("[models.\"small\"]\nmax_output = 4_096\n");
    for (model, most) in [("small", 4_096), ("claude-opus-5-5", 32_000)] {
        let server = model_of([done()]);
        world.run(&server, &["--model", model]).expect(0);
        let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
        assert_eq!(body["max_tokens"], most, "{model}");
    }
}
