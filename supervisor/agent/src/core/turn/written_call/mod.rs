//! Detects a tool call that a model wrote as text, in a form that its server did not parse.
//!
//! Such a text is never run: an answer may quote a call. A reply counts as a call if all of it, or its end, is a call
//! of a tool that the agent has. The model is told once; a second such reply in a row ends the run.

mod elements;
mod json;
mod page;
mod scan;

use gate::tools::Registry;

use self::page::ReplyPage;
use self::scan::CallScan;
use super::reply::ModelReply;
use crate::conversation::StopReason;

/// Maximum number of positions at which a call is searched for.
const MOST_PLACES: usize = 40;

/// Maximum bytes of a reply in which a call is searched for.
const LONGEST: usize = 1 << 20;

/// Hint for users whose server does not parse the calls of its model.
const HINT: &str = "choose another model with --model, or turn on the server's parser of tool calls (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice)";

/// Returns the tool that a text calls, as a whole or at its end; `None` if it calls none.
fn find<'a>(text: &str, tools: &[&'a str]) -> Option<&'a str> {
    if text.len() > LONGEST {
        return None;
    }
    let text = text.replace("｜DSML｜", "");
    let page = ReplyPage::of(&text);
    let places = page.places().map(|place| (CallScan::new(place.rest, tools), place));
    let mut fitting =
        places.filter(|(scan, place)| scan.is_marked() || place.begins_line && scan.may_be_call());
    let written = fitting.by_ref().take(MOST_PLACES).find_map(|(scan, place)| {
        let is_announced = scan.is_marked() || page::announces(place.before);
        is_announced.then(|| scan.whole()).flatten()
    });
    written.or_else(|| {
        let block = page.last_block()?;
        let is_announced = block.is_for_calls() || page::announces(block.before);
        is_announced.then(|| CallScan::new(block.text, tools).whole()).flatten()
    })
}

/// Returns the tool that a complete reply calls in its text; `None` for a reply with real calls.
pub(super) fn of(reply: &ModelReply, stop: &StopReason, tools: &Registry) -> Option<String> {
    let is_finished = match stop {
        StopReason::ToolUse | StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) => true,
        StopReason::MaxTokens
        | StopReason::PauseTurn
        | StopReason::Refusal(_)
        | StopReason::ContextWindowExceeded => false,
    };
    if !is_finished || !reply.call_names().is_empty() {
        return None;
    }
    let tools = tools.definitions();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    find(&reply.text(), &names).map(str::to_owned)
}

/// Returns the text for the user at the end of a run whose model wrote a call as text twice in a row.
pub(super) fn twice() -> String {
    format!(
        "the model wrote a tool call as text, twice in a row; the model's server did not recognise the calls\n  hint: {HINT}"
    )
}

pub(super) fn told(tool: &str) -> String {
    format!(
        "Your reply contains a call of {tool} as text. Nothing was run: only calls in the form of this API are. \
         Call the tool in that form; if you meant no call, say in words what came of the task."
    )
}

#[cfg(test)]
mod tests;
