//! An audit as one page of HTML without scripts or external resources. Its markup is constant, its texts are escaped,
//! and its size is bounded.

mod file;
mod section;

use self::section::AgentSection;
use super::account::AuditAccount;
use super::by_agent::EventsByAgent;
use super::text::{spent, title};
use super::timeline::Moment;
use crate::journal::shown::Html;

pub(super) use self::file::{PageError, write};

const STYLE: &str = include_str!("style.css");

/// Maximum number of agents on a page that have a section of their own.
const MOST_AGENTS: usize = 200;

/// Maximum number of timeline rows on a page.
const MOST_MOMENTS: usize = 20_000;

/// Maximum number of rows in one agent's timeline.
const MOST_MOMENTS_OF_AGENT: usize = 1000;

pub(super) fn page(account: &AuditAccount, events: &EventsByAgent<'_>) -> String {
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    html.element("title", &format!("Audit of {}", account.log));
    html.raw("\n<style>\n").raw(STYLE);
    let shown = account.agents.len().min(MOST_AGENTS);
    (0..shown).for_each(|index| hides(&mut html, index));
    html.raw("</style></head>\n<body>\n");
    verdict(&mut html, account);
    outline(&mut html, account);
    sections(&mut html, account, events);
    html.raw("</body></html>\n");
    html.into_string()
}

/// Adds a style rule that hides the section of an agent while the checkbox for this agent is not ticked.
fn hides(html: &mut Html, index: usize) {
    html.raw("body:has(#show-").number(index).raw(":not(:checked)) #agent-").number(index);
    html.raw(" { display: none }\n");
}

fn verdict(html: &mut Html, account: &AuditAccount) {
    let is_sound = account.intact && account.findings.is_empty();
    html.raw("<header><h1>Audit</h1>\n");
    html.raw(if is_sound { "<p class=\"sound\">" } else { "<p class=\"unsound\">" });
    html.text(&account.verdict()).raw("</p>\n");
    html.element("p", &account.log.to_string());
    let faults = account.faults.iter().cloned();
    let findings = account.findings.iter().map(|finding| format!("finding: {}", finding.text));
    html.list("unsound", faults.chain(findings));
    html.raw("</header>\n");
}

fn outline(html: &mut Html, account: &AuditAccount) {
    html.raw("<nav><h2>Agents</h2>\n<p>A ticked agent is shown below. Tick two to compare them side by side.</p>\n<ul>\n");
    for (index, agent) in account.agents.iter().take(MOST_AGENTS).enumerate() {
        html.raw("<li class=\"level-")
            .number(agent.agent.level().min(9))
            .raw("\"><input type=\"checkbox\" checked=\"checked\" id=\"show-");
        html.number(index).raw("\"/> <a href=\"#agent-").number(index).raw("\">agent ");
        html.text(agent.agent.as_str()).raw("</a> ");
        html.text(&title(agent.task.as_deref().unwrap_or_default())).raw(" <small>");
        let status = agent.status.as_deref().unwrap_or("the log does not show when this agent ended");
        html.text(&format!("{status} · {}", spent(agent))).raw("</small></li>\n");
    }
    html.raw("</ul>\n");
    html.more(account.agents.len().saturating_sub(MOST_AGENTS), "agents");
    html.raw("</nav>\n");
}

fn sections(html: &mut Html, account: &AuditAccount, events: &EventsByAgent<'_>) {
    let began_ms = events.began_ms();
    let mut room = MOST_MOMENTS;
    html.raw("<main>\n");
    for (index, agent) in account.agents.iter().take(MOST_AGENTS).enumerate() {
        let moments = events.own(&agent.agent).filter_map(|event| Moment::of(event, began_ms));
        let mut moments: Vec<_> = moments.collect();
        let left_out = moments.len().saturating_sub(room.min(MOST_MOMENTS_OF_AGENT));
        moments.truncate(room.min(MOST_MOMENTS_OF_AGENT));
        room = room.saturating_sub(moments.len());
        AgentSection { index, agent, moments: &moments, left_out }.write(html);
    }
    html.raw("</main>\n");
}
