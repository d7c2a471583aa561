use crate::inspect::audit::agent_account::AgentAccount;
use crate::inspect::audit::guest_text::guest_rows;
use crate::inspect::audit::text::{access, approval, denial, end, spent, took, worker};
use crate::inspect::audit::timeline::{Moment, MomentKind};
use crate::journal::shown::Html;

pub(super) struct AgentSection<'a> {
    pub(super) index: usize,
    pub(super) agent: &'a AgentAccount,
    pub(super) moments: &'a [Moment],
    /// The number of timeline rows that were left out.
    pub(super) left_out: usize,
}

impl AgentSection<'_> {
    pub(super) fn write(&self, html: &mut Html) {
        let Self { index, agent, .. } = self;
        html.raw("<section id=\"agent-").number(*index).raw("\">\n<h2>agent ");
        html.text(agent.agent.as_str()).raw("</h2>\n");
        if let Some(task) = &agent.task {
            html.element("blockquote", task).raw("\n");
        }
        html.raw("<dl>\n");
        field(html, "status", &end(agent));
        field(html, "spent", &spent(agent));
        if let Some(spawned) = &agent.spawned {
            field(html, "access", &access(spawned));
            field(html, "model", &spawned.model);
        }
        html.raw("</dl>\n");
        self.lists(html);
        self.timeline(html);
        if let Some(result) = agent.result.as_ref().filter(|result| !result.text.is_empty()) {
            html.raw("<h3>Last message: a claim of the agent</h3>\n")
                .element("blockquote", &result.text)
                .raw("\n");
        }
        html.raw("</section>\n");
    }

    fn lists(&self, html: &mut Html) {
        let agent = self.agent;
        let calls = agent.calls.iter().map(|(name, ends)| {
            let ends: Vec<_> = ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
            format!("{name}: {}", ends.join(", "))
        });
        let files = agent.result.iter().flat_map(|result| &result.files).map(ToString::to_string);
        let unseen = agent.result.iter().flat_map(|result| &result.unseen);
        let unseen = unseen.map(|why| format!("perhaps more files, changed by commands: {why}"));
        list(html, "Workers", agent.workers.iter().map(worker).collect());
        list(html, "Guests", agent.guests.iter().flat_map(guest_rows).collect());
        list(html, "Tools of MCP servers", agent.pinned.iter().map(ToString::to_string).collect());
        list(html, "Calls", calls.collect());
        list(html, "Approvals", agent.approvals.iter().map(approval).collect());
        list(html, "Denials", agent.denials.iter().map(denial).collect());
        list(html, "Restored places", agent.restored.clone());
        list(html, "Changed files", files.chain(unseen).collect());
    }

    fn timeline(&self, html: &mut Html) {
        if self.moments.is_empty() {
            return;
        }
        html.raw("<details open=\"open\"><summary>Timeline</summary>\n<table>\n");
        for Moment { kind, at_ms, text } in self.moments {
            html.raw(match kind {
                MomentKind::Call => "<tr class=\"call\"><td>",
                MomentKind::Denial => "<tr class=\"denial\"><td>",
                MomentKind::Approval => "<tr class=\"approval\"><td>",
                MomentKind::Other => "<tr><td>",
            });
            html.text(&took(*at_ms)).raw("</td><td>").text(&row(text)).raw("</td></tr>\n");
        }
        html.raw("</table>\n").more(self.left_out, "rows").raw("</details>\n");
    }
}

/// Maximum number of characters of a timeline row.
const LONGEST_ROW: usize = 400;

/// Returns a shortened text for the timeline.
fn row(text: &str) -> String {
    let mut chars = text.chars();
    let cut: String = chars.by_ref().take(LONGEST_ROW).collect();
    match chars.count() {
        0 => cut,
        left_out => format!("{cut}… ({left_out} more characters)"),
    }
}

fn field(html: &mut Html, name: &'static str, value: &str) {
    html.raw("<dt>").raw(name).raw("</dt>").element("dd", value).raw("\n");
}

fn list(html: &mut Html, heading: &'static str, rows: Vec<String>) {
    if !rows.is_empty() {
        html.raw("<h3>").raw(heading).raw("</h3>\n").list("rows", rows);
    }
}
