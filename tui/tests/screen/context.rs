use insta::assert_snapshot;
use protocol::event::{
    CompactionCause, ContextCompacted, EventKind, PromptFixed, SummaryFrom, TokenUsage, ToolCallStatus,
};
use serde_json::json;

use crate::copy::reply;
use crate::seat::Seat;

fn said(text: &str) -> EventKind {
    EventKind::UserMessage { text: text.to_owned(), images: vec![] }
}

fn page(seat: &mut Seat) -> String {
    seat.keys(":context\n");
    let screen = seat.screen();
    let rows = screen.lines().take_while(|row| !row.contains("Esc close"));
    rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[test]
fn the_context_is_told_by_kind_file_tool_and_message_largest_first() {
    let mut seat = Seat::new(90, 50);
    seat.keys(":context\n");
    assert!(seat.screen().contains("the context is empty"), "{}", seat.screen());
    let system = Some("x".repeat(600));
    seat.log(EventKind::PromptFixed(PromptFixed { system, tools: vec![], same_as: None, new_context: None }));
    seat.log(said("mend the lexer"));
    seat.call(1, "read_file", &json!({ "path": "src/lexer.rs" }));
    seat.finish(1, ToolCallStatus::Completed, &"y".repeat(900));
    seat.call(2, "read_file", &json!({ "path": "src/lexer.rs" }));
    seat.finish(2, ToolCallStatus::Completed, &"y".repeat(300));
    seat.log(said("test\u{1b}[2J it"));
    seat.call(3, "shell_exec", &json!({ "command": "cargo test" }));
    seat.finish(3, ToolCallStatus::Completed, &"z".repeat(600));
    // The provider counts 1,230 tokens.
    seat.log(reply("Done."));
    assert_snapshot!(page(&mut seat), @r"
    context · 1k of 200k tokens · 1%
    sizes of the pieces are estimates · /compact replaces about 926 by a summary
    by kind
       606  49%  ████████████████████  files that were read or changed
       303  24%  ██████████            output of commands
       303  24%  ██████████            system prompt and tools
        13   1%                        your messages
         3   0%                        answers
    by file
       606  49%  ████████████████████  src/lexer.rs
    by tool
       606  49%  ████████████████████  read_file
       303  24%  ██████████            shell_exec
    by message, with the work that followed
       614  49%  ████████████████████  1  mend the lexer
       312  25%  ██████████            2  test\u{1b}[2J it
    the largest pieces
       454  36%  ███████████████       read src/lexer.rs
       303  24%  ██████████            system prompt
       303  24%  ██████████            run cargo test
       151  12%  █████                 read src/lexer.rs
         7   0%                        mend the lexer
         6   0%                        test\u{1b}[2J it
         3   0%                        answers
    ");
    seat.keys("q");
    seat.log(EventKind::ContextCompacted(ContextCompacted {
        cause: CompactionCause::Request,
        summary: SummaryFrom::Conversation,
        tokens_before: 900,
        tokens_after: 300,
        usage: TokenUsage::default(),
        cost_usd: None,
        first_message: vec!["s".repeat(300)],
    }));
    assert_snapshot!(page(&mut seat), @"
    context · 300 of 200k tokens
    sizes of the pieces are estimates · /compact replaces about 100 by a summary
    by kind
       200  66%  ████████████████████  system prompt and tools
       100  33%  ██████████            summary of the conversation before
    the largest pieces
       200  66%  ████████████████████  system prompt
       100  33%  ██████████            summary of the conversation before
    ");
}
