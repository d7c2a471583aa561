//! An audit as text for a terminal: the verdict, then the tree of agents. `{:#}` also shows every worker and approval.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use ipc::rights::Grant;
use protocol::event::{Account as Spent, SubAgentSpawned};
use tui::text::SafeText;

use super::account::AuditAccount;
use super::agent_account::{AgentAccount, Approval, DenialGroup, Spend, WorkerAccount};
use super::guest_text::{guest_rows, guest_summary};

/// Maximum number of characters of a task in the tree.
const LONGEST_TASK: usize = 100;

/// Maximum number of faults of the log file that are shown without `--verbose`.
const SHOWN_FAULTS: usize = 3;

const UNANSWERED: &str = "no answer in the log";

/// Number of digits of a digest that are shown.
const SHORT: usize = 12;

impl Display for AuditAccount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict())?;
        writeln!(f, "log: {}", self.log)?;
        let most = if f.alternate() { usize::MAX } else { SHOWN_FAULTS };
        self.faults.iter().take(most).try_for_each(|fault| writeln!(f, "  {fault}"))?;
        if let more @ 1.. = self.faults.len().saturating_sub(most) {
            writeln!(f, "  and {more} more (--verbose shows them)")?;
        }
        self.findings.iter().try_for_each(|finding| writeln!(f, "  finding: {}", line(&finding.text)))?;
        self.agents.iter().try_for_each(|agent| Indented(f, agent.agent.level()).agent(agent))
    }
}

struct Indented<'a, 'f>(&'a mut Formatter<'f>, usize);

impl Indented<'_, '_> {
    fn line(&mut self, text: &str) -> fmt::Result {
        (0..self.1).try_for_each(|_| self.0.write_str("  "))?;
        self.0.write_str(text)?;
        self.0.write_char('\n')
    }

    fn agent(mut self, agent: &AgentAccount) -> fmt::Result {
        let task = agent.task.as_deref().map(|task| format!(": {}", title(task))).unwrap_or_default();
        self.line(&format!("agent {}{task}", agent.agent))?;
        let rows = if self.0.alternate() { rows(agent) } else { summary(agent) };
        rows.iter().try_for_each(|row| self.line(&format!("  {row}")))
    }
}

/// Returns the summary of one agent: end, price, last access, and counts.
fn summary(agent: &AgentAccount) -> Vec<String> {
    let mut rows = vec![format!("{} · {}", end(agent), spent(agent))];
    rows.extend(agent.workers.iter().rfind(|worker| worker.grant.is_none()).map(|worker| {
        let not_enforced = not_enforced(worker);
        format!("access: {} · {} tier{not_enforced}", line(&worker.rights.to_string()), worker.tier)
    }));
    rows.extend(counted(
        "calls",
        agent.calls.iter().map(|(name, ends)| {
            let other = |(status, _): &(&String, &usize)| *status != "completed";
            let others: Vec<_> =
                ends.iter().filter(other).map(|(status, count)| format!("{count} {status}")).collect();
            let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
            format!("{} {}{others}", line(name), ends.values().sum::<usize>())
        }),
    ));
    let mut decisions = BTreeMap::<_, usize>::new();
    for approval in &agent.approvals {
        *decisions.entry(approval.decision.unwrap_or(UNANSWERED)).or_default() += 1;
    }
    rows.extend(counted(
        "approvals",
        decisions.iter().map(|(decision, count)| format!("{count} {decision}")),
    ));
    rows.extend(agent.hosts().iter().map(|host| line(&host.to_string())));
    rows.extend(agent.pinned.iter().map(|pinned| line(&pinned.to_string())));
    rows.extend(guest_summary(&agent.guests));
    rows.extend(agent.denials.iter().map(denial));
    rows.extend(agent.restored.iter().map(|place| format!("restored: {}", line(place))));
    rows
}

fn counted(of: &str, counts: impl Iterator<Item = String>) -> Option<String> {
    let counts: Vec<_> = counts.collect();
    (!counts.is_empty()).then(|| format!("{of}: {}", counts.join(", ")))
}

fn rows(agent: &AgentAccount) -> Vec<String> {
    let mut rows = vec![end(agent)];
    rows.extend(agent.spawned.as_ref().map(|spawned| format!("access: {}", access(spawned))));
    rows.extend(agent.workers.iter().map(worker));
    rows.extend(agent.calls.iter().map(|(name, ends)| {
        let ends: Vec<_> = ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
        format!("{}: {}", line(name), ends.join(", "))
    }));
    rows.extend(agent.approvals.iter().map(approval));
    rows.extend(agent.hosts().iter().map(|host| line(&host.to_string())));
    rows.extend(agent.pinned.iter().map(|pinned| line(&pinned.to_string())));
    rows.extend(agent.guests.iter().flat_map(guest_rows));
    rows.extend(agent.denials.iter().map(denial));
    rows.extend(agent.restored.iter().map(|place| format!("restored: {}", line(place))));
    rows.push(format!("spent: {}", spent(agent)));
    rows
}

pub(super) fn end(agent: &AgentAccount) -> String {
    let status = agent.status.as_deref().unwrap_or("the log does not show when this agent ended");
    let message = agent.result.as_ref().and_then(|result| result.message.as_deref());
    let message = message.map(|message| format!(": {}", line(message))).unwrap_or_default();
    format!("{} · {}{message}", line(status), took(agent.duration_ms))
}

pub(super) fn took(ms: u64) -> String {
    format!("{:.1} s", Duration::from_millis(ms).as_secs_f64())
}

/// Returns the access with which a sub-agent was started.
pub(super) fn access(spawned: &SubAgentSpawned) -> String {
    let SubAgentSpawned { write, net, reach, sockets, rights_digest, grant, .. } = spawned;
    let write = Grant { write: write.clone(), ..Grant::default() };
    let write = if write.is_empty() { "read-only".to_owned() } else { write.to_string() };
    let sockets = Grant { sockets: sockets.clone(), ..Grant::default() };
    let sockets = if sockets.is_empty() { String::new() } else { format!(" · {sockets}") };
    let servers = spawned.servers.join(" ");
    let servers = if servers.is_empty() { servers } else { format!(" · mcp {servers}") };
    let net = format!("net {net}{reach}{}{}", line(&sockets), line(&servers));
    let granted =
        grant.as_ref().map(|grant| format!(" · approved in addition to its parent's access: {grant}"));
    format!(
        "{} · {net}{} · digest {}",
        line(&write),
        line(&granted.unwrap_or_default()),
        digest(rights_digest)
    )
}

pub(super) fn worker(worker: &WorkerAccount) -> String {
    let WorkerAccount { generation, tier, rights, ruleset_digest, grant, purpose, ended, .. } = worker;
    let held = match grant {
        None => format!("worker {generation} ({tier}): {}", line(&rights.to_string())),
        Some(grant) => {
            let purpose = purpose.as_ref().map(|purpose| format!(" for {purpose}")).unwrap_or_default();
            let grant = line(&grant.to_string());
            format!("worker {generation}{purpose} ({tier}): additional access {grant}")
        }
    };
    let WorkerAccount { landlock_abi, rules, .. } = worker;
    let start = format!("Landlock ABI {landlock_abi}, {rules} rules{}", not_enforced(worker));
    let ended = ended.as_deref().map_or_else(
        || "the log does not show when this worker ended".to_owned(),
        |why| format!("ended: {}", line(why)),
    );
    format!("{held} · ruleset {} · {start} · {ended}", digest(ruleset_digest))
}

fn not_enforced(worker: &WorkerAccount) -> String {
    let promises = worker.not_enforced.iter().map(|promise| format!(", not enforced: {}", line(promise)));
    promises.collect::<Vec<_>>().concat()
}

pub(super) fn approval(approval: &Approval) -> String {
    let Approval { call, about, decision, by, cause, in_part, .. } = approval;
    let about = about.map(|about| format!(" of {about}")).unwrap_or_default();
    let decision = decision.unwrap_or(UNANSWERED);
    let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let cause = cause.as_ref().map(|cause| format!(" ({})", line(cause))).unwrap_or_default();
    let part = in_part.as_ref().map(|part| format!(": {part}")).unwrap_or_default();
    format!("approval{about} for call {call}: {decision}{by}{cause}{part}")
}

pub(super) fn denial(DenialGroup { denial, count, calls }: &DenialGroup) -> String {
    let beside = if calls.is_empty() { "outside of calls: " } else { "" };
    let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
    format!("{beside}{}{times}", line(denial))
}

pub(super) fn spent(agent: &AgentAccount) -> String {
    let text = |spend: Spend| Spent::from(spend).to_string();
    let (own, all) = (text(agent.own), text(agent.with_sub_agents));
    if own == all { own } else { format!("{own} (with its sub-agents: {all})") }
}

pub(super) fn title(task: &str) -> String {
    let first = task.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut chars = first.trim().chars();
    let cut: String = chars.by_ref().take(LONGEST_TASK).collect();
    let more = if chars.next().is_some() || task.trim().lines().count() > 1 { "…" } else { "" };
    format!("{}{more}", line(&cut))
}

pub(super) fn digest(digest: &str) -> String {
    let cut: String = digest.chars().take(SHORT).collect();
    format!("{}…", line(&cut))
}

/// Returns untrusted text as one line, so that it cannot imitate a row.
pub(super) fn line(text: &str) -> String {
    SafeText::line(text).as_str().to_owned()
}
