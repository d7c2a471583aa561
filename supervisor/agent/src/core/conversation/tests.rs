use protocol::event::{CompactionCause, EventKind, TokenUsage};
use serde_json::value::RawValue;

use super::*;
use crate::conversation::{Message, StopReason};
use crate::core::outbox::Outbox;
use crate::core::phase::Phase;
use crate::core::tariff::Tariff;
use crate::core::tests::alone::{config, standing};
use crate::core::{ContextItem, Effect, Window};

const UNPRICED: Tariff = Tariff(None);

fn conversation(window: u64) -> Conversation {
    let config = config();
    Conversation::new(ConversationSettings {
        window: Window { context: window },
        max_tokens: config.max_tokens,
        fixed: 100,
        sees_images: true,
        surroundings: config.surroundings,
        demand: None,
        project: "/p".into(),
    })
}

fn said(text: &str) -> UserSaid {
    UserSaid { text: text.to_owned(), images: Vec::new() }
}

fn words(text: &str) -> Vec<Box<RawValue>> {
    let block = serde_json::json!({ "type": "text", "text": text }).to_string();
    vec![RawValue::from_string(block).unwrap()]
}

fn logged(out: &mut Outbox) -> Vec<String> {
    let name = |effect: Effect| match effect {
        Effect::Log { kind, .. } => format!("{kind:?}").split([' ', '(']).next().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    out.take().into_iter().map(name).collect()
}

/// Returns a conversation with one reply. The provider counted `tokens` for the prompt of that reply.
fn answered(window: u64, tokens: u64) -> (Conversation, Outbox) {
    let (mut conversation, mut out) = (conversation(window), Outbox::default());
    conversation.hear(said("do it"));
    conversation.say_what_waits(&mut out);
    conversation.reply(words("done"), TokenUsage { input: tokens, ..TokenUsage::default() });
    (conversation, out)
}

#[test]
fn context_stands_before_the_words_that_came_while_the_agent_was_busy() {
    let (mut conversation, mut out) = (conversation(100_000), Outbox::default());
    conversation.add_context(
        vec![ContextItem { source: "AGENTS.md".to_owned(), text: "be brief".to_owned() }],
        true,
        &mut out,
    );
    conversation.hear(said("first"));
    conversation.hear(said("second"));
    conversation.note("before all".to_owned());
    conversation.say_what_waits(&mut out);
    assert!(!conversation.has_unread_words());
    assert_eq!(logged(&mut out), ["ContextAdded", "ContextAdded", "UserMessage", "UserMessage"]);
    let messages = conversation.messages();
    let [message] = &messages[..] else { panic!("{messages:?}") };
    let Message::User(blocks) = &**message else { panic!("{message:?}") };
    assert_eq!(blocks.len(), 4, "{blocks:?}");
}

#[test]
fn a_full_window_is_left_for_a_context_that_begins_with_the_summary() {
    let (mut conversation, mut out) = answered(100_000, 99_000);
    assert!(matches!(conversation.next(&mut out), Next::Compact(CompactionCause::Limit)));
    conversation.compact(CompactionCause::Limit, Then::Step, &mut out);
    assert!(conversation.is_compacting());
    out.take();
    let after = conversation.on_summary(
        "So far.",
        &StopReason::EndTurn,
        TokenUsage::default(),
        UNPRICED,
        &standing(),
        &mut out,
    );
    assert_eq!(after, AfterSummary::Begun(Then::Step));
    assert_eq!(logged(&mut out), ["ContextCompacted"]);
    assert_eq!(conversation.messages().len(), 1);
    assert!(matches!(conversation.next(&mut out), Next::Step));
}

#[test]
fn a_summary_that_says_nothing_is_asked_for_once_more_by_a_record() {
    let (mut conversation, mut out) = answered(100_000, 10_000);
    conversation.compact(CompactionCause::Request, Then::End, &mut out);
    assert_eq!(conversation.asked(&mut out).messages.len(), 3, "at the end of the conversation");
    let silent = |conversation: &mut Conversation, out: &mut Outbox| {
        let usage = TokenUsage::default();
        conversation.on_summary(" ", &StopReason::EndTurn, usage, UNPRICED, &standing(), out)
    };
    assert_eq!(silent(&mut conversation, &mut out), AfterSummary::Ask);
    assert_eq!(conversation.asked(&mut out).messages.len(), 1, "a record");
    assert_eq!(silent(&mut conversation, &mut out), AfterSummary::Begun(Then::End));
}

#[test]
fn a_wish_for_a_summary_waits_while_the_turn_runs_and_fails_where_nothing_was_said() {
    let (mut empty, mut out) = (conversation(100_000), Outbox::default());
    assert!(!empty.on_compact(Phase::Resting, &mut out));
    assert!(empty.messages().is_empty());
    let (mut conversation, mut out) = answered(100_000, 99_000);
    out.take();
    assert!(!conversation.on_compact(Phase::Asking, &mut out));
    assert_eq!(logged(&mut out), ["Notice"]);
    assert!(!conversation.is_compacting());
    assert!(!conversation.on_compact(Phase::Closed, &mut out));
    assert!(out.take().is_empty());
}

#[test]
fn the_ledger_reads_each_event_once() {
    let (mut conversation, mut out) = answered(100_000, 1_000);
    conversation.read(&mut out);
    conversation.read(&mut out);
    let kinds: Vec<_> = out
        .take()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Log { kind, .. } => Some(kind),
            _ => None,
        })
        .collect();
    assert!(matches!(kinds[..], [EventKind::UserMessage { .. }]), "{kinds:?}");
    assert_eq!(ledger::Ledger::of(kinds.iter(), &"/p".into()), *conversation.ledger());
}
