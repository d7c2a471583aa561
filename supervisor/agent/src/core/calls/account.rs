//! The report on a sub-agent's end, in words for the model of its parent.

use std::fmt::{Display, Write};

use ipc::denial::Denial;
use protocol::event::{Account, SubAgentResult};

/// Maximum number of changed files in the report. The session log has all.
const LISTED_FILES: usize = 100;

/// Returns the report for the parent's model: the supervisor's facts, then the sub-agent's own text.
pub fn account_of(report: &SubAgentResult) -> String {
    let SubAgentResult {
        agent,
        status,
        message,
        files,
        unseen,
        denials,
        denied,
        steps,
        usage,
        cost_usd,
        plan,
        text,
        ..
    } = report;
    let mut told = format!("[account of the supervisor] sub-agent {agent}: {}", status.as_str());
    if let Some(message) = message {
        // Writing to a `String` cannot fail, here and below.
        let _ = write!(told, " ({})", line(message));
    }
    for step in plan {
        let _ = write!(told, "\nstep {}", line(step));
        for outcome in step.acceptance.iter().filter(|outcome| !outcome.passed) {
            let _ = write!(told, "\n  {}", line(outcome.without_time()));
        }
    }
    let account = Account::of(*usage, *cost_usd);
    let unit = if *steps == 1 { "step" } else { "steps" };
    let _ = write!(told, "\n{steps} {unit}, {account}");
    if !files.is_empty() {
        told.push_str("\nfiles that it changed:");
        for path in files.iter().take(LISTED_FILES) {
            let _ = write!(told, "\n  {}", line(path));
        }
        if files.len() > LISTED_FILES {
            let _ = write!(told, "\n  and {} more", files.len() - LISTED_FILES);
        }
    }
    if let Some(unseen) = unseen {
        let _ = write!(told, "\nits commands may have changed other files: {}", line(unseen));
    }
    if *denials > 0 {
        let unit = if *denials == 1 { "denial" } else { "denials" };
        let _ = write!(told, "\n{denials} {unit}: the sub-agent lacked access");
        for Denial { operation, object, layer, .. } in denied {
            let _ = write!(told, "\n  {operation} {} ({layer})", line(object));
        }
    }
    if text.is_empty() {
        told.push_str("\n[it left no message]");
    } else {
        let _ = write!(told, "\n[its last message: a claim that you may have to check]\n{text}");
    }
    told
}

fn line(text: impl Display) -> String {
    let ends = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    let mut line = String::new();
    for character in text.to_string().chars() {
        if ends(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use ipc::denial::{Grade, Layer, Object, Operation};
    use ipc::id::CallId;
    use ipc::missing_right::MissingRight;
    use protocol::event::{SubAgentStatus, TokenUsage};

    use super::*;

    fn report() -> SubAgentResult {
        SubAgentResult {
            agent: "1.2".into(),
            call: Some(CallId(3)),
            status: SubAgentStatus::Done,
            message: None,
            files: vec![],
            unseen: None,
            denials: 0,
            denied: vec![],
            steps: 1,
            usage: TokenUsage { input: 1200, output: 34, ..TokenUsage::default() },
            cost_usd: None,
            duration_ms: 5,
            plan: vec![],
            text: "the bug is in a.rs:3".to_owned(),
        }
    }

    #[test]
    fn the_supervisors_account_comes_before_the_sub_agents_words() {
        insta::assert_snapshot!(account_of(&report()), @"
        [account of the supervisor] sub-agent 1.2: done
        1 step, 1.2k in, 0% cached, 34 out
        [its last message: a claim that you may have to check]
        the bug is in a.rs:3
        ");
        let failed = SubAgentResult {
            status: SubAgentStatus::Budget,
            message: Some("the limit of 5 steps is reached".to_owned()),
            files: vec!["/p/a.rs".into(), "/p/b.rs".into()],
            unseen: None,
            denials: 2,
            denied: vec![Denial {
                layer: Layer::Mounts,
                operation: Operation::Write,
                object: Object::Path("/p/c.rs".into()),
                program: None,
                missing_right: MissingRight::Write { path: "/p/c.rs".into(), closed_by: None }.into(),
                grant: None,
                grade: Grade::Proved,
                errno: None,
            }],
            steps: 5,
            text: String::new(),
            ..report()
        };
        insta::assert_snapshot!(account_of(&failed), @r"
        [account of the supervisor] sub-agent 1.2: budget (the limit of 5 steps is reached)
        5 steps, 1.2k in, 0% cached, 34 out
        files that it changed:
          /p/a.rs
          /p/b.rs
        2 denials: the sub-agent lacked access
          write /p/c.rs (read-only mount)
        [it left no message]
        ");
    }
}
